package e2e

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	needs "parley/internal/testenv"
)

// references are the reference servers in Go by the scheme of their URLs: one has WebSockets, the other one requests.
var references = map[string]string{"ws://": "./examples/endpoint", "http://": "./examples/endpoint/http"}

// reference starts a reference server in Go, and returns its URL, what it prints, and what ends it.
func reference(t *testing.T, scheme string) (url string, said *logBuffer, end func()) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "endpoint")
	build := exec.Command("go", "build", "-o", bin, references[scheme])
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the reference server: %v\n%s", err, out)
	}
	at := fmt.Sprintf("127.0.0.1:%d", needs.Ports(t, 1))
	said = &logBuffer{}
	cmd := exec.Command(bin, at)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	eventually(t, "the reference server", func() bool {
		res, err := http.Get("http://" + at)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return scheme + at, said, end
}

// ownEndpoint saves an endpoint and returns the id by which assistants name it, or its first voice.
func (p *program) ownEndpoint(t *testing.T, fields map[string]any) (id int64) {
	t.Helper()
	var made struct {
		Data   struct{ ID int64 }
		Errors map[string][]string
	}
	if status := p.call(t, "POST", "/user/endpoints", fields, &made); status != http.StatusCreated {
		t.Fatalf("the endpoint is answered %d %v", status, made.Errors)
	}
	var rows []struct {
		ID         int64
		Code       string
		LanguageID int64 `json:"language_id"`
	}
	code := "endpoint/" + fields["name"].(string)
	path := map[string]string{"llm": "models", "agent": "models", "stt": "transcriber-providers", "tts": "voices"}[fields["kind"].(string)]
	if path == "voices" {
		code = fields["voices"].([]any)[0].(map[string]any)["code"].(string)
	}
	p.call(t, "GET", "/user/assistants/"+path, nil, &rows)
	for _, r := range slices.Backward(rows) { // the account's own are the last
		if r.Code == code && r.LanguageID <= 1 {
			return r.ID
		}
	}
	t.Fatalf("%s is not among the %s", code, path)
	return 0
}

// A program of the account's own answers a chat, over one connection or a request for each reply, with the assistant's tools.
// When it is gone, the assistant's own model answers in the same turn.
func TestEndpointChat(t *testing.T) {
	share(t, call)
	for scheme := range references {
		t.Run(scheme, func(t *testing.T) { endpointChat(t, scheme) })
	}
}

func endpointChat(t *testing.T, scheme string) {
	url, said, end := reference(t, scheme)
	s, model := thinking(t)
	s.bakery(t)
	id := s.ownEndpoint(t, map[string]any{"name": "mine", "kind": "agent", "protocol": "parley", "url": url,
		"api_key": "a-secret-key-of-mine"})
	s.call(t, "PUT", "/user/assistant/"+itoa(s.Assistant), map[string]any{"llm_model_id": id}, nil)
	conv := s.converse(t)
	for _, text := range []string{"Good morning.", "Do you bake?"} {
		if status, r := s.say(t, conv, text); status != 200 || r.Message == nil || *r.Message != "You said: "+text {
			t.Fatalf("%d %+v\n%s", status, r, said)
		}
	}
	want := map[string]int{"ws://": 1, "http://": 0}[scheme] // it prints what begins a connection
	if n := strings.Count(said.String(), "session"); n != want {
		t.Errorf("%d sessions: %s", n, said)
	}
	if status, r := s.say(t, conv, "Look with order_status."); status != 200 || r.Message == nil ||
		!strings.HasPrefix(*r.Message, "It says: ") || len(r.FunctionCalls) != 1 || r.FunctionCalls[0].Name != "order_status" {
		t.Errorf("%d %+v", status, r)
	}
	if n := len(model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	end()
	model.Script(aitest.Behaviour{Text: "At six."})
	if status, r := s.say(t, conv, "When do you close?"); status != 200 || r.Message == nil || *r.Message != "At six." {
		t.Errorf("%d %+v", status, r)
	}
	var record struct {
		Switches []parley.VendorSwitch `json:"vendor_switches"`
	}
	s.call(t, "GET", "/user/conversations/"+conv, nil, &record)
	if len(record.Switches) == 0 || record.Switches[0].From != "endpoint/mine" || !strings.HasSuffix(record.Switches[0].To, "/thinker") {
		t.Errorf("the record has %+v", record.Switches)
	}
	if strings.Contains(s.log.String(), "a-secret-key-of-mine") {
		t.Error("the key is in the log")
	}
}

// Endpoints by the protocol of a vendor think, speak and listen in a call, and are told which call it is.
func TestEndpointKinds(t *testing.T) {
	share(t, call)
	l, v := speaking(t)
	far, err := url.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]string{} // the call, by the path
	proxy := httputil.NewSingleHostReverseProxy(far)
	own := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[path.Base(r.URL.Path)] = r.Header.Get("X-Parley-Call") + " " + r.Header.Get("X-Team") + " " + r.Header.Get("Authorization")
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	fields := map[string]any{"initial_message": welcome, "post_call_evaluation": false}
	for kind, of := range map[string][2]string{"llm": {"llm_model_id", aitest.ModelName},
		"tts": {"voice_id", aitest.SpeechModel}, "stt": {"transcriber_provider_id", aitest.TranscriptionModel}} {
		one := map[string]any{"name": kind, "kind": kind, "protocol": "openai", "url": own, "model": of[1], "api_key": "key-of-" + kind,
			"headers": []any{map[string]any{"name": "X-Team", "value": "bakery"}}}
		if kind == "tts" {
			one["voices"] = []any{map[string]any{"code": "alloy"}}
		}
		fields[of[0]] = l.ownEndpoint(t, one)
	}
	l.change(t, fields)
	s := &scene{T: t, l: l, v: v, mode: "pipeline"}
	s.ring()
	s.thinks(aitest.Behaviour{Text: "For how many people?"})
	s.asks("I would like a table.")
	s.whole("For how many people?")
	if err := s.c.Hangup(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for name, kind := range map[string]string{"completions": "llm", "speech": "tts", "transcriptions": "stt"} {
		if want := itoa(s.id) + " bakery Bearer key-of-" + kind; asked[name] != want {
			t.Errorf("%s was asked with %q, want %q", name, asked[name], want)
		}
	}
}

// The reference servers in Go answer a call over real RTP. What they say is heard, and they end the call.
func TestEndpointCall(t *testing.T) {
	share(t, call)
	for scheme := range references {
		t.Run(scheme, func(t *testing.T) { endpointCall(t, scheme) })
	}
}

func endpointCall(t *testing.T, scheme string) {
	url, said, _ := reference(t, scheme)
	l, v := speaking(t)
	id := l.ownEndpoint(t, map[string]any{"name": "mine", "kind": "agent", "protocol": "parley", "url": url})
	l.change(t, map[string]any{"initial_message": welcome, "llm_model_id": id, "post_call_evaluation": false,
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
	eventually(t, "the end, told to the program", func() bool { return strings.Contains("\n"+said.String(), "\nend ") })
}
