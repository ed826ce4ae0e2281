package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// benchTrace measures what traces cost at 100 calls: runs without a collector and with one take turns, so that what
// the machine does meanwhile befalls both. Goal: at most 1 % more processor.
func benchTrace(b *bench) error {
	const calls, pairs = 100, 4
	v, speech, err := b.talk()
	if err != nil {
		return err
	}
	var requests, size atomic.Int64
	at, err := b.collector(&requests, &size)
	if err != nil {
		return err
	}
	var used [2]time.Duration
	for i := range 2 * pairs {
		with := (i + i/2) % 2 // 0 1 1 0, so that neither always goes first
		var env []string
		if with == 1 {
			env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + at}
		}
		p, set, l, err := b.turns(calls, v, speech, env...)
		if err != nil {
			return err
		}
		set.phone.Close()
		p.end()
		used[with] += l.used
		fmt.Printf("  %d calls %-14s %v a call-second (customers speak %.0f %% of the time)\n", calls,
			[2]string{"without traces", "with traces"}[with], l.used.Round(time.Microsecond), 100*l.share)
	}
	if requests.Load() == 0 {
		return fmt.Errorf("the collector was sent nothing")
	}
	fmt.Printf("  traces add %+.1f %% (goal 1); the collector took %d requests, %d KB\n",
		100*(float64(used[1])/float64(used[0])-1), requests.Load(), size.Load()>>10)
	return nil
}

// collector takes whatever it is sent, and counts it.
func (b *bench) collector(requests, size *atomic.Int64) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		requests.Add(1)
		size.Add(n)
		w.Header().Set("Content-Type", "application/x-protobuf")
	})}
	go server.Serve(l)
	b.undo = append(b.undo, func() { server.Close() })
	return "http://" + l.Addr().String(), nil
}
