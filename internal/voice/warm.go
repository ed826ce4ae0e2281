package voice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/turn"
)

// Announcement is what somebody is called for who may take the customer over.
type Announcement struct {
	Tool    *parley.AssistantTool // as parley.AssistantTool.Warm has it
	Persona Persona               // who announces
	History []ai.Message          // what was said so far
}

// warmTransfer is a transfer in which the target is called and asked first, while the customer waits.
func (r *run) warmTransfer(a *answer, t *parley.AssistantTool) agent.Tool {
	return agent.Tool{
		Tool: ai.Tool{Description: "Transfers the customer to " + t.SupervisorPhone +
			": calls there while the customer waits, says what it is about, " +
			"and joins both if the call is accepted. Tell the customer first, in the same reply.", Schema: reasoned},
		Ends: true,
		Run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			if t.HoldMessage != "" {
				r.happens(turn.Event{Kind: turn.Sentence, Reply: a.id, Text: " " + t.HoldMessage})
			}
			if err := r.untilHeard(ctx, a); err != nil {
				return "", err
			}
			r.firm(a, true)
			defer r.firm(a, false)
			line, err := r.announce(t)
			if err == nil {
				if err = r.join(a, line, t.ConnectedMessage); err == nil {
					return "The customer was transferred.", nil
				}
				return "", err
			}
			if r.ctx.Err() != nil {
				return "", context.Cause(r.ctx)
			}
			r.note(fmt.Errorf("announce the customer to %s: %w", t.SupervisorPhone, err))
			sorry := ""
			r.inbox.ask(func() { sorry = lang.Of(r.cast.Language).Phrases.NotConnected })
			r.happens(turn.Event{Kind: turn.Sentence, Reply: a.id, Text: " " + sorry})
			return "", fmt.Errorf("the transfer failed: %s. The customer is still on the line, and has been told: %q. Go on yourself",
				whyNot(err), sorry)
		},
	}
}

// announce calls the target while the customer waits.
func (r *run) announce(t *parley.AssistantTool) (Line, error) {
	n := Announcement{Tool: t}
	r.inbox.ask(func() {
		if !r.over && r.cast != nil {
			n.Persona, n.History = r.cast.Persona, r.transcript.history()
		}
	})
	if n.Persona.Assistant == nil {
		return nil, errOver
	}
	if t.HoldMusic != "none" {
		r.peer.music.Store(&music{musicOf(r.rate), float64(*t.HoldMusicVolume) / 100})
		defer r.peer.music.Store(nil)
	}
	return r.Warm(r.ctx, n)
}

// joinWith calls somebody while the customer hears music, and joins both.
func (r *run) joinWith(a *answer, to string) error {
	r.firm(a, true)
	defer r.firm(a, false)
	r.peer.music.Store(&music{musicOf(r.rate), usualMusic})
	var e early
	line, err := r.Reach(r.ctx, to, func(rate audio.Rate) audio.Peer { return e.begin(r, rate) })
	e.end()
	r.peer.music.Store(nil)
	if err != nil {
		return err
	}
	return r.join(a, line, "")
}

// early has the customer hear what sounds before somebody answers who is called for them: once there is a sound, it takes
// the place of the music.
type early struct {
	r       *run
	member  *audio.Member // nil: there is nothing to hear
	sounded bool
}

// begin gives it its place on the bridge; nil where the call is over.
func (e *early) begin(r *run, rate audio.Rate) audio.Peer {
	e.end() // it may ring elsewhere after that
	r.inbox.ask(func() {
		if !r.over {
			e.r, e.member = r, r.room().Join(rate)
		}
	})
	if e.member == nil {
		return nil
	}
	return e
}

func (e *early) end() {
	if e.member != nil {
		e.member.Leave()
		e.member = nil
	}
}

// Hear implements audio.Peer.
func (*early) Hear(audio.Frame) {}

// Digit implements audio.Peer.
func (*early) Digit(byte) {}

// Tick implements audio.Peer. What the customer says goes nowhere yet.
func (e *early) Tick(in, out audio.Frame) bool {
	if !e.sounded && energy(in) > earlySound {
		e.sounded = true
		e.r.peer.music.Store(nil)
	}
	e.member.Tick(in, out)
	clear(out)
	return false
}

// earlySound is the energy per sample from which on there is something to hear: -50 dBFS.
const earlySound = 10_700

// usualMusic is how loud the music is where nobody has said how loud.
const usualMusic = 0.8

// firm keeps a reply from being cut off, or lets it be.
func (r *run) firm(a *answer, on bool) {
	r.inbox.ask(func() {
		r.passing = on
		r.step(turn.Event{Kind: turn.Firm, Reply: a.id, Final: on})
	})
}

// whyNot tells the model why nobody took the customer over.
func whyNot(err error) string {
	reason, _ := errors.AsType[parley.EndedReason](err)
	switch reason {
	case parley.LineBusy:
		return "the line is busy"
	case parley.NoAnswer:
		return "nobody answered"
	case parley.Voicemail:
		return "a voicemail answered"
	case parley.Rejected:
		return "the call was declined"
	case parley.CustomerHangup:
		return "they hung up before they accepted"
	}
	return "they could not be reached"
}

// music is what a customer who waits hears.
type music struct {
	*audio.Ambient
	gain float64
}

// tunes are the hold music at each rate, made when it is first needed.
var tunes = map[audio.Rate]func() *audio.Ambient{
	audio.Narrow: sync.OnceValue(func() *audio.Ambient { return audio.NewMusic(audio.Narrow) }),
	audio.Wide:   sync.OnceValue(func() *audio.Ambient { return audio.NewMusic(audio.Wide) }),
}

func musicOf(rate audio.Rate) *audio.Ambient { return tunes[rate]() }
