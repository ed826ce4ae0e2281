package ai

import (
	"context"
	"fmt"

	"parley"
)

// BuiltIn is the code of the vendor that is always there, and of its one model, which is no language model.
const BuiltIn = "local"

// Vendor is what a vendor declares of itself. The catalog, the program's settings and their page, and the doctor's
// report are made of declarations; nothing else of the program names a vendor. A function that is nil stands for an
// ability that the vendor doesn't have.
type Vendor struct {
	Code string // is stored with models, and never changes
	// Settings points to a struct whose fields are settings of the program. Their tags say them as package kong reads
	// them: name (settings begin with the vendor's code), help, default. A string whose field ends with Key, Token,
	// Secret or Password is never written to the log.
	Settings any

	Speakers  []Speaker
	Listeners []Listener
	Realtime  *Realtime
	// Models are those that the settings name, the best first: Kind, Code and Name.
	Models func() []parley.Model

	// Open prepares the vendor and asks it nothing. It fails where the settings can't be used.
	Open func() (*Opened, error)
	// Check asks the vendor, and says what is well, what is missing, and how to mend it.
	Check func(ctx context.Context) []parley.Finding
}

// Opened is a vendor that can be asked. Where it has an ability but can't be asked for it, the error is an *Error of
// kind Config.
type Opened struct {
	Model       func(code string) Model  // nil: it has no such model
	Embedder    func() (Embedder, error) // nil without an error: the settings name none
	Synthesizer func(code string) (Synthesizer, error)
	Recognizer  func(code string) (Recognizer, error)
	// Voices lists the voices that a key's account has besides those that are declared, as cloned ones, without
	// numbers; nil where the vendor has no such. The key may be a user's: the settings need not name one. The error is
	// an *Error, unless ctx ended.
	Voices func(ctx context.Context, key string) ([]Voice, error)
	// Realtime gives a model that hears; nil: none does.
	Realtime func(code string) (RealtimeModel, error)
	Close    func() // nil: there is nothing to close
}

// Speaker is a synthesizer of a vendor's, with its voices. Codes and ids are stored, and never change.
type Speaker struct {
	parley.Provider
	Rank    int // of those that speak a language, the lowest that is configured is its default
	Tunable parley.Tunable
	Voices  []Voice
	// Named is what a voice is called in a language (ISO 639-1), where that is not its code.
	Named func(code, language string) string
	// Configured says whether the settings let it speak.
	Configured func() bool
	// Model names the configured model: the same voice sounds otherwise with another. nil: there are none to choose
	// from.
	Model func() string
	// Install is the command that installs the program which speaks; "" where there is none.
	Install string
}

// Listener is a recognizer of a vendor's. Codes and ids are stored, and never change; a vendor that speaks too has
// one id for both.
type Listener struct {
	parley.Provider
	Rank       int    // as a Speaker's
	Languages  string // ISO 639-1, separated by spaces
	Configured func() bool
	// Foreign tells an assistant's owner that it does not understand the assistant's language; "" where that can't
	// happen.
	Foreign string
}

// Realtime is what a vendor's model that hears and speaks has to choose from.
type Realtime struct {
	Voices     []Voice
	Configured func() bool
	// Alike is the code of the speaker that has these voices too: before a call they are heard from it.
	Alike string
}

// Voice is one voice in one or more languages; each of them makes a voice of the catalog.
type Voice struct {
	Number      int64  // is stored: never changed, never used again
	Languages   string // ISO 639-1, separated by spaces
	Code        string // the vendor's own name of it
	Name        string
	Gender      string // male or female
	Accent, Age string // "" where they are not known
}

// NotConfigured is why a vendor can't be asked for what it could do: what is a synthesizer or a transcriber, mend
// tells the operator what to do.
func NotConfigured(what, code, mend string) error {
	return &Error{Kind: Config, Err: fmt.Errorf("the %s %q is not configured: %s", what, code, mend),
		Mend: fmt.Sprintf("The %s %q is not configured on this server. Choose another, or ask its operator: %s.",
			what, code, mend)}
}
