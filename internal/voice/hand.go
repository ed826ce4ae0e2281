package voice

import (
	"slices"
	"time"

	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/turn"
)

// mannerOf is a persona's behaviour in the turn machine's terms.
func (r *run) mannerOf(p *Persona) turn.Manner {
	a := p.Assistant
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	m := turn.Manner{
		Language: p.Language, Interruptible: a.AllowInterruptions, Confirm: turn.Confirmation(a.InterruptSensitivity),
		Endpoint: turn.Endpointing(a.EndpointSensitivity), Smart: a.EndpointType == "ai",
		Wait: a.WaitForCustomer, Reengage: seconds(a.ReengagementInterval), Prompted: p.Reengagement != "",
		MaxSilence: seconds(a.MaxSilenceDuration), MaxDuration: seconds(a.MaxDuration), Fillers: bool(a.Fillers),
		Nods:      a.Backchannels,
		Speculate: r.Speculate && p.Realtime == nil,
		Sound:     p.Realtime != nil,
		Decides:   p.Decides,
		Outbound:  r.Outbound, EndOnMachine: bool(a.EndCallOnVoicemail),
		Message: lang.Speakable(p.VoicemailMessage, p.Language, lang.AsWritten, nil) != "" || len(p.VoicemailSound) > 0,
	}
	for i := range a.Tools {
		if t := &a.Tools[i]; t.Type == "dtmf_input" {
			m.Keys, m.Goal = true, t.Description
		}
	}
	if lang.Speakable(p.Initial, p.Language, lang.AsWritten, nil) != "" {
		m.Initial = p.Initial
	}
	if a.MinInterruptWords != nil {
		m.MinWords = int(*a.MinInterruptWords)
	}
	return m
}

// handOver prepares another assistant to take over once the reply has been heard. An assistant that has already
// introduced itself in this call doesn't do so again.
func (r *run) handOver(a *answer, id int64) error {
	p, err := r.Hand(r.ctx, id)
	if err != nil {
		return err
	}
	next, err := r.engage(p)
	if err != nil {
		return err
	}
	manner := r.mannerOf(&p)
	taken := false
	r.inbox.ask(func() {
		if taken = !a.over && !r.over; !taken {
			next.close()
			return
		}
		if slices.Contains(r.met, id) {
			manner.Initial = ""
		}
		r.met = append(r.met, id)
		r.next = next
		r.step(turn.Event{Kind: turn.Handed, Reply: a.id, Manner: &manner})
	})
	if !taken {
		return parley.CustomerHangup
	}
	return nil
}
