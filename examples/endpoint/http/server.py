"""A program of your own that answers the turns of calls and chats as an ordinary HTTP service: an endpoint of the protocol parley
with a request for each reply (docs/endpoints.md). It remembers nothing: each request has all that it needs.
python3 server.py 127.0.0.1:9000
"""
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def say(text):
    for word in re.findall(r"\S+\s*", text):  # the first is spoken while the last is made
        yield {"type": "say", "text": word}


def answer(turn, results):
    """Yields what there is to say in a turn. It is closed when the customer interrupts, or nobody wants the reply any more."""
    text = turn["text"]
    if results:  # of the calls that the last answer made
        yield from say("It says: " + results[0]["text"])
        yield {"type": "done"}
        return
    for tool in turn["tools"]:
        if tool["name"] in text:
            yield {"type": "call", "calls": [{"name": tool["name"], "arguments": {}}]}  # the results come in a new request
            return
    if "bye" in text:
        yield from say("Goodbye.")
        yield {"type": "end"}
    elif "person" in text:
        yield {"type": "transfer"}
    else:
        yield from say("You said: " + text)
        yield {"type": "done"}


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        got = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if "turn" not in got:
            print("end", got["session"]["conversation"], got["end"]["why"], flush=True)
            return
        print("turn", got["turn"]["turn"], got["turn"]["text"], got.get("interrupted"), flush=True)
        try:
            for message in answer(got["turn"], got.get("results")):
                self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")
        except ConnectionError:
            pass  # nobody wants the reply any more


host, port = sys.argv[1].rsplit(":", 1)
ThreadingHTTPServer((host, int(port)), Service).serve_forever()
