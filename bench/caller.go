package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/simulator/phone"
)

// telephones are those that call at once.
type telephones struct {
	phone     *phone.Phone
	at        netip.AddrPort
	assistant int64
	speech    []int16
	callers   []*caller
}

// call makes one more call.
func (s *telephones) call() (*caller, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := s.phone.Call(ctx, "customer", strconv.FormatInt(s.assistant, 10), s.at)
	if err != nil {
		return nil, err
	}
	k := &caller{Call: c, speech: s.speech}
	first, err := k.loud(c.Answered)
	k.greeted = first.Sub(c.Answered)
	return k, err
}

// warm makes one call, after which the greeting is cached.
func (s *telephones) warm() error {
	c, err := s.call()
	if err != nil {
		return err
	}
	if err := c.turns(time.Now().Add(time.Second)); err != nil {
		return err
	}
	return c.Hangup()
}

// ramp makes n calls, twenty a second.
func (s *telephones) ramp(n int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var wg sync.WaitGroup
	errs := make([]error, n)
	s.callers = make([]*caller, n)
	for i := range n {
		<-tick.C
		wg.Go(func() { s.callers[i], errs[i] = s.call() })
	}
	wg.Wait()
	return first(errs)
}

// all has every caller do something at the same time.
func (s *telephones) all(do func(*caller) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(s.callers))
	for i, c := range s.callers {
		wg.Go(func() { errs[i] = do(c) })
	}
	wg.Wait()
	return first(errs)
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *telephones) collect(of func(*caller) []time.Duration) (all []time.Duration) {
	for _, c := range s.callers {
		all = append(all, of(c)...)
	}
	slices.Sort(all)
	return all
}

// caller is a customer on a telephone. It looks at what arrived every 20 ms, by the time at which it arrived.
type caller struct {
	*phone.Call
	speech   []int16
	greeted  time.Duration
	took     []time.Duration // from the last word to the reply
	replied  []time.Time     // when it came
	silenced []time.Duration // from the first sound of an interruption to the last of what it interrupted
	spoke    time.Duration
	said     []*phone.Utterance
	missed   int // interruptions
	late     int // packets of replies that were interrupted
	seen     int // packets
}

// hangTime bounds all waiting.
const hangTime = 20 * time.Second

// find is the first packet not seen yet of a kind.
func (c *caller) find(is func(phone.Packet) bool) (phone.Packet, error) {
	for limit := time.Now().Add(hangTime); ; time.Sleep(audio.FrameTime) {
		packets := c.Packets()
		for ; c.seen < len(packets); c.seen++ {
			if is(packets[c.seen]) {
				return packets[c.seen], nil
			}
		}
		if c.Ended() != "" {
			return phone.Packet{}, fmt.Errorf("a call ended by %s in the middle", c.Ended())
		}
		if time.Now().After(limit) {
			return phone.Packet{}, fmt.Errorf("waited for a packet in vain")
		}
	}
}

// loud is when the first sound after a time comes.
func (c *caller) loud(after time.Time) (time.Time, error) {
	p, err := c.find(func(p phone.Packet) bool { return p.Loud() && p.At.After(after) })
	return p.At, err
}

// quiet waits until nothing was heard for d, and returns when the last sound came.
func (c *caller) quiet(d time.Duration) (last time.Time, err error) {
	last = time.Now()
	_, err = c.find(func(p phone.Packet) bool {
		if p.Loud() {
			last = p.At
		}
		return p.At.Sub(last) >= d
	})
	return last, err
}

func (c *caller) say() *phone.Utterance {
	c.spoke += time.Duration(len(c.speech)) * time.Second / 8000
	u := c.Say(c.speech)
	c.said = append(c.said, u)
	return u
}

// turns speaks and listens until a time.
func (c *caller) turns(until time.Time) error {
	for time.Now().Before(until) {
		if err := c.turn(); err != nil {
			return err
		}
	}
	return nil
}

// turn speaks when it is quiet, and waits for the reply.
func (c *caller) turn() error {
	if _, err := c.quiet(300 * time.Millisecond); err != nil {
		return err
	}
	said := c.say()
	<-said.Done()
	at, err := c.loud(said.To())
	if err != nil {
		return err
	}
	c.took, c.replied = append(c.took, at.Sub(said.To())), append(c.replied, at)
	return nil
}

// interruptions speaks, and speaks again into each reply after a second of it, until a time.
func (c *caller) interruptions(until time.Time) error {
	if _, err := c.quiet(300 * time.Millisecond); err != nil {
		return err
	}
	said := c.say()
	for {
		<-said.Done()
		at, err := c.loud(said.To())
		if err != nil {
			return err
		}
		if time.Now().After(until) {
			return nil
		}
		if _, err := c.find(func(p phone.Packet) bool { return p.At.Sub(at) > time.Second }); err != nil {
			return err
		}
		said = c.say()
		last, err := c.quiet(200 * time.Millisecond)
		if err != nil {
			return err
		}
		if silent := last.Add(audio.FrameTime).Sub(said.From()); silent < time.Duration(
			len(c.speech))*time.Second/8000 {
			c.silenced = append(c.silenced, silent)
		} else {
			c.missed++
		}
		// Until the turn can be over, whatever sounds is of the old reply.
		<-said.Done()
		end := said.To().Add(endpoint - 100*time.Millisecond)
		_, err = c.find(func(p phone.Packet) bool {
			if p.Loud() && p.At.Before(end) {
				c.late++
			}
			return p.At.After(end)
		})
		if err != nil {
			return err
		}
	}
}
