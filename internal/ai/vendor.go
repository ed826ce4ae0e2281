package ai

import (
	"context"
	"fmt"

	"parley/internal/parley"
)

// BuiltIn is the code of the vendor that is always available, and of its one model, which is not a language model.
const BuiltIn = "local"

// Vendor is a vendor's declaration. The catalog, the program's settings and their page, and the doctor's report are
// made from declarations; nothing else in the program names a vendor. A nil function stands for an ability that the
// vendor lacks.
type Vendor struct {
	Code string // is stored with models, and never changes
	Name string // as people call it; "" for one without keys
	// KeyPage is where people get a key.
	KeyPage string
	// Settings points to a struct whose fields are settings of the program. Their tags are read as package kong reads
	// them: name (settings begin with the vendor's code), help, default. A string whose field name ends with Key,
	// Token, Secret or Password is never logged.
	Settings any

	Speakers  []Speaker
	Listeners []Listener
	Realtime  *Realtime
	// Models lists the models that the settings name, the best first: Kind, Code and Name.
	Models func() []parley.Model

	// ByURL says that the vendor is a server of the operator's own: it needs a base URL, and a key only if it asks for one.
	ByURL bool
	// Listed returns the models that such a server lists now; nil if the vendor's models are known.
	Listed func(ctx context.Context) []string

	// Endpoint says that it is an account's own server: what it refuses is the account's to mend.
	Endpoint bool

	// Retired lists the models that the vendor has retired, or is going to, as far as its own servers are used; nil if it
	// has announced nothing.
	Retired func() Retirements

	// With declares the vendor with another key, whatever the settings say; nil if it takes none. See Rekeyed.
	With func(k Key) *Vendor
	// Open prepares the vendor without contacting it. It fails if the settings can't be used.
	Open func() (*Opened, error)
	// Check contacts the vendor, and reports what is well, what is missing, and how to fix it.
	Check func(ctx context.Context) []parley.Finding
}

// Opened is a vendor that can be used. If it has an ability that can't be used, the error is an *Error of kind Config.
type Opened struct {
	Model       func(code string) Model  // nil: it has no such model
	Embedder    func() (Embedder, error) // nil without an error: the settings name none
	Synthesizer func(code string) (Synthesizer, error)
	Recognizer  func(code string) (Recognizer, error)
	// Voices lists the voices in a key's account beyond the declared ones, such as cloned voices, without numbers; nil
	// if the vendor has no such voices. The key may be a user's: the settings need not have one. The error is an
	// *Error, unless ctx ended.
	Voices func(ctx context.Context, key string) ([]Voice, error)
	// Realtime returns a model that hears; nil if the vendor has none.
	Realtime func(code string) (RealtimeModel, error)
	// Warm begins what is kept for the context's conversation (Party), and Over ends it; nil where nothing is.
	Warm  func(ctx context.Context)
	Over  func(of string)
	Close func() // nil: there is nothing to close
}

// Speaker is a vendor's synthesizer with its voices. Codes and ids are stored, and never change.
type Speaker struct {
	parley.Provider
	Rank    int // of those that speak a language, the lowest that is configured is its default
	Tunable parley.Tunable
	Voices  []Voice
	// Named is what a voice is called in a language (ISO 639-1), if that is not its code.
	Named func(code, language string) string
	// Configured reports whether the settings let it speak.
	Configured func() bool
	// Model names the configured model: the same voice sounds different with another. nil if there is no choice.
	Model func() string
	// Private says that it speaks with a user's own key alone: nobody else hears a preview of its voices.
	Private bool
	// Install is the command that installs the speaking program; "" if there is none.
	Install string
}

// Listener is a vendor's recognizer. Codes and ids are stored, and never change; a vendor that also speaks has one id
// for both.
type Listener struct {
	parley.Provider
	Rank      int    // as a Speaker's
	Languages string // ISO 639-1, separated by spaces
	// Mixed returns those of Languages among which it tells which one was spoken, when several may be; nil for none.
	Mixed      func() string
	Configured func() bool
	// Foreign tells an assistant's owner that it does not understand the assistant's language; "" if that can't happen.
	Foreign string
}

// Realtime lists the choices for a vendor's model that hears and speaks.
type Realtime struct {
	Voices     []Voice
	Configured func() bool
	// Alike is the code of the speaker that also has these voices: previews before a call come from it.
	Alike string
}

// Voice is one voice in one or more languages; each of them is a separate voice of the catalog.
type Voice struct {
	Number      int64  // is stored: never changed, never used again
	Languages   string // ISO 639-1, separated by spaces
	Code        string // the vendor's own name of it
	Name        string
	Gender      string // male or female
	Accent, Age string // "" where they are not known
	Private     bool   // it is in a user's own account: it has no preview
	Gone        bool   // it was in the account: it is still found by its id
}

// NotConfigured says why a vendor's ability can't be used: what is a synthesizer or a transcriber, mend tells the
// operator what to do.
func NotConfigured(what, code, mend string) error {
	return &Error{Kind: Config, Err: fmt.Errorf("the %s %q is not configured: %s", what, code, mend),
		Mend: fmt.Sprintf("The %s %q is not configured on this server. Choose another, or ask its operator: %s.",
			what, code, mend)}
}
