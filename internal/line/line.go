// Package line looks after what joins assistants to the telephone network: rented numbers and their rent, caller ids, text messages out
// and in.
//
// # What a crash leaves
//
// Nothing that reaches a carrier is done in a transaction, so a server can die between a carrier's act and the row that says so. Before a
// carrier is asked, a row stands and the money is set aside; afterwards one transaction ends the row and takes the money or frees it.
// What a dead server has left standing is looked for (sweep) and ended: a number is asked for again, which a carrier bears; a message is
// looked for at the carrier before it is sent again. The reservations don't lapse before that: whoever finds the row frees them.
package line

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"parley"
	"parley/internal/billing"
	"parley/internal/carrier"
	"parley/internal/chat"
	"parley/internal/store"
)

// Desk is where numbers are rented and text messages go through.
type Desk struct {
	DB      *store.DB
	Carrier carrier.Carrier
	Sandbox bool // the carrier is the sandbox: what it has taken can be read, and messages can be made to come in
	Prices  *billing.Prices
	// What may go out: where to (nil: everywhere), and what outgoing calls and messages may cost an account a day (UTC; 0: no limit).
	Allow      func(e164 string) bool
	DailySpend parley.Money
	Trunks     parley.TrunkRules
	// Place says why a trunk must not be where it is, nil where it may; TrunksChanged is told after a change. Both may be nil.
	Place         func(ctx context.Context, t *parley.Trunk) error
	TrunksChanged func()

	Chat  *chat.Chat    // answers what comes in; its Config.Replied names our Replied
	Lease time.Duration // how long a dead server's message waits for another; longer than a carrier is waited for. 0 is 20 s
}

const (
	hold    = 60 * 24 * time.Hour // how long money stays set aside for what a row will end; far longer than any row stands
	strands = 20 * time.Second    // what was begun so long ago and has not ended, nobody works on any more
)

// The jobs of this room.
type (
	sendArgs struct { // a message that nobody waits for is to be sent
		ID int64 `json:"id"`
	}
	inboundArgs struct { // a message that came in is to be answered
		ID int64 `json:"id"`
	}
	orderArgs struct { // a purchase that failed is to be undone
		UserID int64 `json:"user_id"`
		ID     int64 `json:"id"`
	}
	rentArgs  struct{}
	sweepArgs struct{}
)

func (sendArgs) Kind() string    { return "sms_send" }
func (inboundArgs) Kind() string { return "sms_inbound" }
func (orderArgs) Kind() string   { return "number_order" }
func (rentArgs) Kind() string    { return "number_rent" }
func (sweepArgs) Kind() string   { return "line_sweep" }

// AddWorkers registers the workers of this room's jobs.
func (d *Desk) AddWorkers(w *river.Workers) {
	river.AddWorker(w, work(func(ctx context.Context, a sendArgs) error { return d.sendQueued(ctx, a.ID) }))
	river.AddWorker(w, work(func(ctx context.Context, a inboundArgs) error { return d.answer(ctx, a.ID) }))
	river.AddWorker(w, work(func(ctx context.Context, a orderArgs) error { return d.endOrder(ctx, a.UserID, a.ID) }))
	river.AddWorker(w, work(func(ctx context.Context, _ rentArgs) error { return d.CollectRent(ctx, parley.Now()) }))
	river.AddWorker(w, work(func(ctx context.Context, _ sweepArgs) error { return d.sweep(ctx, parley.Now().Add(-strands)) }))
	river.AddWorker(w, work(func(ctx context.Context, a reportArgs) error { return d.Report(ctx, carrier.Report(a)) }))
}

// Periodic are the jobs that time causes.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{every(time.Hour, rentArgs{}), every(strands/2, sweepArgs{})}
}

// every makes a job that comes at the start, and again and again.
func every(d time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(d), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{MaxAttempts: 1} // the next one comes anyway
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// work makes a worker of a function. A job takes minutes at most: rent of many numbers.
func work[T river.JobArgs](fn func(context.Context, T) error) river.Worker[T] {
	return river.WorkFunc(func(ctx context.Context, j *river.Job[T]) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		return fn(ctx, j.Args)
	})
}

// sweep ends what a dead server left standing.
func (d *Desk) sweep(ctx context.Context, before parley.Time) error {
	out, in, orders, err := d.DB.Stranded(ctx, before, 100)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range out {
		failed = append(failed, d.sendQueued(ctx, id))
	}
	for _, id := range in {
		failed = append(failed, d.answer(ctx, id))
	}
	for _, o := range orders {
		failed = append(failed, d.endOrder(ctx, o.UserID, o.ID))
	}
	return errors.Join(failed...)
}

func orderReference(id int64) string { return "order:" + strconv.FormatInt(id, 10) }
func smsReference(id int64) string   { return "sms:" + strconv.FormatInt(id, 10) }

// rentReference names the month of a number that begins at from: it is charged once.
func rentReference(numberID int64, from parley.Time) string {
	return fmt.Sprintf("number:%d:%s", numberID, from.Time().Format(time.DateOnly))
}

// unexpected logs a carrier's failure that a user can't be told in full.
func unexpected(ctx context.Context, what string, err error) {
	slog.ErrorContext(ctx, what, "error", err)
}
