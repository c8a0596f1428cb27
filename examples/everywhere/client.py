"""An MCP client that nobody here wrote the protocol of: it calls the clerk, and its person only looks on."""

import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def look_on(context, params):
    print(f"asked: {params.message}", flush=True)
    await asyncio.Event().wait()


async def main():
    url, key, message = sys.argv[1:]
    async with streamable_http_client(url) as streams:
        async with ClientSession(streams[0], streams[1], elicitation_callback=look_on) as session:
            await session.initialize()
            result = await session.call_tool("clerk", {"message": message, "key": key})
            print(f"answer: {result.content[0].text}", flush=True)


asyncio.run(main())
