// Package failover stands between assistants and vendors: given several that can do a part, in order, it has the first
// do it, and the next one if that fails or is late, with the same words and in the middle of a call.
//
// A list has a budget. A vendor that has sent nothing when the budget is used up gets a rival: the next of the list is
// asked too, the first to send something continues, and the others are told to stop. A vendor that fails before that is
// followed by the next at once. A Circuit remembers which are down, for all conversations of the process, so that
// nobody waits for them again. If all are down they are asked all the same.
//
// A vendor that breaks after it began is followed by the next, which is told what has been said already: for a model's
// reply the text so far (model.go), for a voice the words still to be said (speech.go), for a recognizer the audio that has
// had no result (recognition.go).
//
// Each switch is noted in the ai.Tally of the context, once, and in the log.
package failover

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/internal/ai"
)

// Link is an entry of a list.
type Link[T comparable] struct {
	Name    string // of the vendor, with the model or voice where it has several: for the record and the log
	Circuit *Circuit
	Do      T
	Budget  time.Duration // of a model alone; 0 is the list's
}

// errLate is what failed in a vendor that sent nothing within the budget.
var errLate = errors.New("nothing came within the budget")

func late() error { return &ai.Error{Kind: ai.Stalled, Err: errLate} }

// errOver is why the others of a race are stopped.
var errOver = errors.New("another vendor was faster")

// further reports whether the next of a list may do better after one has failed: a request refused for its content is
// not offered to others.
func further(err error) bool { return ai.KindOf(err) != ai.Refused }

// queue yields the links of a list whose circuits are closed, one after the other.
type queue[T comparable] struct {
	part  ai.Part
	links []Link[T] // in the order of this conversation
	first string    // who should do it
	next  int
	given int
	why   ai.Kind // why the last one did not do it
}

// line makes a queue that begins with the link of that name, and comes round to those before it.
func line[T comparable](part ai.Part, links []Link[T], begin string) *queue[T] {
	q := &queue[T]{part: part, first: links[0].Name}
	at := 0
	for i := range links {
		if links[i].Name == begin {
			at = i
			break
		}
	}
	q.links = append(append(q.links, links[at:]...), links[:at]...)
	return q
}

// pop is the next link that may be asked. If all circuits are open the first is asked all the same.
func (q *queue[T]) pop() (*Link[T], *pass) {
	for q.next < len(q.links) {
		l := &q.links[q.next]
		q.next++
		p, why := l.Circuit.enter()
		if p != nil {
			q.given++
			return l, p
		}
		q.why = why
	}
	if q.given == 0 && len(q.links) > 0 {
		q.given++
		return &q.links[0], q.links[0].Circuit.force()
	}
	return nil, nil
}

// ahead is the context for who was given last: as long as one of those behind may be asked, it spends no time on
// attempts of its own.
func (q *queue[T]) ahead(ctx context.Context) context.Context {
	behind := q.links[q.next:]
	return ai.WithNext(ctx, func() bool {
		return slices.ContainsFunc(behind, func(l Link[T]) bool { return !l.Circuit.Open() })
	})
}

// acts notes who does the part now.
func (q *queue[T]) acts(ctx context.Context, name string) {
	if ai.TallyOf(ctx).Acts(q.part, q.first, name, q.why) {
		if name == q.first {
			slog.InfoContext(ctx, "a vendor answers again", "part", q.part, "vendor", name)
			return
		}
		slog.WarnContext(ctx, "another vendor goes on", "part", q.part, "instead_of", q.first, "vendor", name,
			"because", q.why)
	}
}

// budgetOr is a budget, or what it is where none is set.
func budgetOr(budget, otherwise time.Duration) time.Duration {
	if budget <= 0 {
		return otherwise
	}
	return budget
}
