package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/campaign"
	"parley/internal/cert"
	"parley/internal/crash"
	"parley/internal/knowledge"
	"parley/internal/node"
	"parley/internal/number"
	"parley/internal/store"
	"parley/internal/web"
)

// loops are goroutines that end with their context. If one ends earlier with an error, that is logged, and the others
// go on.
type loops struct {
	sync.WaitGroup
	ctx  context.Context
	stop context.CancelFunc
}

func newLoops() *loops {
	ctx, stop := context.WithCancel(context.Background())
	return &loops{ctx: ctx, stop: stop}
}

func (l *loops) run(name string, fn func(ctx context.Context) error) {
	l.Go(func() {
		if err := crash.Loop(l.ctx, name, func() error { return fn(l.ctx) }); err != nil {
			slog.Error(name+" stopped working", "error", err)
		}
	})
}

// serve works until a signal, and takes everything to its end.
func (h *server) serve(t *terminal) (err error) {
	served := make(chan error, 1)
	go func() {
		if h.TLSCert == "" {
			served <- h.http.Serve(h.at)
			return
		}
		files, err := cert.Open(h.TLSCert, h.TLSKey)
		if err != nil {
			served <- err
			return
		}
		turn := func(c net.Conn) { c.Close() }
		if h.browsers != nil {
			turn = h.browsers.Relay
		}
		served <- web.NewApart(h.at, files.Server(), turn).Serve(h.http)
	}()
	working, talking, telling, jobs := newLoops(), newLoops(), newLoops(), newLoops()
	working.run("the sweep", h.sweep)
	working.run("the providers' keys", h.keys.Run)
	working.run("conversations", h.conversations.Run)
	working.run("documents", h.documents.Run)
	working.run("tests of assistants", h.exams.Run)
	working.run("analytics", h.count)
	working.run("alerts", h.alerts.Run)
	working.run("the search in transcripts", h.index)
	if h.phone.calls() { // else another process calls
		working.run("campaigns", h.caller().Run)
	}
	// longer: live calls go on while the server drains
	talking.run("the telephone", func(ctx context.Context) error { return h.phone.Run(ctx, h.calls.Incoming) })
	talking.run("calls", h.calls.Run)
	talking.run("the pace of sound", h.pace.Run)
	talking.run("this node", func(ctx context.Context) error {
		return h.node.Run(ctx,
			node.Work{Live: func() int { return h.calls.Stats().Live }, Registered: h.phone.registered, Changed: h.phone.Refresh})
	})
	telling.run("webhooks", h.webhooks.Run) // longer: what ends while the server stops is told too
	soft, cutJobs := context.WithCancel(context.Background())
	defer cutJobs()
	jobs.run("jobs", func(ctx context.Context) error { return h.work(ctx, soft) })
	slog.Info("serving", "build", built(), "url", h.urlOf(h.at.Addr()), "database", engine(h.db))

	select {
	case err = <-served: // nobody can come any more: what is under way is cut, in the order in which it would end by itself
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		err = errors.Join(err, h.drain(cut, working.stop))
	case <-t.Done():
		slog.Info("stopping: finishing what is in progress; a second signal stops at once", "wait", h.Drain)
		wait, cancel := context.WithTimeout(context.Background(), h.Drain)
		go func() {
			select {
			case <-t.Kill:
				cancel()
			case <-wait.Done():
			}
		}()
		err = h.drain(wait, working.stop)
		cancel()
	}
	working.stop()
	talking.stop()
	talking.Wait() // after the calls; what their reports cause is delivered
	telling.stop()
	jobs.stop() // after the requests and replies that cause them
	cut := time.AfterFunc(jobTime, cutJobs)
	defer cut.Stop()
	for _, l := range []*loops{working, telling, jobs} {
		l.Wait()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// work works the jobs until ctx ends; those under way until soft does. It begins again where it could not begin.
func (h *server) work(ctx, soft context.Context) error {
	jobs := river.NewWorkers()
	h.numbers.AddWorkers(jobs)
	h.channels.AddWorkers(jobs)
	h.documents.Register(jobs)
	h.calls.AddWorkers(jobs)
	h.campaigns.AddWorkers(jobs)
	h.mail.AddWorkers(jobs, h.db)
	h.payments.AddWorkers(jobs)
	todo := store.Jobs{Node: h.node.ID, Workers: jobs, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 20},
		knowledge.Queue: {MaxWorkers: knowledge.Readers}, campaign.Queue: {MaxWorkers: campaign.Importers}},
		Periodic: slices.Concat(number.Periodic(), h.channels.Periodic(), h.payments.Periodic(), h.campaigns.Periodic()),
		Started:  func() { h.ready.Store(true) }}
	for {
		err := h.db.Work(ctx, soft, todo)
		if err == nil {
			return nil
		}
		h.ready.Store(false)
		slog.Error("job workers are not running", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jobsAgain):
		}
	}
}

// bootWait is how long a start waits for PostgreSQL: the two are often started together.
const bootWait = time.Minute

// jobsAgain is when the working of jobs is begun again that could not begin.
const jobsAgain = 5 * time.Second

// jobTime is how long jobs under way may take when the server stops; what is cut is done by the next start.
const jobTime = 20 * time.Second

// drain stops taking work and waits for what is under way until ctx ends; then that is cut.
func (h *server) drain(ctx context.Context, stopWorking func()) error {
	h.node.Leave()
	stopWorking() // nothing is begun that nobody asked for
	h.api.Stop()  // listeners without an end of their own go to the next server
	h.phone.Refuse()
	err := h.http.Shutdown(ctx)
	h.calls.Stop(ctx)         // the last one hangs up, or is cut
	h.conversations.Stop(ctx) // after the requests that wait for replies; a reply without a reader is finished too
	if err != nil {
		return h.http.Close()
	}
	return nil
}
