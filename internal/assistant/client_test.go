package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A client's answer reaches the call that waits for it, once; a client that is gone or silent fails the call.
func TestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan ClientCall, 1)
		open, stop := context.WithCancel(t.Context())
		defer stop()
		c := NewClient([]string{"show"}, func(call ClientCall) bool { asked <- call; return true })
		if !c.has("show") || c.has("other") || (*Client)(nil).has("show") {
			t.Error("it has other tools than those that it names")
		}
		go func() {
			call := <-asked
			if c.Answer("other", ClientResult{}) || !c.Answer(call.ID, ClientResult{Result: "shown"}) || c.Answer(call.ID, ClientResult{}) {
				t.Error("an answer is taken that nobody awaits, or not the first")
			}
		}()
		if got, err := c.run(t.Context(), "show", json.RawMessage(`{}`)); got != "shown" || err != nil {
			t.Errorf("answered %q, %v", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.run(ctx, "show", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a silent client: %v", err)
		}
		if call := <-asked; c.Answer(call.ID, ClientResult{}) {
			t.Error("an answer that came too late is taken")
		}
		for range maxOpen {
			go c.run(open, "show", nil)
			<-asked
		}
		synctest.Wait()
		if _, err := c.run(t.Context(), "show", nil); !errors.Is(err, errClientBusy) {
			t.Errorf("a client that is busy: %v", err)
		}
		stop()
		synctest.Wait()
		if len(c.open) != 0 {
			t.Errorf("%d calls are still open", len(c.open))
		}
		gone := NewClient(nil, func(ClientCall) bool { return false })
		if _, err := gone.run(t.Context(), "show", nil); !errors.Is(err, errClientGone) {
			t.Errorf("a client that is gone: %v", err)
		}
		if _, err := (*Client)(nil).run(t.Context(), "show", nil); !errors.Is(err, errClientGone) {
			t.Errorf("no client: %v", err)
		}
	})
}
