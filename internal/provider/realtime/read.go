package realtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/live"
)

// realtimeEvent is any event from a realtime server, with the fields that are used here.
type realtimeEvent struct {
	Type           string `json:"type"`
	ItemID         string `json:"item_id"`
	PreviousItemID string `json:"previous_item_id"`
	ResponseID     string `json:"response_id"`
	Delta          string `json:"delta"`
	Transcript     string `json:"transcript"`
	Languages      []struct {
		Code string `json:"code"`
	} `json:"languages"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Session   struct {
		ExpiresAt int64 `json:"expires_at"`
	} `json:"session"`
	Item struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	} `json:"item"`
	Response struct {
		ID       string            `json:"id"`
		Status   string            `json:"status"`
		Metadata map[string]string `json:"metadata"`
		Details  details           `json:"status_details"`
		Usage    realtimeUsage     `json:"usage"`
	} `json:"response"`
	Usage realtimeUsage `json:"usage"`
	Error Fault         `json:"error"`
}

// details say why a response ended as it did.
type details struct {
	Reason string `json:"reason"`
	Error  Fault  `json:"error"`
}

// UnmarshalJSON takes what is no object, such as xAI's "unimplemented", for nothing.
func (d *details) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	type plain details
	return json.Unmarshal(raw, (*plain)(d))
}

// Fault is an error of OpenAI's servers, as events tell it.
type Fault struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	EventID string `json:"event_id"`
}

// Failure says what the error means.
func (e *Fault) Failure() *ai.Error {
	kind := ai.Overloaded
	switch {
	case e.Code == "rate_limit_exceeded":
		kind = ai.RateLimited
	case e.Code == "context_length_exceeded":
		kind = ai.TooLong
	case e.Code == "content_filter":
		kind = ai.Refused
	case slices.Contains(ours, e.Code), slices.Contains(ours, e.Type):
		kind = ai.Config
	}
	return &ai.Error{Kind: kind, Err: fmt.Errorf("%s %s: %s", e.Type, e.Code, e.Message)}
}

// ours are the codes and types of errors that somebody has to do something about.
var ours = []string{"invalid_request_error", "invalid_event", "authentication_error", "permission_error", "invalid_api_key",
	"model_not_found", "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "account_deactivated"}

// take handles one event under the lock. An error ends the session.
func (s *session) take(raw []byte) error {
	var e realtimeEvent
	if err := live.Read(raw, &e); err != nil {
		return err
	}
	s.spend(&e)
	return s.event(&e, s.Tell)
}

// event handles one event under the lock.
func (s *session) event(e *realtimeEvent, tell func(ai.RealtimeEvent)) error {
	if r := s.named[e.ResponseID]; r != nil && !r.cut {
		r.due = time.Now().Add(silentTime)
	}
	switch e.Type {
	case "input_audio_buffer.committed":
		s.commit(e.ItemID)
	case "conversation.item.added":
		s.added(e.Item.ID, e.PreviousItemID)
	case "conversation.item.input_audio_transcription.delta":
		if u := s.heard[e.ItemID]; u != nil && !u.final {
			u.text += e.Delta
			tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: u.text})
		}
	case "conversation.item.input_audio_transcription.updated": // xAI's, of the whole text so far
		if u := s.heard[e.ItemID]; u != nil && !u.final && u.text != e.Transcript {
			u.text = e.Transcript
			tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: u.text})
		}
	case "conversation.item.input_audio_transcription.completed":
		s.understood(e, nil, tell)
	case "conversation.item.input_audio_transcription.failed":
		s.understood(e, e.Error.Failure(), tell)
	case "response.created":
		s.created(e)
	case "response.output_item.added":
		if r := s.named[e.ResponseID]; r != nil {
			r.items = append(r.items, item{id: e.Item.ID, call: e.Item.Type == "function_call"})
			s.settle(r)
		}
	case "response.output_audio.delta":
		return s.spoken(e, tell)
	case "response.output_audio_transcript.delta", "response.output_text.delta":
		if r := s.named[e.ResponseID]; r != nil && !r.cut {
			tell(ai.RealtimeEvent{Kind: ai.RealtimeText, N: r.n, Text: e.Delta})
		}
	case "response.function_call_arguments.done":
		if r := s.named[e.ResponseID]; r != nil && !r.cut {
			s.calls[e.CallID] = e.ItemID
			tell(ai.RealtimeEvent{Kind: ai.RealtimeCall, N: r.n,
				Call: &ai.ToolCall{ID: e.CallID, Name: s.names.Own(e.Name), Arguments: e.Arguments}})
		}
	case "response.done":
		s.finish(e, tell)
	case "error":
		return s.refused(e, tell)
	}
	return nil
}

// commit gives an item's id to the oldest utterance without one.
func (s *session) commit(id string) {
	if len(s.committed) == 0 {
		return
	}
	u := s.committed[0]
	s.committed = s.committed[1:]
	u.item = id
	s.heard[id] = u
	if u.forgotten {
		s.remove(id)
	}
	s.next()
}

// added records the position of an item.
func (s *session) added(id, after string) {
	if slices.Contains(s.items, id) {
		return
	}
	at := len(s.items)
	if i := slices.Index(s.items, after); i >= 0 {
		at = i + 1
	}
	s.items = slices.Insert(s.items, at, id)
}

// understood takes the last text of an utterance. One that comes after it corrects it.
func (s *session) understood(e *realtimeEvent, err error, tell func(ai.RealtimeEvent)) {
	u, text := s.heard[e.ItemID], strings.TrimSpace(e.Transcript)
	if u == nil || u.final && (err != nil || u.text == text) {
		return
	}
	u.final, u.text = true, text
	if err != nil {
		err = ai.TheRecognizer.Of(err)
	}
	language := ""
	if s.dialect.Language != nil {
		var codes []string
		for _, l := range e.Languages {
			codes = append(codes, l.Code)
		}
		language = s.dialect.Language(s.setup, codes)
	}
	tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Text: text, Language: language, Final: true, Err: err})
}

// created gives a response its id. One that nobody asked for, or waits for any more, ends before it is heard, and leaves
// nothing in the conversation.
func (s *session) created(e *realtimeEvent) {
	r := s.active
	if n, err := strconv.Atoi(e.Response.Metadata["n"]); err == nil {
		r, s.marks = s.responses[n], true
	} else if s.marks {
		r = nil
	}
	if r == nil || r.over || r.id != "" {
		r = &response{cut: true, told: true}
	}
	r.id, r.due = e.Response.ID, time.Now().Add(silentTime)
	s.named[r.id] = r
	if r.cut {
		s.cancelled(r)
	}
}

// cancelled has the server stop a response. The lock is held.
func (s *session) cancelled(r *response) {
	r.due = time.Now().Add(stopTime)
	s.Box.Hurry(map[string]any{"type": "response.cancel", "response_id": r.id}, false)
}

// spoken handles the next audio of a response.
func (s *session) spoken(e *realtimeEvent, tell func(ai.RealtimeEvent)) error {
	r := s.named[e.ResponseID]
	if r == nil || r.cut {
		return nil
	}
	pcm, err := live.PCM(e.Delta, s.setup.Rate)
	if err != nil {
		return err
	}
	if s.rateOut != nil {
		pcm = s.rateOut.Resample(make([]int16, 0, s.rateOut.Size(len(pcm))+1), pcm)
	}
	for i := range r.items {
		if r.items[i].id == e.ItemID {
			r.items[i].samples += len(pcm)
		}
	}
	if !s.setup.Writes { // a model that can only speak is asked for its words
		tell(ai.RealtimeEvent{Kind: ai.RealtimeSound, N: r.n, PCM: pcm})
	}
	return nil
}

// finish handles the end of a response.
func (s *session) finish(e *realtimeEvent, tell func(ai.RealtimeEvent)) {
	r := s.named[e.Response.ID]
	if r == nil || r.over {
		return
	}
	var err error
	switch d := &e.Response.Details; e.Response.Status {
	case "failed":
		f := d.Error.Failure()
		if f.Kind == ai.Config && d.Error.Type == "invalid_request_error" && d.Error.Code == "" {
			f.Kind = ai.Malformed
		}
		err = f
	case "incomplete":
		if d.Reason == "content_filter" {
			err = &ai.Error{Kind: ai.Refused, Err: errors.New("the content filter cut the reply")}
		}
	}
	s.end(r, e.Response.Usage.whole(), err, tell)
}

// end lets the next response begin.
func (s *session) end(r *response, used ai.Usage, err error, tell func(ai.RealtimeEvent)) {
	r.over = true
	delete(s.named, r.id)
	if s.active == r {
		s.active = nil
		s.relax(r)
	}
	s.settle(r)
	if !r.told {
		r.told = true
		tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: r.n, Usage: used, Err: ai.TheModel.Of(err)})
	}
	s.next()
}

// refused handles an error about one of our events, or about the session itself.
func (s *session) refused(e *realtimeEvent, tell func(ai.RealtimeEvent)) error {
	f := e.Error.Failure()
	kind, number, _ := strings.Cut(e.Error.EventID, "_")
	n, err := strconv.Atoi(number)
	switch {
	case e.Error.Code == "session_expired", e.Error.Type == "max_duration":
		return &ai.Error{Kind: ai.Interrupted, Err: f.Err}
	case err == nil && kind == "commit" && len(s.committed) > 0 && s.committed[0].n == n:
		u := s.committed[0]
		s.committed, u.final = s.committed[1:], true
		defer s.next()
		tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: u.n, Final: true})
	case err == nil && kind == "response" && s.responses[n] != nil && !s.responses[n].over:
		s.end(s.responses[n], ai.Usage{}, f, tell)
	case e.Error.EventID == "" && f.Kind != ai.Config: // a session goes on after most errors
		slog.Warn("a realtime model's server had an error", "error", f.Err)
	default: // what was to be cut or forgotten was gone already
		slog.Debug("a realtime model's server refused an event", "error", f.Err)
	}
	return nil
}

// Cut implements ai.RealtimeSession.
func (s *session) Cut(n int, heard time.Duration, text string) {
	s.Lock()
	defer s.Unlock()
	r := s.responses[n]
	if r == nil || r.cut {
		return
	}
	r.cut, r.at, r.text, r.lost = true, heard, text, r.lost || s.dialect.Eager && !r.over
	switch {
	case r.over:
	case slices.Contains(s.waiting, r): // nobody was asked
		s.waiting = slices.DeleteFunc(s.waiting, func(w *response) bool { return w == r })
		r.over, r.told = true, true
	case r.id != "":
		s.cancelled(r)
	}
	s.settle(r)
}

// settle shortens the items of an interrupted response to what was heard of it. Texts can't be truncated, only
// replaced. The lock is held.
func (s *session) settle(r *response) {
	if !r.cut || r.apart {
		return
	}
	for i := range r.items {
		it := &r.items[i]
		if it.settled {
			continue
		}
		it.settled = true
		had := time.Duration(it.samples) * time.Second / time.Duration(s.setup.Rate)
		switch {
		case it.call:
			if !r.over {
				s.remove(it.id)
			}
		case it.samples > 0 && r.at > 0 && !s.setup.Writes && !r.lost: // milliseconds beyond its end are refused
			s.Box.Send(map[string]any{"type": "conversation.item.truncate", "item_id": it.id, "content_index": 0,
				"audio_end_ms": min(r.at, had).Milliseconds()})
			r.at = max(r.at-had, 0)
		default:
			after := "root"
			if at := slices.Index(s.items, it.id); at > 0 {
				after = s.items[at-1]
			} else if at < 0 {
				after = ""
			}
			s.remove(it.id)
			if text := r.text; text != "" && (r.create == nil || s.setup.Writes || r.lost) {
				r.text = ""
				s.insert(it.id+"_", after, ai.Message{Role: ai.Assistant, Text: text})
			}
		}
	}
}
