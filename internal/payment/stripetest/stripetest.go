// Package stripetest is Stripe for tests: Checkout sessions are created, read and listed by forms and JSON as
// https://docs.stripe.com/api/checkout/sessions has it, paid by the test, and told of by signed events.
package stripetest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Key and Secret are those of the account.
const (
	Key    = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"
	Secret = "whsec_5WZmMqPUhxZ0VtVhxPq8"
)

// Session is a Checkout session.
type Session struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Mode          string            `json:"mode"`
	Status        string            `json:"status"`
	PaymentStatus string            `json:"payment_status"`
	AmountTotal   int64             `json:"amount_total"`
	Currency      string            `json:"currency"`
	Created       int64             `json:"created"`
	URL           *string           `json:"url"`
	SuccessURL    string            `json:"success_url"`
	CancelURL     string            `json:"cancel_url"`
	Reference     string            `json:"client_reference_id"`
	Email         string            `json:"customer_email"`
	Metadata      map[string]string `json:"metadata"`
	Intent        *string           `json:"payment_intent"` // once it is paid
}

// charge is what was taken from a card.
type charge struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Intent   string `json:"payment_intent"`
	Amount   int64  `json:"amount"`
	Refunded int64  `json:"amount_refunded"`
}

// dispute is a complaint of a payer's.
type dispute struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	Charge string `json:"charge"`
	Intent string `json:"payment_intent"`
	Amount int64  `json:"amount"`
	Status string `json:"status"`
}

// Server is a Stripe on loopback. Page may be set before it is asked.
type Server struct {
	URL  string
	Page int  // sessions in a page of the list at most
	Gone bool // answers nothing but 503
	// the key may do nothing but what Checkout takes
	Restricted bool
	// Held, where it is set, is called with each request's path once its answer stands, before that leaves
	Held func(path string)

	t        testing.TB
	mu       sync.Mutex
	sessions []*Session // the newest first
	webhook  string
	away     bool
	charges  map[string]*charge // by their ids, as the next
	disputes map[string]*dispute
}

// Serve starts a server that ends with the test.
func Serve(t testing.TB) *Server {
	s := &Server{Page: 100, t: t, charges: map[string]*charge{}, disputes: map[string]*dispute{}}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Tell has payments told of at a webhook from now on.
func (s *Server) Tell(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook = url
}

// Away has every request answered with 503, or no longer.
func (s *Server) Away(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// Sessions are copies of all sessions, the newest first.
func (s *Server) Sessions() (list []Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		list = append(list, *x)
	}
	return list
}

// Pay pays a session by card, and tells of it. The status of the webhook's answer is returned, 0 where none is told.
func (s *Server) Pay(id string) int {
	return s.turn(id, "checkout.session.completed", func(x *Session) {
		intent := "pi_" + x.ID
		x.Status, x.PaymentStatus, x.URL, x.Intent = "complete", "paid", nil, &intent
		s.charges["ch_"+x.ID] = &charge{"ch_" + x.ID, "charge", intent, x.AmountTotal, 0}
	})
}

// Refund refunds so many cents of a paid session, and tells of it.
func (s *Server) Refund(id string, cents int64) int {
	s.mu.Lock()
	c := s.charges["ch_"+id]
	c.Refunded += cents
	copied := *c
	s.mu.Unlock()
	return s.Event("charge.refunded", copied)
}

// FailRefund has a refund of so many cents fail at the payer's bank, and tells of it.
func (s *Server) FailRefund(id string, cents int64) int {
	s.mu.Lock()
	s.charges["ch_"+id].Refunded -= cents
	s.mu.Unlock()
	return s.Event("charge.refund.updated", map[string]any{"id": "re_" + id, "object": "refund", "charge": "ch_" + id,
		"payment_intent": "pi_" + id, "amount": cents, "status": "failed"})
}

// Dispute has the payer of a session complain about so many cents, or changes how that stands, and tells of it by an event of its kind
// (created, closed, …).
func (s *Server) Dispute(id string, cents int64, status, event string) int {
	d := dispute{"dp_" + id, "dispute", "ch_" + id, "pi_" + id, cents, status}
	s.mu.Lock()
	s.disputes[d.ID] = &d
	s.mu.Unlock()
	return s.Event("charge.dispute."+event, d)
}

// Event tells of something, whatever has become of it since.
func (s *Server) Event(kind string, of any) int {
	s.mu.Lock()
	webhook := s.webhook
	s.mu.Unlock()
	body, err := json.Marshal(map[string]any{"id": "evt_" + kind, "object": "event", "type": kind, "data": map[string]any{"object": of}})
	if err != nil {
		s.t.Fatal(err)
	}
	return Send(s.t, webhook, body, Sign(Secret, time.Now(), body))
}

// Late is the event of a dispute as it once stood.
func (s *Server) Late(id string, cents int64, status, event string) int {
	return s.Event("charge.dispute."+event, dispute{"dp_" + id, "dispute", "ch_" + id, "pi_" + id, cents, status})
}

// Promise pays a session by a method that takes days; Confirm is what happens then.
func (s *Server) Promise(id string) int {
	return s.turn(id, "checkout.session.completed", func(x *Session) { x.Status, x.URL = "complete", nil })
}

// Confirm confirms what was promised.
func (s *Server) Confirm(id string) int {
	return s.turn(id, "checkout.session.async_payment_succeeded", func(x *Session) { x.PaymentStatus = "paid" })
}

// Expire ends a session that nobody paid.
func (s *Server) Expire(id string) int {
	return s.turn(id, "checkout.session.expired", func(x *Session) { x.Status, x.URL = "expired", nil })
}

func (s *Server) turn(id, event string, change func(*Session)) int {
	s.mu.Lock()
	i := slices.IndexFunc(s.sessions, func(x *Session) bool { return x.ID == id })
	if i < 0 {
		s.mu.Unlock()
		s.t.Fatalf("stripetest: no session %q", id)
	}
	change(s.sessions[i])
	body, err := json.Marshal(map[string]any{"id": "evt_" + id, "object": "event", "type": event,
		"data": map[string]any{"object": s.sessions[i]}})
	webhook := s.webhook
	s.mu.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
	if webhook == "" {
		return 0
	}
	return Send(s.t, webhook, body, Sign(Secret, time.Now(), body))
}

// Sign is the header Stripe-Signature of a body.
func Sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	// while a secret is rotated there are two; v0 is for tests of Stripe's own
	return fmt.Sprintf("t=%d,v1=%s,v1=%s,v0=00", at.Unix(), strings.Repeat("ab", 32), hex.EncodeToString(mac.Sum(nil)))
}

// Send tells something at a webhook, and returns the status of the answer.
func Send(t testing.TB, url string, body []byte, signature string) int {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", signature)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"type": kind, "message": message}})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Held != nil {
		defer s.Held(r.URL.Path) // what was written is small enough to wait for the end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.away:
		refuse(w, http.StatusServiceUnavailable, "api_error", "try again")
		return
	case r.Header.Get("Authorization") != "Bearer "+Key:
		refuse(w, http.StatusUnauthorized, "invalid_request_error", "Invalid API Key provided")
		return
	case r.Header.Get("Stripe-Version") == "":
		s.t.Error("stripetest: no Stripe-Version: the account's default would change the answers")
	}
	const base = "/v1/checkout/sessions"
	kind, thing, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	id, one := strings.CutPrefix(r.URL.Path, base+"/")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == base:
		s.create(w, r)
	case s.Restricted && (kind == "charges" || kind == "disputes"):
		refuse(w, http.StatusForbidden, "invalid_request_error", "The provided key does not have the required permissions")
	case kind == "charges" && s.charges[thing] != nil:
		json.NewEncoder(w).Encode(s.charges[thing])
	case kind == "disputes" && s.disputes[thing] != nil:
		json.NewEncoder(w).Encode(s.disputes[thing])
	case r.Method == http.MethodGet && one:
		i := slices.IndexFunc(s.sessions, func(x *Session) bool { return x.ID == id })
		if i < 0 {
			refuse(w, http.StatusNotFound, "invalid_request_error", "No such checkout.session: "+id)
			return
		}
		json.NewEncoder(w).Encode(s.sessions[i])
	case r.Method == http.MethodGet && r.URL.Path == base:
		s.list(w, r)
	default:
		refuse(w, http.StatusNotFound, "invalid_request_error", "Unrecognized request URL")
	}
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "the body is no form")
		return
	}
	f := r.PostForm
	cents, err := strconv.ParseInt(f.Get("line_items[0][price_data][unit_amount]"), 10, 64)
	for _, name := range []string{"mode", "success_url", "line_items[0][quantity]", "line_items[0][price_data][currency]",
		"line_items[0][price_data][product_data][name]"} {
		if f.Get(name) == "" || err != nil {
			refuse(w, http.StatusBadRequest, "invalid_request_error", "Missing required param: "+name)
			return
		}
	}
	if _, domain, _ := strings.Cut(f.Get("customer_email"), "@"); f.Has("customer_email") && !strings.Contains(domain, ".") {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "Invalid email address: "+f.Get("customer_email"))
		return
	}
	x := &Session{ID: fmt.Sprintf("cs_test_%d", len(s.sessions)+1), Object: "checkout.session", Mode: f.Get("mode"), Status: "open",
		PaymentStatus: "unpaid",
		AmountTotal:   cents, Currency: f.Get("line_items[0][price_data][currency]"), Created: time.Now().Unix(),
		SuccessURL: f.Get("success_url"),
		CancelURL:  f.Get("cancel_url"), Reference: f.Get("client_reference_id"), Email: f.Get("customer_email"), Metadata: map[string]string{}}
	for name, v := range f {
		if key, ok := strings.CutPrefix(name, "metadata["); ok {
			x.Metadata[strings.TrimSuffix(key, "]")] = v[0]
		}
	}
	url := s.URL + "/pay/" + x.ID
	x.URL = &url
	s.sessions = slices.Insert(s.sessions, 0, x)
	json.NewEncoder(w).Encode(x)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit := 10
	if n, err := strconv.Atoi(q.Get("limit")); err == nil {
		limit = n
	}
	since, _ := strconv.ParseInt(q.Get("created[gte]"), 10, 64)
	found, more := []*Session{}, false
	begun := q.Get("starting_after") == ""
	for _, x := range s.sessions {
		switch {
		case !begun:
			begun = x.ID == q.Get("starting_after")
		case q.Get("payment_intent") != "" && (x.Intent == nil || *x.Intent != q.Get("payment_intent")):
		case x.Created < since || q.Get("status") != "" && x.Status != q.Get("status"):
		case len(found) == min(limit, s.Page):
			more = true
		default:
			found = append(found, x)
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": found, "has_more": more})
}
