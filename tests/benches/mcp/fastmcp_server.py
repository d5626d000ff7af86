"""One tool that asks the upstream, by fastmcp: fastmcp_server.py PORT UPSTREAM."""
import sys

import httpx2
from fastmcp import FastMCP

port, upstream = sys.argv[1:3]
server = FastMCP("peer")
client = httpx2.AsyncClient(base_url=upstream)


@server.tool
async def FORECAST(place: str) -> dict:
    """Current temperature at a place."""
    answer = await client.get("/v1/forecast", params={"place": place})
    return answer.raise_for_status().json()


server.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, stateless_http=True, json_response=True, log_level="ERROR")
