"""The official Python SDK as a client: sdk.py TYPED FOUR auto|legacy. Prints a line, fails where something differs."""
import asyncio
import json
import sys

import mcp.types as types
from mcp import Client

typed, four, mode = sys.argv[1:4]
asked = []


async def elicit(_, params):
    asked.append(params.message)
    schema = params.requested_schema
    properties = (schema if isinstance(schema, dict) else schema.model_dump()).get("properties", {})
    return types.ElicitResult(action="accept", content={name: "octocat" for name in properties})


async def decline(_, params):
    return types.ElicitResult(action="decline")


def texts(result):
    return [block.text for block in result.content if block.type == "text"]


async def main():
    async with Client(typed, mode=mode, elicitation_callback=elicit, read_timeout_seconds=30) as client:
        names, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        assert "test_simple_text" in names and len(names) == len(set(names)), names
        version = client.protocol_version
        assert (version == "2026-07-28") == (mode == "auto"), version

        progress = []

        async def on_progress(done, total, message):
            progress.append(done)

        steps = await client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
        assert not steps.is_error, texts(steps)
        assert progress == sorted(set(progress)) and len(progress) >= 3, progress
        assert texts(await client.call_tool("test_header_mirror", {"region": "eu"})) == ["Region: eu"]
        failed = await client.call_tool("test_error_handling", {})
        assert failed.is_error and "bad_base64" in texts(failed)[0], failed
        if mode == "auto":
            greeted = await client.call_tool("test_input_required_result_elicitation", {})
            assert texts(greeted) == ["Hello! You told me your name."] and asked == ["What is your name?"], (greeted, asked)
    if mode == "auto":
        async with Client(typed, mode=mode, elicitation_callback=decline, read_timeout_seconds=30) as client:
            declined = await client.call_tool("test_input_required_result_elicitation", {})
            assert declined.is_error and "Nothing ran" in texts(declined)[0], declined
    async with Client(four, mode=mode, read_timeout_seconds=30) as client:
        found = json.loads(texts(await client.call_tool("ask", {"question": "give a picture"}))[0])
        assert found["best"]["key"] == "test_image_content", found
        ran = await client.call_tool("invoke", {"key": found["best"]["key"]})
        assert ran.content[0].type == "image" and "confirm http" in texts(ran)[-1], ran
    print(f"python sdk {mode}: {version}, {len(names)} tools, progress {progress}")


asyncio.run(main())
