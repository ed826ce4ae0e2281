package call_test

import (
	"context"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/parley"
)

// ticking is a far end that listens for some frames, and hangs up.
type ticking struct{ frames int }

func (*ticking) Rate() audio.Rate  { return audio.Narrow }
func (*ticking) Dial(string) error { return nil }
func (*ticking) Hangup()           {}

func (l *ticking) Run(ctx context.Context, p audio.Peer) error {
	in, out := make(audio.Frame, audio.Narrow.FrameSize()), make(audio.Frame, audio.Narrow.FrameSize())
	tick := time.NewTicker(audio.FrameTime)
	defer tick.Stop()
	for range l.frames {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		p.Hear(in)
		p.Tick(in, out)
	}
	return parley.CustomerHangup
}

// A call with the session of real calls: the greeting is heard, transcribed and recorded.
func TestSession(t *testing.T) {
	h := lite(t)
	h.change(h.a, `{"record":true,"initial_message":"Hi {{who}}."}`)
	n := h.node(func(c *call.Config) {
		c.Converse = nil
		c.Dial = func(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
			ringing()
			return &ticking{100}, nil
		}
	})
	c := h.reported(n.start(func(o *call.Order) { o.Variables = map[string]string{"who": "Ana"} }).ID)
	if c.Status != parley.CallCompleted || c.EndedReason != parley.CustomerHangup || len(c.Turns) != 1 ||
		c.Turns[0].Text != "Hi Ana." || c.Turns[0].Speaker != parley.SpeakerAssistant {
		t.Errorf("%+v", c)
	}
	if wav := n.heard(c); len(wav) != 44+100*4*audio.Narrow.FrameSize() {
		t.Errorf("%d bytes of recording", len(wav))
	}
}
