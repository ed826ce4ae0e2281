package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"parley/internal/api"
	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/store/storetest"
)

// A browser's call is hung up at whichever node the request reaches, by its secret.
func TestBrowserHangsUpAtAnotherNode(t *testing.T) {
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	db := storetest.Open(t, storetest.Options(t, "postgres", rules))
	house := func() *harness {
		n := node.New(node.Config{DB: db, Roles: []string{parley.RoleAPI, parley.RoleCalls}, Beat: 50 * time.Millisecond})
		h := ringing(t, db, func(c *api.Config) { c.Node = n })
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
	h, other := house(), house()
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
