package api_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/api"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

type paid struct {
	Body struct {
		Amount int64  `json:"amount" required:"true"`
		How    string `json:"how"`
	}
}

// paying adds an operation that costs money. It counts how often it ran, and fails or waits as the request says.
func (h *harness) paying(ran *atomic.Int64, wait func()) {
	work := func(ctx context.Context, r *api.Request, in *paid) (map[string]int64, error) {
		n := ran.Add(1)
		switch in.Body.How {
		case "fail":
			return nil, parley.Errorf(parley.Payment, "Insufficient balance")
		case "break":
			return nil, fmt.Errorf("the carrier's line is cut")
		case "panic":
			panic("boom")
		case "write-fail", "write-break", "write-panic", "write-undone":
			if err := h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
				return tx.Reserve(ctx, h.user.ID, "probe", 1, parley.Now().Add(time.Hour))
			}); err != nil {
				return nil, err
			}
			switch refusal := parley.Errorf(parley.Payment, "Insufficient balance"); in.Body.How {
			case "write-break":
				return nil, fmt.Errorf("the carrier's line is cut")
			case "write-panic":
				panic("boom")
			case "write-undone":
				return nil, &parley.Undone{Err: refusal}
			default:
				return nil, refusal
			}
		case "wait":
			wait()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		return map[string]int64{"run": n, "amount": in.Body.Amount}, nil
	}
	for _, path := range []string{"/user/pay", "/user/pay-too"} {
		api.Handle(h.api, api.Op{Method: "POST", Path: path, Name: path[6:], Tag: "Probe", Status: 201,
			Idempotent: true, Family: api.Bare}, work)
	}
	api.Handle(h.api, api.Op{Method: "POST", Path: "/user/free", Name: "free", Tag: "Probe"}, work)
	h.checker = newChecker(h.TB, h.get("/openapi.json").body)
}

func TestIdempotency(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		var ran atomic.Int64
		h.paying(&ran, nil)
		key := func(k string) option { return header("Idempotency-Key", k) }
		body := map[string]any{"amount": 5}
		runs := func(want int64) {
			t.Helper()
			if got := ran.Swap(0); got != want {
				t.Errorf("it ran %d times, want %d", got, want)
			}
		}
		first := h.post("/user/pay", body, key("a"), status(201))
		for range 3 {
			again := h.post("/user/pay", body, key("a"), status(201))
			again.is(strings.TrimSpace(string(first.body)))
			if again.header.Get("Content-Type") != first.header.Get("Content-Type") ||
				again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("replayed with %v", again.header)
			}
		}
		runs(1)
		conflict :=
			`{"message":"The Idempotency-Key was used with another request.","error":"The Idempotency-Key was used with another request."}`
		h.post("/user/pay", map[string]any{"amount": 6}, key("a"), status(409)).is(conflict)
		h.post("/user/pay-too", body, key("a"), status(409)).is(conflict)
		runs(0)
		h.post("/user/pay", body, key("b"), status(201))
		h.post("/user/pay", body, key("A"), status(201)) // keys are case-sensitive
		h.post("/user/pay", body, status(201))           // without a key every request counts
		h.post("/user/pay", body, status(201))
		runs(4)
		h.stranger().post("/user/pay", body, key("a"), status(201))
		runs(1)
		h.post("/user/free", body, key("a"), status(200)) // this operation does not honour the key
		h.post("/user/free", body, key("a"), status(200))
		runs(2)

		// A request that failed changed nothing: its key is free again, for another body too.
		for how, code := range map[string]int{"fail": 402, "break": 500, "panic": 500} {
			for range 2 {
				h.post("/user/pay", map[string]any{"amount": 5, "how": how}, key(how), status(code))
			}
			runs(2)
			h.post("/user/pay", body, key(how), status(201))
			runs(1)
		}
		// A request that failed after it had written something is not run again. The key gets the same answer, or a 409
		// where nobody knows what came of the request.
		for how, codes := range map[string][2]int{"write-fail": {402, 402}, "write-break": {500, 409},
			"write-panic": {500, 409}, "write-undone": {402, 402}} {
			again := map[string]any{"amount": 5, "how": how}
			first := h.post("/user/pay", again, key(how), status(codes[0]))
			second := h.post("/user/pay", again, key(how), status(codes[1]))
			if how == "write-undone" {
				runs(2)
				h.post("/user/pay", body, key(how), status(201))
				runs(1)
				continue
			}
			runs(1)
			if how == "write-fail" {
				second.is(strings.TrimSpace(string(first.body)))
			} else {
				second.is(`{"message":"` + tookEffect + `","error":"` + tookEffect + `"}`)
			}
			if replayed := second.header.Get("Idempotent-Replayed") == "true"; replayed != (how == "write-fail") {
				t.Errorf("%s: replayed: %v", how, replayed)
			}
			h.post("/user/pay", body, key(how), status(409))
			runs(0)
		}
		h.post("/user/pay", nil, key("bad"), status(422)).fails("amount")
		h.post("/user/pay", body, key("bad"), status(201))
		runs(1)

		for k, want := range map[string]int{strings.Repeat("k", 255): 201, strings.Repeat("k", 256): 400,
			"\xff\xfe": 400, "'; DROP TABLE users --": 201, "ключ": 201} {
			h.post("/user/pay", body, key(k), status(want))
		}
		h.put("/user/pay", body, key("a"), status(405))
	})
}

const tookEffect = "A request with this Idempotency-Key took effect, at least in part, and has no answer yet. " +
	"Look at what it did before you use a new key."

// A request whose commit succeeded has taken effect, even if its answer was lost with the connection: its key is never
// freed.
func TestIdempotencyOfALostCommit(t *testing.T) {
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	p := storetest.NewProxy(t, storetest.Options(t, "postgres", rules))
	h := open(t, storetest.Open(t, p.Options), nil)
	ran := 0
	api.Handle(h.api, api.Op{Method: "POST", Path: "/user/pay", Name: "pay", Tag: "Probe", Status: 201,
		Idempotent: true},
		func(ctx context.Context, r *api.Request, in *paid) (map[string]int64, error) {
			ran++
			p.LoseCommit()
			return nil, h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit,
					Amount: parley.Money(in.Body.Amount), Reference: fmt.Sprint("pay ", ran), Description: "x"})
				return err
			})
		})
	h.checker = newChecker(t, h.get("/openapi.json").body)
	before := h.balance()
	key := header("Idempotency-Key", "a")
	h.post("/user/pay", map[string]any{"amount": 5_000_000}, key, status(500))
	for range 2 {
		h.post("/user/pay", map[string]any{"amount": 5_000_000}, key, status(409)).is(`{"message":"` + tookEffect +
			`"}`)
	}
	if after := h.balance(); ran != 1 || after == before {
		t.Errorf("it ran %d times; the balance was %s and is %s", ran, before, after)
	}
}

// A client that gives up waiting, and sends the request again under its key, gets the answer that it missed.
func TestIdempotencyOfWhoLeaves(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		var ran atomic.Int64
		ctx, leave := context.WithCancel(t.Context())
		h.paying(&ran, leave)
		const body = `{"amount":5,"how":"wait"}`
		r := httptest.NewRequestWithContext(ctx, "POST", "/api/user/pay", strings.NewReader(body))
		for name, value := range map[string]string{"Authorization": "Bearer " + h.token,
			"Content-Type": "application/json", "Idempotency-Key": "a"} {
			r.Header.Set(name, value)
		}
		h.api.ServeHTTP(httptest.NewRecorder(), r)
		again := h.post("/user/pay", nil, raw(body), header("Idempotency-Key", "a"), status(201))
		again.is(`{"amount":5,"run":1}`)
		if again.header.Get("Idempotent-Replayed") != "true" || ran.Load() != 1 {
			t.Errorf("it ran %d times", ran.Load())
		}
	})
}

func TestIdempotencyLastsADay(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		var ran atomic.Int64
		h.paying(&ran, nil)
		age := func(key string, hours float64) {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				old := &store.FirstAnswer{UserID: h.user.ID, Key: key, Request: []byte("another"), Status: 201,
					Answer:    []byte(`{"run":0,"amount":0}`),
					CreatedAt: parley.Now() - parley.Time(hours*3600e6)}
				_, err := tx.ClaimAnswer(ctx, old)
				return err
			})
		}
		age("young", 23.99)
		age("old", 24.01)
		h.post("/user/pay", map[string]any{"amount": 1}, header("Idempotency-Key", "young"), status(409))
		h.post("/user/pay", map[string]any{"amount": 1}, header("Idempotency-Key", "old"), status(201))
		h.post("/user/pay", map[string]any{"amount": 1}, header("Idempotency-Key", "old"), status(201))
		if n := ran.Load(); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	})
}

func TestIdempotencyOfTwoAtOnce(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		var ran atomic.Int64
		inside, leave := make(chan struct{}), make(chan struct{})
		h.paying(&ran, func() { close(inside); <-leave })
		body := map[string]any{"amount": 5, "how": "wait"}
		key := header("Idempotency-Key", "a")
		var wg sync.WaitGroup
		wg.Go(func() { h.post("/user/pay", body, key, status(201)) })
		<-inside
		for range 3 {
			h.post("/user/pay", body, key, status(409))
		}
		h.post("/user/pay", map[string]any{"amount": 6}, key, status(409))
		close(leave)
		wg.Wait()
		h.post("/user/pay", body, key, status(201)).is(`{"amount":5,"run":1}`)

		ran.Store(0)
		var made atomic.Int64
		for range 20 {
			wg.Go(func() {
				if h.post("/user/pay", map[string]any{"amount": 7}, header("Idempotency-Key", "b")).status == 201 {
					made.Add(1)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 1 || made.Load() < 1 {
			t.Errorf("of twenty at once %d ran, %d were answered", ran.Load(), made.Load())
		}
	})
}
