"""A program of your own that answers the turns of calls and chats itself: an endpoint of the protocol parley
(docs/endpoints.md). pip install websockets; python3 server.py 127.0.0.1:9000
"""
import asyncio
import json
import re
import sys

from websockets import ConnectionClosed, serve


async def answer(turn, tools, results, send):
    """Answers a turn. It is cancelled when the customer interrupts, or nobody wants the reply any more."""
    async def say(text):
        for word in re.findall(r"\S+\s*", text):  # the first is spoken while the last is made
            await send({"type": "say", "text": word})

    text = turn["text"]
    for tool in tools:
        if tool["name"] in text:
            await send({"type": "call", "calls": [{"name": tool["name"], "arguments": {}}]})
            await say("It says: " + await results.get())
            return await send({"type": "done"})
    if "bye" in text:
        await say("Goodbye.")
        await send({"type": "end"})
    elif "person" in text:
        await send({"type": "transfer"})
    else:
        await say("You said: " + text)
        await send({"type": "done"})


async def converse(socket):
    """Holds one conversation."""
    tools, results, task = [], asyncio.Queue(), None
    try:
        async for raw in socket:
            got = json.loads(raw)
            print(got["type"], got.get("turn"), got.get("text"), got.get("heard"), flush=True)
            if got["type"] in ("turn", "cancel") and task:
                task.cancel()
            if got["type"] == "turn":
                tools = got.get("tools", tools)  # they are sent only where they have changed
                results = asyncio.Queue()

                def send(out, number=got["turn"]):
                    return socket.send(json.dumps({**out, "turn": number}))

                task = asyncio.create_task(answer(got, tools, results, send))
            elif got["type"] == "result":
                results.put_nowait(got["text"])
    except ConnectionClosed:
        pass  # the conversation goes on over another one
    finally:
        if task:
            task.cancel()


async def main():
    host, port = sys.argv[1].rsplit(":", 1)
    async with serve(converse, host, int(port)):
        await asyncio.Future()


asyncio.run(main())
