package voice

import (
	"errors"
	"slices"
	"time"

	"parley"
)

// mannerOf is how a persona behaves, for the machine.
func (r *run) mannerOf(p *Persona) manner {
	a := p.Assistant
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	m := manner{
		language: p.Language, interruptible: a.AllowInterruptions, confirm: confirmation(a.InterruptSensitivity),
		endpoint: endpointing(a.EndpointSensitivity), smart: a.EndpointType == "ai",
		wait: a.WaitForCustomer, reengage: seconds(a.ReengagementInterval), prompted: p.Reengagement != "",
		maxSilence: seconds(a.MaxSilenceDuration), maxDuration: seconds(a.MaxDuration), fillers: bool(a.Fillers), speculate: r.Speculate,
		outbound: r.Outbound, endOnMachine: bool(a.EndCallOnVoicemail), message: speakable(p.VoicemailMessage, p.Language, nil) != "",
	}
	if speakable(p.Initial, p.Language, nil) != "" {
		m.initial = p.Initial
	}
	if a.MinInterruptWords != nil {
		m.minWords = int(*a.MinInterruptWords)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.over || r.m.over {
		r.safely(ear.Close)
		return parley.CustomerHangup
	}
	if slices.Contains(r.met, id) {
		manner.initial = ""
	}
	r.met = append(r.met, id)
	r.next = &heir{mouth: newMouth(p, r.rate), ear: ear}
	r.step(event{kind: evHanded, id: a.id, manner: &manner})
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
