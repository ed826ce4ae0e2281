// A program of your own that answers the turns of calls and chats itself: an endpoint of the protocol parley (docs/endpoints.md).
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

type object = map[string]any

// answer answers a turn. It stops when ctx ends: the customer interrupts, or nobody wants the reply any more.
func answer(ctx context.Context, text string, tools []any, results <-chan any, send func(object)) {
	say := func(text string) {
		for _, word := range strings.SplitAfter(text, " ") { // the first is spoken while the last is made
			send(object{"type": "say", "text": word})
		}
	}
	for _, t := range tools {
		if name := t.(object)["name"].(string); strings.Contains(text, name) {
			send(object{"type": "call", "calls": []any{object{"name": name, "arguments": object{}}}})
			select {
			case result := <-results:
				say(fmt.Sprint("It says: ", result))
			case <-ctx.Done():
			}
			send(object{"type": "done"})
			return
		}
	}
	switch {
	case strings.Contains(text, "bye"):
		say("Goodbye.")
		send(object{"type": "end"})
	case strings.Contains(text, "person"):
		send(object{"type": "transfer"})
	default:
		say("You said: " + text)
		send(object{"type": "done"})
	}
}

// converse holds one conversation.
func converse(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	var tools []any
	cancel, results := func() {}, make(chan any, 32)
	for in := (object{}); wsjson.Read(r.Context(), c, &in) == nil; in = (object{}) {
		fmt.Println(in["type"], in["turn"], in["text"], in["heard"])
		switch in["type"] {
		case "turn":
			cancel()
			if in["tools"] != nil { // they are sent only where they have changed
				tools = in["tools"].([]any)
			}
			ctx, stop := context.WithCancel(r.Context())
			cancel, results = stop, make(chan any, 32)
			go answer(ctx, in["text"].(string), tools, results, func(out object) {
				if out["turn"] = in["turn"]; ctx.Err() == nil {
					_ = wsjson.Write(r.Context(), c, out)
				}
			})
		case "result":
			results <- in["text"]
		case "cancel":
			cancel()
		}
	}
}

func main() { _ = http.ListenAndServe(os.Args[1], http.HandlerFunc(converse)) }
