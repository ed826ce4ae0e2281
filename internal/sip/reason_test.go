package sip

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/internal/parley"
)

// TestReasonReceived: what the Reason of a BYE says is why the call is over; what every end says is left out.
func TestReasonReceived(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	for header, want := range map[string]string{
		"": "", `Reason: Q.850;cause=16;text="Normal call clearing"`: "", "Reason: SIP;cause=200": "", "Reason: ;;": "",
		`Reason: Q.850 ;cause=38;text="Network out of order"`: "Network out of order",
		"Reason: SIP;cause=503, Q.850;cause=41":               "SIP 503; Q.850 cause 41",
		"Reason: X;text=\"" + strings.Repeat("é", 200) + `"`:  strings.Repeat("é", 78) + "…",
	} {
		c := newWire(t, "127.0.0.1").call(s, "+15550001111")
		in := a.next(t)
		c.ask("BYE", "", strings.TrimPrefix(header+"\r\nX-None: 1", "\r\n"))
		err := <-in.over
		if text := parley.Explanation(err); !errors.Is(err, parley.CustomerHangup) || want == "" && text != "" ||
			want != "" && text != "The far end hung up, and says why: “"+want+"”." {
			t.Errorf("%s: %v, %q", header, err, text)
		}
	}
	// CANCEL before the answer.
	causes := make(chan error, 1)
	s = start(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}),
		Answer: func(ctx context.Context, in *Invite) {
			_ = in.Ring()
			<-ctx.Done()
			causes <- context.Cause(ctx)
		}})
	w := newWire(t, "127.0.0.1")
	uri := "sip:+15550001111@" + s.Addr().String()
	invite := w.message("INVITE", uri, "<"+uri+">", "taken back", 1, sdp(w.addr()))
	w.send(s.Addr(), invite)
	for !strings.HasPrefix(w.receive(hang), "SIP/2.0 180") {
	}
	cancel := strings.NewReplacer("INVITE sip:", "CANCEL sip:", "1 INVITE", "1 CANCEL", "Content-Type: application/sdp\r\n",
		"").Replace(invite)
	head, _, _ := strings.Cut(cancel, "Content-Length")
	w.send(s.Addr(), head+`Reason: SIP;cause=200;text="Call completed elsewhere"`+"\r\nContent-Length: 0\r\n\r\n")
	if err := get(t, causes); !errors.Is(err, parley.CustomerHangup) ||
		!strings.Contains(parley.Explanation(err), "Call completed elsewhere") {
		t.Errorf("a call taken back ended with %v", err)
	}
}

// TestReasonSent: our BYE and CANCEL say why.
func TestReasonSent(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	for cause, want := range map[error]string{parley.MaxDuration: `Q.850;cause=16;text="Time limit"`,
		fmt.Errorf("it broke: %w", parley.ProviderFailure): `Q.850;cause=41;text="Temporary failure"`, errDone: ""} {
		c := newWire(t, "127.0.0.1").call(s, "+15550001111")
		a.next(t).stop(cause)
		for m := ""; !strings.HasPrefix(m, "BYE "); {
			if m = c.receive(hang); m == "" {
				t.Fatal("no BYE came")
			}
			if strings.HasPrefix(m, "BYE ") && field(m, "Reason") != want {
				t.Errorf("%v: Reason is %q, want %q", cause, field(m, "Reason"), want)
			}
		}
	}
	for cause, want := range map[error]string{parley.ErrAnsweredElsewhere: `SIP;cause=200;text="Call completed elsewhere"`,
		parley.NoAnswer: `Q.850;cause=19;text="No answer"`, parley.Canceled: `SIP;cause=487;text="Call taken back"`, errDone: ""} {
		f := newFar(t)
		ctx, stop := context.WithCancelCause(t.Context())
		out := f.dial(ctx, s, newPhone(0))
		m := f.take("INVITE")
		f.reply(m, "180 Ringing", "")
		stop(cause)
		taken := f.take("CANCEL")
		if field(taken, "Reason") != want {
			t.Errorf("%v: Reason is %q, want %q", cause, field(taken, "Reason"), want)
		}
		f.reply(taken, "200 OK", "")
		f.reply(m, "487 Request Terminated", "")
		f.take("ACK")
		get(t, out)
	}
}
