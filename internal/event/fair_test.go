package event

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

var pageOfOne = store.Page{Number: 1, Size: 1}

// hanging is an endpoint that answers no request until the test ends. It counts the requests that are waiting, and all
// of them.
type hanging struct {
	*httptest.Server
	mu            sync.Mutex
	waiting, most int
}

func (h *harness) hanging() *hanging {
	e := &hanging{}
	over := make(chan struct{})
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.add(1)
		defer e.add(-1)
		<-over
	}))
	h.Cleanup(func() { close(over); e.Close() })
	return e
}

func (e *hanging) add(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting += n
	e.most = max(e.most, e.waiting)
}

func (e *hanging) now() (waiting, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting, e.most
}

// An endpoint that hangs, with a backlog, delays neither other users' events nor its own user's events for other
// endpoints.
func TestHangingEndpointHoldsUpNobody(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.s.now, h.s.within = time.Now, time.Minute // no request times out before the test ends
		h.run(h.s)                                  // started first, so that hanging ends first
		dead, fine := h.hanging(), h.endpoint(200)
		other := storetest.User(t, h.db, 0)
		for range 100 {
			h.send(h.user.ID, dead.URL)
		}
		h.until("the lane to be full", func() bool { n, _ := dead.now(); return n == perLane })
		var mine, theirs []*parley.Delivery
		for range 50 {
			mine, theirs = append(mine, h.send(h.user.ID, fine.URL)), append(theirs, h.send(other.ID, fine.URL))
		}
		h.until("the others' events", func() bool {
			_, n, err := h.db.Deliveries(t.Context(), other.ID, "", parley.DeliveryDelivered, pageOfOne)
			_, m, err2 := h.db.Deliveries(t.Context(), h.user.ID, "", parley.DeliveryDelivered, pageOfOne)
			return err == nil && err2 == nil && n == len(theirs) && m == len(mine)
		})
		if waiting, most := dead.now(); waiting != perLane || most != perLane {
			t.Errorf("%d attempts wait at the dead endpoint, %d did at most; %d may", waiting, most, perLane)
		}
	})
}

// A user with many dead endpoints fills only that user's share of the slots, and the others have the rest.
func TestManyDeadEndpointsOfOneUser(t *testing.T) {
	h := open(t, storetest.SQLite(t))
	h.s.now, h.s.within = time.Now, time.Minute // no request times out before the test ends
	h.run(h.s)
	dead, fine := h.hanging(), h.endpoint(200)
	other := storetest.User(t, h.db, 0)
	for i := range 20 {
		for range 10 {
			h.send(h.user.ID, fmt.Sprintf("%s/%d", dead.URL, i))
		}
	}
	h.until("the user's share to be full", func() bool { n, _ := dead.now(); return n == perUser })
	d := h.send(other.ID, fine.URL)
	h.until("the other's event", func() bool { return h.delivery(d).Status == parley.DeliveryDelivered })
	if _, most := dead.now(); most != perUser {
		t.Errorf("%d attempts at once, %d may be", most, perUser)
	}
}

// Whatever is under way and due: no limit is ever exceeded, and a user with nothing under way gets a slot while there
// is one.
func TestRoom(t *testing.T) {
	lane := func(user, n int64) int64 { return user<<20 | n }
	check := func(busy, due []uint16) bool {
		s := &Sender{lanes: map[int64]int{}, users: map[int64]int{}}
		for _, b := range busy {
			if l := lane(int64(b%100)+1, int64(b/100)%5); s.lanes[l] < perLane &&
				s.users[store.LaneUser(l)] < perUser && s.all < slots {
				s.count(l, 1)
			}
		}
		want := map[int64]bool{}
		for _, d := range due {
			want[lane(int64(d%100)+1, int64(d/100)%5)] = true
		}
		var list []int64
		idle := map[int64]bool{}
		for l := range want {
			list = append(list, l)
			if s.users[store.LaneUser(l)] == 0 {
				idle[store.LaneUser(l)] = true
			}
		}
		before, free := s.all, slots-s.all
		got, full := s.room(list)
		given := map[int64]bool{}
		for _, r := range got {
			if r.n < 1 || !want[r.lane] {
				return false
			}
			s.count(r.lane, r.n)
			given[store.LaneUser(r.lane)] = true
			if s.lanes[r.lane] > perLane || s.users[store.LaneUser(r.lane)] > perUser {
				return false
			}
		}
		if s.all > slots || s.all-before > maxClaim {
			return false
		}
		for u := range idle {
			if !given[u] && !full && s.all-before < free {
				return false
			}
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 300}); err != nil {
		t.Error(err)
	}
	// Once half of the slots are taken, a user gets only one.
	s := &Sender{lanes: map[int64]int{}, users: map[int64]int{}}
	for u := range int64(8) {
		for l := range int64(4) {
			s.count(lane(u+1, l), perLane)
		}
	}
	if s.all != slots/2 {
		t.Fatalf("%d slots are taken", s.all)
	}
	if got, _ := s.room([]int64{lane(1, 7), lane(20, 1), lane(20, 2)}); len(got) != 1 ||
		got[0] != (laneRoom{lane(20, 1), 1}) {
		t.Errorf("room %v", got)
	}
}

// A hub's listener gets the events of its topic until it stops, and a hub forgets topics without listeners.
func TestHub(t *testing.T) {
	h := NewHub()
	first, stop, ok := h.Listen("a", 1)
	if !ok {
		t.Fatal("nobody listens, and it is full")
	}
	if _, _, ok := h.Listen("a", 1); ok {
		t.Error("it is full, and takes another")
	}
	h.Tell("b", Event{Kind: "other"})
	for range backlog + 5 { // a slow listener loses events beyond its backlog
		h.Tell("a", Event{Kind: "x"})
	}
	if len(first) != backlog {
		t.Errorf("%d events wait", len(first))
	}
	stop()
	if len(h.topics) != 0 {
		t.Error("a topic without listeners is kept")
	}
	second, stopSecond, _ := h.Listen("a", 1)
	stop() // a second stop does no harm
	h.Tell("a", Event{Kind: "y", Data: 1})
	if e := <-second; e != (Event{"y", 1}) {
		t.Errorf("heard %v", e)
	}
	stopSecond()
}
