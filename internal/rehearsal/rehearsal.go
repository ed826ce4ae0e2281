// Package rehearsal tries assistants with simulated callers: it reads cases from files, performs them over a real
// telephone line or as a chat, judges what a caller could hear and what the server recorded, and reports.
//
// Reading (file.go), judging (judge.go) and reporting (table.go) are pure. perform.go holds a telephone and follows the
// script; server.go asks the server.
package rehearsal

import (
	"fmt"
	"strings"
	"time"

	"parley/internal/parley"
)

// Case is a conversation with an assistant, and what must come of it.
type Case struct {
	File string
	Line int // of the file, where the case begins
	Name string

	Assistant string // its name, id or file
	Outbound  bool   // the assistant calls: the case is who is called
	Pickup    Pickup // of who is called
	Channel   Channel
	Now       time.Time // pinned; zero is the present
	Variables map[string]string
	Draft     *parley.Draft // what of the assistant is changed; no file says so
	Run       int64         // the run of an assistant's tests whose draft is performed; likewise
	Sound     Sound
	Caller    Caller
	Ears      Ears
	Mocks     []Mock
	Repeat    int
	Seed      uint64
	Limit     time.Duration // of the whole case

	Steps    []Step
	End      *End
	Budget   Budget
	Criteria []Criterion // judged by a model

	matrix []axis
	most   int      // cases that the matrix may make
	Values []string // of the matrix, as key=value; none without one
}

// Stranger reports whether the case calls a SIP address, of which nothing is known but what is heard.
func (c *Case) Stranger() bool { return strings.HasPrefix(c.Assistant, "sip:") }

// Channel is how the caller reaches the assistant.
type Channel string

// The channels.
const (
	Call Channel = "call"
	Chat Channel = "chat"
)

// Pickup is what becomes of a call at who is called.
type Pickup struct {
	After  time.Duration // of ringing, before it is answered
	Refuse int           // the SIP status that turns it away instead
	Never  bool          // it rings until the assistant gives up
}

// Ears are how the server learns what the caller says.
type Ears string

// The ears.
const (
	Real Ears = "real" // the assistant's recognizer listens
	Told Ears = "told" // the words are told beside the sound, so that no recognizer has a part in the result
)

// Sound is the line.
type Sound struct {
	Codec  string        // pcmu, pcma, g722
	Loss   float64       // share of the caller's packets
	Jitter time.Duration // the most that a packet is late
	Echo   float64       // dB, below 0; 0 is none
	Noise  Noise
}

// Noise is a place's sound behind the caller.
type Noise struct {
	Place string  // "" is none
	SNR   float64 // dB that the voice is above it
}

// Caller is how the simulated caller speaks.
type Caller struct {
	Voice string
	Pace  float64 // 1 is the voice's own
	// Persona is who a model plays after the steps, for so many turns at most; "" is nobody.
	Persona string
	Turns   int
}

// Mock is the answer of a tool in place of its endpoint's.
type Mock struct {
	Tool  string        `json:"tool"`
	Real  bool          `json:"real,omitempty"` // ask the endpoint
	Reply string        `json:"reply,omitempty"`
	After time.Duration `json:"-"`
	Fails string        `json:"fails,omitempty"` // what the model is told went wrong
}

// Step is one thing that happens.
type Step struct {
	Line int
	Kind Kind
	Text string // of say, interrupt, backchannel, press: what; as written

	Parts  []Part        // of speech
	Voice  string        // of speech; "" is the caller's
	Offset time.Duration // of interrupt, backchannel and hang_up: after the reply's first sound
	Timed  bool          // Offset counts
	Within time.Duration // of hear; 0 is patience
	Want   *Words        // of hear: what is said; nil is anything
	Wait   time.Duration // of wait and music
	Expect Expect
}

// Kind is what a step is.
type Kind string

// The kinds.
const (
	Hear        Kind = "hear"
	Say         Kind = "say"
	Interrupt   Kind = "interrupt"
	Backchannel Kind = "backchannel"
	Press       Kind = "press"
	Beep        Kind = "beep"  // an answering machine's tone
	Music       Kind = "music" // of who has the other side wait
	Wait        Kind = "wait"
	HangUp      Kind = "hang_up"
	Expecting   Kind = "expect"
)

// Part is words without a pause, and the pause before them.
type Part struct {
	Pause time.Duration
	Words string
}

// Expect is what must be so after the last thing that the caller did. Nil and false are not judged.
type Expect struct {
	Tools       []ToolPattern
	NoTools     []string // * is any
	Quiet       string   // no reply during this: the pauses of what was said, or the music
	SilentIn    *time.Duration
	ResumesIn   *time.Duration
	ReplyIn     *time.Duration
	Stale       *int
	Says        []Words
	SaysNot     []Words
	Heard       []Words // what the server understood of the caller
	Keys        *string // that the assistant pressed
	Transferred *string
}

// End is what must be so when the conversation is over.
type End struct {
	Line      int
	Reason    string
	Within    time.Duration
	Variables map[string]any
	CostBelow *float64
	Tools     []ToolPattern // exactly these calls, in order
	exact     bool
	Longest   *time.Duration
	Shortest  *time.Duration
	Recorded  *bool
	Rings     *time.Duration // of who is called: the longest that it may ring
	Detail    *Words         // of what failed
	Webhook   *Webhook
}

// Webhook is what must be in one of the events that are sent at the call's end: all these fields, and maybe others.
type Webhook struct {
	None   bool // no event is sent
	Fields map[string]any
}

// Budget is what the case's figures must not exceed.
type Budget struct {
	Line         int
	ReplyP50     *time.Duration
	ReplyP95     *time.Duration
	ReplyMax     *time.Duration
	DeadAir      *time.Duration // the longest silence that the caller waited in
	FalseCutoffs *int
	Greeting     *time.Duration
	Misheard     *float64 // share of the caller's words
	Pace         *Range   // of the assistant's speech, in words a minute
}

// Range is from a number to another, both counted.
type Range struct{ From, To int }

// Mistake is something that a file may not say.
type Mistake struct {
	File string
	Line int
	Text string
}

func (m *Mistake) Error() string {
	if m.Line == 0 {
		return m.File + ": " + m.Text
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
}
