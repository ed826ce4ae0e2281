// Package node is this process among those that share a database: its id, its sign of life, its roles, what it alone
// does for all of them, and what they ask of each other.
//
// # Signs of life
//
// Each process writes into its row every few seconds, and others do the jobs of one that is silent. Silence is judged by the database's
// clock, and only by a process that has itself been heard throughout (Steadiness). Live calls have signs of life of their own (package
// call), which processes of former versions know too.
//
// # Trunks
//
// A trunk's registration is held by one process with the role calls. Which one follows from the names of those that live
// (highest random weight), so that they agree without asking, and a process that comes or goes moves few trunks. The new
// holder registers before the former one lets go.
//
// # Clock
//
// The clock of all processes is the database's (parley.Follow): a machine whose clock is wrong harms nobody.
//
// On SQLite there is one process, which holds everything, and none of this is written.
package node

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
)

// Config is what a Node works with.
type Config struct {
	DB      *store.DB
	Roles   []string
	Version string

	Beat time.Duration // between signs of life; 0 is 2 s
	Lost time.Duration // after how long without one a process is taken for gone; 0 is 8 s
}

// Work is what a Node tells others of, and whom it tells.
type Work struct {
	Live       func() int          // the calls that are here
	Registered func(id int64) bool // whether this process is registered with a trunk
	Changed    func()              // what this process holds, or the trunks that there are, may have changed
}

// Node is this process. Call Run to have it live.
type Node struct {
	Config
	ID  string
	own parley.Node

	mu       sync.Mutex
	others   []parley.Node // those that live, with this one
	held     map[int64]parley.TrunkHolder
	noted    map[int64]bool // the registrations of this process as their rows have them
	seen     time.Time      // when the database last took a sign of life
	leaving  bool
	handlers map[string]Handler

	steady   Steadiness // of beat alone
	requests *Requests
}

// Handler does what another process asks, of a user's things, and returns the value of its answer. body is JSON.
type Handler func(ctx context.Context, userID int64, body []byte) (any, error)

// jobsOf is how many times longer than Lost a process must be silent before others do what it had begun: it may be only slow, and a job
// that two do at once is done twice.
const jobsOf = 4

// See Turn.
const (
	minTurn = time.Second
	maxTurn = 5 * time.Second
	share   = 100 * time.Millisecond // for each process that looks
)

// forgotten is how long the row of a process that has fallen silent stays.
const forgotten = time.Hour

var (
	errDeaf = parley.Errorf(parley.Unavailable,
		"The node of the server that was asked does not answer. Nothing was done: try again in a moment.")
	errUnclear = parley.Errorf(parley.Unavailable,
		"The node of the server that was asked did not say in time whether it was done: look before you try again.")
	// ErrNone says that no process does what is asked.
	ErrNone = parley.Errorf(parley.Unavailable, "No node of this server takes calls at the moment. Please try again in a moment.")
)

// New makes a Node.
func New(c Config) *Node {
	c.Beat, c.Lost = cmp.Or(c.Beat, 2*time.Second), cmp.Or(c.Lost, 8*time.Second)
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	n := &Node{Config: c, ID: uuid.NewString(), held: map[int64]parley.TrunkHolder{}, noted: map[int64]bool{}, handlers: map[string]Handler{}}
	n.own = parley.Node{ID: n.ID, Name: name, Roles: strings.Join(c.Roles, ","), Version: c.Version}
	n.requests = &Requests{DB: c.DB, In: store.NodeRequests, Node: n.ID, Fulfil: n.fulfil, Deaf: errDeaf, Unclear: errUnclear,
		Failed: "Something went wrong on the node of the server that was asked. Its operator can find the reason in the log."}
	return n
}

// Does says whether this process has a role. A nil Node is alone: it has all, and holds everything.
func (n *Node) Does(role string) bool { return n == nil || slices.Contains(n.Roles, role) }

// Follow has this process go by the database's clock.
func (n *Node) Follow(ctx context.Context) error {
	if n.DB.Alone() {
		return nil
	}
	asked := time.Now()
	theirs, err := n.DB.Clock(ctx)
	if err == nil {
		parley.Follow(theirs, asked, time.Now())
	}
	return err
}

// Without says that this process can't do what a role asks for. It must not be called any more once Run was.
func (n *Node) Without(role string) {
	n.Roles = slices.DeleteFunc(slices.Clone(n.Roles), func(r string) bool { return r == role })
	n.own.Roles = strings.Join(n.Roles, ",")
}

// Handle has a kind of requests done by fn. It must not be called any more once Run was.
func (n *Node) Handle(kind string, fn Handler) { n.handlers[kind] = fn }

func (n *Node) fulfil(ctx context.Context, q *store.Request) (any, error) {
	fn := n.handlers[q.Kind]
	if fn == nil {
		return nil, parley.Errorf(parley.Unavailable,
			"The node of the server that was asked can't do that: it runs another version, or has other roles.")
	}
	return fn(ctx, q.UserID, []byte(q.Body))
}

// Ask has another process do something of a user's.
func (n *Node) Ask(ctx context.Context, node string, userID int64, kind string, body, answer any) error {
	return n.requests.Ask(ctx, store.Request{Node: node, UserID: userID, Kind: kind}, body, answer)
}

// Knows reports whether another process has an id, and lives.
func (n *Node) Knows(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.others {
		if o.ID == id {
			return true
		}
	}
	return false
}

// Pick is the process with a role that has the fewest calls; ErrNone when there is none.
func (n *Node) Pick(role string) (id string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	best := -1
	for i, o := range n.others {
		if o.Does(role) && (best < 0 || o.Live < n.others[best].Live) {
			best = i
		}
	}
	if best < 0 {
		return "", ErrNone
	}
	n.others[best].Live++ // until it says how many it has
	return n.others[best].ID, nil
}

// Holds says whether this process is to be registered with a trunk. One that can't reach the database holds nothing: others have
// taken it over.
func (n *Node) Holds(trunk int64) bool {
	if n == nil || n.DB.Alone() {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held[trunk].Node == n.ID && time.Since(n.seen) < n.Lost
}

// Holder is the process that is to be registered with a trunk, and whether it says that it is; "" while there is none that lives.
func (n *Node) Holder(trunk int64) (id string, registered bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.held[trunk]
	if !slices.ContainsFunc(n.others, func(o parley.Node) bool { return o.ID == h.Node }) {
		return "", false
	}
	return h.Node, h.Registered
}

// Turn returns how long this process waits between two looks at what every process with calls looks at, such as the
// campaigns: 100 ms for each of these processes, at least one second and at most five. So up to fifty of them look ten
// times a second together. A nil Node is alone.
func (n *Node) Turn() time.Duration {
	if n == nil {
		return minTurn
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	callers := 0
	for _, o := range n.others {
		if o.Does(parley.RoleCalls) {
			callers++
		}
	}
	return min(max(time.Duration(callers)*share, minTurn), maxTurn)
}

// Leave says that this process takes nothing new. It is told to others at the next sign of life: they take its trunks over, and
// until then it keeps them.
func (n *Node) Leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaving = true
}

// Run lives until ctx ends, and says goodbye.
func (n *Node) Run(ctx context.Context, w Work) error {
	if n.DB.Alone() {
		<-ctx.Done()
		return nil
	}
	var loops sync.WaitGroup
	loops.Go(func() {
		_ = crash.Loop(ctx, "what other nodes ask", func() error { n.requests.Attend(ctx); return nil })
	})
	crash.Every(ctx, n.Beat, "say that this node lives", func(ctx context.Context) error { return n.beat(ctx, w) })
	loops.Wait()
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.Lost)
	defer cancel()
	return n.DB.Write(bye, func(ctx context.Context, tx *store.Tx) error { return tx.RemoveNode(ctx, n.ID, forgotten) })
}

// beat says that this process lives, learns who else does, and takes the trunks that are its own.
func (n *Node) beat(ctx context.Context, w Work) error {
	own := n.own
	own.Live = int64(w.Live())
	n.mu.Lock()
	own.Leaving = n.leaving
	noted := n.noted
	n.mu.Unlock()
	asked := time.Now()
	if err := n.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.SeeNode(ctx, &own) }); err != nil {
		return err
	}
	parley.Follow(own.SeenAt, asked, time.Now())
	n.steady.Seen(own.SeenAt, n.Lost/2)
	others, err := n.DB.Nodes(ctx, n.Lost)
	if err != nil {
		return err
	}
	holders, err := n.DB.TrunkHolders(ctx)
	if err != nil {
		return err
	}
	var take []int64
	state := map[bool][]int64{}
	is := map[int64]bool{}
	for i, h := range holders {
		if h.Node != n.ID && own.Does(parley.RoleCalls) && (h.Node == "" || n.steady.Judges(n.Lost)) && chosen(others, h.TrunkID) == n.ID {
			take = append(take, h.TrunkID)
			holders[i].Node, holders[i].Registered = n.ID, false
			continue
		}
		if h.Node != n.ID {
			continue
		}
		now := w.Registered(h.TrunkID)
		holders[i].Registered, is[h.TrunkID] = now, now
		if was, known := noted[h.TrunkID]; !known || was != now {
			state[now] = append(state[now], h.TrunkID)
		}
	}
	if len(take)+len(state) > 0 {
		err = n.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			err := tx.HoldTrunks(ctx, n.ID, take)
			for registered, trunks := range state {
				err = errors.Join(err, tx.NoteRegistered(ctx, n.ID, registered, trunks))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	n.mu.Lock()
	changed := false
	held := make(map[int64]parley.TrunkHolder, len(holders))
	for _, h := range holders {
		held[h.TrunkID] = h
		changed = changed || (h.Node == n.ID) != (n.held[h.TrunkID].Node == n.ID)
	}
	n.others, n.held, n.noted, n.seen = others, held, is, time.Now()
	n.mu.Unlock()
	if n.steady.Judges(jobsOf * n.Lost) { // at the end: it may wait for whoever works them
		err = n.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.FreeJobs(ctx, jobsOf*n.Lost) })
	}
	if len(take) > 0 {
		slog.Info("this node registers with trunks from now on", "trunks", len(take))
	}
	if changed {
		w.Changed()
	}
	return err
}

// chosen is the process that holds a trunk's registration among those that live, "" for none: the one of the greatest weight.
func chosen(nodes []parley.Node, trunk int64) (id string) {
	var most uint64
	for i := range nodes {
		if !nodes[i].Does(parley.RoleCalls) {
			continue
		}
		h := fnv.New64a()
		h.Write([]byte(nodes[i].ID))
		for range 8 {
			h.Write([]byte{byte(trunk)})
			trunk = int64(uint64(trunk)>>8 | uint64(trunk)<<56) // all bytes, and back again
		}
		if weight := mixed(h.Sum64()); id == "" || weight > most {
			id, most = nodes[i].ID, weight
		}
	}
	return id
}

// mixed spreads a hash over all bits (the finalizer of SplitMix64).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
