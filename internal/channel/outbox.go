package channel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// Outbox is the machine by which the messages of one channel leave; M is the channel's row.
//
// Nothing that reaches a carrier is done in a transaction, so a server can die between a carrier's act and the row that
// says so. Before a carrier is asked, the row is stored and the money set aside (Add). Whoever claims the row hands the
// message over (Deliver). One transaction notes what came of it and moves the money (Tell), whether the handover or the
// carrier's report tells first. A message that a dead server left unfinished is claimed again. Reservations don't lapse
// before that: whoever ends the row frees them.
type Outbox[M any] struct {
	DB  *store.DB
	Box Box[M]
}

// Box is what a channel has of its own.
type Box[M any] interface {
	// Create stores a new message.
	Create(ctx context.Context, tx *store.Tx, m *M) error
	// Claim makes the caller the one who sends a queued message, for a while; mine is false when it is not queued, or
	// another sends it. The error is ErrNotYet when one before it is to leave first.
	Claim(ctx context.Context, tx *store.Tx, id int64, now parley.Time) (m *M, mine bool, err error)
	// Unclaim ends a claim: the message waits to be sent again, and what has to be known for that is noted.
	Unclaim(ctx context.Context, tx *store.Tx, id int64) error
	// Carry hands a message to its carrier and returns the carrier's name for it. Where the channel can find out
	// whether the carrier has it already, it is handed over once.
	Carry(ctx context.Context, m *M) (name string, err error)
	// Judge says what follows from a failure of Carry, and if the message has failed, why, in words for its user.
	Judge(ctx context.Context, m *M, err error, now parley.Time, waiting bool) (Outcome, string)

	// Lock reads a message and keeps others from it until the transaction ends.
	Lock(ctx context.Context, tx *store.Tx, id int64) (*M, error)
	// At is where a message stands.
	At(m *M) State
	// Comes says whether a message may come from where it stands to what is told of it, and where it stands then.
	// Reports come twice and out of order: a message never goes back.
	Comes(m *M, r Report) (State, bool)
	// Bill is what a message costs.
	Bill(m *M) Bill
	// Save stores what was told of a message. moved is false where its price should have been taken or given back and
	// was not: nothing was left to take it from, or it has been given back already.
	Save(ctx context.Context, tx *store.Tx, m *M, r Report, moved bool) error
}

// State is where a message stands, in every channel's terms.
type State int

// The states.
const (
	Queued State = iota // it is to be handed to its carrier, or is being handed
	Taken               // the carrier has it, and its price is taken
	Failed              // it was not sent, or came back: it costs nothing
)

// The statuses that the machine tells by itself; every channel has them.
const (
	Sent    = "sent"
	Refused = "failed"
)

// Report is news of a message: from its carrier, or from the code that handed it over.
type Report struct {
	Name   string // the carrier's for the message, "" where it doesn't say
	Status string // in the channel's words
	Reason string // why it failed
}

// Outcome is what follows when a carrier did not say that it took a message.
type Outcome int

// The outcomes.
const (
	Again Outcome = iota // it waits for another attempt
	Open                 // the carrier may have it: what it reports decides
	Ended                // it has failed
)

// ErrNotYet is why a message is not sent whose turn has not come.
var ErrNotYet = errors.New("a message before it is still to be sent")

// Failure is a message that was not sent. It costs nothing.
type Failure struct {
	Reason string // for its user
	Err    error  // what Carry said
}

func (f *Failure) Error() string { return f.Reason }

func (f *Failure) Unwrap() error { return f.Err }

// Add stores a message and sets its price aside.
func (o *Outbox[M]) Add(ctx context.Context, tx *store.Tx, m *M) error {
	if err := o.Box.Create(ctx, tx, m); err != nil {
		return err
	}
	return o.Box.Bill(m).hold(ctx, tx)
}

// Deliver hands a queued message to its carrier, if nobody else does, and notes what came of it. A message that
// somebody waits for is tried once. The error is a *Failure where the message has failed.
func (o *Outbox[M]) Deliver(ctx context.Context, id int64, now parley.Time, waiting bool) (*M, error) {
	var m *M
	var mine bool
	err := o.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		m, mine, err = o.Box.Claim(ctx, tx, id, now)
		return err
	})
	if err != nil || !mine {
		return m, err
	}
	return o.Hand(ctx, id, m, now, waiting)
}

// Hand is Deliver for a message that the caller has claimed already.
func (o *Outbox[M]) Hand(ctx context.Context, id int64, m *M, now parley.Time, waiting bool) (*M, error) {
	name, err := o.Box.Carry(ctx, m)
	if err == nil {
		return o.Told(ctx, id, Report{Name: name, Status: Sent})
	}
	outcome, reason := o.Box.Judge(ctx, m, err, now, waiting)
	switch outcome {
	case Open:
		return m, err
	case Again:
		free := o.DB.Write(context.WithoutCancel(ctx),
			func(ctx context.Context, tx *store.Tx) error { return o.Box.Unclaim(ctx, tx, id) })
		return m, errors.Join(fmt.Errorf("send message %d: %w", id, err), free)
	}
	m, failed := o.Told(ctx, id, Report{Status: Refused, Reason: reason})
	if failed != nil {
		return m, failed
	}
	if o.Box.At(m) != Failed { // its carrier's report says that it did arrive
		return m, nil
	}
	return m, &Failure{reason, err}
}

// Resume sends a message that nobody waits for, if it is still to be sent. That it has failed stands in its row.
func (o *Outbox[M]) Resume(ctx context.Context, id int64, now parley.Time) error {
	_, err := o.Deliver(ctx, id, now, false)
	if _, failed := errors.AsType[*Failure](err); failed || store.IsNotFound(err) {
		return nil
	}
	return err
}

// Told notes what is told of a message; see Tell.
func (o *Outbox[M]) Told(ctx context.Context, id int64, r Report) (m *M, err error) {
	err = o.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if m, err = o.Box.Lock(ctx, tx, id); err != nil {
			return err
		}
		return o.Tell(ctx, tx, m, r)
	})
	return m, err
}

// Tell brings a message that is locked on to what is told of it, and moves its money with it: taken when the carrier
// has taken the message, freed or given back when it failed. A report that came before changes nothing.
func (o *Outbox[M]) Tell(ctx context.Context, tx *store.Tx, m *M, r Report) (err error) {
	was := o.Box.At(m)
	to, comes := o.Box.Comes(m, r)
	if !comes {
		return nil
	}
	moved := true
	switch bill := o.Box.Bill(m); {
	case to == Taken && was != Taken:
		moved, err = bill.take(ctx, tx)
	case to == Failed && was == Queued:
		err = bill.free(ctx, tx)
	case to == Failed && was == Taken:
		moved, err = bill.back(ctx, tx)
	}
	if err != nil {
		return err
	}
	return o.Box.Save(ctx, tx, m, r, moved)
}

// Bill is what a message costs: set aside while it is queued, taken once, given back once.
type Bill struct {
	UserID    int64
	Kind      parley.LedgerKind
	Reference string // what the ledger calls the message
	Cost      parley.Money
	For, Back string // what the entries say: of the price, and of its return
}

// holdFor is how long money stays set aside for what a row will end; far longer than any row stands.
const holdFor = 60 * 24 * time.Hour

func (b Bill) hold(ctx context.Context, tx *store.Tx) error {
	return tx.Reserve(ctx, b.UserID, b.Reference, b.Cost, parley.Now().Add(holdFor))
}

// take is false where neither a reservation nor the balance covers the price.
func (b Bill) take(ctx context.Context, tx *store.Tx) (bool, error) {
	_, err := tx.Settle(ctx, b.UserID, &parley.LedgerEntry{Kind: b.Kind, Amount: -b.Cost, Reference: b.Reference,
		Description: b.For})
	if errors.Is(err, store.Insufficient) {
		return false, nil
	}
	return err == nil, err
}

func (b Bill) free(ctx context.Context, tx *store.Tx) error {
	return tx.Release(ctx, b.UserID, b.Reference)
}

func (b Bill) back(ctx context.Context, tx *store.Tx) (bool, error) {
	return tx.Post(ctx, b.UserID, &parley.LedgerEntry{Kind: parley.Refund, Amount: b.Cost, Reference: b.Reference,
		Description: b.Back})
}
