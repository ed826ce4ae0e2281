package sip

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"parley/internal/parley"
	"parley/internal/rtp"
)

// When a call is over its conversation can be freed, while SIP still remembers the call: repeated messages may come
// for another 32 s.
func TestEndedCallLetsGo(t *testing.T) {
	t.Parallel()
	type remains struct {
		peer  weak.Pointer[phone]
		sound weak.Pointer[rtp.Session]
	}
	over := make(chan remains, 1)
	s := start(t, Config{Softphone: true, Answer: func(ctx context.Context, in *Invite) {
		l, err := in.Answer(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		p := newPhone(0)
		var r remains
		p.onTick = func(n int) {
			if n == 1 {
				r.sound = weak.Make(l.(*leg).sound.Load())
			}
		}
		r.peer = weak.Make(p)
		if err := l.Run(ctx, p); err != error(parley.CustomerHangup) {
			t.Errorf("the leg ended with %v", err)
		}
		over <- r
	}})
	w := newWire(t, "127.0.0.1")
	c := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	offer := sdp(c.rtp.addr())
	c.to = "<sip:7@" + s.Addr().String() + ">"
	w.send(s.Addr(), w.message("INVITE", "sip:7@"+s.Addr().String(), c.to, c.callID, 1, offer))
	res := w.finalOf(c.callID, 1)
	c.to = field(res, "To")
	c.ack("")
	if p, _ := c.rtp.listen(hang); p == nil {
		t.Fatal("no sound comes")
	}
	c.ask("BYE", "")
	left := get(t, over)
	for give := time.Now().Add(hang); left.peer.Value() != nil || left.sound.Value() != nil; runtime.Gosched() {
		if time.Now().After(give) {
			t.Fatal("something keeps the conversation")
		}
		runtime.GC()
		s.mu.Lock()
		remembered := len(s.invites)
		s.mu.Unlock()
		if remembered != 1 {
			t.Fatalf("the transaction is gone, and the conversation %v", left.peer.Value() == nil)
		}
	}
}
