package parley

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// Endpoint is a server of an account's own that does something for its assistants: it thinks, speaks, listens or answers the turns.
type Endpoint struct {
	bun.BaseModel `bun:"endpoints" json:"-"`

	ID       int64            `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID   int64            `json:"-"`
	Name     string           `json:"name" required:"true" maxLength:"100" doc:"Unique among the account's endpoints."`
	Kind     EndpointKind     `bun:"-" json:"kind" required:"true" enum:"llm,stt,tts,agent" doc:"What it is: llm, a language model; tts, it speaks; stt, it listens; agent, a program of yours that answers the turns itself."`
	Protocol EndpointProtocol `bun:"-" json:"protocol" required:"true" enum:"openai,anthropic,gemini,deepgram,elevenlabs,cartesia,parley" doc:"What it speaks. llm: openai (chat completions), anthropic or gemini. tts: openai, deepgram, elevenlabs or cartesia. stt: openai or deepgram. agent: parley, the protocol of docs/endpoints.md."`
	URL      string           `bun:"url" json:"url" required:"true" maxLength:"2048" format:"server-url" doc:"Base URL, as the protocol's vendor has it: of openai with /v1. Of an agent, where the program is: wss:// or ws:// for a WebSocket for each conversation, https:// or http:// for a request for each reply."`
	Key      string           `bun:"-" json:"api_key,omitempty" writeOnly:"true" maxLength:"1024" trim:"off" doc:"Sent as the protocol's vendor wants it; to an agent as a bearer token. Kept encrypted and never shown. Sent empty it stays as it was; null removes it."`
	KeyHint  string           `json:"key_hint" readOnly:"true" doc:"The key's last characters; empty for none."`
	Headers  []ToolHeader     `bun:"-" json:"headers" maxItems:"20" doc:"Sent with each request. Values are kept encrypted and never shown: in answers they are empty, and one that is sent empty stays as it was."`
	Sealed   []byte           `bun:"secrets" json:"-"` // key and headers as they are stored
	Model    string           `json:"model" maxLength:"255" doc:"The server's own name of the model; to an agent it means nothing, and deepgram has one of its own where it is empty."`
	Voices   []EndpointVoice  `bun:"type:json" json:"voices" maxItems:"20" doc:"Those of kind tts, at least one. Each is among the voices that assistants can have."`
	// VoiceCodes are the codes of all voices that it ever had, in the order in which they came: their places are in the voices' ids.
	VoiceCodes []string `bun:"type:json" json:"-"`
	WaitMS     int64    `bun:"wait_ms" json:"wait_ms" default:"0" minimum:"0" maximum:"30000" doc:"Milliseconds until the first word, sound or text, before what takes over is asked too. 0: as this server has it for its own."`

	// kind, protocol and first voice as they are stored, in the words of the former version, whose nodes may read them
	Part       string `json:"-"`
	Speaks     string `bun:"protocol" json:"-"`
	FirstVoice string `bun:"voice" json:"-"`

	CreatedAt Time `json:"created_at" readOnly:"true"`
	UpdatedAt Time `json:"updated_at" readOnly:"true"`
}

// EndpointVoice is a voice of an endpoint.
type EndpointVoice struct {
	Code     string `json:"code" required:"true" maxLength:"255" doc:"The server's own name of it."`
	Name     string `json:"name" maxLength:"100" doc:"What people choose it by; the code, unless it is given."`
	Language string `json:"language" maxLength:"2" doc:"ISO 639-1 code of the language that it speaks; empty: every language."`
	Gender   string `json:"gender" default:"female" enum:"female,male"`
}

// EndpointKind is what an endpoint is.
type EndpointKind string

// The kinds.
const (
	EndpointLLM   EndpointKind = "llm"
	EndpointSTT   EndpointKind = "stt"
	EndpointTTS   EndpointKind = "tts"
	EndpointAgent EndpointKind = "agent"
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
	EndpointParley     EndpointProtocol = "parley" // docs/endpoints.md
)

// EndpointProtocols are the protocols of each kind.
var EndpointProtocols = map[EndpointKind][]EndpointProtocol{
	EndpointLLM:   {EndpointOpenAI, EndpointAnthropic, EndpointGemini},
	EndpointSTT:   {EndpointOpenAI, EndpointDeepgram},
	EndpointTTS:   {EndpointOpenAI, EndpointDeepgram, EndpointElevenLabs, EndpointCartesia},
	EndpointAgent: {EndpointParley},
}

// MaxEndpoints is how many endpoints an account may have.
const MaxEndpoints = 50

// maxVoiceCodes is how many voices an endpoint may have had.
const maxVoiceCodes = 1000

// endpointOurs are headers that belong to the protocol.
var endpointOurs = []string{"Connection", "Content-Length", "Content-Type", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// Check adds what the fields' own rules can't see.
func (e *Endpoint) Check(f *Fields) {
	if list := EndpointProtocols[e.Kind]; list != nil && !f.Has("protocol") && !slices.Contains(list, e.Protocol) {
		var names []string
		for _, p := range list {
			names = append(names, string(p))
		}
		f.Add("protocol", "must be one of these for kind %s: %s.", e.Kind, strings.Join(names, ", "))
	}
	if e.Model == "" && e.Protocol != EndpointParley && e.Protocol != EndpointDeepgram {
		f.Add("model", "is required.")
	}
	if strings.HasPrefix(e.URL, "ws") && e.Protocol != EndpointParley && !f.Has("url") {
		f.Add("url", "must begin with https:// or http://; only the protocol parley may have wss:// or ws://.")
	}
	e.checkVoices(f)
	for i, h := range e.Headers {
		name := http.CanonicalHeaderKey(h.Name)
		if slices.Contains(endpointOurs, name) || strings.HasPrefix(name, "Sec-Websocket-") || strings.HasPrefix(name, "X-Parley-") {
			f.AddText("headers."+strconv.Itoa(i)+".name", "The header "+h.Name+" is set by this server.")
		}
	}
	if strings.ContainsFunc(e.Key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		f.AddText("api_key", "This is not a key: it has spaces, line breaks or letters that keys don't have.")
	}
}

// checkVoices judges the voices, fills in their names, and gives new ones their places.
func (e *Endpoint) checkVoices(f *Fields) {
	if e.Kind == EndpointTTS && len(e.Voices) == 0 && !f.Has("voices") {
		f.Add("voices", "must have at least one voice.")
	}
	for i := range e.Voices {
		v := &e.Voices[i]
		v.Name = cmp.Or(v.Name, v.Code)
		if slices.ContainsFunc(e.Voices[:i], func(o EndpointVoice) bool {
			return o.Code == v.Code && (o.Language == v.Language || o.Language == "" || v.Language == "")
		}) {
			f.AddText("voices."+strconv.Itoa(i)+".code", "The voice "+v.Code+" is there twice for the same language.")
		}
		if v.Code != "" && !slices.Contains(e.VoiceCodes, v.Code) {
			e.VoiceCodes = append(e.VoiceCodes, v.Code)
		}
	}
	if len(e.VoiceCodes) > maxVoiceCodes && !f.Has("voices") {
		f.Add("voices", "have changed too often: %d is the maximum that an endpoint may have had. Make another endpoint.", maxVoiceCodes)
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

// What the ids of endpoints among models and providers are counted from, and the numbers of their voices: beyond those of
// all others. A voice's id is its number and its language, as of every voice.
const (
	endpointIDs    = 1_000_000
	endpointVoices = 1_000_000_000
	voiceLanguages = 1000
)

// ListedID is the id by which an assistant names the endpoint among models or providers.
func (e *Endpoint) ListedID() int64 { return listedID(e.ID) }

func listedID(endpoint int64) int64 { return endpointIDs + endpoint }

// VoiceID is the id by which an assistant names a voice in a language.
func (e *Endpoint) VoiceID(v *EndpointVoice, language int64) int64 {
	return endpointVoiceID(e.ID, int64(slices.Index(e.VoiceCodes, v.Code)), language)
}

func endpointVoiceID(endpoint, place, language int64) int64 {
	return (endpointVoices+endpoint*maxVoiceCodes+place)*voiceLanguages + language
}

// Voice is the voice at a place that speaks a language (ISO 639-1), nil where there is none.
func (e *Endpoint) Voice(place int64, language string) *EndpointVoice {
	for i := range e.Voices {
		v := &e.Voices[i]
		if place < int64(len(e.VoiceCodes)) && v.Code == e.VoiceCodes[place] && (v.Language == "" || v.Language == language) {
			return v
		}
	}
	return nil
}

// Chosen is an assistant as it is shown: with the ids of its endpoints in place of what takes over from them.
func (a *Assistant) Chosen() *Assistant {
	out := *a
	choose := func(field **int64, endpoint *int64) {
		if endpoint != nil {
			id := listedID(*endpoint)
			*field = &id
		}
	}
	choose(&out.LLMModelID, a.LLMEndpointID)
	choose(&out.TranscriberProviderID, a.TranscriberEndpointID)
	if a.VoiceEndpointID != nil {
		out.VoiceID = endpointVoiceID(*a.VoiceEndpointID, a.VoiceEndpointPlace, a.LanguageID)
	}
	return &out
}

// MarshalJSON writes the assistant as it is chosen.
func (a Assistant) MarshalJSON() ([]byte, error) {
	type fields Assistant
	return json.Marshal((*fields)(a.Chosen()))
}

// Settle is the reverse of Chosen: it tells which ids are those of endpoints. What takes over from them is what old has.
func (a *Assistant) Settle(old *Assistant) {
	part := func(field, endpoint **int64, before *int64) {
		if *endpoint = nil; *field != nil && **field > endpointIDs {
			id := **field - endpointIDs
			*field, *endpoint = before, &id
		}
	}
	part(&a.LLMModelID, &a.LLMEndpointID, old.LLMModelID)
	part(&a.TranscriberProviderID, &a.TranscriberEndpointID, old.TranscriberProviderID)
	a.VoiceEndpointID, a.VoiceEndpointPlace = nil, 0
	if n := a.VoiceID/voiceLanguages - endpointVoices; n >= maxVoiceCodes {
		id := n / maxVoiceCodes
		a.VoiceID, a.VoiceEndpointID, a.VoiceEndpointPlace = old.VoiceID, &id, n%maxVoiceCodes
		if p := a.SynthesizerProviderID; p != nil && (*p == listedID(id) || reflect.DeepEqual(p, old.SynthesizerProviderID)) {
			a.SynthesizerProviderID = nil // it is the voice's, or was the former voice's
		}
	}
}

// endpointFields are the fields in which an assistant names endpoints, with the kinds that these may have.
var endpointFields = map[string][]EndpointKind{"llm_model_id": {EndpointLLM, EndpointAgent}, "voice_id": {EndpointTTS},
	"transcriber_provider_id": {EndpointSTT}}

// EndpointIDs are the endpoints that an assistant names, by the field; nil where it names none.
func (a *Assistant) EndpointIDs() map[string]*int64 {
	return map[string]*int64{"llm_model_id": a.LLMEndpointID, "voice_id": a.VoiceEndpointID,
		"transcriber_provider_id": a.TranscriberEndpointID}
}

// Endpoint is the endpoint that an assistant names in a field, nil for none.
func (a *Assistant) Endpoint(field string) *Endpoint {
	id := a.EndpointIDs()[field]
	for i := range a.Endpoints {
		e := &a.Endpoints[i] // it may have become another kind since
		if id != nil && e.ID == *id && slices.Contains(endpointFields[field], e.Kind) {
			return e
		}
	}
	return nil
}

// checkEndpoints judges the endpoints that an assistant names. Those that it had may stay, whatever they have become.
func (a *Assistant) checkEndpoints(facts AssistantFacts, selected func(string), bad func(string, string, ...any)) {
	for field, id := range a.EndpointIDs() {
		if id == nil {
			continue
		}
		i := slices.IndexFunc(facts.Endpoints, func(e Endpoint) bool { return e.ID == *id })
		switch {
		case a.Mode != "" && a.Mode != "pipeline":
			bad(field, "may name an endpoint of yours in pipeline mode only.")
		case i < 0:
			selected(field)
		case facts.Kept[field]:
		case !slices.Contains(endpointFields[field], facts.Endpoints[i].Kind):
			selected(field)
		case field == "voice_id" && facts.Language != nil && facts.Endpoints[i].Voice(a.VoiceEndpointPlace, facts.Language.ISO2) == nil:
			bad(field, "must name a voice that speaks the assistant's language.")
		}
	}
	if a.VoiceEndpointID != nil && a.SynthesizerProviderID != nil {
		bad("synthesizer_provider_id", "must be the provider of the voice.")
	}
}
