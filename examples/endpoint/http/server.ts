// A program of your own that answers the turns of calls and chats as an ordinary HTTP service: an endpoint of the protocol parley
// with a request for each reply (docs/endpoints.md). It remembers nothing: each request has all that it needs.
// node server.ts 127.0.0.1:9000 (Node 22.18 or later; before that, make JavaScript of it first)
import { createServer } from "node:http";

type Turn = { turn: number; text: string; tools: { name: string; description: string; parameters: object }[] };
type Incoming = {
  session: { conversation: string };
  interrupted?: { heard: string }; // how much of the last reply was heard
  turn?: Turn; // unless the conversation is over
  results?: { id: string; text: string }[]; // of the calls that the last answer made
  end?: { why: string };
};
type Outgoing = { type: string; text?: string; calls?: { name: string; arguments: object }[] };

async function* say(text: string): AsyncGenerator<Outgoing> {
  for (const word of text.match(/\S+\s*/g) ?? []) yield { type: "say", text: word }; // the first is spoken while the last is made
}

// answer yields what there is to say in a turn.
async function* answer(turn: Turn, results?: { text: string }[]): AsyncGenerator<Outgoing> {
  if (results) {
    yield* say("It says: " + results[0].text);
    return yield { type: "done" };
  }
  for (const { name } of turn.tools) {
    if (turn.text.includes(name)) {
      return yield { type: "call", calls: [{ name, arguments: {} }] }; // the results come in a new request
    }
  }
  if (turn.text.includes("bye")) {
    yield* say("Goodbye.");
    yield { type: "end" };
  } else if (turn.text.includes("person")) {
    yield { type: "transfer" };
  } else {
    yield* say("You said: " + turn.text);
    yield { type: "done" };
  }
}

const [host, port] = process.argv[2].split(":");
createServer(async (req, res) => {
  const pieces: Buffer[] = [];
  let got: Incoming;
  try {
    for await (const piece of req) pieces.push(piece);
    got = JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    return res.destroy(); // the request was broken off, or is none of Parley's
  }
  res.writeHead(200, { "Content-Type": "text/event-stream" });
  if (!got.turn) {
    console.log("end", got.session.conversation, got.end?.why);
  } else {
    console.log("turn", got.turn.turn, got.turn.text, got.interrupted?.heard);
    for await (const message of answer(got.turn, got.results)) {
      if (res.closed) break; // the customer interrupts, or nobody wants the reply any more
      res.write(`data: ${JSON.stringify(message)}\n\n`);
    }
  }
  res.end();
}).listen(Number(port), host);
