package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// twoNodes opens the API at two nodes of one installation.
func twoNodes(t *testing.T, open func(*store.DB, func(*api.Config)) *harness) (one, other *harness) {
	t.Helper()
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	db := storetest.Open(t, storetest.Options(t, "postgres", rules))
	start := func() *harness {
		n := node.New(node.Config{DB: db, Roles: []string{parley.RoleAPI, parley.RoleCalls}, Beat: 50 * time.Millisecond})
		h := open(db, func(c *api.Config) { c.Node = n })
		h.api.AnswerNodes(n)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = n.Run(ctx, node.Work{Live: func() int { return 0 }, Registered: func(int64) bool { return false }, Changed: func() {}})
		}()
		t.Cleanup(func() { stop(); <-done })
		return h
	}
	return start(), start()
}

// What a page's tool did is told at whichever node the request reaches.
func TestToolAnsweredAtAnotherNode(t *testing.T) {
	var models []*aitest.Server
	h, other := twoNodes(t, func(db *store.DB, change func(*api.Config)) *harness {
		h, model := talking(t, db, change)
		models = append(models, model)
		return h
	})
	made := h.post("/user/tools", map[string]any{"kind": "client", "name": "show", "description": "Shows it.", "schema": []any{}},
		status(201)).json()["data"].(map[string]any)
	_, uuid := h.active(map[string]any{"tool_ids": []any{made["id"]}})
	id := h.converse(uuid)
	models[0].Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: "show", Arguments: "{}"}}}, aitest.Behaviour{Text: "There."})
	reply := h.stream("POST", "/conversations/"+id+"/messages", `{"message":"Show it","client_tools":["show"]}`)
	got := read(t, reply, "tool_call")
	var call struct{ ID string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(got[len(got)-1], "tool_call ")), &call); err != nil {
		t.Fatal(err)
	}
	place := "/conversations/" + id + "/tool-calls/"
	other.post(place+strings.Replace(call.ID, "~", "x~", 1), map[string]any{}, anonymous, status(404))
	other.post(place+strings.Replace(call.ID, "~", "~x", 1), map[string]any{}, anonymous, status(404))
	other.post(place+call.ID, map[string]any{"result": "Shown."}, anonymous, status(200))
	other.post(place+call.ID, map[string]any{"result": "Shown."}, anonymous, status(404))
	got = read(t, reply, "done")
	if done := got[len(got)-1]; !strings.Contains(done, `"result":"Shown."`) {
		t.Errorf("the reply is %s", done)
	}
}

// A browser's call is hung up at whichever node the request reaches, by its secret.
func TestBrowserHangsUpAtAnotherNode(t *testing.T) {
	h, other := twoNodes(t, func(db *store.DB, change func(*api.Config)) *harness { return ringing(t, db, change) })
	_, uuid := h.active(nil)
	pc, offer, _ := caller(t)
	res, answer := h.dial(uuid, offer)
	place := res.Header.Get("Location")
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		t.Fatal(err)
	}
	ask := func(method, place string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, strings.Replace(place, h.url, other.url, 1), strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/trickle-ice-sdpfrag")
		r.Header.Set("If-Match", `"another"`)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := ask("PATCH", place); got != http.StatusPreconditionFailed {
		t.Errorf("a connection that is not the call's is answered %d", got)
	}
	if got := ask("DELETE", strings.Replace(place, "~", "x~", 1)); got != http.StatusNotFound {
		t.Errorf("a wrong secret is answered %d", got)
	}
	if got := ask("DELETE", place); got != http.StatusOK {
		t.Errorf("hanging up at another node is answered %d", got)
	}
	for _, method := range []string{"DELETE", "PATCH"} {
		if got := ask(method, place); got != http.StatusNotFound {
			t.Errorf("%s of a call that is over is answered %d", method, got)
		}
	}
}
