package rtp

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/audio"
)

// curious is a peer that uses its session while the session calls it.
type curious struct {
	ask   func()
	calls atomic.Int32 // calls running at this moment
	twice atomic.Bool  // whether two ran at once
	heard []int16      // the first sample of each frame
	keys  string
	ticks int
}

func (c *curious) call() func() {
	if c.calls.Add(1) > 1 {
		c.twice.Store(true)
	}
	c.ask()
	return func() { c.calls.Add(-1) }
}

func (c *curious) Hear(f audio.Frame) { defer c.call()(); c.heard = append(c.heard, f[0]) }
func (c *curious) Digit(key byte)     { defer c.call()(); c.keys += string(key) }
func (c *curious) Tick(in, out audio.Frame) bool {
	defer c.call()()
	c.ticks++
	return false
}

// within ends the test when something hangs.
func within(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(hang):
		t.Fatal("it hangs")
	}
}

// TestPeerUnderNoLock has a peer use its session from within a call, with three goroutines at once.
func TestPeerUnderNoLock(t *testing.T) {
	p := &curious{}
	m, w := desk(t, audio.PCMU, true, p)
	p.ask = func() { m.Silence(); m.Missed(); m.Dial("1") }
	within(t, func() {
		var all sync.WaitGroup
		all.Go(func() {
			for i := range 500 {
				at := time.Duration(i) * frameTime
				m.packet(packet(0, false, uint16(i), uint32(i)*frameTicks, 9, make([]byte, 160)), w.addr(), at)
			}
		})
		all.Go(func() {
			for range 20 {
				m.Press('1')
			}
		})
		all.Go(func() {
			for i := range 500 {
				m.tick(time.Duration(i)*frameTime, 0)
			}
		})
		all.Wait()
		m.peer.Stop()
	})
	if p.twice.Load() || p.ticks == 0 || len(p.heard) == 0 || p.keys == "" {
		t.Errorf("two calls at once: %v; %d frames, %d ticks, keys %q", p.twice.Load(), len(p.heard), p.ticks, p.keys)
	}
}

// TestTeller checks the order in which a busy peer is called, and what happens to a tick that it is late for.
func TestTeller(t *testing.T) {
	var mu sync.Mutex
	p := &curious{ask: func() {}}
	var missed, pushed []int
	tell := NewTeller(&mu, audio.Narrow, p, func(_ time.Duration, n int, _ audio.Frame) bool {
		missed = append(missed, n)
		return true
	}, func(audio.Frame, bool) { pushed = append(pushed, p.ticks) })
	within(t, func() {
		frame := make(audio.Frame, audio.Narrow.FrameSize())
		hear := func(n int16) { frame[0] = n; tell.Hear(frame) }
		mu.Lock()
		hear(1)
		once := true
		p.ask = func() { // from another goroutine, while the peer is being called
			if !once {
				return
			}
			once = false
			other := make(chan struct{})
			go func() {
				defer close(other)
				mu.Lock()
				tell.Digit('5')
				hear(2)
				tell.Tick(0, 0)
				tell.Tick(0, 3)
				for i := range int16(2 * maxNews) {
					hear(3 + i)
				}
				tell.Digit('6') // there is still room for a key
				tell.Tell()     // leaves it to the goroutine that is calling the peer
			}()
			<-other
		}
		tell.Tell()
	})
	if len(p.heard) != maxFrames || p.heard[1] != 2 || p.heard[maxFrames-1] != maxFrames || p.keys != "56" {
		t.Errorf("heard %v, keys %q", p.heard, p.keys)
	}
	if len(missed) != 1 || missed[0] != 4 || len(pushed) != 1 || pushed[0] != 1 {
		t.Errorf("ticks that missed %v, sent after %v", missed, pushed)
	}
}

// TestTellerPanics: a panic in one call's peer ends only that call.
func TestTellerPanics(t *testing.T) {
	var mu sync.Mutex
	p := &curious{ask: func() { panic("no") }}
	tell := NewTeller(&mu, audio.Narrow, p, nil, nil)
	within(t, func() {
		func() {
			defer func() { _ = recover() }()
			mu.Lock()
			tell.Digit('1')
			tell.Tell()
		}()
		p.ask = func() {}
		mu.Lock()
		tell.Digit('2')
		tell.Tell()
		tell.Stop()
		mu.Lock()
		tell.Digit('3')
		tell.Tell()
	})
	if p.keys != "2" {
		t.Errorf("keys %q", p.keys)
	}
}
