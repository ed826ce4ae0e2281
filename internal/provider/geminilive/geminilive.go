// Package geminilive is Google's Live API: models that hear and speak over a WebSocket (https://ai.google.dev/api/live).
package geminilive

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/live"
	"parley/internal/provider/wire"
	"parley/internal/schema"
)

// Model is one of the models of the Live API.
type Model struct {
	Base         string // of the API, without a slash at the end
	Sign         func(http.Header)
	Vendor, Code string
	Speaks       *sync.Map // the codes of models that were found to refuse to write
}

// session is the protocol of a conversation.
type session struct {
	*live.Asked
	model Model
	text  bool // the model writes
}

const (
	path = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	rate = 24000 // of what it says; what it hears is taken at any rate
	// tellAhead is how long before its end a session that could not be moved says so: a connection lasts for about ten minutes, and the
	// server says a while before its end that it is going to close it.
	tellAhead = 20 * time.Second
)

// Connect implements ai.RealtimeModel. Google's models all speak, and those that also write are few: one that is to write is asked for text
// at first, and if it refuses, the transcript of what it says is its text.
func (m Model) Connect(ctx context.Context, setup ai.RealtimeSetup) (_ ai.RealtimeSession, err error) {
	_, speaks := m.Speaks.Load(m.Code)
	s := &session{model: m, text: setup.Writes && !speaks}
	if s.Asked, err = live.NewAsked(ctx, s, setup, rate); err != nil {
		return nil, ai.TheModel.Of(err)
	}
	s.Box.Piece, s.Box.Tail = 2*int(setup.Rate)/10, `"}}}`
	s.Box.Head = fmt.Sprintf(`{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=%d","data":"`, setup.Rate)
	conn, err := s.Open(ctx, "")
	if s.text && ai.KindOf(err) == ai.Config {
		s.text = false
		if conn, err = s.Open(ctx, ""); err == nil {
			m.Speaks.Store(m.Code, true)
		}
	}
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	s.Serve(ctx, conn)
	return s, nil
}

// Open implements live.Asker.
func (s *session) Open(ctx context.Context, handle string) (*wire.Conn, error) {
	return live.Dial(ctx, s.model.Base, path, nil, s.model.Sign, object{"setup": s.terms(handle)},
		func(_ *wire.Conn, raw []byte) (bool, error) {
			var m message
			err := live.Read(raw, &m)
			return m.SetupComplete != nil, err
		})
}

// object is a JSON object.
type object = map[string]any

// content is what one side says.
func content(role, text string) object {
	return object{"role": role, "parts": []object{{"text": text}}}
}

// terms are what a connection is set up with; a handle goes on with the session of another one.
func (s *session) terms(handle string) object {
	config, resumption, hears := object{"responseModalities": []string{"TEXT"}}, object{}, object{}
	terms := object{"model": "models/" + s.model.Code, "generationConfig": config, "sessionResumption": resumption,
		"realtimeInputConfig":      object{"automaticActivityDetection": object{"disabled": true}},
		"contextWindowCompression": object{"slidingWindow": object{}}}
	if handle != "" {
		resumption["handle"] = handle
	}
	if !s.text {
		config["responseModalities"], terms["outputAudioTranscription"] = []string{"AUDIO"}, object{}
	}
	if s.Setup.Voice != "" && !s.Setup.Writes { // else it is a synthesizer's
		config["speechConfig"] = object{"voiceConfig": object{"prebuiltVoiceConfig": object{"voiceName": s.Setup.Voice}}}
	}
	if strings.TrimSpace(s.Setup.System) != "" {
		terms["systemInstruction"] = content("user", s.Setup.System)
	}
	if !s.Setup.Reads {
		terms["inputAudioTranscription"] = hears
	}
	if s.Setup.Language != "" {
		hears["languageCodes"] = append([]string{s.Setup.Language}, s.Setup.Others...)
	}
	if len(s.Setup.Keywords) > 0 {
		hears["customVocabulary"] = s.Setup.Keywords
	}
	var tools []object
	for _, t := range s.Setup.Tools {
		// One that blocks ends the reply, which goes on when the result is there. Some models would otherwise talk on.
		f := object{"name": s.Names.Wire(t.Name), "description": t.Description, "behavior": "BLOCKING"}
		if p := schema.ForGemini(t.Schema); len(p) > 0 {
			f["parametersJsonSchema"] = p
		}
		tools = append(tools, f)
	}
	if tools != nil {
		terms["tools"] = []object{{"functionDeclarations": tools}}
	}
	return terms
}

// message is what the server sends: the fields that matter here, by the protocol's names, of all its messages.
type message struct {
	SetupComplete *struct{}
	ServerContent struct {
		ModelTurn struct {
			Parts []struct {
				Text       string
				Thought    bool
				InlineData *struct{ Data []byte }
			}
		}
		GenerationComplete, TurnComplete, Interrupted, WaitingForInput     bool
		TurnCompleteReason                                                 string
		InputTranscription, InterimInputTranscription, OutputTranscription struct {
			Text, LanguageCode string
			Finished           bool // is said by some models only
		}
	}
	ToolCall                struct{ FunctionCalls []live.Call }
	ToolCallCancellation    *struct{ IDs []string }
	GoAway                  *struct{ TimeLeft string }  // as 9.5s
	SessionResumptionUpdate *struct{ NewHandle string } // "": it can't be resumed now
	// UsageMetadata is of a turn, or of a part of one that ends with calls. That it is told once for each is not documented.
	UsageMetadata struct {
		PromptTokenCount, ToolUsePromptTokenCount, ResponseTokenCount, ThoughtsTokenCount, CachedContentTokenCount int
		PromptTokensDetails, ResponseTokensDetails, CacheTokensDetails                                             tokens
	}
}

// tokens are counted by their kind.
type tokens []struct {
	Modality   string
	TokenCount int
}

// sound counts those of sound.
func (list tokens) sound() (n int) {
	for _, t := range list {
		if t.Modality == "AUDIO" {
			n += t.TokenCount
		}
	}
	return n
}

// Take implements live.Asker.
func (s *session) Take(raw []byte) error {
	var m message
	if err := live.Read(raw, &m); err != nil {
		return err
	}
	u := &m.UsageMetadata
	s.Used(s.model.Vendor, s.model.Code, ai.Usage{In: u.PromptTokenCount + u.ToolUsePromptTokenCount,
		Out: u.ResponseTokenCount + u.ThoughtsTokenCount, Cached: u.CachedContentTokenCount},
		ai.Usage{In: u.PromptTokensDetails.sound(), Out: u.ResponseTokensDetails.sound(), Cached: u.CacheTokensDetails.sound()})
	s.content(&m)
	s.Called(m.ToolCall.FunctionCalls)
	if c := m.ToolCallCancellation; c != nil {
		s.GaveUp(c.IDs)
	}
	if r := m.SessionResumptionUpdate; r != nil {
		s.Resumes(r.NewHandle)
	}
	if m.GoAway != nil {
		left, _ := time.ParseDuration(m.GoAway.TimeLeft)
		s.Ends(time.Now().Add(max(0, left)), tellAhead)
	}
	return nil
}

// content takes what was heard, and what is said.
func (s *session) content(m *message) {
	c := &m.ServerContent
	in := &c.InputTranscription
	s.Heard(in.Text, c.InterimInputTranscription.Text, in.LanguageCode, in.Finished)
	for _, p := range c.ModelTurn.Parts {
		switch {
		case p.Thought:
		case p.InlineData != nil:
			s.Spoken(p.InlineData.Data)
		case s.text:
			s.Said(p.Text, true)
		}
	}
	if !s.text {
		s.Said(c.OutputTranscription.Text, false)
	}
	if c.GenerationComplete || c.Interrupted || c.WaitingForInput {
		s.Made()
	}
	if c.TurnComplete {
		s.Complete(c.TurnCompleteReason, reasons)
	}
}

// reasons are why turns end: "" is a good end. A reason that isn't here is a refusal.
var reasons = map[string]ai.Kind{"": "", "TURN_COMPLETE_REASON_UNSPECIFIED": "", "NEED_MORE_INPUT": "",
	"MALFORMED_FUNCTION_CALL": ai.Malformed, "MAX_REGENERATION_REACHED": ai.Malformed}

// Speech implements live.Asker.
func (s *session) Speech(begins bool) any {
	what := map[bool]string{true: "activityStart", false: "activityEnd"}[begins]
	return object{"realtimeInput": object{what: object{}}}
}

// Texts implements live.Asker.
func (s *session) Texts(list []*live.Text, asks bool) any {
	var turns []object
	for _, t := range list {
		role := "user"
		if t.Role == ai.Assistant {
			role = "model"
		}
		turns = append(turns, content(role, t.Text))
	}
	return object{"clientContent": object{"turns": turns, "turnComplete": asks}}
}

// Results implements live.Asker.
func (s *session) Results(list []live.Result) any {
	var functions []object
	for _, r := range list {
		functions = append(functions, object{"id": r.Call.ID, "name": s.Names.Wire(r.Call.Name), "response": object{"output": r.Output}})
	}
	return object{"toolResponse": object{"functionResponses": functions}}
}
