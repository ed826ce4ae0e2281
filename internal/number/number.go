// Package number looks after the numbers by which assistants reach the telephone network: rented numbers and their
// rent, caller ids, and who may make which trunk.
//
// Nothing that reaches a carrier is done in a transaction, so a server can die between a carrier's act and the row that
// says so. Before a carrier is asked for a number, an order is stored and the money set aside; afterwards one
// transaction ends the order and takes or frees the money. Orders that a dead server left open are looked for (sweep)
// and ended: the number is asked for again, which carriers allow.
package number

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/carrier"
	"parley/internal/channel"
	"parley/internal/parley"
	"parley/internal/store"
)

// Config is what a Pool works with.
type Config struct {
	DB      *store.DB
	Carrier carrier.Carrier
	Prices  *billing.Prices
	Limits  channel.Limits // of the codes that prove a caller id
	Trunks  parley.TrunkRules
	Proof   bool // calls to a trunk's number are answered only once its owner has proved that it is theirs
	// Place says why a trunk must not be where it is, nil where it may; TrunksChanged is told after a change. Both
	// may be nil.
	Place         func(ctx context.Context, t *parley.Trunk) error
	TrunksChanged func()
}

// Pool is where numbers are rented, shown and claimed.
type Pool struct {
	Config
	codes *auth.Limiter // verification codes sent per user
}

// New makes a pool.
func New(c Config) *Pool { return &Pool{Config: c, codes: auth.NewLimiter(codeRate)} }

const (
	// how long money stays set aside for what an order will end; far longer than any stands
	hold    = 60 * 24 * time.Hour
	strands = 20 * time.Second // what was begun so long ago and has not ended, nobody works on any more
	settles = 5 * time.Minute  // a carrier that gave no answer to an order has completed it by then, or never will
)

// The jobs of this room.
type (
	rentArgs  struct{}
	sweepArgs struct{}
)

func (rentArgs) Kind() string  { return "number_rent" }
func (sweepArgs) Kind() string { return "line_sweep" } // its former name: nodes of a former version work it too

// AddWorkers registers the workers of this room's jobs.
func (d *Pool) AddWorkers(w *river.Workers) {
	river.AddWorker(w, channel.Work(func(ctx context.Context,
		_ rentArgs) error {
		return d.CollectRent(ctx, parley.Now())
	}))
	river.AddWorker(w, channel.Work(func(ctx context.Context,
		_ sweepArgs) error {
		return d.sweep(ctx, parley.Now().Add(-strands))
	}))
}

// Periodic are the jobs that time causes.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{channel.Every(time.Hour, rentArgs{}), channel.Every(strands/2, sweepArgs{})}
}

// sweep ends the orders that a dead server left standing, and those whose outcome was not known. What the carrier sold
// of these it may have sold after our request had timed out, so it is asked a while later.
func (d *Pool) sweep(ctx context.Context, before parley.Time) error {
	orders, err := d.DB.StrandedOrders(ctx, before, before.Add(-settles), 100)
	if err != nil {
		return err
	}
	var failed []error
	for _, o := range orders {
		failed = append(failed, d.endOrder(ctx, o.UserID, o.ID))
	}
	return errors.Join(failed...)
}

func orderReference(id int64) string { return "order:" + strconv.FormatInt(id, 10) }

// rentReference names the month of a number that begins at from: it is charged once.
func rentReference(numberID int64, from parley.Time) string {
	return fmt.Sprintf("number:%d:%s", numberID, from.Time().Format(time.DateOnly))
}
