package aitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"parley/internal/ai"
)

// answer is a chat completion that is being answered.
type answer struct {
	Behaviour
	in   Request
	w    http.ResponseWriter
	ctx  context.Context // ends when the client leaves
	stop chan struct{}   // closed when the server stops
}

// argumentPiece is how many bytes of a call's arguments one chunk carries.
const argumentPiece = 5

func (a *answer) whole() {
	if !a.sleep(a.FirstDelay) {
		return
	}
	message := map[string]any{"role": "assistant", "content": orNull(a.Text), "refusal": nil}
	if len(a.Calls) > 0 {
		var calls []wireCall
		for _, c := range a.Calls {
			calls = append(calls, wireCall{ID: c.ID, Type: "function", Function: wireFunc{c.Name, c.Arguments}})
		}
		message["tool_calls"] = calls
	}
	out := map[string]any{
		"id": "chatcmpl-test", "object": "chat.completion", "created": time.Now().Unix(), "model": a.in.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil,
			"finish_reason": wireFinish(a.Finish)}},
	}
	if !a.NoUsage {
		out["usage"] = a.usage()
	}
	reply(a.w, http.StatusOK, out)
}

func (a *answer) usage() map[string]any {
	u := usage(a.in.Request, a.Text)
	return map[string]any{"prompt_tokens": u.In, "completion_tokens": u.Out, "total_tokens": u.In + u.Out}
}

func wireFinish(f ai.Finish) string {
	if f == ai.Filtered {
		return "content_filter"
	}
	return string(f)
}

func (a *answer) stream() {
	a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	a.w.Header().Set("Cache-Control", "no-cache")
	a.w.WriteHeader(http.StatusOK)
	if a.Raw != "" {
		a.write([]byte(a.Raw))
		return
	}
	if !a.send(map[string]any{"role": "assistant", "content": ""}, nil) || !a.sleep(a.FirstDelay) {
		return
	}
	deltas := a.deltas()
	for i, d := range deltas {
		if a.Fault != "" && i == a.After {
			a.fault()
			return
		}
		if i > 0 && !a.sleep(a.TokenDelay) || !a.send(d, nil) {
			return
		}
		if i == 0 && a.Gate != nil && !a.hold(a.Gate) {
			return
		}
	}
	if a.Fault != "" {
		a.fault()
		return
	}
	if !a.send(map[string]any{}, wireFinish(a.Finish)) {
		return
	}
	if o, ok := a.includeUsage(); ok && o && !a.NoUsage {
		if !a.event(map[string]any{"choices": []any{}, "usage": a.usage()}) {
			return
		}
	}
	a.write([]byte("data: [DONE]\n\n"))
}

func (a *answer) includeUsage() (bool, bool) {
	var in wireRequest
	if err := json.Unmarshal(a.in.Body, &in); err != nil || in.StreamOptions == nil {
		return false, false
	}
	return in.StreamOptions.IncludeUsage, true
}

// deltas splits the reply as OpenAI does: words; then each call's id and name, and its arguments bit by bit.
func (a *answer) deltas() []map[string]any {
	var out []map[string]any
	for _, p := range pieces(a.Text, nil) {
		out = append(out, map[string]any{"content": p.Text})
	}
	for i, c := range a.Calls {
		call := func(id, kind string, f wireFunc) {
			out = append(out, map[string]any{"tool_calls": []wireCall{{Index: &i, ID: id, Type: kind, Function: f}}})
		}
		call(c.ID, "function", wireFunc{Name: c.Name})
		for rest := []rune(c.Arguments); len(rest) > 0; {
			n := min(argumentPiece, len(rest))
			call("", "", wireFunc{Arguments: string(rest[:n])})
			rest = rest[n:]
		}
	}
	return out
}

func (a *answer) send(delta map[string]any, finish any) bool {
	return a.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil,
		"finish_reason": finish}}})
}

func (a *answer) event(chunk map[string]any) bool {
	chunk["id"], chunk["object"], chunk["created"], chunk["model"] = "chatcmpl-test", "chat.completion.chunk",
		time.Now().Unix(), a.in.Model
	var b bytes.Buffer
	b.WriteString("data: ")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(chunk) // plain values can't fail; Encode ends the line
	b.WriteByte('\n')
	return a.write(b.Bytes())
}

// write sends bytes, each piece of Cut bytes as its own segment and chunk. It reports whether the client is still
// there.
func (a *answer) write(p []byte) bool {
	for len(p) > 0 {
		n := len(p)
		if a.Cut > 0 {
			n = min(a.Cut, n)
		}
		if _, err := a.w.Write(p[:n]); err != nil {
			return false
		}
		if err := http.NewResponseController(a.w).Flush(); err != nil {
			return false
		}
		p = p[n:]
	}
	return a.ctx.Err() == nil
}

func (a *answer) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.ctx.Done():
	case <-a.stop:
	}
	return false
}

func (a *answer) hold(gate <-chan struct{}) bool {
	select {
	case <-gate:
		return true
	case <-a.ctx.Done():
	case <-a.stop:
	}
	return false
}

func (a *answer) fault() {
	switch a.Fault {
	case Reset:
		if c, _, err := http.NewResponseController(a.w).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0) // RST instead of FIN
			_ = c.Close()
		}
	case Stall:
		a.hold(nil)
	case Failure:
		b, _ := json.Marshal(map[string]any{"error": refusal{
			Message: "The server had an error while processing your request.", Type: "server_error"}})
		a.write([]byte("data: " + string(b) + "\n\n"))
	case Garbage:
		a.write([]byte("data: {\"choices\":[{\"delta\":\n\n"))
	case Endless:
		line := append(bytes.Repeat([]byte("x"), 64<<10), '\n')
		for a.write([]byte("data: ")) {
			if _, err := io.Copy(a.w, bytes.NewReader(line)); err != nil {
				return
			}
		}
	}
}
