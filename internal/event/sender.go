package event

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley/internal/crash"
	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	perLane = 8   // attempts at once at one endpoint
	perUser = 32  // at all endpoints of one user
	slots   = 512 // in this process; past half of them every user has only one more

	claimFor   = 15 * time.Second // longer than an attempt and its note take: then it is somebody else's
	maxClaim   = 64               // deliveries in one transaction, so that it stays short
	lookAround = 500 * time.Millisecond
)

// Sender delivers events to the users' endpoints. One Run at a time in a process; several processes share a database.
type Sender struct {
	DB     *store.DB
	client *http.Client
	now    func() time.Time
	jitter func() float64 // 0 to 1
	within time.Duration  // for an attempt, from connecting to the answer's end

	mu    sync.Mutex
	lanes map[int64]int // attempts under way by lane
	users map[int64]int // and by user
	all   int
	freed chan struct{} // has a token when an attempt has ended
}

// clock is the time by which deliveries are due: that of the database.
func clock() time.Time { return parley.Now().Time() }

// NewSender makes a sender whose requests go out through the guard.
func NewSender(db *store.DB, g *egress.Guard) *Sender {
	return &Sender{DB: db, client: g.Client(0), now: clock, jitter: rand.Float64, within: attemptTime,
		lanes: map[int64]int{}, users: map[int64]int{}, freed: make(chan struct{}, 1)}
}

// Run delivers what is due, also what other processes enqueued or left behind, until ctx ends. It then waits for the
// attempts under way, which take ten seconds at most.
func (s *Sender) Run(ctx context.Context) error {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for {
		full, err := s.round(ctx, &attempts)
		if err != nil && ctx.Err() == nil {
			slog.Error("look for webhooks to deliver", "error", err)
		}
		if full && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-s.DB.WatchDeliveries():
		case <-s.freed:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// round begins what is due and has a slot. full says that there may be more of it.
func (s *Sender) round(ctx context.Context, attempts *sync.WaitGroup) (full bool, err error) {
	now := parley.At(s.now())
	due, err := s.DB.DueLanes(ctx, now)
	if err != nil || len(due) == 0 {
		return false, err
	}
	room, full := s.room(due)
	if len(room) == 0 {
		return false, nil
	}
	var claimed []parley.Delivery
	err = s.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		claimed = claimed[:0]
		for _, r := range room {
			list, err := tx.ClaimDeliveries(ctx, r.lane, r.n, now, now.Add(claimFor))
			if err != nil {
				return err
			}
			claimed = append(claimed, list...)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for i := range claimed {
		d := &claimed[i]
		s.count(d.Lane, 1)
		crash.Go(attempts, func() {
			defer s.free(d.Lane)
			s.deliver(context.WithoutCancel(ctx), d)
		}, crash.Log("the delivery of a webhook", "delivery", d.ID))
	}
	return full, nil
}

// laneRoom is how many deliveries of a lane may begin.
type laneRoom struct {
	lane int64
	n    int
}

// room gives the slots that are free to lanes, first to the users who have the least under way. full says that it
// gave as many as one transaction claims.
func (s *Sender) room(due []int64) (list []laneRoom, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user := func(lane int64) int { return s.users[store.LaneUser(lane)] }
	slices.SortStableFunc(due, func(a, b int64) int {
		return cmp.Or(cmp.Compare(user(a), user(b)), cmp.Compare(s.lanes[a], s.lanes[b]))
	})
	given, all := map[int64]int{}, 0
	for _, lane := range due {
		id := store.LaneUser(lane)
		share := perUser
		if s.all+all >= slots/2 {
			share = 1
		}
		n := min(perLane-s.lanes[lane], share-s.users[id]-given[id], slots-s.all-all)
		if n <= 0 {
			continue
		}
		if n = min(n, maxClaim-all); n == 0 {
			return list, true
		}
		list, given[id], all = append(list, laneRoom{lane, n}), given[id]+n, all+n
	}
	return list, false
}

func (s *Sender) count(lane int64, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := store.LaneUser(lane)
	s.lanes[lane], s.users[id], s.all = s.lanes[lane]+by, s.users[id]+by, s.all+by
	if s.lanes[lane] == 0 {
		delete(s.lanes, lane)
	}
	if s.users[id] == 0 {
		delete(s.users, id)
	}
}

func (s *Sender) free(lane int64) {
	s.count(lane, -1)
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// deliver makes one attempt and notes it. What can't be noted becomes due again by itself.
func (s *Sender) deliver(ctx context.Context, d *parley.Delivery) {
	keys, err := Keys(ctx, s.DB, d.UserID, parley.At(s.now()))
	if err == nil {
		a, _ := s.post(ctx, d, keys, s.within, maxKept)
		err = s.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.NoteAttempt(ctx, d, a, s.jitter())
			return err
		})
	}
	if err != nil && !store.IsNotFound(err) { // deleted meanwhile: its cause was erased
		slog.Error("deliver a webhook", "delivery", d.ID, "user", d.UserID, "error", err)
	}
}

// keepFor is how long a delivery is kept after its event, unless it is still tried.
const keepFor = 30 * 24 * time.Hour

// Forget removes deliveries that are past their time.
func Forget(ctx context.Context, db *store.DB) error {
	const some = 1000 // in one transaction, so that others get their turn
	for n := some; n == some; {
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.ForgetDeliveries(ctx, parley.Now().Add(-keepFor), some)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
