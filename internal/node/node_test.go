package node_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

const patience = 20 * time.Second

// process is a node that lives, with what it is registered with.
type process struct {
	*node.Node
	changed atomic.Int64
	mu      sync.Mutex
	at      []int64
	stop    context.CancelFunc // it ends
	kill    context.CancelFunc // it says nothing more
	done    chan struct{}
}

func (p *process) registered(id int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.at, id)
}

// begin has a node live on a database of its own connection, until the test ends.
func begin(t *testing.T, o store.Options, roles ...string) *process {
	t.Helper()
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Node: node.New(node.Config{DB: db, Roles: roles, Version: "v1", Beat: 20 * time.Millisecond, Lost: 400 * time.Millisecond}),
		done: make(chan struct{})}
	p.Handle("double", func(_ context.Context, userID int64, body []byte) (any, error) {
		if userID == 13 {
			return nil, parley.Errorf(parley.Forbidden, "Not that one.")
		}
		return string(body) + string(body), nil
	})
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.kill = func() { db.Close() }
	go func() {
		defer close(p.done)
		_ = p.Run(ctx, node.Work{Live: func() int { return 0 }, Registered: p.registered, Changed: func() {
			p.changed.Add(1)
			p.mu.Lock() // it registers with what it holds
			defer p.mu.Unlock()
			p.at = nil
			for id := int64(1); id <= trunks; id++ {
				if p.Holds(id) {
					p.at = append(p.at, id)
				}
			}
		}})
	}()
	t.Cleanup(func() { stop(); <-p.done; db.Close() })
	return p
}

const trunks = 12

// postgres is an empty database with trunks that want a registration.
func postgres(t *testing.T) (store.Options, *store.DB, *parley.User) {
	t.Helper()
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	o := storetest.Options(t, "postgres")
	db := storetest.Open(t, o)
	u := storetest.User(t, db, parley.USD)
	for range trunks {
		storetest.Exec(t, o, `WITH n AS (INSERT INTO numbers (user_id, phone_number, country_code, type, created_at) SELECT id, '+493090182' || (SELECT count(*) FROM numbers), 'DE', 'sip', 1 FROM users RETURNING id, user_id)
			INSERT INTO trunks (user_id, phone_number_id, name, sip_address, sip_username, transport, srtp, register, inbound_authorization_type, allowed_inbound_ips, created_at, updated_at)
			SELECT user_id, id, '', '', '', 'udp', '', TRUE, '', '[]', 1, 1 FROM n`)
	}
	return o, db, u
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// holding says whether each trunk is held by exactly one of some nodes, and all of them know that it is registered there.
func holding(nodes ...*process) bool {
	for id := int64(1); id <= trunks; id++ {
		var holder *process
		for _, p := range nodes {
			if p.Holds(id) {
				if holder != nil {
					return false
				}
				holder = p
			}
		}
		if holder == nil {
			return false
		}
		for _, p := range nodes {
			if at, registered := p.Holder(id); at != holder.ID || !registered {
				return false
			}
		}
	}
	return true
}

// Each trunk's registration is held by one node. One that dies, and one that leaves, is followed by the others; what the others held
// stays with them.
func TestTrunksAreHeld(t *testing.T) {
	o, _, _ := postgres(t)
	one, two, api := begin(t, o, parley.RoleAPI, parley.RoleCalls), begin(t, o, parley.RoleCalls), begin(t, o, parley.RoleAPI)
	until(t, "each trunk to be held by one of two", func() bool { return holding(one, two, api) })
	three := begin(t, o, parley.RoleCalls)
	until(t, "a third node to take its part", func() bool { return holding(one, two, three, api) && three.Holds(mine(three)) })
	kept := []int64{}
	for id := int64(1); id <= trunks; id++ {
		if three.Holds(id) {
			kept = append(kept, id)
		}
		if api.Holds(id) {
			t.Errorf("a node without calls holds trunk %d", id)
		}
	}
	if len(kept) == 0 || len(kept) == trunks {
		t.Errorf("the third node holds %v", kept)
	}
	two.kill()
	until(t, "the trunks of a node that is gone", func() bool { return holding(one, three, api) })
	for _, id := range kept {
		if !three.Holds(id) {
			t.Errorf("trunk %d moved from a node that lives", id)
		}
	}
	until(t, "the dead node to give up what it held", func() bool {
		return !slices.ContainsFunc(all(), two.Holds)
	})
	one.Leave()
	until(t, "the trunks of a node that leaves", func() bool { return holding(three, api) })
	if at, err := api.Pick(parley.RoleCalls); err != nil || at != three.ID {
		t.Errorf("calls go to %s, %v", at, err)
	}
}

// bakeArgs is a job that nobody works.
type bakeArgs struct{}

func (bakeArgs) Kind() string { return "bake" }

// What a node had begun that was killed is due again, as another says that has lived throughout.
func TestJobsAreFreed(t *testing.T) {
	o, db, _ := postgres(t)
	one, two := begin(t, o, parley.RoleAPI), begin(t, o, parley.RoleAPI)
	until(t, "each to know the other", func() bool { return one.Knows(two.ID) && two.Knows(one.ID) })
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.Enqueue(ctx, bakeArgs{}, nil) }); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, o, "UPDATE river_job SET state = 'running', attempt = 1, attempted_by = ARRAY['"+two.ID+"']")
	two.kill()
	until(t, "the job to be due", func() bool {
		var due bool
		err := db.SQL().NewRaw("SELECT EXISTS (SELECT 1 FROM river_job WHERE kind = 'bake' AND state = 'available')").Scan(t.Context(), &due)
		return err == nil && due
	})
}

func all() (ids []int64) {
	for id := int64(1); id <= trunks; id++ {
		ids = append(ids, id)
	}
	return ids
}

// mine is a trunk that a node holds, 0 for none.
func mine(p *process) int64 {
	for _, id := range all() {
		if p.Holds(id) {
			return id
		}
	}
	return 0
}

// What one node asks, another does, once; its refusals are the asker's to know. A node that does not answer is said to have done
// nothing.
func TestNodesAsk(t *testing.T) {
	o, db, _ := postgres(t)
	one, two := begin(t, o, parley.RoleAPI), begin(t, o, parley.RoleCalls)
	until(t, "the other node to be known", func() bool { at, err := one.Pick(parley.RoleCalls); return err == nil && at == two.ID })
	var got string
	if err := one.Ask(t.Context(), two.ID, 7, "double", 12, &got); err != nil || got != "1212" {
		t.Errorf("%q, %v", got, err)
	}
	var known *parley.Error
	if err := one.Ask(t.Context(), two.ID, 13, "double", 12, &got); !errors.As(err, &known) || known.Kind != parley.Forbidden {
		t.Errorf("refused: %v", err)
	}
	if err := one.Ask(t.Context(), two.ID, 7, "triple", 12, &got); !errors.As(err, &known) || known.Kind != parley.Unavailable {
		t.Errorf("what no node knows: %v", err)
	}
	two.stop()
	<-two.done
	if _, err := one.Pick(parley.RoleCalls); err == nil {
		until(t, "nobody to take calls", func() bool { _, err := one.Pick(parley.RoleCalls); return errors.Is(err, node.ErrNone) })
	}
	if err := one.Ask(t.Context(), two.ID, 7, "double", 12, &got); !errors.As(err, &known) || known.Kind != parley.Unavailable {
		t.Errorf("a node that is gone: %v", err)
	}
	if list, err := db.Requests(t.Context(), store.NodeRequests, two.ID); err != nil || len(list) != 0 {
		t.Errorf("left: %v %v", list, err)
	}
}

// On SQLite there is one process: it holds everything, and writes nothing about itself.
func TestAlone(t *testing.T) {
	db := storetest.Open(t, storetest.Options(t, "sqlite"))
	n := node.New(node.Config{DB: db, Roles: []string{parley.RoleAPI, parley.RoleCalls}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(n.Follow(ctx), n.Run(ctx, node.Work{})); err != nil || !n.Holds(1) {
		t.Errorf("%v", err)
	}
	if list, err := db.Nodes(t.Context(), time.Hour); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}
