// Package limit bounds what an account does at the same time, and how often it asks, in this process. What is counted in
// rows is bounded by internal/store; both follow the table of parley.Limits.
package limit

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
)

// Gate lets accounts in. A nil Gate lets everybody in.
type Gate struct {
	plan  func(name string) parley.Plan
	rate  auth.Rate // of an account's requests
	asked *auth.Limiter

	mu    sync.Mutex
	taken map[place]int64
}

// place is what an account has so many of.
type place struct {
	user int64
	name string
}

// New makes a gate for accounts of plans. An account may ask twice as often as one of its keys.
func New(plan func(name string) parley.Plan, key auth.Rate) *Gate {
	rate := key.Times(2)
	return &Gate{plan: plan, rate: rate, asked: auth.NewLimiter(rate), taken: map[place]int64{}}
}

// Ask counts a request of an account's, whichever of its keys or sessions makes it.
func (g *Gate) Ask(userID int64, now time.Time) error {
	if g == nil {
		return nil
	}
	_, err := g.asked.Take(strconv.FormatInt(userID, 10), now)
	var late *parley.LimitError
	if errors.As(err, &late) {
		late.Detail = fmt.Sprintf("An account can make %g requests per second (%d in a burst), over all of its keys and sessions. "+
			"Go on in %d s, or ask the operator of this server for more (%s).",
			g.rate.PerSecond, g.rate.Burst, late.RetryAfter, parley.LimitNamed(parley.LimitRequests).Setting)
	}
	return err
}

// Enter lets an account do one thing more of those that it may do so many of at the same time, by the limit's name,
// until leave is called. A limit of 0 is none.
func (g *Gate) Enter(userID int64, plan, name string) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	l := parley.LimitNamed(name)
	return g.enter(userID, l, l.Of(g.plan(plan)))
}

// PagesPerStream is how many pages an account may keep up to date for each live stream that it may have: one stream carries the
// news of several pages.
const PagesPerStream = 2

// Follow lets an account keep one page more up to date over a live stream that is counted, until leave is called.
func (g *Gate) Follow(userID int64, plan string) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	l := parley.LimitNamed(parley.LimitStreams)
	most := PagesPerStream * l.Of(g.plan(plan))
	l.Name, l.What = "pages", "pages kept up to date"
	return g.enter(userID, l, most)
}

func (g *Gate) enter(userID int64, l parley.Limit, most int64) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := place{userID, l.Name}
	if most > 0 && g.taken[at] >= most {
		return nil, l.Refuse(most, again)
	}
	g.taken[at]++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.taken[at]--; g.taken[at] == 0 {
			delete(g.taken, at)
		}
	}), nil
}

// again is after how many seconds it is worth trying again for a place.
const again = 2
