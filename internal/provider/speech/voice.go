// Package speech is what several speech vendors have in common. A Voice speaks several replies on one WebSocket, each
// in its own context: sockets are shared and kept, cancelled audio is thrown away, and the vendor's timing information
// becomes word times. A recognizer asks for the text of each utterance when it is over. Each vendor's own package defines its
// messages, as a Tongue and a Dialect.
package speech

import (
	"context"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

// Tongue is a vendor's speech protocol; its messages are sent as JSON. Its methods are called by many goroutines at
// once.
type Tongue interface {
	// Line names the sort of socket that speaks so: voices that can share one have the same.
	Line(as ai.Speech) (string, error)
	// Dial opens a socket for as, whose errors are *ai.Error, unless ctx has ended.
	Dial(ctx context.Context, as ai.Speech) (*wire.Conn, error)
	// Open begins a context, with no message where the first text does.
	Open(id string, as ai.Speech) []any
	// Say has a text spoken, and at once.
	Say(id string, as ai.Speech, text string) []any
	// Finish says that no other text follows.
	Finish(id string, as ai.Speech) []any
	// Cancel ends a context whose sound nobody wants; finished says that Finish was told.
	Cancel(id string, finished bool) []any
	// Keep keeps an idle context; no message where that needs none.
	Keep(id string) []any
	// Read reads a message; one without a Context and an Err is for nobody.
	Read(raw []byte) (Event, error)
	// Closed says what the reason means with which a socket was closed; "" where it says nothing.
	Closed(reason string) ai.Kind
}

// Event is what a vendor says about a context, or about the whole socket if Context is "".
type Event struct {
	Context string
	Sound   []byte // samples of 16 bits, little-endian
	Marks   []Mark
	Done    bool // the sound of the oldest text that is not done yet is there
	Over    bool // the context is gone, and its place free
	Err     *ai.Error
}

// Mark says when a piece of text is spoken: a character, or a word.
type Mark struct {
	Text     string
	From, To time.Duration
}

// Manners is how a vendor's contexts behave.
type Manners struct {
	// Contexts is how many a socket may have at once, those included that are cancelled and not over yet.
	Contexts int
	// Dones says that the vendor tells where each text ends (Event.Done). Otherwise it is seen from the marks, which
	// count from the beginning of the sound that they come with.
	Dones bool
	// Brief says that a context that has run out of texts is soon gone: the next text gets another.
	Brief bool
	// Idle is how long a socket without contexts is kept open.
	Idle time.Duration
	// Bye is what is sent before an idle socket is closed; nil: nothing.
	Bye any
}

// Voice speaks by a Tongue. It is an ai.Synthesizer.
type Voice struct {
	tongue  Tongue
	manners Manners
	stall   time.Duration
	pool    pool
}

// Stall is how long a vendor may send nothing while it has texts to say.
const Stall = 10 * time.Second

// NewVoice makes a voice. Close it.
func NewVoice(t Tongue, m Manners) *Voice {
	v := &Voice{tongue: t, manners: m, stall: Stall}
	v.pool.voice, v.pool.lines = v, map[string][]*line{}
	return v
}

// Patience sets how long the vendor may send nothing while it has texts to say; the default is Stall. It must be called
// before the first Speak.
func (v *Voice) Patience(d time.Duration) { v.stall = d }

// Close closes all sockets.
func (v *Voice) Close() { v.pool.close() }

// Reads implements ai.Reader.
func (v *Voice) Reads() bool { return ai.Reads(v.tongue) }

// keepTime is how often a context is kept alive that waits for texts.
const keepTime = 15 * time.Second

// quietTime is after how long without a word from the vendor a text counts as said whose end it does not tell, gapTime where it has told
// the times of only some of the text.
const (
	quietTime = time.Second
	gapTime   = 3 * time.Second
)

// Speak implements ai.Synthesizer.
func (v *Voice) Speak(ctx context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	pace := ai.Pace{Least: int(as.Rate) / 2, What: "samples", Window: Stall}
	samples := 0
	s := &speaking{v: v, ctx: ctx, as: as, yield: func(sound ai.Sound) error {
		if samples += len(sound.PCM); sound.Last {
			samples += pace.Least
		}
		return yield(sound)
	}}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	defer s.leave()
	patience := time.NewTimer(v.stall)
	defer patience.Stop()
	keep := time.NewTicker(keepTime)
	defer keep.Stop()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for !s.closed || s.cur < len(s.texts) {
		var news <-chan struct{}
		if s.c != nil {
			news = s.c.wake
		}
		var err error
		select {
		case text, ok := <-texts:
			if s.sent == s.cur {
				patience.Reset(v.stall) // it was not waiting for anything
				pace.Wait()
			}
			texts = s.accept(text, ok, texts)
			err = s.send()
		case <-news:
			select { // a text that is there already is said in the same context
			case text, ok := <-texts:
				texts = s.accept(text, ok, texts)
				err = s.send()
			default:
			}
			if pace.Hold(); err == nil {
				samples = 0
				err = s.hear()
			}
			if s.sent == s.cur {
				pace.Forget()
			} else if err == nil {
				err = pace.Came(samples)
			}
			pace.Wait()
			patience.Reset(v.stall)
			quiet.Reset(s.quiet())
		case <-keep.C:
			if s.c != nil {
				err = s.c.line.send(v.tongue.Keep(s.c.id))
			}
		case <-quiet.C:
			err = s.suppose()
		case <-patience.C:
			if s.c != nil && s.sent > s.cur {
				err = &ai.Error{Kind: ai.Stalled, Err: errStalled}
				s.c.line.stalled(err)
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err = s.again(err); err != nil {
			return err
		}
	}
	return nil
}
