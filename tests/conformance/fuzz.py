"""Reads the fuzzer's report: fuzz.py DIRECTORY TOOL LIST. Fails where arguments that break the schema were executed.

The fuzzer also reports texts that look like an attack and fit the schema, such as a quote in a string. Those are data.
"""
import json
import pathlib
import sys

from jsonschema import Draft202012Validator

directory, tool, listed = sys.argv[1:4]
summary = json.loads(pathlib.Path(directory, "run_summary.json").read_text())
runs = summary["tools"]["by_name"][tool]["total_runs"]
assert summary["status"] == "completed" and runs > 0, summary
tools = json.loads(pathlib.Path(listed).read_text())["result"]["tools"]
schema = Draft202012Validator(next(each["inputSchema"] for each in tools if each["name"] == tool))
findings = pathlib.Path(directory, "findings.json")
findings = json.loads(findings.read_text())["findings"] if findings.exists() else []
executed = [each["evidence"]["input"] for each in findings if each["category"] == "accepted_malformed"]
malformed = [sent for sent in executed if not schema.is_valid(sent)]
crashed = [each for each in findings if each["category"] != "accepted_malformed"]
print(f"{tool}: {runs} runs, {len(executed)} executed, {len(malformed)} of them malformed")
sys.exit(f"{malformed} {crashed}" if malformed or crashed else 0)
