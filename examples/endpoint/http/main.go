// A program of your own that answers the turns of calls and chats as an ordinary HTTP service: an endpoint of the protocol parley
// with a request for each reply (docs/endpoints.md). It remembers nothing: each request has all that it needs.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

// request is what the service is asked: turn is there unless the conversation is over (end).
type request struct {
	Session     struct{ Conversation string }
	Interrupted struct{ Heard string } // how much of the last reply was heard
	Turn        *struct {
		Turn  int
		Text  string
		Tools []struct{ Name string }
	}
	Results []struct{ Text string } // of the calls that the last answer made
	End     struct{ Why string }
}

type message map[string]any

// answer says what there is to say in a turn. What it sends after the customer has interrupted is lost: the request is closed.
func answer(in request, send func(message)) {
	say := func(text string) {
		for _, word := range strings.SplitAfter(text, " ") { // the first is spoken while the last is made
			send(message{"type": "say", "text": word})
		}
	}
	text := in.Turn.Text
	if len(in.Results) > 0 {
		say("It says: " + in.Results[0].Text)
		send(message{"type": "done"})
		return
	}
	for _, t := range in.Turn.Tools {
		if strings.Contains(text, t.Name) {
			send(message{"type": "call", "calls": []any{message{"name": t.Name, "arguments": message{}}}}) // the results come in a new request
			return
		}
	}
	switch {
	case strings.Contains(text, "bye"):
		say("Goodbye.")
		send(message{"type": "end"})
	case strings.Contains(text, "person"):
		send(message{"type": "transfer"})
	default:
		say("You said: " + text)
		send(message{"type": "done"})
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if in.Turn == nil {
		fmt.Println("end", in.Session.Conversation, in.End.Why)
		return
	}
	fmt.Println("turn", in.Turn.Turn, in.Turn.Text, in.Interrupted.Heard)
	answer(in, func(out message) {
		raw, _ := json.Marshal(out)
		fmt.Fprintf(w, "data: %s\n\n", raw)
		w.(http.Flusher).Flush()
	})
}

func main() { log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(serve))) }
