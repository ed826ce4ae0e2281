package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

// liveMessage is what the server sends: the fields that matter here, of all its messages.
type liveMessage struct {
	Accepted *struct{} `json:"setupComplete"`
	Content  *struct {
		Turn struct {
			Parts []struct {
				Text    string `json:"text"`
				Thought bool   `json:"thought"`
				Data    *struct {
					Data []byte `json:"data"`
				} `json:"inlineData"`
			} `json:"parts"`
		} `json:"modelTurn"`
		Made        bool          `json:"generationComplete"`
		Complete    bool          `json:"turnComplete"`
		Why         string        `json:"turnCompleteReason"`
		Interrupted bool          `json:"interrupted"`
		Waits       bool          `json:"waitingForInput"`
		Heard       transcription `json:"inputTranscription"`
		Interim     transcription `json:"interimInputTranscription"`
		Said        transcription `json:"outputTranscription"`
	} `json:"serverContent"`
	Call *struct {
		Functions []call `json:"functionCalls"`
	} `json:"toolCall"`
	Cancelled *struct {
		IDs []string `json:"ids"`
	} `json:"toolCallCancellation"`
	Usage  *liveUsage `json:"usageMetadata"`
	GoAway *struct {
		Left string `json:"timeLeft"` // as 9.5s
	} `json:"goAway"`
	Resumption *struct {
		Handle    string `json:"newHandle"`
		Resumable bool   `json:"resumable"`
	} `json:"sessionResumptionUpdate"`
	Error json.RawMessage `json:"error"`
}

type transcription struct {
	Text     string `json:"text"`
	Finished bool   `json:"finished"` // is said by some models only
	Language string `json:"languageCode"`
}

func parseLive(raw []byte) (*liveMessage, error) {
	var m liveMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	if len(m.Error) > 0 {
		e := parse(raw)
		return nil, &ai.Error{Kind: e.kind(e.Code), RetryAfter: e.retryAfter(nil), Err: errors.New(e.Message)}
	}
	return &m, nil
}

// read takes what the server sends until the connection ends; the error says why it did.
func (s *live) read(conn *wire.Conn) error {
	for {
		raw, _, err := conn.Receive()
		if err != nil {
			return err
		}
		m, err := parseLive(raw)
		if err != nil {
			return err
		}
		if err := s.happen(func(tell func(ai.RealtimeEvent)) error { return s.take(m, tell) }); err != nil {
			return err
		}
	}
}

// happen does something under the lock, and tells what comes of it.
func (s *live) happen(do func(tell func(ai.RealtimeEvent)) error) error {
	s.order.Lock()
	defer s.order.Unlock()
	var out []ai.RealtimeEvent
	s.mu.Lock()
	err := do(func(e ai.RealtimeEvent) { out = append(out, e) })
	s.mu.Unlock()
	for _, e := range out {
		s.tell(e)
	}
	return err
}

// take does what a message says. The error ends the session.
func (s *live) take(m *liveMessage, tell func(ai.RealtimeEvent)) error {
	if u := m.Usage; u != nil {
		s.spend(u)
		s.used(u.whole(), tell)
	}
	if m.Content != nil {
		if err := s.content(m, tell); err != nil {
			return err
		}
	}
	if m.Call != nil {
		s.called(m.Call.Functions, tell)
	}
	if m.Cancelled != nil {
		s.abandon(m.Cancelled.IDs)
	}
	if r := m.Resumption; r != nil {
		s.handle = ""
		if r.Resumable {
			s.handle = r.Handle
		}
	}
	if m.GoAway != nil {
		s.leave(m.GoAway.Left)
	}
	return nil
}

// head is the response that the server's content belongs to. Content after the end of one is the next one's, though
// the turn may not have been reported complete: that is done when it would have been played. The lock is held.
func (s *live) head(content bool, tell func(ai.RealtimeEvent)) *answer {
	for content && len(s.turns) > 1 && s.turns[0].made {
		s.over(s.turns[0], nil, tell)
		s.turns = s.turns[1:]
	}
	if len(s.turns) == 0 {
		return nil
	}
	return s.turns[0]
}

func (s *live) content(m *liveMessage, tell func(ai.RealtimeEvent)) error {
	c := m.Content
	s.heard.take(c.Heard, c.Interim.Text, time.Now(), tell)
	for _, p := range c.Turn.Parts {
		a := s.head(true, tell)
		if a == nil || a.cut || p.Thought {
			continue
		}
		a.begun = true
		switch {
		case p.Data != nil:
			s.spoken(a, p.Data.Data, tell)
		case p.Text != "" && s.text:
			tell(ai.RealtimeEvent{Kind: ai.RealtimeText, N: a.n, Text: p.Text})
		}
	}
	a := s.head(c.Said.Text != "" && len(s.turns) > 0 && s.turns[0].told, tell)
	if a == nil {
		return nil
	}
	if c.Said.Text != "" && !s.text && !a.cut && !a.told {
		a.begun = true
		tell(ai.RealtimeEvent{Kind: ai.RealtimeText, N: a.n, Text: c.Said.Text})
	}
	if (c.Made || c.Interrupted || c.Waits) && (a.begun || !a.ghost) {
		s.made(a)
	}
	if c.Complete {
		s.complete(a, c.Why, tell)
	}
	return nil
}

// spoken is the next sound of a response.
func (s *live) spoken(a *answer, raw []byte, tell func(ai.RealtimeEvent)) {
	if s.setup.Writes {
		return // somebody else speaks
	}
	raw = append(a.leftover, raw...)
	a.leftover = slices.Clone(raw[len(raw)&^1:])
	wide := wire.Samples(raw)
	if len(wide) > 0 {
		tell(ai.RealtimeEvent{Kind: ai.RealtimeSound, N: a.n,
			PCM: s.rateOut.Resample(make([]int16, 0, s.rateOut.Size(len(wide))+1), wide)})
	}
}

// called takes calls: with them the response is over, and goes on in another one with their results.
func (s *live) called(list []call, tell func(ai.RealtimeEvent)) {
	a := s.head(true, tell)
	if a == nil || a.made {
		return // nobody is going to answer them: the server gives them up when the customer speaks
	}
	if a.begun = true; a.cut {
		s.made(a)
		s.over(a, nil, tell)
		return
	}
	if a.words {
		s.refuse(a, list, tell)
		return
	}
	for _, c := range list {
		args := string(c.Args)
		if !object(c.Args) {
			args = "{}"
		}
		s.calls[c.ID] = c.Name
		if !s.activity { // else the server gives it up, as the customer speaks
			s.owed = append(s.owed, c.ID)
		}
		tell(ai.RealtimeEvent{Kind: ai.RealtimeCall, N: a.n,
			Call: &ai.ToolCall{ID: c.ID, Name: s.names.Own(c.Name), Arguments: args}})
	}
	s.made(a)
	s.over(a, nil, tell)
}

// refuse answers calls that a response may not make.
func (s *live) refuse(a *answer, list []call, tell func(ai.RealtimeEvent)) {
	const most = 3
	if a.refused++; a.refused > most {
		s.made(a)
		s.over(a, &ai.Error{Kind: ai.Malformed, Err: errors.New("the model calls where it is to answer in words")}, tell)
		return
	}
	var m toolResponse
	for _, c := range list {
		r := response{ID: c.ID, Name: c.Name}
		r.Response.Output = refusedCall
		m.Response.Functions = append(m.Response.Functions, r)
	}
	s.change()
	s.box.Hurry(m, true)
}

// made notes that no more of a response comes; the next one may be asked for. The lock is held.
func (s *live) made(a *answer) {
	if a.made {
		return
	}
	a.made, a.madeAt = true, time.Now()
	if s.active != a {
		return
	}
	s.active = nil
	s.box.Release()
	if len(s.waiting) > 0 {
		s.next()
	} else {
		s.settle()
	}
}

// complete is the end of a turn. The lock is held.
func (s *live) complete(a *answer, why string, tell func(ai.RealtimeEvent)) {
	if a.ghost && !a.begun && !a.made { // that of the calls which this one goes on from
		a.ghost = false
		return
	}
	s.turns = s.turns[1:]
	err := incomplete(why)
	if !a.begun && !a.again && !a.cut && !a.told && !s.setup.Reads && err == nil && (s.active == nil || s.active == a) {
		s.retry(a)
		return
	}
	s.made(a)
	s.over(a, err, tell)
}

// retry asks for a response once more: models may choose not to answer what they take for none of their business
// (https://ai.google.dev/gemini-api/docs/models/gemini-3.8-live, proactive audio), and nobody else hears the customer. The lock is held.
func (s *live) retry(a *answer) {
	a.again, a.made, a.ghost, s.active = true, false, false, nil
	a.instruction = strings.TrimSpace(a.instruction + "\n" + answerNote)
	s.waiting = slices.Insert(s.waiting, 0, a)
	s.box.Release()
	s.next()
}

// incomplete says what the reason for the end of a turn means.
func incomplete(why string) error {
	switch {
	case why == "" || why == "TURN_COMPLETE_REASON_UNSPECIFIED" || why == "NEED_MORE_INPUT":
		return nil
	case why == "MALFORMED_FUNCTION_CALL" || why == "MAX_REGENERATION_REACHED":
		return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("the turn ended by %s", why)}
	}
	return &ai.Error{Kind: ai.Refused, Err: fmt.Errorf("the turn ended by %s", why)}
}

// over reports the end of a response, once. The lock is held.
func (s *live) over(a *answer, err error, tell func(ai.RealtimeEvent)) {
	if a.told {
		return
	}
	a.told = true
	if a.cut {
		err = nil
	}
	tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: a.n, Usage: a.usage, Err: ai.TheModel.Of(err)})
}

const (
	watchTime = 100 * time.Millisecond
	lateTime  = time.Second // for the end of a turn after all of it was made, as it may be reported when it was played
)

// watch does what is due by the clock.
func (s *live) watch() {
	t := time.NewTicker(watchTime)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			moves := false
			_ = s.happen(func(tell func(ai.RealtimeEvent)) error {
				s.heard.watch(now, tell)
				for _, a := range s.turns {
					if a.made && !a.told && (a.cut || now.Sub(a.madeAt) >= lateTime) {
						s.over(a, nil, tell)
					}
				}
				moves = s.leaving(now, tell)
				return nil
			})
			if moves {
				s.move()
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// hearing is what the model's ear understood. Its texts name no utterance, so they are taken for the oldest one that
// has none.
type hearing struct {
	languages []string // that may be spoken
	count     int
	open      []*hearsay // that are not final, in order
	last      *hearsay   // the latest that is
}

// hearsay is something that the customer said.
type hearsay struct {
	n         int
	text      string
	language  string // in which it was said; "": it can be only one, or is not told
	changed   time.Time
	ended     time.Time
	answered  time.Time
	forgotten bool
}

const (
	quietTime = 700 * time.Millisecond // after which no more of an utterance's text is expected
	silence   = 5 * time.Second        // likewise where there is none, from the model's being asked for its answer
)

func (h *hearing) begin() {
	h.open = append(h.open, &hearsay{n: h.count})
	h.count++
}

func (h *hearing) end(now time.Time) { h.open[len(h.open)-1].ended = now }

func (h *hearing) forget(n int) {
	for _, u := range h.open {
		if u.n == n {
			u.forgotten = true
		}
	}
}

func (h *hearing) answered(now time.Time) {
	for _, u := range h.open {
		if u.answered.IsZero() {
			u.answered = now
		}
	}
}

// take adds to the text of an utterance.
func (h *hearing) take(t transcription, interim string, now time.Time, tell func(ai.RealtimeEvent)) {
	if t.Text == "" && interim == "" && !t.Finished {
		return
	}
	if len(h.open) == 0 {
		if u := h.last; u != nil && t.Text != "" && !u.forgotten {
			u.text += t.Text // it is corrected
			tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: strings.TrimSpace(u.text), Language: u.language, Final: true})
		}
		return
	}
	if u := h.open[0]; len(h.open) > 1 && u.text != "" && !u.ended.IsZero() {
		h.final(tell)
	}
	u := h.open[0]
	u.text, u.changed = u.text+t.Text, now
	if code, _, _ := strings.Cut(t.Language, "-"); len(h.languages) > 1 && slices.Contains(h.languages, code) {
		u.language = code
	}
	tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: strings.TrimSpace(u.text + interim)})
	if t.Finished && !u.ended.IsZero() {
		h.final(tell)
	}
}

// final gives the oldest utterance its last text.
func (h *hearing) final(tell func(ai.RealtimeEvent)) {
	u := h.open[0]
	h.open, h.last = h.open[1:], u
	tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: strings.TrimSpace(u.text), Language: u.language, Final: true})
}

// watch gives those their last text for which no more is expected.
func (h *hearing) watch(now time.Time, tell func(ai.RealtimeEvent)) {
	for len(h.open) > 0 {
		switch u := h.open[0]; {
		case u.ended.IsZero():
			return
		case u.forgotten:
		case u.text != "" && now.Sub(u.changed) >= quietTime:
		case u.text == "" && !u.answered.IsZero() && now.Sub(u.answered) >= silence:
		default:
			return
		}
		h.final(tell)
	}
}
