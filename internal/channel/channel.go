// Package channel is what the channels that carry messages have in common: the machine by which a message leaves
// (Outbox), its price, and the limits of what may go out. Each channel is a package below it, with its own rows, words
// and carrier.
package channel

import (
	"context"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/parley"
	"parley/internal/store"
)

// Limits are where messages may go, and what outgoing calls and messages may cost an account a day. The zero value
// allows everything.
type Limits struct {
	Allow      func(e164 string) bool // nil: everywhere
	DailySpend parley.Money           // UTC; 0: no limit
}

// Allowed refuses destinations that the operator does not allow: the rule of calls (PARLEY_CALL_PREFIXES).
func (l *Limits) Allowed(to string) error {
	if l.Allow == nil || l.Allow(to) {
		return nil
	}
	return parley.Errorf(parley.Forbidden,
		"Messages to %s are not allowed on this server: its operator decides which destinations are (PARLEY_CALL_PREFIXES).", to)
}

// Spend counts a message's price to its day, and refuses it where outgoing calls and messages may not cost so much.
func (l *Limits) Spend(ctx context.Context, tx *store.Tx, userID int64, price parley.Money) error {
	total, err := tx.TakeSpend(ctx, userID, parley.Now(), price)
	if err == nil && l.DailySpend > 0 && total > l.DailySpend {
		err = parley.Errorf(parley.Forbidden, "This message costs %s USD, and %s of the %s USD that outgoing calls and messages may cost a day "+
			"are spent or set aside. The operator sets the limit (PARLEY_CALL_DAILY_SPEND).",
			price.Text(), (total - price).Text(), l.DailySpend.Text())
	}
	return err
}

// Every makes a job that comes at the start, and again and again.
func Every(d time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(d), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{MaxAttempts: 1} // the next one comes anyway
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// Work makes a worker of a function. A job takes minutes at most: rent of many numbers.
func Work[T river.JobArgs](fn func(context.Context, T) error) river.Worker[T] {
	return river.WorkFunc(func(ctx context.Context, j *river.Job[T]) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		return fn(ctx, j.Args)
	})
}

// Parts cuts a text into messages of at most n characters, at white space where there is some in the second half of
// one.
func Parts(text string, n int) (list []string) {
	rest := []rune(strings.TrimSpace(text))
	for len(rest) > n {
		cut := n
		for i := n; i > n/2; i-- {
			if rest[i] == ' ' || rest[i] == '\n' {
				cut = i
				break
			}
		}
		list = append(list, strings.TrimSpace(string(rest[:cut])))
		rest = []rune(strings.TrimSpace(string(rest[cut:])))
	}
	if len(rest) > 0 {
		list = append(list, string(rest))
	}
	return list
}
