package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
)

// A model that sends a letter a second is stalled after half a minute; one that sends words goes on.
func TestDripOfText(t *testing.T) {
	for text, ends := range map[string]bool{"e": true, "words ": false} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := Generate(t.Context(), "m", func(ai.Delta) error { return nil }, func(r *Reading) error {
				for range 120 {
					time.Sleep(time.Second)
					if err := r.Say(text); err != nil {
						return err
					}
				}
				r.Finish = ai.Stop
				return r.End(Names{})
			}, func(error) bool { return false })
			took := time.Since(began)
			if ends && (ai.KindOf(err) != ai.Stalled || took > time.Minute) || !ends && err != nil {
				t.Errorf("%q every second: %v after %v", text, err, took)
			}
		})
	}
}

// drip is a body that sends something every second.
type drip struct{ n int }

func (d drip) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return copy(p, make([]byte, d.n)), nil
}
func (drip) Close() error { return nil }

// An answer that never ends is over after four minutes of waiting, whatever it sends, and sound that drips after the
// time for which a silent server is waited for. A reader that is slow has all the time that it likes.
func TestDripOfBytes(t *testing.T) {
	for name, c := range map[string]struct {
		n, sound int
		reads    time.Duration
		after    time.Duration // 0: it goes on
	}{
		"signs of life":  {1, 0, 0, maxWait},
		"sound":          {1, 1 << 30, 0, DefaultStall},
		"steady sound":   {16 << 10, 1 << 30, 0, maxWait},
		"a slow reader":  {1, 0, time.Minute, 0},
		"slow, of sound": {16 << 10, 1 << 30, time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				g := NewGuard(DefaultStall, cancel)
				defer g.Stop()
				g.Sound = c.sound
				res, err := g.Middleware(nil, func(*http.Request) (*http.Response, error) { return &http.Response{Body: drip{c.n}}, nil })
				if err != nil {
					t.Fatal(err)
				}
				waited, buf := time.Duration(0), make([]byte, 32<<10)
				for range 200 {
					if _, err = res.Body.Read(buf); err != nil {
						break
					}
					waited += time.Second
					time.Sleep(c.reads)
				}
				if c.after == 0 {
					if err != nil {
						t.Errorf("after %v: %v", waited, err)
					}
					return
				}
				for err == nil && waited < time.Hour {
					_, err = res.Body.Read(buf)
					waited += time.Second
				}
				if !errors.Is(err, ErrSlow) || waited > c.after+5*time.Second || waited < c.after-5*time.Second {
					t.Errorf("after %v: %v", waited, err)
				}
				if ai.KindOf(g.Ended(ctx)) != ai.Stalled || errors.Is(err, io.EOF) {
					t.Errorf("it ended with %v", g.Ended(ctx))
				}
			})
		})
	}
}
