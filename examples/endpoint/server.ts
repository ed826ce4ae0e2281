// A program of your own that answers the turns of calls and chats itself: an endpoint of the protocol parley (docs/endpoints.md).
// npm install ws; node server.ts 127.0.0.1:9000 (Node 22.18 or later; before that, make JavaScript of it first)
import { WebSocketServer, type WebSocket } from "ws";

type Tool = { name: string; description: string; parameters: object };
type Incoming = { type: string; turn?: number; text?: string; heard?: string; tools?: Tool[] };
type Outgoing = { type: string; text?: string; calls?: { name: string; arguments: object }[] };

// What a turn needs: the assistant's tools, the results of calls, a way to say something, and whether anybody still wants it.
type Turn = { text: string; tools: Tool[]; result: () => Promise<string>; send: (out: Outgoing) => void; wanted: boolean };

// answer answers a turn.
async function answer(turn: Turn): Promise<void> {
  const say = (text: string) => {
    for (const word of text.match(/\S+\s*/g) ?? []) turn.send({ type: "say", text: word }); // the first is spoken while the last is made
  };
  for (const { name } of turn.tools) {
    if (turn.text.includes(name)) {
      turn.send({ type: "call", calls: [{ name, arguments: {} }] });
      say("It says: " + (await turn.result()));
      return turn.send({ type: "done" });
    }
  }
  if (turn.text.includes("bye")) {
    say("Goodbye.");
    turn.send({ type: "end" });
  } else if (turn.text.includes("person")) {
    turn.send({ type: "transfer" });
  } else {
    say("You said: " + turn.text);
    turn.send({ type: "done" });
  }
}

// converse holds one conversation.
function converse(socket: WebSocket): void {
  let tools: Tool[] = [];
  let now: Turn | undefined;
  let resolve: (text: string) => void = () => {};
  socket.on("message", (raw) => {
    const got: Incoming = JSON.parse(String(raw));
    console.log(got.type, got.turn, got.text, got.heard);
    if (now && (got.type === "turn" || got.type === "cancel")) now.wanted = false;
    if (got.type === "turn") {
      tools = got.tools ?? tools; // they are sent only where they have changed
      const turn: Turn = {
        text: got.text ?? "",
        tools,
        result: () => new Promise((done) => (resolve = done)),
        send: (out) => turn.wanted && socket.send(JSON.stringify({ ...out, turn: got.turn })),
        wanted: true,
      };
      now = turn;
      void answer(turn);
    } else if (got.type === "result") {
      resolve(got.text ?? "");
    }
  });
}

const [host, port] = process.argv[2].split(":");
new WebSocketServer({ host, port: Number(port) }).on("connection", converse);
