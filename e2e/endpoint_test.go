package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
	needs "parley/internal/testenv"
)

// reference starts the reference server in Go, and returns its URL and what it prints.
func reference(t *testing.T) (url string, said *logBuffer) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "endpoint")
	build := exec.Command("go", "build", "-o", bin, "./examples/endpoint")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the reference server: %v\n%s", err, out)
	}
	return answering(t, bin)
}

// answering runs a reference server at an address that it is told.
func answering(t *testing.T, name string, args ...string) (url string, said *logBuffer) {
	t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", needs.Ports(t, 1))
	said = &logBuffer{}
	cmd := exec.Command(name, append(args, at)...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "the reference server", func() bool {
		res, err := http.Get("http://" + at)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return "http://" + at, said
}

// ownEndpoint saves an endpoint and returns its id.
func (p *program) ownEndpoint(t *testing.T, fields map[string]any) (id int64) {
	t.Helper()
	var made struct {
		Data   struct{ ID int64 }
		Errors map[string][]string
	}
	if status := p.call(t, "POST", "/user/endpoints", fields, &made); status != http.StatusCreated {
		t.Fatalf("the endpoint is answered %d %v", status, made.Errors)
	}
	return made.Data.ID
}

// withEndpoints are the settings of a server where accounts may have endpoints.
const withEndpoints = "PARLEY_ENDPOINTS=all"

// A program of the account's own answers a chat: turn by turn over one connection, with the assistant's tools. When it is
// gone, the assistant's own model answers in the same turn.
func TestEndpointChat(t *testing.T) {
	t.Parallel()
	url, said := reference(t)
	s, model := thinking(t, withEndpoints)
	s.bakery(t)
	id := s.ownEndpoint(t, map[string]any{"name": "mine", "part": "model", "protocol": "custom", "url": url, "key": "a-secret-key-of-mine"})
	s.call(t, "PUT", "/user/assistant/"+itoa(s.Assistant), map[string]any{"llm_endpoint_id": id}, nil)
	conv := s.converse(t)
	for _, text := range []string{"Good morning.", "Do you bake?"} {
		if status, r := s.say(t, conv, text); status != 200 || r.Message == nil || *r.Message != "You said: "+text {
			t.Fatalf("%d %+v\n%s", status, r, said)
		}
	}
	if n := strings.Count(said.String(), "session"); n != 1 {
		t.Errorf("%d sessions: %s", n, said)
	}
	if n := len(model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// The reference server in Go answers a call over real RTP. What it says is heard, and it ends the call.
func TestEndpointCall(t *testing.T) {
	t.Parallel()
	url, said := reference(t)
	l, v := speaking(t, withEndpoints)
	id := l.ownEndpoint(t, map[string]any{"name": "mine", "part": "model", "protocol": "custom", "url": url})
	l.change(t, map[string]any{"initial_message": welcome, "llm_endpoint_id": id, "post_call_evaluation": false,
		"tools": []any{map[string]any{"type": "end_call"}}})
	s := &scene{T: t, l: l, v: v, mode: "pipeline"}
	s.ring()
	s.asks("I would like a table.")
	s.whole("You said: I would like a table.")
	s.asks("Thank you, bye!")
	var one talk
	eventually(t, "the end", func() bool {
		l.call(t, "GET", "/user/calls/"+itoa(s.id), nil, &one)
		return one.Status == parley.CallCompleted
	})
	if v.length(s.c, "Goodbye.") == 0 {
		t.Error("the goodbye was not heard")
	}
	if one.EndedReason != parley.AssistantHangup {
		t.Errorf("the call ended by %s", one.EndedReason)
	}
	if lines := strings.Split(said.String(), "\n"); !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "end ") }) {
		t.Errorf("the program was not told of the end: %s", said)
	}
}
