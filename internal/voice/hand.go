package voice

import (
	"errors"
	"slices"
	"time"

	"parley"
	"parley/internal/lang"
	"parley/internal/turn"
)

// mannerOf is how a persona behaves, for the machine.
func (r *run) mannerOf(p *Persona) turn.Manner {
	a := p.Assistant
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	m := turn.Manner{
		Language: p.Language, Interruptible: a.AllowInterruptions, Confirm: turn.Confirmation(a.InterruptSensitivity),
		Endpoint: turn.Endpointing(a.EndpointSensitivity), Smart: a.EndpointType == "ai",
		Wait: a.WaitForCustomer, Reengage: seconds(a.ReengagementInterval), Prompted: p.Reengagement != "",
		MaxSilence: seconds(a.MaxSilenceDuration), MaxDuration: seconds(a.MaxDuration), Fillers: bool(a.Fillers), Speculate: r.Speculate,
		Outbound: r.Outbound, EndOnMachine: bool(a.EndCallOnVoicemail), Message: lang.Speakable(p.VoicemailMessage, p.Language, nil) != "",
	}
	if lang.Speakable(p.Initial, p.Language, nil) != "" {
		m.Initial = p.Initial
	}
	if a.MinInterruptWords != nil {
		m.MinWords = int(*a.MinInterruptWords)
	}
	return m
}

// heir is a persona that is ready to go on with the conversation.
type heir struct {
	mouth *mouth
	ear   *hearing
}

// bequeath readies another assistant to go on when the reply has been heard. One that has introduced itself in this call doesn't do so again.
func (r *run) bequeath(a *answer, id int64) error {
	p, err := r.Hand(r.ctx, id)
	if err != nil {
		return err
	}
	if p.Assistant == nil || p.Think == nil || p.Synthesizer == nil || p.Recognizer == nil {
		return errors.New("the persona has no assistant, brain, voice or ear")
	}
	ear, err := r.listenWith(p)
	if err != nil {
		return err
	}
	manner := r.mannerOf(&p)
	taken := false
	r.inbox.ask(func() {
		if taken = !a.over && !r.over; !taken {
			return
		}
		if slices.Contains(r.met, id) {
			manner.Initial = ""
		}
		r.met = append(r.met, id)
		r.next = &heir{mouth: newMouth(p, r.rate), ear: ear}
		r.step(turn.Event{Kind: turn.Handed, Reply: a.id, Manner: &manner})
	})
	if !taken {
		ear.Close()
		return parley.CustomerHangup
	}
	return nil
}

// enter lets the heir speak and listen.
func (r *run) enter() {
	if r.next == nil {
		return
	}
	r.mouth = r.next.mouth
	r.attach(r.next.ear, 0)
	r.next = nil
	r.peer.settle(r.mouth.Persona)
}
