package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"parley/internal/crash"
	"parley/internal/simulator/phone"
)

// exchange is where the people are whom assistants call: one telephone for a run, with a number for each case.
type exchange struct {
	phone   *phone.Phone
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	given   int
	waiting map[string]chan *phone.Incoming // by the number that is called
}

// firstNumber is the first of the numbers of who is called. They are of a block that nobody has.
const firstNumber = 12025550000

func newExchange() (*exchange, error) {
	handset, err := phone.Listen()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &exchange{phone: handset, stop: stop, waiting: map[string]chan *phone.Incoming{}}
	crash.Go(&e.running, func() {
		for {
			in, err := handset.Next(ctx)
			if err != nil {
				return
			}
			e.ring(in)
		}
	}, crash.Log("the exchange of the tests' telephones"))
	return e, nil
}

func (e *exchange) addr() netip.AddrPort { return e.phone.Addr() }

func (e *exchange) close() {
	e.stop()
	e.running.Wait()
	e.phone.Close()
}

// ring gives a call to who waits for it.
func (e *exchange) ring(in *phone.Incoming) {
	e.mu.Lock()
	to := e.waiting[in.To]
	e.mu.Unlock()
	if to == nil {
		in.Refuse(404)
		return
	}
	select {
	case to <- in:
	default:
		in.Refuse(486) // it is being called already
	}
}

// number gives out a number, at which the next call is waited for until the returned function is called.
func (e *exchange) number() (number string, calls <-chan *phone.Incoming, leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	number = fmt.Sprintf("+%d", firstNumber+e.given%10_000)
	e.given++
	c := make(chan *phone.Incoming, 1)
	e.waiting[number] = c
	return number, c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, number)
	}
}

var errUncalled = errors.New("the assistant did not call")

// answered lets a call ring, and takes it or turns it away as the case wants. No call and no error: it was not answered.
// rang is how long it rang.
func (c *Case) answered(ctx context.Context, calls <-chan *phone.Incoming, o phone.Options) (call *phone.Call,
	rang time.Duration, err error) {
	patient, cancel := context.WithTimeoutCause(ctx, ending, errUncalled)
	defer cancel()
	var in *phone.Incoming
	select {
	case in = <-calls:
	case <-patient.Done():
		return nil, 0, context.Cause(patient)
	}
	if c.Pickup.Refuse != 0 {
		in.Refuse(c.Pickup.Refuse)
		return nil, 0, nil
	}
	in.Ring()
	began := time.Now()
	defer func() { rang = time.Since(began) }()
	var pickup <-chan time.Time
	if !c.Pickup.Never {
		pickup = time.After(c.Pickup.After)
	}
	select {
	case <-pickup:
		call, err = in.AnswerOn(o)
		return call, 0, err
	case <-in.Cancel:
		return nil, 0, nil
	case <-ctx.Done():
		in.Refuse(480)
		return nil, 0, context.Cause(ctx)
	}
}
