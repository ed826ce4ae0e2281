package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/billing"
	"parley/internal/blob"
	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/catalog"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
	"parley/internal/voice"
)

func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) } // open has the errors counted

// size is how much a world holds.
type size struct {
	nodes    int
	accounts int // with campaigns campaigns each
	parallel int // calls of a campaign at once
	leads    int // of each campaign
	trunks   int
}

const (
	campaigns = 4
	turnEvery = 5 * time.Second // in a call, of either side: each is written into its row
)

func (s size) calls() int { return s.accounts * campaigns * s.parallel }

// world is an installation: a database, its accounts, its nodes, and the telephones that are called.
type world struct {
	testing.TB
	size
	*database
	db     *store.DB
	prices *billing.Prices
	studio *assistant.Studio
	blobs  *blob.Dir
	talk   time.Duration // how long a call lasts on average
	room   int           // for calls, of a node

	mu    sync.Mutex
	nodes []*process // those that were ever started
	truth truth
}

// process is a simulated node.
type process struct {
	*node.Node
	*link
	calls *call.Center
	stop  context.CancelFunc
	done  chan struct{}

	own  sync.Mutex
	held map[int64]bool // the trunks that it is registered with
}

// speech gives every vendor a voice and a recognizer.
type speech struct {
	voice      aitest.Synthesizer
	recognizer aitest.Recognizer
}

func (s *speech) Synthesizer(string) (ai.Synthesizer, error) { return &s.voice, nil }
func (s *speech) Recognizer(string) (ai.Recognizer, error)   { return &s.recognizer, nil }
func (s *speech) Realtime(_, model string) (ai.RealtimeModel, error) {
	return nil, ai.NotConfigured("realtime model", model, "it is not")
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// open makes a world without nodes. It must be called in a bubble of synctest.
func open(t testing.TB, s size, c costs, h hardware) *world {
	t.Helper()
	o := storetest.Options(t, "sqlite")
	o.Watch = recorder{}
	w := fill(t, o, s)
	w.database = newDatabase(c, h)
	slog.SetDefault(slog.New(errorLog{&w.truth}))
	t.Cleanup(func() { slog.SetDefault(slog.New(slog.DiscardHandler)) })
	return w
}

// fill makes what a world's database holds.
func fill(t testing.TB, o store.Options, s size) *world {
	t.Helper()
	db, err := store.Open(t.Context(), o)
	w := &world{TB: t, size: s, db: db, talk: 240 * time.Second, room: 1000}
	w.must(err)
	t.Cleanup(func() { db.Close() })
	w.truth.init()
	w.truth.leads, w.truth.parallel = s.leads, s.parallel
	w.furnish()
	for i := range s.accounts {
		w.account(i)
	}
	for i := range s.trunks {
		storetest.Exec(t, o, fmt.Sprintf(`INSERT INTO numbers (user_id, phone_number, country_code, type, created_at)
			VALUES (1, '+4930%d', 'DE', 'sip', 1)`, 10_000+i))
	}
	storetest.Exec(t, o, `INSERT INTO trunks (user_id, phone_number_id, name, sip_address, sip_username, transport, srtp, register,
		inbound_authorization_type, allowed_inbound_ips, created_at, updated_at)
		SELECT 1, id, '', '', '', 'udp', '', TRUE, '', '[]', 1, 1 FROM numbers WHERE type = 'sip'`)
	// more than the API allows: fewer campaigns are simulated sooner
	storetest.Exec(t, o, "UPDATE campaigns SET max_calls_in_parallel = "+fmt.Sprint(s.parallel))
	holders, err := db.TrunkHolders(t.Context())
	w.must(err)
	for _, h := range holders {
		w.truth.trunks = append(w.truth.trunks, h.TrunkID)
	}
	return w
}

func num(n int64) json.Number { return json.Number(fmt.Sprint(n)) }

// furnish makes what the nodes share.
func (w *world) furnish() {
	w.Helper()
	t := w.TB
	vendor := &openai.Settings{BaseURL: "http://127.0.0.1:9", Stall: 10 * time.Second}
	providers, err := provider.Open(provider.All(openai.Declare(vendor)))
	w.must(err)
	t.Cleanup(providers.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", ChatModel: []string{"thinker"}})))
	w.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
	rows, err := w.db.Models(t.Context())
	w.must(err)
	w.must(cat.SetModels(rows))
	w.prices, err = billing.ReadPrices("")
	w.must(err)
	plan := w.prices.Plans["default"]
	plan.ParallelCalls = campaigns * w.parallel
	w.prices.Plans["default"] = plan
	w.blobs, err = blob.OpenDir(t.TempDir())
	w.must(err)
	w.studio = &assistant.Studio{DB: w.db, Catalog: cat, Providers: providers, Tools: tool.New(guard)}
}

func (w *world) write(fn func(context.Context, *store.Tx) error) {
	w.Helper()
	w.must(w.db.Write(context.Background(), fn))
}

// account makes a user with running campaigns.
func (w *world) account(i int) {
	w.Helper()
	ctx := context.Background()
	u := storetest.User(w, w.db, 100_000*parley.USD)
	n := &parley.Number{PhoneNumber: fmt.Sprintf("+1202555%04d", i), CountryCode: "US", Type: parley.NumberNormal,
		PaidUntil: parley.Now().Add(1000 * time.Hour)}
	w.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, u.ID, n) })
	cat := w.studio.Catalog
	a, err := w.studio.Create(ctx, u.ID, map[string]any{"name": "Anna", "type": "outbound", "mode": "pipeline", "status": "active",
		"timezone": "UTC", "voice_id": num(int64(cat.Voices("pipeline", 1)[0].ID)), "language_id": num(1),
		"llm_model_id":  num(int64(cat.ModelsOf(parley.LLM)[0].ID)),
		"system_prompt": "Be kind.", "initial_message": "Hello.", "phone_number_id": num(int64(n.ID))})
	w.must(err)
	roster := campaign.New(campaign.Config{DB: w.db, Prices: w.prices, Blobs: w.blobs})
	for k := range campaigns {
		c, err := roster.Create(ctx, u, map[string]any{"name": "Spring", "assistant_id": num(int64(a.ID)), "timezone": "UTC",
			"allowed_hours_start_time": "00:00", "allowed_hours_end_time": "23:59", "max_retries": num(1)})
		w.must(err)
		list := make([]*parley.Lead, w.leads)
		for j := range list {
			n := (i*campaigns+k)*w.leads + j
			list[j] = &parley.Lead{PhoneNumber: phone(n)}
		}
		w.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddLeads(ctx, u.ID, c.ID, list, false)
			return err
		})
		_, err = roster.Begin(ctx, u.ID, c.ID)
		w.must(err)
	}
}

// phone is the number of the n-th lead.
func phone(n int) string {
	return fmt.Sprintf("+1415%07d", 2_000_000+n)
}

// lead is which lead has a number.
func lead(phone string) (n int) {
	fmt.Sscan(phone[5:], &n)
	return n - 2_000_000
}

// begin starts a node.
func (w *world) begin() *process {
	w.Helper()
	l := w.link()
	return w.process(l, w.db.Share(l))
}

// process starts a node on a database.
func (w *world) process(l *link, db *store.DB) *process {
	w.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{link: l, stop: stop, done: make(chan struct{}), held: map[int64]bool{}}
	p.Node = node.New(node.Config{DB: db, Roles: []string{parley.RoleAPI, parley.RoleCalls}, Version: "v1"})
	where, err := call.ParseDestinations([]string{"US"})
	w.must(err)
	studio := &assistant.Studio{DB: db, Catalog: w.studio.Catalog, Providers: w.studio.Providers, Tools: w.studio.Tools}
	roster := campaign.New(campaign.Config{DB: db, Node: p.ID, Prices: w.prices, Blobs: w.blobs})
	p.calls = call.New(call.Config{DB: db, Node: p.ID, Assistants: studio, Speech: &speech{}, Prices: w.prices, Hub: event.NewHub(),
		Blobs: w.blobs,
		Dir:   w.TempDir(), BaseURL: "https://voice.example.com", Secret: storetest.Secret, Taken: true, Destinations: where,
		Dial: func(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
			return w.ring(ctx, p, r, ringing)
		},
		Converse: func(ctx context.Context, _ *voice.Session, at audio.Leg) voice.Result {
			return w.converse(ctx, p, at.(*leg))
		},
		Unanswered: []call.Unanswered{roster.Unanswered}, Finished: []call.Finished{roster.Finished}, Describe: []call.Describe{roster.Describe},
		Ended: []func(*parley.Call){func(c *parley.Call) { w.truth.over(c); roster.Wake(c.UserID) }}})
	runner := &campaign.Runner{Roster: roster, Poll: p.Turn, Room: func() int { return w.room - p.calls.Stats().Live },
		Start: func(ctx context.Context, o call.Order) (*parley.Call, error) { return w.start(ctx, p, o) }}
	var loops sync.WaitGroup
	loops.Go(func() {
		w.truth.failure("be a node", p.Run(ctx, node.Work{Live: func() int { return p.calls.Stats().Live }, Registered: p.registered,
			Changed: func() { p.register(w.truth.trunks) }}))
	})
	loops.Go(func() { w.truth.failure("look after calls", p.calls.Run(ctx)) })
	loops.Go(func() { w.truth.failure("run campaigns", runner.Run(ctx)) })
	go func() { loops.Wait(); close(p.done) }()
	w.mu.Lock()
	w.nodes = append(w.nodes, p)
	w.mu.Unlock()
	return p
}

func (p *process) registered(id int64) bool {
	p.own.Lock()
	defer p.own.Unlock()
	return p.held[id]
}

// register has a node register with the trunks that it is to hold, and with no others.
func (p *process) register(trunks []int64) {
	held := map[int64]bool{}
	for _, id := range trunks {
		if p.Holds(id) {
			held[id] = true
		}
	}
	p.own.Lock()
	defer p.own.Unlock()
	p.held = held
}

// kill has a node fall silent for ever, and its calls with it.
func (w *world) kill(p *process) {
	w.truth.killed(p)
	if p.link != nil {
		w.truth.disturb()
		p.set(refused)
	}
	p.stop()
	gone, cut := context.WithCancel(context.Background())
	cut()
	p.calls.Stop(gone)
	<-p.done
}

// alive are the nodes that were not killed.
func (w *world) alive() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.nodes), w.truth.away)
}

// close ends all nodes.
func (w *world) close() {
	var all sync.WaitGroup
	for _, p := range w.alive() {
		all.Go(func() { w.kill(p) })
	}
	all.Wait()
}

// start makes a call as the program does, and notes how long that takes.
func (w *world) start(ctx context.Context, p *process, o call.Order) (*parley.Call, error) {
	began := time.Now()
	c, err := p.calls.Start(ctx, o)
	w.truth.started(time.Since(began), err)
	return c, err
}

// leg is the far end of a call.
type leg struct {
	to    string
	lasts time.Duration
}

func (*leg) Rate() audio.Rate                            { return audio.Narrow }
func (*leg) Dial(string) error                           { return nil }
func (*leg) Hangup()                                     {}
func (*leg) Run(ctx context.Context, _ audio.Peer) error { <-ctx.Done(); return context.Cause(ctx) }

// chance is a number from 0 to 1 that belongs to a telephone number.
func chance(to, of string) float64 {
	h := fnv.New32a()
	h.Write([]byte(of + to + of))
	return float64(h.Sum32()*2654435761>>8) / (1 << 24)
}

// ring is the telephone network: three of four take the call after some seconds.
func (w *world) ring(ctx context.Context, p *process, r call.Route, ringing func()) (audio.Leg, error) {
	w.truth.dialled(p, r.To)
	ringing()
	takes := chance(r.To, "takes") < 0.75
	wait := time.Duration(2+8*chance(r.To, "rings")) * time.Second
	if !takes {
		wait = 20 * time.Second
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		w.truth.hungUp(p, r.To)
		return nil, context.Cause(ctx)
	}
	if !takes {
		w.truth.hungUp(p, r.To)
		return nil, parley.NoAnswer
	}
	return &leg{to: r.To, lasts: time.Duration((0.2 + 1.6*chance(r.To, "talks")) * float64(w.talk))}, nil
}

// converse is a conversation. The writes of its turns are charged to the database, not performed.
func (w *world) converse(ctx context.Context, p *process, l *leg) (r voice.Result) {
	r.Reason = parley.CustomerHangup
	end := time.Now().Add(l.lasts)
	for left := l.lasts; left > 0; left = time.Until(end) {
		select {
		case <-time.After(min(left, turnEvery)):
			if p.link == nil { // a real database: what it costs is measured apart
				continue
			}
			if p.reach(ctx) == nil {
				time.Sleep(w.serve([]string{"KeepCall"}, nil, true))
				p.leave()
			}
		case <-ctx.Done():
			r.Reason, _ = context.Cause(ctx).(parley.EndedReason)
			w.truth.hungUp(p, l.to)
			return r
		}
	}
	w.truth.hungUp(p, l.to)
	return r
}
