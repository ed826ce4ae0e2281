package main

import (
	"fmt"
	"time"
)

// benchNeighbour measures how long one account waits for an answer while another one asks for as much as it can: its
// unpaginated list of 10,000 assistants, over 32 connections. The floor is the same account's wait before that.
func benchNeighbour(b *bench) error {
	p, err := b.serve(seedLists)
	if err != nil {
		return err
	}
	own := func(n int64) []byte { return request("GET", "/api/user/me", owners[n%int64(len(owners))], "") }
	all := func(int64) []byte { return request("GET", "/api/user/assistants", p.token, "") }
	low, err := load(p.addr, 4, period/3, 200, own)
	if err != nil {
		return err
	}
	over := make(chan error, 1)
	go func() {
		_, err := load(p.addr, connections, period, 200, all)
		over <- err
	}()
	got, err := load(p.addr, 4, period/2, 200, own)
	if wrong := <-over; err == nil {
		err = wrong
	}
	if err != nil {
		return err
	}
	fmt.Printf("  %-34s %.2f of the floor   p50 %v, p99 %v (floor p50 %v, p99 %v)\n", "an account beside a greedy one",
		float64(low.p99)/float64(got.p99), got.p50.Round(10*time.Microsecond), got.p99.Round(10*time.Microsecond),
		low.p50.Round(10*time.Microsecond), low.p99.Round(10*time.Microsecond))
	return nil
}
