package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/internal/audio"
	"parley/internal/simulator/phone"
)

const (
	look     = 5 * time.Millisecond   // how often the caller listens up
	patience = 10 * time.Second       // how long the caller waits for a reply
	lifting  = 400 * time.Millisecond // from picking up to the first word
	ending   = 20 * time.Second       // how long they wait for the assistant to hang up
	telling  = 350 * time.Millisecond // of sound to the words that are told at once
	ambience = -22.0                  // dBFS of a caller's voice, which noise is measured against
)

// Synthesize makes the sound of a caller's words.
type Synthesize func(ctx context.Context, voice string, pace float64, rate audio.Rate, words string) ([]int16, error)

// performer holds the telephone of one case.
type performer struct {
	*Case
	ctx        context.Context
	synthesize Synthesize
	call       *phone.Call
	zero       time.Time
	tell       func(words string) // nil: the words are not told
	live       *live
	mind       mind
	// broken is why the caller can't go on: nothing that the assistant did
	broken error
	sound  map[string][]int16 // of each part

	t     Timeline
	h     hearing
	read  int           // packets
	began time.Duration // of what is to be answered
	since time.Duration // its end
	reply time.Duration // the first sound after it
	heard bool          // there was some
	acted bool          // and it is to be waited for
}

var errOver = errors.New("the call is over")

// perform gets into a call, which may not come about, follows the script and hangs up. What went wrong with the conversation is in the
// timeline; an error says that it could not be held.
func (p *performer) perform(connect func(phone.Options) (call *phone.Call, l *live, leave func(), err error)) error {
	if err := p.prepare(); err != nil {
		return err
	}
	o, err := p.line()
	if err != nil {
		return err
	}
	var leave func()
	p.call, p.live, leave, err = connect(o)
	defer leave()
	if err != nil {
		return err
	}
	p.t.Steps = make([]Span, len(p.Steps))
	if p.call == nil {
		if p.t.By = "assistant"; p.Pickup.answers() {
			p.t.Missed = []int{min(0, len(p.Steps)-1)}
		}
		return nil
	}
	p.zero = p.call.Answered
	for i := range p.Steps {
		p.t.Steps[i].From = p.now()
		err := p.step(i)
		p.t.Steps[i].To = p.now()
		if err != nil {
			p.t.Missed = append(p.t.Missed, i)
			if p.t.By == "" && p.call.Ended() == "" {
				p.t.By = "limit"
			}
			break
		}
	}
	if p.Caller.Persona != "" && len(p.t.Missed) == 0 && p.call.Ended() == "" {
		if err := p.improvise(); errors.Is(err, errSilence) { // it is told as the last step's
			p.t.Missed = append(p.t.Missed, len(p.Steps)-1)
		}
	}
	p.leave()
	p.t.Ended = p.now()
	if p.t.By == "" {
		p.t.By = map[string]string{"bye": "assistant", "hangup": "caller"}[p.call.Ended()]
	}
	p.drain()
	p.t.Sent = p.call.Referred()
	if p.broken != nil {
		return p.broken
	}
	if p.ctx.Err() != nil {
		p.t.By = "limit"
	}
	return context.Cause(p.ctx)
}

func (p *performer) now() time.Duration { return time.Since(p.zero) }

// drain takes the packets that have come.
func (p *performer) drain() {
	list := p.call.Packets()
	for _, one := range list[p.read:] {
		if one.Level <= -100 { // keys
			continue
		}
		at := Packet{one.At.Sub(p.zero), one.Level}
		p.t.Heard = append(p.t.Heard, at)
		p.h.hear(at)
		if !p.heard && at.Level >= loud && at.At >= p.since {
			p.heard, p.reply = true, at.At
		}
	}
	p.read = len(list)
	for _, key := range p.call.Digits()[len(p.t.Keys):] {
		p.t.Keys = append(p.t.Keys, Key{p.now(), string(key)})
	}
}

// until waits until something is so, for a time at most, and says whether it is. The error says that the call is over.
func (p *performer) until(limit time.Duration, so func() bool) (bool, error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for end := p.now() + limit; ; {
		p.drain()
		switch {
		case so():
			return true, nil
		case p.call.Ended() != "":
			return false, errOver
		case p.now() >= end:
			return false, nil
		}
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			p.t.By = "limit"
			return false, context.Cause(p.ctx)
		}
	}
}

func (p *performer) quiet() bool { return p.h.quiet(p.now()) >= manners }

var errSilence = errors.New("nothing was heard")

// listen waits for the reply to what was done last, and until it is over. what is among its words, if it says so.
func (p *performer) listen(within time.Duration, what *Words) error {
	limit := max(within+time.Second, patience)
	began := p.since
	ok, err := p.until(limit, func() bool { return p.heard })
	if err == nil && !ok {
		err = errSilence
	}
	if err != nil {
		return err
	}
	said := func() bool { return what == nil || p.live == nil || p.live.said(began, *what) }
	if _, err = p.until(limit, func() bool { return said() && p.quiet() }); errors.Is(err, errOver) {
		return nil // it has said goodbye, and the record has its words
	}
	p.acted = false
	return err
}

// settle waits until the last reply has been heard, with what is expected of it.
func (p *performer) settle(i int) error {
	if !p.acted {
		_, err := p.until(patience, p.quiet)
		return err
	}
	began := p.began
	for ; i >= 0; i-- {
		if !p.Steps[i].acts() {
			continue
		}
		break
	}
	var wanted []Expect
	for j := i + 1; j >= 1 && j < len(p.Steps) && p.Steps[j].Kind == Expecting; j++ {
		wanted = append(wanted, p.Steps[j].Expect)
	}
	keys := slices.ContainsFunc(wanted, func(e Expect) bool { return e.Keys != nil })
	if keys { // who presses them need not speak
		p.acted = false
	} else if err := p.listen(0, nil); err != nil {
		return err
	}
	if p.live == nil || len(wanted) == 0 {
		return nil
	}
	_, err := p.until(patience, func() bool {
		for _, e := range wanted {
			if e.Keys != nil && p.t.pressed(Span{began, p.now() + 1}) != *e.Keys {
				return false
			}
			for _, tool := range e.Tools {
				if !p.live.called(began, tool) {
					return false
				}
			}
			for _, words := range e.Says {
				if !p.live.said(began, words) {
					return false
				}
			}
		}
		return p.quiet()
	})
	return err
}

// step does one step.
func (p *performer) step(i int) error {
	switch s := &p.Steps[i]; s.Kind {
	case Hear:
		return p.listen(s.Within, s.Want)
	case Wait:
		_, err := p.until(s.Wait, func() bool { return false })
		return err
	case Say, Press:
		if s.Timed {
			return p.cutIn(i)
		}
		if err := p.before(i); err != nil {
			return err
		}
		return p.act(i)
	case Interrupt, Backchannel:
		return p.cutIn(i)
	case Beep, Music: // at once, unless something is expected first
		if i > 0 && p.Steps[i-1].Kind == Expecting {
			if err := p.settle(i - 1); err != nil {
				return err
			}
		}
		return p.act(i)
	case HangUp:
		if s.Timed {
			if err := p.await(s.Offset); err != nil {
				return err
			}
		}
		return p.hangUp()
	}
	return nil
}

// before waits until it is the caller's turn.
func (p *performer) before(i int) error {
	if p.Outbound && i == 0 { // who is called speaks first, with the telephone at their ear
		_, err := p.until(lifting, func() bool { return false })
		return err
	}
	if !p.heard && len(p.t.Acts) == 0 { // whoever begins
		if _, err := p.until(3*time.Second, func() bool { return p.heard }); err != nil {
			return err
		}
	}
	if i > 0 && p.Steps[i-1].Kind == Wait {
		return nil
	}
	return p.settle(i - 1)
}

// await waits for a moment of the reply.
func (p *performer) await(offset time.Duration) error {
	ok, err := p.until(patience, func() bool { return p.heard })
	if err == nil && !ok {
		err = errSilence
	}
	if err == nil {
		_, err = p.until(patience, func() bool { return p.now() >= p.reply+offset })
	}
	return err
}

func (p *performer) cutIn(i int) error {
	if err := p.await(p.Steps[i].Offset); err != nil {
		return err
	}
	return p.act(i)
}

// act speaks, or presses keys.
func (p *performer) act(i int) error {
	s := &p.Steps[i]
	a := Act{Step: i, Kind: s.Kind, Text: s.Text}
	var err error
	if s.Kind == Press {
		a.From = p.now()
		p.call.Press(s.Text)
		const key = 200 * time.Millisecond
		_, err = p.until(time.Duration(len(s.Text))*key, func() bool { return false })
		a.To = p.now()
	} else {
		err = p.speak(s, &a)
	}
	p.t.Acts = append(p.t.Acts, a)
	if s.Kind != Backchannel {
		p.began, p.since, p.heard, p.acted = a.From, a.To, false, s.Kind != Music
		for _, h := range p.t.Heard { // what came while we listened to ourselves
			if h.At >= p.since && h.Level >= loud {
				p.heard, p.reply = true, h.At
				break
			}
		}
	}
	return err
}

func (p *performer) speak(s *Step, a *Act) error {
	pcm, parts, chunks := p.speech(s)
	u := p.call.Say(pcm)
	done := false
	_, err := p.until(p.Limit, func() bool {
		if u.From().IsZero() {
			return false
		}
		a.From = u.From().Sub(p.zero)
		for p.tell != nil && len(chunks) > 0 && p.now() >= a.From+chunks[0].at {
			p.tell(chunks[0].words)
			chunks = chunks[1:]
		}
		select {
		case <-u.Done():
			done = true
		default:
		}
		return done
	})
	a.To = p.now()
	if done {
		a.To = u.To().Sub(p.zero)
	}
	for _, part := range parts {
		a.Parts = append(a.Parts, Span{a.From + part.From, min(a.From+part.To, a.To)})
	}
	return err
}

// leave ends the call: the assistant hangs up if it is to, otherwise the caller does once all was heard.
func (p *performer) leave() {
	if p.call.Ended() != "" || p.ctx.Err() != nil {
		p.call.Hangup()
		return
	}
	if e := p.End; e != nil && e.Reason != "" && e.Reason != "customer_hangup" {
		limit := e.Within
		if limit == 0 {
			limit = ending
		}
		if len(p.t.Missed) == 0 {
			p.until(limit, func() bool { return false })
		}
	} else if len(p.t.Missed) == 0 {
		p.settle(len(p.Steps) - 1)
	}
	p.hangUp()
}

func (p *performer) hangUp() error {
	if err := p.call.Hangup(); err != nil {
		return fmt.Errorf("hang up: %w", err)
	}
	return nil
}
