"""Reads the fuzzer's report: fuzz.py DIRECTORY TOOL. Fails where arguments that break the schema were executed."""
import json
import pathlib
import sys

reports = [json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).rglob("*.json")]
assert reports, "the fuzzer left no report"


def count(value):
    if isinstance(value, dict):
        own = value.get("accepted_malformed")
        return (own if isinstance(own, int) else 0) + sum(count(child) for child in value.values())
    return sum(count(child) for child in value) if isinstance(value, list) else 0


accepted = sum(count(report) for report in reports)
print(f"{sys.argv[2]}: {accepted} malformed arguments accepted")
sys.exit(1 if accepted else 0)
