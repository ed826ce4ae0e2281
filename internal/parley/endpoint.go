package parley

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// Endpoint is a server of an account's own that does a part of its assistants' work: it thinks, speaks or listens.
type Endpoint struct {
	bun.BaseModel `bun:"endpoints" json:"-"`

	ID       int64            `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID   int64            `json:"-"`
	Name     string           `json:"name" required:"true" maxLength:"100" doc:"Unique among the account's endpoints."`
	Part     EndpointPart     `json:"part" required:"true" enum:"model,voice,recognizer" doc:"What it does for an assistant."`
	Protocol EndpointProtocol `json:"protocol" required:"true" enum:"openai,anthropic,gemini,deepgram,elevenlabs,cartesia,custom" doc:"What it speaks. model: openai (chat completions), anthropic, gemini, or custom, the protocol of docs/endpoints.md. voice: openai, deepgram, elevenlabs or cartesia. recognizer: openai or deepgram."`
	URL      string           `bun:"url" json:"url" required:"true" maxLength:"2048" format:"server-url" doc:"Base URL, as the protocol's vendor has it: of openai with /v1. Of custom, where the program is: wss:// or ws:// for a WebSocket for each conversation, https:// or http:// for a request for each reply."`
	Key      string           `bun:"-" json:"key" maxLength:"1024" trim:"off" doc:"Sent as the protocol's vendor wants it; of custom as a bearer token. Kept encrypted, never shown: always empty in answers."`
	KeyHint  string           `json:"key_hint" readOnly:"true" doc:"The key's last characters; empty for none."`
	Headers  []ToolHeader     `bun:"-" json:"headers" maxItems:"20" doc:"Sent with each request. Values are kept encrypted and never shown: in answers they are empty, and one that is sent empty stays as it was."`
	Sealed   []byte           `bun:"secrets" json:"-"` // key and headers as they are stored
	Model    string           `json:"model" maxLength:"255" doc:"The server's own name of the model; of custom it means nothing, and deepgram has one of its own where it is empty."`
	Voice    string           `json:"voice" maxLength:"255" doc:"Of a voice: the server's own name of it."`
	WaitMS   int64            `bun:"wait_ms" json:"wait_ms" default:"0" minimum:"0" maximum:"30000" doc:"Milliseconds until the first word, sound or text, before the assistant's own model, voice or transcriber is asked too. 0: as this server has it for its own."`

	CreatedAt Time `json:"created_at" readOnly:"true"`
	UpdatedAt Time `json:"updated_at" readOnly:"true"`
}

// EndpointPart is what an endpoint does for an assistant.
type EndpointPart string

// The parts.
const (
	EndpointModel      EndpointPart = "model"
	EndpointVoice      EndpointPart = "voice"
	EndpointRecognizer EndpointPart = "recognizer"
)

// EndpointProtocol is what an endpoint speaks.
type EndpointProtocol string

// The protocols.
const (
	EndpointOpenAI     EndpointProtocol = "openai"
	EndpointAnthropic  EndpointProtocol = "anthropic"
	EndpointGemini     EndpointProtocol = "gemini"
	EndpointDeepgram   EndpointProtocol = "deepgram"
	EndpointElevenLabs EndpointProtocol = "elevenlabs"
	EndpointCartesia   EndpointProtocol = "cartesia"
	EndpointCustom     EndpointProtocol = "custom" // docs/endpoints.md
)

// EndpointProtocols are the protocols of each part.
var EndpointProtocols = map[EndpointPart][]EndpointProtocol{
	EndpointModel:      {EndpointOpenAI, EndpointAnthropic, EndpointGemini, EndpointCustom},
	EndpointVoice:      {EndpointOpenAI, EndpointDeepgram, EndpointElevenLabs, EndpointCartesia},
	EndpointRecognizer: {EndpointOpenAI, EndpointDeepgram},
}

// MostEndpoints is how many endpoints an account may have.
const MostEndpoints = 50

// endpointOurs are headers that belong to the protocol.
var endpointOurs = []string{"Connection", "Content-Length", "Content-Type", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// Check adds what the fields' own rules can't see.
func (e *Endpoint) Check(f *Fields) {
	if list := EndpointProtocols[e.Part]; list != nil && !f.Has("protocol") && !slices.Contains(list, e.Protocol) {
		var names []string
		for _, p := range list {
			names = append(names, string(p))
		}
		f.Add("protocol", "must be one of these for a %s: %s.", e.Part, strings.Join(names, ", "))
	}
	if e.Model == "" && e.Protocol != EndpointCustom && e.Protocol != EndpointDeepgram {
		f.Add("model", "is required.")
	}
	if strings.HasPrefix(e.URL, "ws") && e.Protocol != EndpointCustom && !f.Has("url") {
		f.Add("url", "must begin with https:// or http://; only the protocol custom may have wss:// or ws://.")
	}
	if e.Voice == "" && e.Part == EndpointVoice {
		f.Add("voice", "is required.")
	}
	for i, h := range e.Headers {
		name := http.CanonicalHeaderKey(h.Name)
		if slices.Contains(endpointOurs, name) || strings.HasPrefix(name, "Sec-Websocket-") || strings.HasPrefix(name, "X-Parley-") {
			f.AddText("headers."+strconv.Itoa(i)+".name", "The header "+h.Name+" is set by this server.")
		}
	}
	if strings.ContainsFunc(e.Key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		f.AddText("key", "This is not a key: it has spaces, line breaks or letters that keys don't have.")
	}
}

// Shown is the endpoint without its secrets.
func (e *Endpoint) Shown() *Endpoint {
	out := *e
	out.Key, out.Headers = "", make([]ToolHeader, len(e.Headers))
	for i, h := range e.Headers {
		out.Headers[i].Name = h.Name
	}
	return &out
}

// endpointFields are the fields by which an assistant names endpoints, with their parts.
var endpointFields = map[string]EndpointPart{"llm_endpoint_id": EndpointModel, "voice_endpoint_id": EndpointVoice,
	"transcriber_endpoint_id": EndpointRecognizer}

// EndpointIDs are the endpoints that an assistant names, by the field; nil where it names none.
func (a *Assistant) EndpointIDs() map[string]*int64 {
	return map[string]*int64{"llm_endpoint_id": a.LLMEndpointID, "voice_endpoint_id": a.VoiceEndpointID,
		"transcriber_endpoint_id": a.TranscriberEndpointID}
}

// Endpoint is the assistant's own endpoint for a part, nil for none.
func (a *Assistant) Endpoint(part EndpointPart) *Endpoint {
	for field, id := range a.EndpointIDs() {
		if id == nil || endpointFields[field] != part {
			continue
		}
		for i := range a.Endpoints {
			if a.Endpoints[i].ID == *id && a.Endpoints[i].Part == part { // it may have become another part since
				return &a.Endpoints[i]
			}
		}
	}
	return nil
}

// checkEndpoints judges the endpoints that an assistant names. facts are those of its owner.
func (a *Assistant) checkEndpoints(facts map[int64]EndpointPart, selected func(string), bad func(string, string, ...any)) {
	for field, id := range a.EndpointIDs() {
		switch {
		case id == nil:
		case facts[*id] != endpointFields[field]:
			selected(field)
		case a.Mode != "" && a.Mode != "pipeline":
			bad(field, "may be set in pipeline mode only.")
		}
	}
}
