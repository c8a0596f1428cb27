"""The official client talks to our server: lists tools, calls an agent, answers what it asks."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def answer(context, params):
    assert "Which name?" in params.message, params.message
    return types.ElicitResult(action="accept", content={"answer": "Ada"})


async def check(read, write, elicits):
    callback = answer if elicits else None
    async with ClientSession(read, write, elicitation_callback=callback) as session:
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "greeter" in names and "echo" in names, names
        said = await session.call_tool("echo", {"text": "hello"})
        assert said.content[0].text == "hello", said
        wrong = await session.call_tool("echo", {"words": "hello"})
        assert wrong.is_error, wrong

        greeted = await session.call_tool("greeter", {"message": "Greet me."})
        fields = greeted.structured_content
        if not elicits:
            assert fields["outcome"] == "input_required", fields
            question = fields["waiting"][0]
            assert question["question"] == "Which name?", question
            greeted = await session.call_tool(
                "greeter", {"session": fields["session"], "answers": {question["id"]: "Ada"}}
            )
            fields = greeted.structured_content
        assert fields["outcome"] == "completed", fields
        assert greeted.content[0].text == "Hello, Ada!", greeted
        again = await session.call_tool(
            "greeter", {"session": fields["session"], "message": "Thanks."}
        )
        assert again.content[0].text == "You are welcome.", again
        stranger = await session.call_tool("greeter", {"session": "nobody", "message": "x"})
        assert stranger.is_error, stranger


async def main():
    where, elicits = sys.argv[1], sys.argv[2] == "elicits"
    if where.startswith("http"):
        async with streamable_http_client(where) as streams:
            await check(streams[0], streams[1], elicits)
    else:
        parameters = StdioServerParameters(command=where, args=sys.argv[3:])
        async with stdio_client(parameters) as (read, write):
            await check(read, write, elicits)
    print("ok")


asyncio.run(main())
