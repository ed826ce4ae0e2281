package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"parley"
	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/catalog"
	"parley/internal/channel"
	"parley/internal/channel/sms"
	"parley/internal/channel/whatsapp"
	"parley/internal/chat"
	"parley/internal/console"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/knowledge"
	"parley/internal/number"
	"parley/internal/provider"
	"parley/internal/store"
	"parley/internal/tool"
	"parley/internal/web"
)

type serveCmd struct{}

// Run serves until a signal. It starts what others need first, and stops in the opposite order: it stops taking work, then stops doing
// it.
func (c *serveCmd) Run(s *Settings, t *terminal) (err error) {
	prices, err := s.prices()
	if err != nil {
		return err
	}
	db, err := s.openIn(t, bootWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	providers, err := provider.Open(s.vendors)
	if err != nil {
		return err
	}
	defer providers.Close()
	wall := egress.New(s.EgressAllow...)
	wall.Own(s.ExternalIP)
	defer wall.Close()
	tools := tool.New(wall)
	cat := catalog.New(s.PublicURL, s.vendors)
	if err := keepModels(t, db, cat); err != nil {
		return err
	}
	desk := &auth.Desk{DB: db, SessionFor: s.SessionFor, Logins: auth.NewLogins(s.RateLogin)}
	documents, err := s.knowledge(db, providers, wall)
	if err != nil {
		return err
	}
	assistants := &assistant.Desk{DB: db, Catalog: cat, Providers: providers, Tools: tools, Knowledge: documents}
	db.WarnBelow(prices.LowBalance)
	db.PlansAre(prices.Plan)
	budget, err := s.publicBudget()
	if err != nil {
		return err
	}
	db.LimitPublic(budget)
	webhooks := event.NewSender(db, wall)
	hub := event.NewHub()
	calls, err := s.calls(db, assistants, providers, prices, hub, webhooks, documents.Blobs)
	if err != nil {
		return err
	}
	limits := channel.Limits{Allow: calls.Destinations.Allow, DailySpend: calls.DailySpend}
	carrier := s.carrier(db)
	defer carrier.close()
	var open channels // each is told of replies, and gives what comes in to the conversations
	conversations := chat.New(chat.Config{DB: db, Assistants: assistants, Prices: prices, Hub: hub, Replied: []chat.Replied{open.Replied}})
	open, err = s.openChannels(channel.House{DB: db, Prices: prices, Limits: limits, Carrier: carrier.Carrier, Sandbox: carrier.sandbox, Chat: conversations})
	if err != nil {
		return err
	}
	defer open.Close()
	texts, messenger := the[*sms.Channel](open), the[*whatsapp.Channel](open)
	numbers := &number.Desk{DB: db, Carrier: carrier.Carrier, Prices: prices, Limits: limits}
	if os.Getenv("GOGC") == "" { // it decides where it is set
		slacken(func() int { return calls.Stats().Live })
	}
	phone, err := s.telephone(db, calls, numbers, carrier.sandbox, providers, wall)
	if err != nil {
		return err
	}
	campaigns := campaigns(db, prices, hub, calls, phone)
	browsers, err := s.browsers()
	if err != nil {
		return err
	}
	if browsers != nil {
		defer browsers.Close()
	}
	jobs := river.NewWorkers()
	numbers.AddWorkers(jobs)
	open.AddWorkers(jobs)
	documents.Register(jobs)
	calls.AddWorkers(jobs)

	// The socket is open before anything is announced: an address that is taken is the commonest failure.
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s (choose another with --listen or PARLEY_LISTEN): %w", s.Listen, err)
	}
	defer l.Close()
	l = s.front().Listen(l, s.ConnectionsPerAddress)
	calls.BaseURL = s.urlOf(l.Addr())
	if err := firstStart(t, s, db, desk, assistants, phone, l.Addr()); err != nil {
		return err
	}

	rates := api.Rates{API: s.RateAPI, Create: s.RateCreate, Message: s.RateMessage, Reply: s.RateReply, WhatsApp: s.RateWhatsApp}
	if s.RatePublic == "off" {
		rates.Create, rates.Message = auth.Rate{}, auth.Rate{}
	}
	front, streams := s.front(), auth.NewSlots(s.StreamsPerAddress)
	house := api.New(api.Config{DB: db, Auth: desk, Catalog: cat, Assistants: assistants, Prices: prices, Chat: conversations, Calls: calls, Campaigns: campaigns, Browsers: browsers, Numbers: numbers, SMS: texts, WhatsApp: messenger, Knowledge: documents, Previews: s.previews(cat, providers, documents.Blobs), Hub: hub, Tools: tools,
		Front: front, Signup: s.Signup == "on", Rates: rates, Streams: streams})
	look := console.Config{DB: db, Auth: desk, Catalog: cat, Assistants: assistants, Prices: prices, Chat: conversations, Calls: calls, Campaigns: campaigns, Hub: hub, Numbers: numbers, SMS: texts, WhatsApp: messenger, Knowledge: documents,
		Front: front, Create: rates.Create, Message: rates.Message, Streams: streams}
	if browsers != nil {
		look.Answer, look.Hangup = house.AnswerBrowser, browsers.Hangup
	}
	pages := console.New(look)
	var ready atomic.Bool // jobs are worked
	guard := &web.Guard{Handler: s.root(db, house, pages, carrier.webhooks(texts), calls, &ready)}
	srv := &http.Server{
		Handler:           guard,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), // peers' broken handshakes
	}
	srv.RegisterOnShutdown(pages.Stop)
	srv.RegisterOnShutdown(guard.Stop)
	served := make(chan error, 1)
	go func() {
		if s.TLSCert != "" {
			served <- srv.ServeTLS(l, s.TLSCert, s.TLSKey)
		} else {
			served <- srv.Serve(l)
		}
	}()
	working, stopWorking := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	workers.Go(func() { s.sweep(working, db) })
	workers.Go(func() { conversations.Run(working) })
	workers.Go(func() { documents.Run(working) })
	workers.Go(func() { s.forgetCalls(working, calls) })
	workers.Go(func() { campaigns.Run(working) })
	calling, stopCalling := context.WithCancel(context.Background()) // longer: live calls go on while the server drains
	var talking sync.WaitGroup
	talking.Go(func() { phone.Run(calling) })
	talking.Go(func() { calls.Run(calling) })
	delivering, stopDelivering := context.WithCancel(context.Background()) // longer: what ends while the server stops is told too
	workers.Go(func() { webhooks.Run(delivering) })
	jobbing, stopJobs := context.WithCancel(context.Background())
	soft, cutJobs := context.WithCancel(context.Background())
	defer cutJobs()
	workers.Go(func() {
		todo := store.Jobs{Workers: jobs, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 20}, knowledge.Queue: {MaxWorkers: knowledge.Readers}},
			Periodic: append(number.Periodic(), open.Periodic()...), Started: func() { ready.Store(true) }}
		for err := db.Work(jobbing, soft, todo); err != nil; err = db.Work(jobbing, soft, todo) {
			ready.Store(false)
			slog.Error("job workers are not running", "error", err)
			select {
			case <-jobbing.Done():
				return
			case <-time.After(jobsAgain):
			}
		}
	})
	slog.Info("serving", "build", built(), "url", s.urlOf(l.Addr()), "database", engine(db))

	select {
	case err = <-served: // nobody can come any more: what is under way is cut, in the order in which it would end by itself
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		err = errors.Join(err, drain(cut, stopWorking, house, srv, conversations, phone, calls))
	case <-t.Done():
		slog.Info("stopping: finishing what is under way; a second signal cuts it", "wait", s.Drain)
		wait, cancel := context.WithTimeout(context.Background(), s.Drain)
		go func() {
			select {
			case <-t.Kill:
				cancel()
			case <-wait.Done():
			}
		}()
		err = drain(wait, stopWorking, house, srv, conversations, phone, calls)
		cancel()
	}
	stopWorking()
	stopCalling()
	talking.Wait() // after the calls; what their reports cause is delivered
	stopDelivering()
	stopJobs() // after the requests and replies that cause them
	cut := time.AfterFunc(jobTime, cutJobs)
	defer cut.Stop()
	workers.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// bootWait is how long a start waits for PostgreSQL: the two are often started together.
const bootWait = time.Minute

// jobsAgain is when the working of jobs is begun again that could not begin.
const jobsAgain = 5 * time.Second

// jobTime is how long jobs under way may take when the server stops; what is cut is done by the next start.
const jobTime = 20 * time.Second

// drain stops taking work and waits for what is under way until ctx ends; then that is cut.
func drain(ctx context.Context, stopWorking func(), house *api.API, srv *http.Server, conversations *chat.Chat, phone *telephone, calls *call.Desk) error {
	stopWorking() // nothing is begun that nobody asked for
	house.Stop()  // listeners without an end of their own go to the next server
	phone.Refuse()
	err := srv.Shutdown(ctx)
	calls.Stop(ctx)         // the last one hangs up, or is cut
	conversations.Stop(ctx) // after the requests that wait for replies; a reply without a reader is finished too
	if err != nil {
		return srv.Close()
	}
	return nil
}

// sweep removes what is past its time, every ten minutes.
func (s *Settings) sweep(ctx context.Context, db *store.DB) {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for began := time.Now(); ; {
		if db.SQLite() || time.Since(began) > time.Hour { // else nodes of a former version may still run, and can't read what is sealed
			if err := sealVariables(ctx, db); err != nil && ctx.Err() == nil {
				slog.Error("encrypt the variables of assistants", "error", err)
			}
		}
		if err := s.forget(ctx, db); err != nil && ctx.Err() == nil {
			slog.Error("remove what has expired", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sealVariables encrypts what a former version stored in plain text, a few rows at a time.
func sealVariables(ctx context.Context, db *store.DB) error {
	const few = 100
	for {
		var n int
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.SealVariables(ctx, few)
			return err
		})
		if err != nil || n < few {
			return err
		}
	}
}

// forget removes what is past its time now.
func (s *Settings) forget(ctx context.Context, db *store.DB) error {
	now := parley.Now()
	steps := []func(context.Context, *store.Tx) (bool, error){
		func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.Expire(ctx, now) },
	}
	if s.KeepConversations > 0 {
		before := now.Add(-time.Duration(s.KeepConversations) * 24 * time.Hour)
		steps = append(steps,
			func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ForgetConversations(ctx, before) },
			func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ForgetSMS(ctx, before) })
	}
	for _, step := range steps {
		if err := db.InSteps(ctx, step); err != nil {
			return err
		}
	}
	return event.Forget(ctx, db)
}

func engine(db *store.DB) string {
	if db.SQLite() {
		return "sqlite"
	}
	return "postgres"
}
