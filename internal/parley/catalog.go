package parley

// Language is a language that assistants can speak. Ids are stable for ever.
type Language struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	ISO2    string `json:"iso_2"`
	Default struct {
		Synthesizer string `json:"synthesizer"` // provider codes used when an assistant names none
		Transcriber string `json:"transcriber"`
	} `json:"-"`
}

// Provider is a vendor that speaks (synthesizer) or listens (transcriber).
type Provider struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Code string `json:"code"`
}

// Tunable says which settings of an assistant a vendor's voices have. They may be set anyway, and change nothing
// where they are false.
type Tunable struct {
	Stability  bool `json:"voice_stability"`
	Similarity bool `json:"voice_similarity"`
}

// Voice is one voice of one synthesizer provider in one language.
type Voice struct {
	ID                    int64   `json:"id"`
	Name                  string  `json:"name"`
	LanguageID            int64   `json:"language_id"`
	Gender                string  `json:"gender"`
	PreviewURL            string  `json:"preview_url"`
	Accent                *string `json:"accent"`
	Age                   *string `json:"age"`
	SynthesizerProviderID *int64  `json:"synthesizer_provider_id"`
	Tunable

	Code   string   `json:"code" doc:"The provider's own name of the voice."`
	Inside string   `json:"realtime_vendor" doc:"The provider inside whose realtime models it speaks; empty for a synthesizer's voice."`
	Modes  []string `json:"-"` // the assistant modes that it serves
}

// ModelKind is what a model is for.
type ModelKind string

// The kinds of model.
const (
	LLM        ModelKind = "llm"        // thinks in text
	Multimodal ModelKind = "multimodal" // hears and speaks itself
	Dualplex   ModelKind = "dualplex"   // hears itself, our synthesizer speaks
)

// Model is a language model that assistants can think with.
type Model struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Code string `json:"code"`
	// Decides: it decides by itself when it speaks, so that an assistant's fields about turns can't act.
	Decides bool `json:"decides_turns,omitempty"`

	Kind     ModelKind `json:"-"`
	Provider string    `json:"-"` // provider code
}
