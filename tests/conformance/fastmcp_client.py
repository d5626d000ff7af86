"""fastmcp as a client: fastmcp_client.py TYPED auto|legacy. Prints a line, fails where something differs."""
import asyncio
import sys

from fastmcp import Client

typed, mode = sys.argv[1:3]


async def elicit(message, response_type, params, context):
    return {"name": "octocat"}


async def main():
    async with Client(typed, mode=mode, elicitation_handler=elicit) as client:
        tools = await client.list_tools()
        given = await client.call_tool("test_simple_text", {})
        assert given.content[0].text == "This is a simple text response for testing.", given
        if mode == "auto":
            greeted = await client.call_tool("test_input_required_result_elicitation", {})
            assert greeted.content[0].text == "Hello! You told me your name.", greeted
        failed = await client.call_tool("test_error_handling", {}, raise_on_error=False)
        assert failed.is_error, failed
    print(f"fastmcp {mode}: {len(tools)} tools")


asyncio.run(main())
