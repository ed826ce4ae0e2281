package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	greedyWriters = 4
	greedyBytes   = 900 << 10
	shareFor      = 5 * time.Second
)

// benchShare measures what one account's writes cost another's on SQLite: how long a small write takes by itself, and
// beside four writers of 0.9 MB each.
func benchShare(b *bench) error {
	ctx := context.Background()
	db, err := b.database("sqlite")
	if err != nil {
		return err
	}
	greedy, modest := &parley.User{Email: "greedy@example.com"}, &parley.User{Email: "modest@example.com"}
	tests := map[*parley.User]int64{}
	for _, u := range []*parley.User{greedy, modest} {
		u.Name, u.PasswordHash, u.Timezone, u.Plan = "Bench", "-", "UTC", "default"
		a := &parley.Assistant{}
		form.Defaults(a)
		a.Name, a.Type, a.Mode, a.Timezone, a.SystemPrompt, a.VoiceID, a.LanguageID = "Desk", "inbound", "pipeline", "UTC", "Be kind.", 1, 1
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateUser(ctx, u), tx.CreateAssistant(ctx, u.ID, a))
		})
		if err != nil {
			return err
		}
		tests[u] = a.ID
	}
	save := func(u *parley.User, script string) error {
		by := store.By(ctx, store.Actor{UserID: u.ID, Who: "owner", Name: "Bench"})
		return db.Write(by, func(ctx context.Context, tx *store.Tx) error {
			t := &parley.Test{AssistantID: tests[u], Name: "T", Channel: "chat", Script: script}
			return tx.CreateTest(ctx, u.ID, t)
		})
	}
	measure := func() ([]time.Duration, error) {
		var all []time.Duration
		for end := time.Now().Add(shareFor); time.Now().Before(end); {
			began := time.Now()
			if err := save(modest, "x"); err != nil {
				return nil, err
			}
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all, nil
	}
	p95 := func(all []time.Duration) float64 { return float64(all[len(all)*95/100].Microseconds()) / 1000 }
	alone, err := measure()
	if err != nil {
		return err
	}
	stop, writers, large := make(chan struct{}), sync.WaitGroup{}, strings.Repeat("x", greedyBytes)
	failed, n := make(chan error, greedyWriters), make([]int, greedyWriters)
	for i := range greedyWriters {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := save(greedy, large); err != nil {
					failed <- err
					return
				}
				n[i]++
			}
		})
	}
	beside, err := measure()
	close(stop)
	writers.Wait()
	close(failed)
	if err := errors.Join(err, <-failed); err != nil {
		return err
	}
	total := 0
	for _, each := range n {
		total += each
	}
	fmt.Printf("  a small write by itself            %8.1f ms p95\n", p95(alone))
	fmt.Printf("  beside four writers of 0.9 MB      %8.1f ms p95, %.0f times as long; they write %.1f MB/s\n", p95(beside),
		p95(beside)/p95(alone), float64(total)*greedyBytes/(1<<20)/shareFor.Seconds())
	return nil
}
