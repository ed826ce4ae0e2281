package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/carrier/carriertest"
	"parley/internal/simulator/phone"
	"parley/internal/testenv"
)

// world is the program and all that it has to do with. What the far ends saw stands in their own logs.
type world struct {
	*program
	undo []func()

	model    *aitest.Server
	carrier  *carriertest.Server
	exchange *phone.Phone

	receiver     string // the webhook receiver's address
	receiverAway atomic.Bool

	assistant, caller, number int64 // who chats, who calls, where text messages leave from
	uuid                      string
	documents                 string // path of the knowledgebase's documents
	records                   bool   // whether calls are recorded
	mount                     string // the program's own disk, "" where none could be made

	road     *road  // to PostgreSQL, nil on SQLite
	postgres string // its address without the road

	mu     sync.Mutex
	asked  map[string]bool // marks of messages that the model was asked about
	rung   map[string]int  // by number: how often the exchange was called
	talked map[string]int  // by number: calls that it answered
	told   map[int64]int   // by call: webhooks that came
	unfit  []string        // webhooks that can't be read, or came changed
	bodies map[string]string
}

const secret = "a secret for bad days only"

// generous are plans and limits that no load comes to the end of.
const generous = `plans:
  default: {parallel_calls: 100, assistants: 1000, documents: 1000000, document_mb: 100000, stored_mb: 100000, requests_together: 10000,
    document_readings: 1000000, conversations: 1000000, leads: 1000000}
`

// mark is in every message, so that it is known again.
var mark = regexp.MustCompile(`mark-\d+-`)

// begin makes the far ends, and starts the program with an account. A soak has retention set and records its calls.
func begin(binary string, postgres, soak bool) (w *world, err error) {
	w = &world{program: &program{binary: binary}, records: soak, asked: map[string]bool{}, rung: map[string]int{}, talked: map[string]int{},
		told: map[int64]int{}, bodies: map[string]string{}}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	dir, err := os.MkdirTemp("", "parley-baddays-")
	if err != nil {
		return nil, err
	}
	w.undo = append(w.undo, func() { os.RemoveAll(dir) })
	if w.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	if err := w.farEnds(); err != nil {
		return nil, err
	}
	if !soak {
		w.ownDisk(dir)
	}
	port, release, err := testenv.Reserve(200)
	if err != nil {
		return nil, err
	}
	w.undo = append(w.undo, release)
	prices := filepath.Join(dir, "prices.yaml")
	if err := os.WriteFile(prices, []byte(generous), 0o600); err != nil {
		return nil, err
	}
	w.addr, w.data = fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(dir, "disk", "data")
	w.env = []string{"PARLEY_DATA=" + w.data, "PARLEY_SECRET_KEY=" + secret, "PARLEY_LISTEN=" + w.addr, "PARLEY_PRICES=" + prices,
		fmt.Sprintf("PARLEY_SIP_LISTEN=127.0.0.1:%d", port+1), fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", port+2, port+199),
		"PARLEY_WEBRTC_LISTEN=off", "PARLEY_MAX_LATE=0", "PARLEY_RATE_API=off", "PARLEY_RATE_PUBLIC=off", "PARLEY_PUBLIC_DAILY_SPEND=0",
		"PARLEY_CALL_DAILY_SPEND=0", "PARLEY_CONNECTIONS_PER_ADDRESS=0", "PARLEY_EGRESS_ALLOW=127.0.0.0/8",
		"PARLEY_OPENAI_CHAT_MODEL=" + w.model.Models[0], "PARLEY_TWILIO_ACCOUNT_SID=" + carriertest.AccountSID,
		"PARLEY_TWILIO_AUTH_TOKEN=" + carriertest.AuthToken, "PARLEY_TWILIO_BASE_URL=" + w.carrier.URL,
		"PARLEY_OPENAI_BASE_URL=" + w.logged(w.model.URL)}
	if soak {
		w.env = append(w.env, "PARLEY_KEEP_CONVERSATIONS=1", "PARLEY_KEEP_CALLS=1", "PARLEY_KEEP_RECORDINGS=1", "PARLEY_KEEP_AUDIT=1")
	}
	if postgres {
		if err := w.database(); err != nil {
			return nil, err
		}
	}
	if _, err := w.command("user", "create", "--email", "bad@example.com", "--password", "measured walrus ladder",
		"--balance", "100000"); err != nil {
		return nil, err
	}
	if w.token, err = w.command("key", "create", "--user", "bad@example.com", "--name", "baddays"); err != nil {
		return nil, err
	}
	w.undo = append(w.undo, w.kill)
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, w.furnish()
}

func (w *world) close() {
	for _, fn := range slices.Backward(w.undo) {
		fn()
	}
}

// farEnds starts the model, the carrier, the exchange and the receiver of webhooks.
func (w *world) farEnds() (err error) {
	if w.model, err = aitest.Serve(); err != nil {
		return err
	}
	w.undo = append(w.undo, w.model.Close)
	w.model.Models = []string{"thinker"}
	w.usual()
	var end func()
	w.carrier, end = carriertest.Serve()
	w.undo = append(w.undo, end)
	if w.exchange, err = phone.Listen(); err != nil {
		return err
	}
	w.exchange.Options.Forget = true
	ctx, cancel := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	answering.Go(func() { w.answers(ctx, &answering) })
	w.undo = append(w.undo, func() { cancel(); answering.Wait(); w.exchange.Close() })
	hooks := httptest.NewServer(http.HandlerFunc(w.hook))
	w.undo = append(w.undo, hooks.Close)
	w.receiver = hooks.URL
	return nil
}

// usual has the model answer as on a good day.
func (w *world) usual() { w.model.Usually(aitest.Behaviour{FirstDelay: 30 * time.Millisecond}) }

// logged is the address of the model by way of its log.
func (w *world) logged(model string) string {
	to, _ := url.Parse(model)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host },
		FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.mu.Lock()
		for _, m := range mark.FindAllString(string(body), -1) {
			w.asked[m] = true
		}
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(rw, r)
	}))
	w.undo = append(w.undo, srv.Close)
	return srv.URL + to.Path
}

// answers is the exchange: one call of three finds a busy line, the others are answered and last for a moment.
func (w *world) answers(ctx context.Context, running *sync.WaitGroup) {
	for n := 0; ; n++ {
		in, err := w.exchange.Next(ctx)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.rung[in.To]++
		w.mu.Unlock()
		if n%3 == 0 {
			in.Refuse(486)
			continue
		}
		running.Go(func() {
			in.Ring()
			c, err := in.Answer()
			if err != nil {
				return
			}
			defer c.Drop()
			select {
			case <-c.Confirmed():
				w.mu.Lock()
				w.talked[in.To]++
				w.mu.Unlock()
			case <-time.After(5 * time.Second):
				return
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(time.Duration(300+n%7*100) * time.Millisecond):
				c.Hangup()
			case <-c.Done():
			case <-ctx.Done():
			}
		})
	}
}

// hook is the receiver of webhooks.
func (w *world) hook(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if w.receiverAway.Load() || err != nil {
		panic(http.ErrAbortHandler)
	}
	var event struct {
		Event  string
		CallID int64 `json:"call_id"`
		ID     int64
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := r.Header.Get("webhook-id")
	if err := json.Unmarshal(body, &event); err != nil || id == "" {
		w.unfit = append(w.unfit, fmt.Sprintf("a webhook can't be read: %v %.200s", err, body))
		return
	}
	if was, ok := w.bodies[id]; ok && was != string(body) {
		w.unfit = append(w.unfit, "webhook "+id+" came again with another body")
	}
	w.bodies[id] = string(body)
	w.told[max(event.CallID, event.ID)]++
}

// furnish makes what the load needs: an assistant that chats, one that calls over a trunk, a number, a knowledgebase.
func (w *world) furnish() error {
	var voices, models []struct {
		ID       int64
		Language int64 `json:"language_id"`
	}
	var trunk struct {
		Data struct {
			Number int64 `json:"phone_number_id"`
		}
	}
	var found struct {
		Data []struct {
			Number string `json:"phone_number"`
		}
	}
	var bought, base struct{ Data struct{ ID int64 } }
	err := errors.Join(w.must("GET", "/user/assistants/voices?mode=pipeline", nil, &voices),
		w.must("GET", "/user/assistants/models?type=llm", nil, &models),
		w.must("POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "Exchange", "phone_number": "+4930901820001",
			"sip_address": w.exchange.Addr().String(), "inbound_authorization_type": "ip", "allowed_inbound_ips": []string{"127.0.0.1"}}, &trunk),
		w.must("GET", "/user/phone-numbers/search", nil, &found))
	if err != nil || len(voices) == 0 || len(models) == 0 || len(found.Data) == 0 {
		return fmt.Errorf("%d voices, %d models, %d numbers: %w", len(voices), len(models), len(found.Data), err)
	}
	if err := errors.Join(w.must("POST", "/user/phone-numbers/purchase", map[string]any{"phone_number": found.Data[0].Number}, &bought),
		w.must("POST", "/user/knowledgebases", map[string]any{"name": "Bakery"}, &base)); err != nil {
		return err
	}
	w.number, w.documents = bought.Data.ID, fmt.Sprintf("/user/knowledgebases/%d/documents", base.Data.ID)
	for _, a := range []struct {
		name, kind string
		number     any
		id         *int64
	}{{"Chats", "inbound", nil, &w.assistant}, {"Calls", "outbound", trunk.Data.Number, &w.caller}} {
		var made struct {
			Data struct {
				ID   int64
				UUID string
			}
		}
		if err := w.must("POST", "/user/assistant", map[string]any{"name": a.name, "type": a.kind, "mode": "pipeline", "status": "active",
			"timezone": "UTC", "system_prompt": "Be brief.", "voice_id": voices[0].ID, "language_id": voices[0].Language,
			"llm_model_id": models[0].ID, "phone_number_id": a.number, "record": w.records,
			"send_webhook_only_on_completed": false}, &made); err != nil {
			return err
		}
		if *a.id = made.Data.ID; w.uuid == "" {
			w.uuid = made.Data.UUID
		}
		if err := w.must("POST", "/user/assistants/enable-webhook",
			map[string]any{"assistant_id": made.Data.ID, "webhook_url": w.receiver + "/hooks"}, nil); err != nil {
			return err
		}
	}
	return nil
}

// numbered is a telephone number that nobody else has, by what it is for.
func numbered(kind string, n int) string {
	return "+1415" + map[string]string{"call": "7", "lead": "8", "sms": "9"}[kind] + fmt.Sprintf("%06d", n)
}

// seen is how often the exchange was called for each number, written as the program writes it.
func (w *world) seen(of map[string]int) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	for to, n := range of {
		out["+"+strings.TrimPrefix(to, "+")] += n
	}
	return out
}
