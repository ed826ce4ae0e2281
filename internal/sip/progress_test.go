package sip

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
)

// early is a call that is heard before it is answered.
type early struct {
	in *Invite
	*running
}

// sounding starts a server that rings and then plays a tone of 1000 Hz before any answer. What becomes of the call is the
// test's to say, in then.
func sounding(t *testing.T, c Config, then func(ctx context.Context, e early), changes ...func(*Server)) *Server {
	t.Helper()
	c.Answer = func(ctx context.Context, in *Invite) {
		_ = in.Ring()
		l, err := in.Progress(ctx)
		if err != nil {
			t.Errorf("no sound before the answer: %v", err)
			return
		}
		then(ctx, early{in, run(l, newPhone(1000))})
	}
	if c.Trunks == nil {
		c.Trunks = fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})
	}
	s := prepare(t, c)
	for _, change := range changes {
		change(s)
	}
	launch(t, s)
	return s
}

// TestProgress plays a tone before the answer: the description in the 183 is that of the answer, and the sound goes on.
// Who knows 100rel acknowledges the 183, before which the call isn't answered.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"plain": "Supported: timer", "supported": "Supported: 100rel", "required": "Require: 100rel"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := make(chan early, 1)
			answer := make(chan struct{})
			s := sounding(t, Config{}, func(ctx context.Context, e early) {
				heard <- e
				<-answer
				l, err := e.in.Answer(ctx)
				if err != nil || l != e.leg {
					t.Errorf("answered with another leg, %v", err)
				}
				<-e.leg.(*leg).done
			})
			c := &caller{wire: newWire(t, "127.0.0.1"), server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
			_, ring := c.rings(sdp(c.rtp.addr()), header)
			known := func(m string) {
				if res := c.ask("PRACK", "", "RAck: "+field(m, "RSeq")+" 1 INVITE"); !strings.HasPrefix(res, "SIP/2.0 200") {
					t.Errorf("PRACK: %s", res)
				}
			}
			if reliable := field(ring, "RSeq") != ""; reliable != (name == "required") {
				t.Errorf("ringing:\n%s", ring)
			} else if reliable {
				for m := c.receive(200 * time.Millisecond); m != ""; m = c.receive(200 * time.Millisecond) {
					if strings.HasPrefix(m, "SIP/2.0 183") {
						t.Fatal("two answers that must be acknowledged at once")
					}
				}
				known(ring)
			}
			m := c.receive(hang)
			for ; strings.HasPrefix(m, "SIP/2.0 180"); m = c.receive(hang) {
			}
			if !strings.HasPrefix(m, "SIP/2.0 183 ") || !strings.Contains(bodyOf(m), "RTP/AVP 0 101\r\n") || field(m, "Contact") == "" {
				t.Fatalf("no description before the answer:\n%s", m)
			}
			c.sdp = bodyOf(m)
			e := get(t, heard)
			packet, _ := c.rtp.listen(hang)
			for n := 0; packet != nil && audio.Level(audio.DecodeULaw(nil, packet.Payload)) < -30 && n < 20; n++ {
				packet, _ = c.rtp.listen(hang)
			}
			if packet == nil || share(audio.DecodeULaw(nil, packet.Payload), 1000, audio.Narrow) < 0.8 {
				t.Error("the tone isn't heard before the answer")
			}
			close(answer)
			if name != "plain" {
				if field(m, "Require") != "100rel" {
					t.Errorf("not reliable:\n%s", m)
				}
				if again := c.receive(hang); again != m {
					t.Errorf("it isn't repeated, or the call is answered:\n%s", again)
				}
				known(m)
			}
			res := c.finalOf(c.callID, 1)
			if !strings.HasPrefix(res, "SIP/2.0 200") || bodyOf(res) != c.sdp {
				t.Errorf("another description in the answer:\n%s", res)
			}
			seq := c.seq
			c.seq = 1
			c.ack("")
			c.seq = seq
			c.rtp.talk(c.media(), 440, 1)
			e.phone.hears(t, 440)
			c.ask("BYE", "")
			e.ends(t, parley.CustomerHangup)
		})
	}
}

// TestProgressRefused plays a tone to a caller of ours and then refuses the call, without BYE; or the caller gives up.
func TestProgressRefused(t *testing.T) {
	t.Parallel()
	why := errors.New("the caller has heard enough")
	for _, how := range []string{"refused", "given up", "answered late"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			heard, refuse, over := make(chan early, 1), make(chan struct{}), make(chan error, 1)
			s := sounding(t, Config{}, func(ctx context.Context, e early) {
				heard <- e
				select {
				case <-refuse:
				case <-ctx.Done(): // the leg ends by itself
					over <- get(t, e.over)
					return
				}
				if how == "answered late" {
					if _, err := e.in.Answer(ctx); err != nil {
						t.Error(err)
					}
				} else {
					_ = e.in.Refuse(480)
					e.stop(errDone)
				}
				over <- get(t, e.over)
			})
			before := newPhone(0)
			ctx, cancel := context.WithCancelCause(soon(t))
			defer cancel(nil)
			out := make(chan dialled, 1)
			go func() {
				l, err := start(t, Config{}).Dial(ctx, Dialling{Trunk: Trunk{Address: s.Addr().String()}, To: "+15550001111", From: "+1",
					Early: func(audio.Rate) audio.Peer { return before }})
				if err != nil {
					out <- dialled{err: err}
					return
				}
				out <- dialled{leg: run(l, newPhone(440))}
			}()
			before.hears(t, 1000)
			e := get(t, heard)
			if how == "given up" {
				cancel(why)
				if d := get(t, out); !errors.Is(d.err, why) {
					t.Error(d.err)
				}
				if err := get(t, over); err != error(parley.CustomerHangup) {
					t.Errorf("the leg ended with %v", err)
				}
				return
			}
			close(refuse)
			d := get(t, out)
			if how == "refused" {
				if codeOf(d.err) != "480" {
					t.Error(d.err)
				}
				if err := get(t, over); !errors.Is(err, errDone) {
					t.Errorf("the leg ended with %v", err)
				}
				select {
				case <-e.leg.(*leg).gone:
				default:
					t.Error("the refused call gets BYE too")
				}
				return
			}
			if d.err != nil {
				t.Fatal(d.err)
			}
			e.phone.hears(t, 440)
			d.leg.phone.hears(t, 1000)
			d.leg.hangUp(t)
			if err := get(t, over); err != error(parley.CustomerHangup) {
				t.Errorf("the leg ended with %v", err)
			}
		})
	}
}

// TestProgressSilent hears a tone for longer than an answered call may be silent, and says nothing itself: it isn't taken
// for gone, neither then nor as soon as the call is answered.
func TestProgressSilent(t *testing.T) {
	t.Parallel()
	heard, answer := make(chan early, 1), make(chan struct{})
	s := sounding(t, Config{}, func(ctx context.Context, e early) {
		heard <- e
		<-answer
		_, _ = e.in.Answer(ctx)
		<-e.leg.(*leg).done
	}, func(s *Server) { s.silent = 2 * time.Second })
	c := &caller{wire: newWire(t, "127.0.0.1"), server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	c.rings(sdp(c.rtp.addr()))
	e := get(t, heard)
	gone := e.leg.(*leg).done
	ends := func(within time.Duration) bool {
		select {
		case <-gone:
			return true
		case <-time.After(within):
			return false
		}
	}
	if ends(2 * s.silent) {
		t.Fatal("the caller is taken for gone before the answer")
	}
	close(answer)
	res := c.finalOf(c.callID, 1)
	c.to = field(res, "To")
	c.ack("")
	if ends(s.silent / 2) {
		t.Fatal("the caller is taken for gone with the answer")
	}
	e.ends(t, parley.MediaTimeout) // what is true of answered calls is true of this one too
}

// TestProgressLateOffer can play nothing before the answer, because the caller leaves the offer to us.
func TestProgressLateOffer(t *testing.T) {
	t.Parallel()
	got := make(chan error, 1)
	s := start(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}),
		Answer: func(ctx context.Context, in *Invite) {
			_ = in.Ring()
			_, err := in.Progress(ctx)
			got <- err
		}})
	c := &caller{wire: newWire(t, "127.0.0.1"), server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	c.rings("")
	if err := get(t, got); !errors.Is(err, errNoEarly) {
		t.Error(err)
	}
}

// TestBaresipBeforeAnswer has baresip, which nobody here wrote, hear a call that is never answered.
func TestBaresipBeforeAnswer(t *testing.T) {
	t.Parallel()
	s := sounding(t, Config{Softphone: true, Trunks: fixed()}, func(ctx context.Context, e early) {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		_ = e.in.Refuse(480)
		e.stop(errDone)
		<-e.over
	})
	b := newBaresip(t, newAuthority(t), "<sip:me@"+s.Addr().String()+">;regint=0;auth_pass=none\n", "127.0.0.1:0", "-t", "4",
		"-e", "d sip:7@"+s.Addr().String())
	if err := get(t, b.over); err != nil {
		t.Fatal(err)
	}
	b.heard(t, 1000)
}
