package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

const (
	eventsPerSecond = 100
	eventPeriod     = 60 * time.Second
)

// benchEvent measures how soon a webhook leaves: 100 events a second for 60 s, to eleven users' endpoints in turn,
// all well and then with one of them hanging. Goal: the others' p99 start delay at most 1 s, and at most 1.2 times
// that of the run in which all are well. Events are committed by another process than the one that sends them, so the
// sender's look around is in every figure.
func benchEvent(b *bench) error {
	var runs [2]result
	for i, hang := range []bool{false, true} {
		var err error
		if runs[i], err = b.deliver(hang); err != nil {
			return err
		}
	}
	fmt.Printf("  start delay of %d events/s   %.2f of the run without a hanging endpoint (p99)   p50 %v, p99 %v; without: p50 %v, p99 %v\n",
		eventsPerSecond, float64(runs[1].p99)/float64(runs[0].p99), runs[1].p50.Round(time.Millisecond),
		runs[1].p99.Round(time.Millisecond),
		runs[0].p50.Round(time.Millisecond), runs[0].p99.Round(time.Millisecond))
	return nil
}

// deliver runs the program for a while and tells how long events took from their commit to their arrival.
func (b *bench) deliver(hang bool) (result, error) {
	var mu sync.Mutex
	var delays []time.Duration
	good, err := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		var e struct {
			ID string `json:"conversation_id"` // of a bench event: when it was enqueued, in microseconds
		}
		body, _ := io.ReadAll(r.Body)
		json.Unmarshal(body, &e)
		if at, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
			mu.Lock()
			delays = append(delays, now.Sub(time.UnixMicro(at)))
			mu.Unlock()
		}
	})
	if err != nil {
		return result{}, err
	}
	stop := make(chan struct{})
	bad, err := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	if err != nil {
		return result{}, err
	}
	defer close(stop)
	users := make([]int64, 11)
	p, err := b.serve(func(ctx context.Context, db *store.DB, u *parley.User, _ string) error {
		return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			for i := range users {
				u := &parley.User{Name: "x", Email: fmt.Sprintf("u%d@example.com", i), PasswordHash: "-",
					Timezone: "UTC", Plan: "default"}
				if err := tx.CreateUser(ctx, u); err != nil {
					return err
				}
				users[i] = u.ID
			}
			return nil
		})
	}, "PARLEY_EGRESS_ALLOW=127.0.0.0/8")
	if err != nil {
		return result{}, err
	}
	db, err := open(p.data)
	if err != nil {
		return result{}, err
	}
	defer db.Close()
	enqueue := func(user int64, url string) error {
		return db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			return tx.EnqueueDelivery(ctx, user, parley.NewDelivery("conversation.ended", url,
				map[string]string{"conversation_id": strconv.FormatInt(time.Now().UnixMicro(), 10)}))
		})
	}
	last, expected := good, 0
	if hang {
		last = bad
	}
	sent := 0
	tick := time.NewTicker(time.Second / eventsPerSecond)
	defer tick.Stop()
	for end := time.Now().Add(eventPeriod); time.Now().Before(end); sent++ {
		<-tick.C
		user, url := sent%len(users), good
		if user == 0 {
			url = last
		}
		if err := enqueue(users[user], url); err != nil {
			return result{}, err
		}
		if url != bad {
			expected++
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		arrived := len(delays)
		mu.Unlock()
		if arrived >= expected {
			break
		}
		if time.Now().After(end) {
			return result{}, fmt.Errorf("%d of %d events arrived", arrived, expected)
		}
	}
	slices.Sort(delays)
	return result{p50: quantile(delays, .5), p99: quantile(delays, .99)}, nil
}

// endpoint serves a handler on loopback until the group's end.
func (b *bench) endpoint(h http.HandlerFunc) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	b.undo = append(b.undo, func() { srv.Close() })
	return "http://" + l.Addr().String() + "/", nil
}
