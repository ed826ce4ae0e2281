package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"parley/docs"
	"parley/internal/alert"
	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/catalog"
	"parley/internal/channel"
	"parley/internal/channel/sms"
	"parley/internal/channel/whatsapp"
	"parley/internal/chat"
	"parley/internal/console"
	"parley/internal/detector"
	"parley/internal/egress"
	"parley/internal/endpoint"
	"parley/internal/event"
	"parley/internal/exam"
	"parley/internal/keyring"
	"parley/internal/knowledge"
	"parley/internal/limit"
	"parley/internal/mail"
	"parley/internal/mcpserver"
	"parley/internal/node"
	"parley/internal/number"
	"parley/internal/oauth"
	"parley/internal/oidc"
	"parley/internal/parley"
	"parley/internal/payment"
	"parley/internal/provider"
	"parley/internal/rtc"
	"parley/internal/rtp"
	"parley/internal/setup"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/telemetry"
	"parley/internal/tool"
	"parley/internal/web"
)

type serveCmd struct{}

// server is the program at work. Its parts are opened in the order in which one needs the other, and closed in the
// opposite one.
type server struct {
	*Settings
	closers []func() error

	// What assistants think and know with.
	db         *store.DB
	node       *node.Node // this process among those on the same database
	prices     *billing.Prices
	keys       *keyring.Ring // of vendors: what it opens with them is catalog and providers
	providers  *provider.Set
	guard      *egress.Guard // of the way out
	tools      *tool.Runner
	catalog    *catalog.Catalog
	auth       *auth.Authority
	secret     []byte             // signs what the server hands out and takes back
	judge      *detector.Detector // nil: assistants judge by themselves when a customer has finished
	issuer     *oidc.Issuer       // nil: nobody signs in by OpenID Connect
	payments   *payment.Till      // nil: nobody pays by card
	mail       *mail.Sender
	documents  *knowledge.Library
	endpoints  *endpoint.Book // of accounts' own
	assistants *assistant.Studio
	webhooks   *event.Sender
	hub        *event.Hub
	gate       *limit.Gate // what accounts do at once

	// What they talk over.
	at            net.Listener // the socket of HTTP
	pace          *rtp.Pace    // of the sound of all calls; nil: nobody measures
	carrier       renter
	channels      channels // each is told of replies, and gives what comes in to the conversations
	conversations *chat.Chat
	phone         *telephone
	campaigns     *campaign.Roster
	calls         *call.Center
	numbers       *number.Pool
	exams         *exam.Desk
	alerts        *alert.Watch
	browsers      *rtc.Server // nil: none can call

	// What users meet.
	api     *api.API
	http    *http.Server
	metrics *meters
	ready   atomic.Bool // jobs are worked
}

// Run serves until a signal. It starts what others need first, and stops in the opposite order: it stops taking work,
// then stops doing it.
func (c *serveCmd) Run(s *Settings, t *terminal) (err error) {
	if err := s.prefixed(); err != nil {
		return err
	}
	h := &server{Settings: s}
	defer func() {
		for _, closer := range slices.Backward(h.closers) {
			err = errors.Join(err, closer())
		}
	}()
	if err := h.open(t); err != nil {
		if t.Err() != nil { // half a migration, a database that is waited for: the next start goes on from there
			slog.Info("stopped before it served", "in", err)
			return nil
		}
		return err
	}
	return h.serve(t)
}

// open opens everything, in the order in which one part needs the other.
func (h *server) open(t *terminal) error {
	s := h.Settings
	info, _ := debug.ReadBuildInfo()
	sent, err := telemetry.Open(t, release(version, info))
	if err != nil {
		return err
	}
	h.closers = append(h.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
		defer cancel()
		return sent(ctx)
	})
	if err := h.openAssistants(t); err != nil {
		return err
	}
	if err := h.openLines(); err != nil {
		return err
	}
	if err := firstStart(t, s, h.db, h.auth, h.assistants, h.phone, h.at.Addr()); err != nil {
		return err
	}
	h.openFaces()
	if own, err := s.openMetrics(h.metrics.handler()); err != nil {
		return err
	} else if own != nil {
		h.closers = append(h.closers, own.Close)
	}
	if os.Getenv("GOGC") == "" { // it decides where it is set
		h.closing(slacken(func() int { return h.calls.Stats().Live }))
	}
	return nil
}

// lastTraces is how long a stop waits for the collector of traces.
const lastTraces = 5 * time.Second

// closing has something closed in the end.
func (h *server) closing(fn func()) {
	h.closers = append(h.closers, func() error { fn(); return nil })
}

// openAssistants opens what assistants think and know with.
func (h *server) openAssistants(t *terminal) (err error) {
	s := h.Settings
	if h.prices, err = s.prices(); err != nil {
		return err
	}
	budget, err := s.publicBudget()
	if err != nil {
		return err
	}
	h.gate = limit.New(h.prices.Plan, s.RateAPI)
	if err := h.occupy(); err != nil {
		return err
	}
	rules := store.Rules{LowBalance: h.prices.LowBalance, PublicBudget: budget, Plan: h.prices.Plan}
	if h.db, err = s.openUnder(t, rules, bootWait); err != nil {
		return err
	}
	h.closers = append(h.closers, h.db.Close)
	info, _ := debug.ReadBuildInfo()
	h.node = node.New(node.Config{DB: h.db, Roles: s.Roles, Version: release(version, info)})
	if err := h.node.Follow(t); err != nil {
		return err
	}
	if h.keys, err = keyring.Open(t, h.db, s.vendors, s.PublicURL, s.entered.hide); err != nil {
		return err
	}
	h.closing(h.keys.Close)
	h.catalog, h.providers = h.keys.Catalog, h.keys.Providers
	if h.mail, err = mail.Open(s.SMTPURL, s.SMTPFrom); err != nil {
		return err
	}
	h.guard = egress.New([]netip.Addr{s.ExternalIP}, s.EgressAllow...)
	h.closing(h.guard.Close)
	if h.documents, err = s.knowledge(h.db, h.providers, h.guard); err != nil {
		return err
	}
	h.tools, h.hub, h.webhooks = tool.New(h.guard), event.NewHub(), event.NewSender(h.db, h.guard)
	h.closing(h.tools.Close)
	if h.issuer, err = s.issuer(h.db, h.guard); err != nil {
		return err
	}
	if h.payments, err = s.payments(h.db); err != nil {
		return err
	}
	h.closing(h.payments.Close)
	h.auth = &auth.Authority{DB: h.db, SessionFor: s.SessionFor, Logins: auth.NewLogins(s.RateLogin),
		Mail: h.mail, Invites: auth.NewLimiter(auth.Rate{PerSecond: 20.0 / 3600, Burst: 20})}
	h.endpoints = endpoint.New(h.db, h.guard, h.providers, s.UserEndpoints, s.entered.hide)
	h.closing(h.endpoints.Close)
	h.assistants = &assistant.Studio{DB: h.db, Catalog: h.catalog, Providers: h.providers, Tools: h.tools, Endpoints: h.endpoints,
		Knowledge: h.documents, Stages: stage.New(),
		Fallback: assistant.Fallback{Models: s.FallbackModels, ModelAfter: s.FallbackModelAfter,
			Voices: s.FallbackVoices, VoiceAfter: s.FallbackVoiceAfter,
			Transcribers: s.FallbackTranscribers, TranscriberAfter: s.FallbackTranscriberAfter}}
	return h.checkFallback()
}

// checkFallback refuses to start with a fallback that can't be; one that lacks a key alone, which may be entered while
// the server runs, is left out.
func (h *server) checkFallback() error {
	err := h.assistants.Fallback.Check(h.catalog.For(0))
	if err == nil || h.assistants.Fallback.Check(h.keys.Possible()) != nil {
		return err
	}
	slog.Warn("a fallback is left out until its provider has a key", "error", err)
	return nil
}

// openLines opens what assistants talk over: the socket of HTTP, channels, telephone, browsers. The socket is open
// before anything is announced: an address that is taken is the commonest failure.
func (h *server) openLines() (err error) {
	s := h.Settings
	if h.at, err = listen(s.Listen); err != nil {
		return err
	}
	h.closing(func() { h.at.Close() })
	h.at = s.front().Listen(h.at, s.ConnectionsPerAddress)
	destinations, spend, err := s.limits()
	if err != nil {
		return err
	}
	limits := channel.Limits{Allow: destinations.Allow, DailySpend: spend}

	h.carrier = s.carrier(h.db)
	h.closing(h.carrier.close)
	h.conversations = chat.New(chat.Config{DB: h.db, Node: h.node.ID, Assistants: h.assistants, Prices: h.prices, Hub: h.hub,
		Quiet: chat.Quiet,
		Channels: func(c *chat.Chat) []chat.Replied {
			h.channels, err = s.openChannels(channel.House{DB: h.db, Prices: h.prices, Limits: limits,
				Carrier: h.carrier.Carrier, Sandbox: h.carrier.sandbox, Chat: c})
			return h.channels.replied()
		}})
	if err != nil {
		return err
	}
	h.closing(h.channels.Close)
	h.pace = rtp.NewPace(s.MaxLate)
	if h.phone, err = s.telephone(h.db, h.node, h.carrier.sandbox, h.providers, h.guard, h.pace); err != nil {
		return err
	}
	h.closing(h.phone.close)
	if !h.phone.calls() {
		h.node.Without(parley.RoleCalls)
	}
	h.node.Handle(checkTrunk, h.phone.answerCheck)
	h.numbers = number.New(number.Config{DB: h.db, Carrier: h.carrier.Carrier, Prices: h.prices, Limits: limits,
		Trunks: h.phone.rules, Proof: s.NumberProof == "on", Place: h.phone.place,
		TrunksChanged: h.phone.Refresh})
	h.campaigns = campaign.New(campaign.Config{DB: h.db, Node: h.node.ID, Prices: h.prices, Blobs: h.documents.Blobs, Hub: h.hub,
		Allow: destinations.Allow, Mail: h.mail, URL: s.urlOf(h.at.Addr())})
	secret, err := s.secret()
	if err != nil {
		return err
	}
	h.secret = secret[:]
	if h.browsers, err = s.browsers(h.pace); err != nil {
		return err
	}
	if h.judge, err = detector.Open(s.TurnDetectorURL, s.TurnDetectorKey); err != nil {
		return err
	}
	if h.browsers != nil {
		h.closing(func() { h.browsers.Close() })
	}
	config := call.Config{DB: h.db, Node: h.node.ID, Assistants: h.assistants, Taken: !h.db.SQLite() && h.phone.calls(),
		Prices: h.prices, Hub: h.hub,
		Webhooks: h.webhooks, Blobs: h.documents.Blobs, Dir: filepath.Join(s.Data, "recordings"),
		BaseURL: s.urlOf(h.at.Addr()), Secret: secret,
		Dial: h.phone.dial, Line: h.phone.check(), Destinations: destinations,
		Connect:     connector(h.browsers),
		Behind:      h.pace.Behind,
		MayAttend:   func(ctx context.Context, key int64) (bool, error) { return h.auth.Stands(ctx, key, parley.RoleAgent) },
		NumberProof: s.NumberProof == "on", Verified: s.TrunkCallerID == "verified", DailySpend: spend, Gate: h.gate,
		Speculate: s.ThinkAhead == "on"}
	if !h.db.SQLite() && !h.phone.calls() {
		config.Elsewhere = func() (string, error) { return h.node.Pick(parley.RoleCalls) }
	}
	if h.judge != nil {
		h.closing(h.judge.Close)
		config.Judge = h.judge.Over
	}
	h.calls = call.New(told(h.campaigns, config))
	h.metrics = newMetrics(h.calls, h.pace, h.judge)
	h.metrics.watchDatabase(h.db)
	return nil
}

// openFaces opens what users meet: the API, the console, and the server of both.
func (h *server) openFaces() {
	s := h.Settings
	rates := api.Rates{API: s.RateAPI, Create: s.RateCreate, Message: s.RateMessage, Reply: s.RateReply,
		WhatsApp: s.RateWhatsApp}
	if s.RatePublic == "off" {
		rates.Create, rates.Message = auth.Rate{}, auth.Rate{}
	}
	h.exams = exam.New(exam.Config{DB: h.db, Node: h.node.ID, Assistants: h.assistants, Hub: h.hub, Line: h.phone.at(s),
		Synthesize: new(callerVoices).say,
		// the API has the tests and is made after them; nothing is performed before the server runs
		Ask: func(userID int64) http.RoundTripper { return h.api.As(userID) }})
	h.alerts = alert.New(h.db, h.mail, s.urlOf(h.at.Addr()))
	front, streams := s.front(), auth.NewSlots(s.StreamsPerAddress)
	texts, messenger := the[*sms.Channel](h.channels), the[*whatsapp.Channel](h.channels)
	state := &setup.Setup{Keys: h.keys, Assistants: h.assistants, Server: h.serverChecks()}
	h.api = api.New(api.Config{DB: h.db, Auth: h.auth, Catalog: h.catalog, Assistants: h.assistants,
		Prices: h.prices, Chat: h.conversations,
		Calls: h.calls, Campaigns: h.campaigns, Browsers: h.browsers, Node: h.among(), Numbers: h.numbers, SMS: texts,
		WhatsApp: messenger, Knowledge: h.documents,
		Previews: s.previews(h.catalog, h.providers, h.documents.Blobs), Hub: h.hub,
		Keys: h.keys, Setup: state, Exams: h.exams, Alerts: h.alerts, Payments: h.payments, Endpoints: h.endpoints,
		Front: front, Signup: s.Signup == "on", Rates: rates, Streams: streams, Gate: h.gate})
	look := console.Config{DB: h.db, Auth: h.auth, Catalog: h.catalog, Assistants: h.assistants, Prices: h.prices,
		Chat:  h.conversations,
		Calls: h.calls, Campaigns: h.campaigns, Hub: h.hub, Numbers: h.numbers, SMS: texts, WhatsApp: messenger,
		Knowledge: h.documents, Keys: h.keys, Setup: state, Exams: h.exams, Alerts: h.alerts, Payments: h.payments, Endpoints: h.endpoints,
		Issuer: h.issuer, Signup: s.Signup == "on", Front: front, Streams: streams, Gate: h.gate}
	look.Create, look.Message = h.api.Limits()
	h.api.AnswerNodes(h.node)
	if h.browsers != nil {
		look.Answer = h.api.AnswerBrowser
	}
	if h.browsers != nil || h.among() != nil { // another node has the call
		look.Hangup, look.Attend = h.api.HangupBrowser, h.api.Attend
		look.Reconnect, look.Reattend = h.api.ReconnectBrowser, h.api.Reattend
	}
	apps := &oauth.Server{Auth: h.auth, Front: front, Secret: h.secret, Rate: auth.NewLimiter(auth.Rate{PerSecond: 1, Burst: 30})}
	look.Apps = apps
	pages := console.New(look)
	models := mcpserver.New(mcpserver.Config{API: h.api, Front: front, Docs: docs.Files, Version: buildName()})
	guard := &web.Guard{Handler: s.root(h.node.Does(parley.RoleAPI), h.db, h.api, models, apps.Handler(), pages, h.carrier.webhooks(texts),
		h.payments, h.metrics, &h.ready)}
	h.http = &http.Server{
		Handler:           guard,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), // peers' broken handshakes
	}
	h.http.RegisterOnShutdown(pages.Stop)
	h.http.RegisterOnShutdown(models.Stop)
	h.http.RegisterOnShutdown(guard.Stop)
}

// among is this process where others may be beside it, nil where it is alone.
func (h *server) among() *node.Node {
	if h.db.SQLite() {
		return nil
	}
	return h.node
}

func engine(db *store.DB) string {
	if db.SQLite() {
		return "sqlite"
	}
	return "postgres"
}
