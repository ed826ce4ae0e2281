package phone

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"parley/internal/audio"
)

const patience = 30 * time.Second

func pair(t *testing.T, o Options) (a, b *Phone) {
	t.Helper()
	for _, p := range []**Phone{&a, &b} {
		var err error
		if *p, err = Listen(); err != nil {
			t.Fatal(err)
		}
		(*p).Options = o
		t.Cleanup((*p).Close)
	}
	return a, b
}

func tone(rate audio.Rate, hz float64, frames int) []int16 {
	pcm := make([]int16, frames*rate.FrameSize())
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
	}
	return pcm
}

// Two of these phones call each other: the measuring tool itself is tested first.
func TestPhones(t *testing.T) {
	for name, o := range map[string]Options{"PCMU": {}, "PCMA": {Types: []int{8}}, "G722": {Types: []int{9}},
		"Opus": {Types: []int{96}}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			a, b := pair(t, o)
			there := make(chan *Call, 1)
			go func() {
				in, err := b.Next(ctx)
				if err != nil {
					t.Error(err)
					close(there)
					return
				}
				if in.From != "1000" || in.To != "2000" {
					t.Errorf("%s calls %s", in.From, in.To)
				}
				in.Ring()
				c, err := in.Answer()
				if err != nil {
					t.Error(err)
				}
				there <- c
			}()
			one, err := a.Call(ctx, "1000", "2000", b.Addr())
			if err != nil {
				t.Fatal(err)
			}
			two := <-there
			<-two.Confirmed()
			if one.Rang.IsZero() || one.Answered.Before(one.Rang) {
				t.Error("it did not ring first")
			}
			said := one.Say(tone(one.Rate(), 1000, 20))
			one.Press("42")
			<-said.Done()
			wait(t, func() bool { return two.Digits() == "42" })
			if err := one.Hold(ctx); err != nil {
				t.Fatal(err)
			}
			sent := two.Sent()
			wait(t, func() bool { return one.Sent() > 25 })
			if more := two.Sent() - sent; more > 2 {
				t.Errorf("%d packets were sent to who holds", more)
			}
			if err := one.Resume(ctx); err != nil {
				t.Fatal(err)
			}
			two.Say(tone(two.Rate(), 440, 5))
			wait(t, func() bool { return loud(one) >= 5 })
			if n := loud(two); n < 20 || n > 21 { // the filters of G.722 and Opus ring
				t.Errorf("%d loud packets, 20 were said", n)
			}
			if err := two.Hangup(); err != nil {
				t.Error(err)
			}
			<-one.Done()
			if n := loud(one); n > 6 { // it rings here too
				t.Errorf("%d loud packets came back, 5 were said", n)
			}
			if one.Ended() != "bye" || two.Ended() != "hangup" {
				t.Errorf("one ended by %s, the other by %s", one.Ended(), two.Ended())
			}
			if odd := append(a.Odd(), b.Odd()...); len(odd) > 0 {
				t.Error(odd)
			}
		})
	}
}

func loud(c *Call) (n int) {
	for _, p := range c.Packets() {
		if p.Loud() {
			n++
		}
	}
	return n
}

func wait(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); !so(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("not in time")
		}
	}
}

func TestRefused(t *testing.T) {
	a, b := pair(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		in, err := b.Next(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		in.Refuse(486)
	}()
	_, err := a.Call(ctx, "1000", "2000", b.Addr())
	if r, ok := errors.AsType[*Refused](err); !ok || r.Code != 486 {
		t.Errorf("%v", err)
	}

	gone, leave := context.WithCancel(ctx)
	cancelled := make(chan bool, 1)
	go func() {
		in, err := b.Next(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		in.Ring()
		leave()
		<-in.Cancel
		_, err = in.Answer()
		cancelled <- err != nil
	}()
	if _, err := a.Call(gone, "1000", "2000", b.Addr()); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if !<-cancelled {
		t.Error("a call that was cancelled could be answered")
	}
}

func TestLoss(t *testing.T) {
	a, b := pair(t, Options{Loss: 0.25})
	b.Options.Loss = 0
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	there := make(chan *Call, 1)
	go func() {
		if in, err := b.Next(ctx); err == nil {
			c, _ := in.Answer()
			there <- c
		}
	}()
	one, err := a.Call(ctx, "1000", "2000", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	two := <-there
	<-one.Say(tone(8000, 440, 60)).Done()
	if n := loud(two); n < 35 || n > 55 {
		t.Errorf("%d of 60 packets arrived", n)
	}
}
