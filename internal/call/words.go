package call

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/voice"
)

// clerk is the assistant as somebody who says fixed words and takes messages: no model has a part in it.
func (r *reception) clerk() (p voice.Persona, err error) {
	a := r.Assistants.Plain(r.a)
	speech, err := r.Assistants.Speech(a)
	if err != nil {
		return p, err
	}
	vendors := r.vendors(a.UserID)
	p = voice.Persona{Assistant: a, Voice: speech.Voice, Language: speech.Language}
	if p.Synthesizer, err = r.Assistants.Speaker(speech, vendors.Synthesizer); err != nil {
		return p, ai.TheVoice.Of(err)
	}
	if p.Recognizer, err = r.Assistants.Listener(speech, vendors.Recognizer); err != nil {
		slog.WarnContext(r.ctx, "what callers say can't be transcribed", "call", r.id, "error", err)
		p.Recognizer, err = nil, nil
	}
	return p, nil
}

// speakTime is how long a caller waits for the sound of a fixed sentence.
const speakTime = 8 * time.Second

// say makes the sound of a fixed sentence in a clerk's voice, at the leg's rate; nil if that fails.
func (r *reception) say(p voice.Persona, text string) (pcm []int16) {
	ctx, cancel := context.WithTimeout(r.ctx, speakTime)
	defer cancel()
	for _, rate := range r.rates() {
		err := crash.Run(func() (err error) { pcm, err = r.cache.Words(ctx, p, rate, text); return err })
		if err != nil && r.ctx.Err() == nil {
			slog.WarnContext(r.ctx, "a caller is not told something, as it can't be spoken", "call", r.id, "text", text, "error", err)
			return nil
		}
	}
	return pcm
}

// words tells the caller that nobody can take the call, and ends it.
func (r *reception) words() error {
	stop := r.watch()
	defer func() { stop() }()
	ring := r.ring()
	p, err := r.clerk()
	var sorry string
	if err == nil {
		sorry = p.Phrases().NotConnected
		r.say(p, sorry) // ahead of the answer
	}
	ring()
	if err != nil || r.ctx.Err() != nil {
		r.turnAway(notNow)
		return causeOr(r.ctx, parley.NoAnswer)
	}
	stop()
	if err := r.sound(); err != nil {
		stop = func() {}
		return err
	}
	stop = r.watch()
	select {
	case <-r.waiting.Say(r.say(p, sorry)):
	case <-r.ctx.Done():
	}
	r.turnAway(notNow)
	r.change(func(c *parley.Call) {
		c.Turns = append(c.Turns, parley.CallTurn{Speaker: parley.SpeakerAssistant, Text: sorry, Language: p.Language})
	})
	return causeOr(r.ctx, parley.NoAnswer)
}

// causeOr is why ctx has ended, or else another error.
func causeOr(ctx context.Context, otherwise error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return otherwise
}

// voicemail takes a message.
func (r *reception) voicemail() error {
	stop := r.watch()
	ring := r.ring()
	box := &voice.Mailbox{Tell: r.tell, Longest: time.Duration(r.route.VoicemailSeconds) * time.Second,
		Silence: time.Duration(r.route.VoicemailSilence) * time.Second}
	p, err := r.clerk()
	if err != nil {
		slog.WarnContext(r.ctx, "a message is taken with the tone alone", "call", r.id, "error", err)
	} else {
		box.Language, box.Keywords, box.Recognizer = p.Language, p.Assistant.Keywords, p.Recognizer
		box.Text = strings.TrimSpace(parley.Render(r.route.VoicemailGreeting, assistant.Variables(r.a, r.occasion())))
		if box.Text == "" {
			box.Text = p.Phrases().LeaveMessage
		}
		box.Greeting = r.say(p, box.Text)
	}
	ring()
	stop()
	if cause := context.Cause(r.ctx); cause != nil {
		r.turnAway(notNow)
		return cause
	}
	if err := r.pickUp(); err != nil {
		return err
	}
	if err == nil && box.Greeting != nil { // at the rate that the leg has turned out to have
		box.Greeting = r.say(p, box.Text)
	}
	seat := r.seat()
	return r.hold(seat, true, r.route.VoicemailSeconds+parley.GreetingSeconds, func(rec io.WriteSeeker) voice.Result {
		box.Record = rec
		return box.Run(r.ctx, seat)
	})
}
