// Package exam keeps the tests of assistants, has them performed, and says what became better and worse. A test is a
// script of internal/rehearsal. A run is its performances, each a row that a process takes, holds while it performs it,
// and finishes; one whose process is gone is taken by another.
package exam

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"time"

	"parley/internal/assistant"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/rehearsal"
	"parley/internal/store"
)

// Config is what tests are kept in and performed with.
type Config struct {
	DB         *store.DB
	Assistants *assistant.Studio
	Node       string // this process's id, in rows; "": one of its own
	Hub        *event.Hub
	// Ask is the way to this server's own API in a user's name.
	Ask func(userID int64) http.RoundTripper
	// Line is where this server takes telephone calls; the zero value is nowhere: another process performs calls.
	Line       netip.AddrPort
	Synthesize rehearsal.Synthesize
}

// Desk keeps tests and has them performed.
type Desk struct {
	Config
	node string // this process, in rows
	wake chan struct{}
	room int // performances at once
	// how long a performance is held without a sign of life, and how often the process gives one
	lease, beat time.Duration
	again       time.Duration // after which a call for which the account had no line is tried again
}

// New makes a desk. It starts nothing.
func New(c Config) *Desk {
	return &Desk{Config: c, node: cmp.Or(c.Node, rand.Text()), wake: make(chan struct{}, 1), room: max(2, runtime.NumCPU()),
		lease: 30 * time.Second, beat: 5 * time.Second, again: 3 * time.Second}
}

// Topic is what the hub is told of a run under.
func Topic(runID int64) string { return "test-run:" + strconv.FormatInt(runID, 10) }

// Limits of tests and runs.
const (
	maxScript   = 64 << 10
	maxOfOne    = 50              // performances of one test
	maxOfRun    = 200             // performances of one run
	maxRuns     = 3               // of one account at once
	maxLimit    = 5 * time.Minute // of one performance
	maxTries    = 3
	keptRuns    = 50 // of one assistant
	defaultEars = rehearsal.Told
)

// Create stores a new test of one of the user's assistants.
func (d *Desk) Create(ctx context.Context, userID, assistantID int64, script string) (*parley.Test, error) {
	if _, err := d.DB.Assistant(ctx, userID, assistantID); err != nil {
		return nil, err
	}
	return d.create(ctx, userID, &parley.Test{AssistantID: assistantID}, script)
}

func (d *Desk) create(ctx context.Context, userID int64, t *parley.Test, script string) (*parley.Test, error) {
	if err := write(t, script); err != nil {
		return nil, err
	}
	return t, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTest(ctx, userID, t) })
}

// Change stores another script of a test.
func (d *Desk) Change(ctx context.Context, userID, assistantID, id int64, script string) (*parley.Test, error) {
	t, err := d.DB.Test(ctx, userID, assistantID, id)
	if err != nil {
		return nil, err
	}
	if t.Script == script {
		return t, nil
	}
	if err := write(t, script); err != nil {
		return nil, err
	}
	return t, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.SaveTest(ctx, userID, t) })
}

// Delete removes a test.
func (d *Desk) Delete(ctx context.Context, userID, assistantID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTest(ctx, userID, assistantID, id) })
}

// write puts a script into a test, if it is one.
func write(t *parley.Test, script string) error {
	cases, err := Read(script)
	if err != nil {
		return err
	}
	t.Script, t.Name, t.Channel = script, cases[0].Name, "chat"
	for i := range cases {
		if cases[i].Channel == rehearsal.Call {
			t.Channel = "call"
		}
	}
	return nil
}

// Stop ends a run: what is being performed is broken off.
func (d *Desk) Stop(ctx context.Context, userID, assistantID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { d.tell(id) })
		return tx.StopTestRun(ctx, userID, assistantID, id)
	})
}

// Forget removes a run that is finished.
func (d *Desk) Forget(ctx context.Context, userID, assistantID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTestRun(ctx, userID, assistantID, id) })
}

func (d *Desk) tell(run int64) { d.Hub.Tell(Topic(run), event.Event{Kind: "test-run"}) }
