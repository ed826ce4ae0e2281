// Package call manages the life of calls: making and taking them, which are live, how each ends, what it costs, and
// what is extracted from it.
//
// # One end
//
// A call has a row before anything is dialled or answered. The most that it can cost is set aside in the transaction
// that makes the row. One transaction ends it: state, reason, transcript, cost, and that its report is due. Ending a
// row that has already ended changes nothing, so a call has one end and one charge, whoever gets to it.
//
// # Nodes
//
// The process that has a call says so every few seconds, in one statement for all its calls. Calls whose process has
// fallen silent are closed by any other process, and are charged for what can be proven: from the answer to the last
// sign of life. A process that finds its calls closed hangs up. Silence is judged by the database's clock, and only by
// a process that has itself been heard throughout (node.Steadiness): when the database was away, nobody's silence means
// anything.
//
// # Reports
//
// A call's report consists of what is extracted from it, the events that announce it, and its campaign's next step. It
// is made once, after the end, by whichever process takes it. It waits for the recording, so that the link in the
// events leads somewhere.
package call

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/billing"
	"parley/internal/blob"
	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/limit"
	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/voice"
)

// Config is what a Center works with.
type Config struct {
	DB         *store.DB
	Node       string // this process's id, in rows; "": one of its own
	Assistants *assistant.Studio
	Speech     Speech // nil: the vendors of Assistants, with the keys of an assistant's owner
	Prices     *billing.Prices
	Hub        *event.Hub
	Webhooks   *event.Sender // asks for the variables of incoming calls; nil: nobody is asked
	Blobs      blob.Store    // keeps recordings
	Dir        string        // where recordings are while they grow
	BaseURL    string        // what links in events start with, such as https://voice.example.com
	Secret     []byte        // signs links to recordings; the same on all nodes

	// Dial calls somebody. It calls ringing when the far end rings, and returns when the far end has answered, or with
	// the reason why not: an error that is or wraps a parley.EndedReason (Ended), and also ErrNoSuchNumber if the far
	// end said so. When ctx ends the call is cancelled, and the error is ctx's cause.
	Dial func(ctx context.Context, r Route, ringing func()) (audio.Leg, error)
	Line Line // nil: there is no telephone
	// Elsewhere is the process that makes the calls which are ordered here; nil: this one does.
	Elsewhere func() (node string, err error)
	Taken     bool // other processes may have this one make the calls that are ordered there
	// Connect answers a browser's SDP offer. then is called once: when sound can flow, and the leg must be run, or with
	// the error that says why it won't. nil: there are no browsers.
	Connect func(ctx context.Context, b Browser, then func(audio.Leg, error)) (BrowserLine, error)
	// Behind reports whether the sound of calls is sent too late for another one. nil: never.
	Behind func() bool
	// MayAttend says whether a credential still lets its holder take part in calls. nil: whoever was let in may stay.
	MayAttend func(ctx context.Context, credential int64) (bool, error)
	Speculate bool // replies are begun before the customer's turn has ended: voice.Session has the details
	// Judge is asked when a customer may have finished: voice.Session has the details. nil: nobody is asked.
	Judge func(ctx context.Context, language, text, question string) (over float64, ok bool)
	// Converse holds the conversation on an answered leg; nil means that the session runs.
	Converse func(ctx context.Context, s *voice.Session, leg audio.Leg) voice.Result

	Destinations Destinations
	NumberProof  bool         // a trunk's number is answered only once its owner has proved that it is theirs
	Verified     bool         // calls over a user's trunk leave from a number that the user has verified
	DailySpend   parley.Money // what a user's outgoing calls may cost a day (UTC); 0: no limit
	Gate         *limit.Gate  // what accounts do at once; nil: no limits

	Unanswered []Unanswered
	Finished   []Finished
	// are told at once, before its report, that a call of this process, or one that it closed, is over. They must not
	// block
	Ended    []func(*parley.Call)
	Describe []Describe

	Beat time.Duration // between a process's signs of life; 0 is 5 s
	Lost time.Duration // after how long without one it is taken for gone; 0 is 15 s
}

// Speech returns what an assistant speaks and hears with, by a provider's code.
type Speech interface {
	Synthesizer(code string) (ai.Synthesizer, error)
	Recognizer(code string) (ai.Recognizer, error)
	Realtime(vendor, model string) (ai.RealtimeModel, error)
}

// vendors are what an account's calls speak and hear with.
func (d *Center) vendors(userID int64) Speech {
	if d.Speech != nil {
		return d.Speech
	}
	return d.Assistants.Providers.For(userID)
}

// Unanswered is called for a call that nobody took, in the transaction that ends it, with the cause of the end: the row
// keeps less of that, and there is nothing to extract from the call. An error undoes the end; the call then ends
// without it, and only Finished is called.
type Unanswered func(ctx context.Context, tx *store.Tx, c *parley.Call, cause error) error

// ErrNoSuchNumber is among the causes of a call to a number that doesn't exist: nothing is wrong with the line.
var ErrNoSuchNumber = errors.New("there is no such number")

// Finished is called for a call in the transaction that completes its report. An error undoes that transaction, and it
// is tried again.
type Finished func(ctx context.Context, tx *store.Tx, c *parley.Call, a *parley.Assistant) error

// Describe adds to what events say about a call: the campaign and the lead that it was made for.
type Describe func(ctx context.Context, tx *store.Tx, c *parley.Call, e *parley.CallEnded) error

// Route is the route of an outgoing call.
type Route struct {
	Number parley.Number // the own number that it leaves from
	Trunk  *parley.Trunk // of a number of type sip
	To     string        // E.164; behind a trunk also an extension
	From   string        // the number that the far end sees; "" for that of Number
	// what the call says about itself; nil: nothing but its numbers
	Signalling *parley.CallSignalling
	// Early gives who hears the sound that comes before an answer, at a rate; nil: nobody.
	Early func(audio.Rate) audio.Peer
	// May says why the call may not be sent on to a number or a sip: address.
	May func(to string) error
}

// Center makes and takes calls.
type Center struct {
	Config
	node    string // this process, in rows
	cache   voice.Cache
	ctx     context.Context
	cancel  context.CancelCauseFunc
	closing context.Context // ends when Stop begins
	shut    context.CancelFunc
	wg      sync.WaitGroup // calls
	reports chan struct{}  // has a token when a report may be due
	again   []time.Duration
	steady  node.Steadiness // of beat alone

	requests *node.Requests

	mu       sync.Mutex
	stopping bool
	live     map[int64]*live
	over     int // of these: their recordings are on their way into blob storage
	ended    map[parley.CallStatus]int64
}

// New makes a Center. Call Run to run it, and Stop at the end.
func New(c Config) *Center {
	c.Beat, c.Lost = cmp.Or(c.Beat, 5*time.Second), cmp.Or(c.Lost, 15*time.Second)
	d := &Center{Config: c, node: cmp.Or(c.Node, uuid.NewString()), reports: make(chan struct{}, 1), again: reportAgain,
		live: map[int64]*live{}, ended: map[parley.CallStatus]int64{}}
	d.requests = d.asking()
	if d.Converse == nil {
		d.Converse = func(ctx context.Context, s *voice.Session, leg audio.Leg) voice.Result { return s.Run(ctx, leg) }
	}
	d.ctx, d.cancel = context.WithCancelCause(context.Background())
	d.closing, d.shut = context.WithCancel(context.Background())
	return d
}

// ErrStopping is the refusal of a call that arrives while the server is stopping.
var ErrStopping = parley.Errorf(parley.Unavailable, "The server is restarting. Please try again in a moment.")

// ErrBehind is the refusal of a call that would take from those that are under way.
var ErrBehind error = behind{}

type behind struct{}

func (behind) Error() string {
	return "This server has as many calls as it can hold well. Please try again in a moment."
}

// Wait is after how many seconds one may try again.
func (behind) Wait() int { return 10 }

// Unwrap gives it its kind.
func (e behind) Unwrap() error { return parley.Errorf(parley.Unavailable, "%s", e.Error()) }

// Stop takes no more calls and waits until the live ones have ended, or until ctx ends, when they are hung up. Run goes
// on meanwhile.
func (d *Center) Stop(ctx context.Context) {
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	d.shut()
	done := make(chan struct{})
	go func() { defer close(done); d.wg.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
		d.cancel(parley.Shutdown)
		<-done
	}
	d.cancel(parley.Shutdown)
}

// enter registers a call that begins; Stop waits for it until leave.
func (d *Center) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping {
		return ErrStopping
	}
	d.wg.Add(1)
	return nil
}

// Topic is the hub's topic of a call. Its events are of the kinds below.
func Topic(id int64) string { return "call:" + strconv.FormatInt(id, 10) }

// The kinds of events, with their data.
const (
	Status   = "status"  // parley.CallStatus
	Partial  = "partial" // string: what the customer has said so far
	Turn     = "turn"    // parley.CallTurn
	Tool     = "tool"    // parley.CallTool
	Switch   = "switch"  // parley.VendorSwitch: another vendor goes on
	Leg      = "leg"     // parley.CallLeg: somebody is called into the call
	End      = "end"     // nil: the row says the rest
	Reported = "report"  // nil: so does what was read out of the call, some time after the end
)

// Stats are figures of this process.
type Stats struct {
	Live  int                         // calls that are not over
	Ended map[parley.CallStatus]int64 // calls, by how they ended
}

// Stats returns the current figures.
func (d *Center) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{len(d.live) - d.over, maps.Clone(d.ended)}
}

// Now is the current state of one of the user's calls; for a call on this node it is up to the moment.
func (d *Center) Now(ctx context.Context, userID, id int64) (*parley.Call, error) {
	c, err := d.DB.Call(ctx, userID, id)
	if err != nil || c.EndedAt != 0 {
		return c, err
	}
	if now := d.Here(id); now != nil {
		now.AssistantName, now.CampaignName = c.AssistantName, c.CampaignName
		return now, nil
	}
	// The process that has it keeps the figures in the row fresh while others look at it.
	return c, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.WatchCall(ctx, id) })
}

// maxLive is how many live calls are looked at together.
const maxLive = 100

// Live are the user's calls that are not over, newest first, up to the moment where this node has them, and who takes
// part in each.
func (d *Center) Live(ctx context.Context, userID int64) ([]parley.Call, map[int64][]parley.CallLeg, error) {
	list, err := d.DB.OpenCalls(ctx, userID, maxLive)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range list {
		if now := d.Here(c.ID); now != nil {
			list[i] = *now
			list[i].AssistantName, list[i].CampaignName = c.AssistantName, c.CampaignName
		}
	}
	legs, err := d.DB.OpenLegs(ctx, userID)
	return list, legs, err
}

// Here is the current state of a live call on this node, nil if this node has none with that id.
func (d *Center) Here(id int64) *parley.Call {
	l := d.here(id)
	if l == nil {
		return nil
	}
	c := l.snapshot()
	return &c
}

func (d *Center) here(id int64) *live {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[id]
}

func (d *Center) all() []*live {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.live))
}

// Hangup ends one of the user's calls: at once if it is on this node, otherwise within about a second. The error is a
// Conflict if the call is over.
func (d *Center) Hangup(ctx context.Context, userID, id int64) error {
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.HangupCall(ctx, userID, id) })
	if err == nil {
		d.Cut(id, parley.APIHangup)
	}
	return err
}

// Cut ends a call with a cause, if it is on this node.
func (d *Center) Cut(id int64, cause error) {
	if l := d.here(id); l != nil {
		l.cancel(cause)
	}
}

// hold is how long money stays set aside for a call, far longer than any call lasts. Whoever ends the call releases it.
const hold = 48 * time.Hour

func reference(id int64) string { return "call:" + strconv.FormatInt(id, 10) }

// Run keeps this node's calls alive, closes those of nodes that are gone, and makes reports, until ctx ends. Then it
// finishes the reports under way.
func (d *Center) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, loop := range []func(){func() { d.beat(ctx) }, func() { d.report(ctx) }, func() { d.requests.Attend(ctx) },
		func() { crash.Every(ctx, d.Lost/3, "look after calls", d.recover) }} {
		loops.Go(func() { _ = crash.Loop(ctx, "the care of calls", func() error { loop(); return nil }) })
	}
	loops.Wait()
	return nil
}
