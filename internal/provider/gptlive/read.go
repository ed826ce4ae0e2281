package gptlive

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"parley/internal/ai"
)

// event is any event of the server's, with the fields that are used here.
type event struct {
	Type    string `json:"type"`
	Delta   string `json:"delta"`
	StartMS int    `json:"start_ms"` // on the session's timeline
	EndMS   int    `json:"end_ms"`
	Reason  string `json:"reason"`
	Task    string `json:"delegation_id"`
	Session struct {
		ExpiresAt int64 `json:"expires_at"`
	} `json:"session"`
	Usage struct {
		Seconds float64 `json:"seconds"` // of the session so far
	} `json:"usage"`
	Event struct { // of the thinker, as the Responses API has it
		Type string `json:"type"`
		Item struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"item"`
		Response struct {
			Model string `json:"model"`
			Usage struct {
				In      int `json:"input_tokens"`
				Out     int `json:"output_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"input_tokens_details"`
			} `json:"usage"`
		} `json:"response"`
	} `json:"event"`
	Error fault `json:"error"`
}

// fault is an error of the server's.
type fault struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// read handles events until the connection closes. Its error says why it did.
func (s *session) read() error {
	for {
		e, err := s.receive()
		if err == nil {
			s.mu.Lock()
			err = s.take(&e)
			s.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

// take handles one event under the lock. An error ends the session.
func (s *session) take(e *event) error {
	switch e.Type {
	case "session.output_audio.delta":
		pcm, err := s.decode(e.Delta)
		if err == nil {
			s.lacks(e.StartMS - s.outMS)
			s.sound(pcm)
		}
		return err
	case "session.output_transcript.delta":
		switch s.resumes(e.StartMS); {
		case s.past != nil && e.StartMS < s.pastMS: // it comes after its sound
			s.words(s.past, e)
		case s.speech != nil:
			s.speech.quietMS = 0
			s.words(s.speech, e)
		default:
			s.ahead = append(s.ahead, e)
		}
	case "session.input_transcript.delta":
		s.heard(e)
	case "response.event":
		s.thinks(e)
	case "session.usage.updated":
		s.spend(e)
	case "session.closed":
		s.spend(e)
		select {
		case <-s.closed:
		default:
			close(s.closed)
		}
		if e.Reason == "content" {
			return &ai.Error{Kind: ai.Refused, Err: fmt.Errorf("the session was closed: %s", e.Reason)}
		} else if e.Reason != "close_requested" {
			return &ai.Error{Kind: ai.Interrupted, Err: fmt.Errorf("the session was closed: %s", e.Reason)}
		}
	case "error":
		if e.Error.fatal() {
			return e.Error.failure()
		}
		slog.Warn("GPT-Live had an error", "error", e.Error.failure().Err)
	}
	return nil
}

// lacks takes silence that the server has left out before the next of the model's sound.
func (s *session) lacks(ms int) {
	if ms <= 0 {
		return
	}
	if s.outMS += ms; s.speech == nil {
		return
	}
	if s.speech.quietMS += ms; s.speech.quietMS >= quiet {
		s.over()
	} else if ms >= rounding {
		s.say(s.speech, ai.RealtimeEvent{Kind: ai.RealtimeSound, PCM: make([]int16, ms*int(s.rate)/1000)})
	}
}

// sound takes the next of the model's sound, most of which is silence.
func (s *session) sound(pcm []int16) {
	sum := 0
	for _, v := range pcm {
		sum += max(int(v), -int(v))
	}
	ms := len(pcm) * 1000 / int(s.rate)
	s.outMS, s.came = s.outMS+ms, time.Now()
	loud := sum > faint*len(pcm)
	if loud {
		s.resumes(s.outMS)
		s.loudMS = s.outMS
	}
	if s.speech == nil && loud {
		s.complete()
		s.speech = s.begin()
		s.speech.fromMS = s.outMS - ms
		for _, e := range s.ahead {
			s.words(s.speech, e)
		}
		s.ahead = nil
	}
	p := s.speech
	if p == nil {
		return
	}
	s.say(p, ai.RealtimeEvent{Kind: ai.RealtimeSound, PCM: pcm})
	if p.quietMS += ms; loud {
		p.quietMS = 0
	}
	if p.quietMS >= quiet {
		s.over()
	}
}

// words takes a piece of a speech's text.
func (s *session) words(p *speech, e *event) {
	at := max(e.EndMS-p.fromMS, 1)
	if e.EndMS == 0 {
		at = 0
	}
	s.say(p, ai.RealtimeEvent{Kind: ai.RealtimeText, Text: e.Delta, At: time.Duration(at) * time.Millisecond})
}

// resumes ends the speech that is under way if the model has been silent in it since the customer said something: what it says at
// this place of the timeline is the answer.
func (s *session) resumes(atMS int) {
	if s.speech == nil || !s.answers {
		return
	}
	left := atMS-s.outMS >= breath && time.Since(s.came) >= breath*time.Millisecond // silence is left out, and text isn't only ahead
	if left || s.speech.quietMS >= breath {
		s.over()
	}
}

// over ends the sound of the speech that is under way, and with it what was asked for while it was: whatever the model has to say, it
// has gone on with that.
func (s *session) over() {
	s.complete()
	s.past, s.pastMS, s.pastAt, s.speech = s.speech, s.outMS, time.Now(), nil
	s.slots = slices.DeleteFunc(s.slots, func(o slot) bool {
		in := o.own && !o.asked && o.fromMS < s.loudMS
		if in {
			s.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: o.n})
		}
		return in
	})
}

// complete ends the speech whose sound is over: no more of its text is waited for.
func (s *session) complete() {
	if s.past != nil {
		s.say(s.past, ai.RealtimeEvent{Kind: ai.RealtimeDone})
		s.past = nil
	}
}

// heard takes words of the customer's. They belong to the first utterance that was not over when they were said.
func (s *session) heard(e *event) {
	k := slices.IndexFunc(s.said[:s.ended], func(u *utterance) bool { return e.StartMS <= u.untilMS+lateMS })
	if k < 0 {
		k = s.ended
		s.utter()
	}
	u := s.said[k]
	u.text, u.touched = u.text+e.Delta, time.Now()
	s.tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: k, Text: u.text, Final: u.final})
}

// thinks takes what the thinker does.
func (s *session) thinks(e *event) {
	s.thought = time.Now()
	switch t := &e.Event; t.Type {
	case "response.created":
		s.running, s.resumed = s.running+1, false
	case "response.output_item.done":
		if c := &t.Item; c.Type == "function_call" && c.CallID != "" && s.running > 0 {
			s.pending[e.Task] = append(s.pending[e.Task], ai.ToolCall{ID: c.CallID, Name: s.names.Own(c.Name), Arguments: c.Arguments})
		}
	case "response.completed", "response.failed", "response.incomplete":
		u := ai.Usage{In: t.Response.Usage.In, Out: t.Response.Usage.Out, Cached: t.Response.Usage.Details.Cached}
		if u != (ai.Usage{}) {
			s.tally.Spend(ai.Use{Part: ai.TheModel, Vendor: s.model.Vendor, Model: s.model.Thinker, Usage: u})
			s.tell(ai.RealtimeEvent{Kind: ai.RealtimeUsed, Usage: u})
		}
		s.finished(e.Task, t.Type == "response.completed")
	}
}

// finished ends a response of the thinker's. Its calls count as a response of their own, beside what the model says meanwhile; the
// calls of one that failed are void.
func (s *session) finished(task string, well bool) {
	if s.running == 0 {
		return
	}
	s.running--
	calls := s.pending[task]
	if delete(s.pending, task); !well || len(calls) == 0 {
		s.goOn()
		return
	}
	said := s.answers
	p := s.begin()
	s.answers = said
	for _, c := range calls {
		s.open[c.ID] = p
		s.say(p, ai.RealtimeEvent{Kind: ai.RealtimeCall, Call: &c})
	}
	s.say(p, ai.RealtimeEvent{Kind: ai.RealtimeDone})
}

// spend records the seconds that the server has counted.
func (s *session) spend(e *event) {
	sum := time.Duration(math.Round(e.Usage.Seconds*1000)) * time.Millisecond
	if more := sum - s.billed; more > 0 {
		s.billed = sum
		s.tally.Spend(ai.Use{Part: ai.TheModel, Vendor: s.model.Vendor, Model: s.model.Code, Heard: more})
	}
}

// keep does what time brings.
func (s *session) keep() {
	t := time.NewTicker(tick)
	defer t.Stop()
	var warn <-chan time.Time // never, where the server doesn't say when it ends
	if left := time.Until(s.expiry); !s.expiry.IsZero() {
		warn = time.After(left - min(expiryNotice, left/2))
	}
	for {
		select {
		case now := <-t.C:
			s.mu.Lock()
			s.passes(now)
			s.mu.Unlock()
		case <-warn:
			s.mu.Lock()
			s.tell(ai.RealtimeEvent{Kind: ai.RealtimeExpiring, Remaining: time.Until(s.expiry)})
			s.mu.Unlock()
		case <-s.ctx.Done():
			return
		}
	}
}

// passes settles what is due, under the lock: sound never stops, as the model's time is that of what it hears.
func (s *session) passes(now time.Time) {
	if lacks := now.Sub(s.wrote); lacks >= gap {
		s.wrote, s.heardMS = now, s.heardMS+int(lacks.Milliseconds())
		s.box.Sound(make([]int16, int(lacks.Milliseconds())*int(s.rate)/1000))
	}
	if s.speech != nil && now.Sub(s.came) >= mute { // the server leaves silence out
		s.over()
	}
	if s.past != nil && now.Sub(s.pastAt) >= trails {
		s.complete()
	}
	for k, u := range s.said[:s.ended] {
		if wait := now.Sub(u.touched); !u.final && (wait >= deaf || wait >= settles && u.text != "") {
			u.final = true
			s.tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: k, Text: u.text, Final: true})
		}
	}
	if len(s.unbound) > 0 && now.Sub(s.unbound[0].began) >= unheard {
		s.withdraw()
		s.drop(s.unbound[0], "It was not done.")
		s.unbound = s.unbound[1:]
		s.note("What you said just now was not heard")
	}
	if (s.running > 0 || s.resumed) && now.Sub(s.thought) >= lost {
		s.running, s.resumed = 0, false
		clear(s.pending)
		s.goOn()
	}
	if len(s.slots) == 0 {
		return
	}
	switch o := &s.slots[0]; {
	case now.Before(o.due), s.speech != nil, s.busy():
	case !o.asked:
		s.ask(o)
	default:
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: o.n,
			Err: ai.TheModel.Of(&ai.Error{Kind: ai.Stalled, Err: errors.New("the model said nothing")})})
		s.slots = s.slots[1:]
	}
}
