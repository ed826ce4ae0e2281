package twilio_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/carrier"
	"parley/internal/carrier/carriertest"
	"parley/internal/carrier/twilio"
	"parley/internal/parley"
)

const public = "https://voice.example.com"

func TestConforms(t *testing.T) {
	s := carriertest.NewServer(t)
	carriertest.Conform(t, s.Client(public), "+12025550777")
}

func TestSearchOtherCountries(t *testing.T) {
	c := carriertest.NewServer(t).Client(public)
	list, err := c.Search(t.Context(), "GB", "74")
	if err != nil || len(list) != 1 || list[0] != (carrier.Number{PhoneNumber: "+447400123456", CountryCode: "GB",
		AddressRequirements: "foreign", SMSCapable: true}) {
		t.Errorf("GB: %+v %v", list, err)
	}
	if list, err := c.Search(t.Context(), "FI", ""); err != nil || len(list) != 0 {
		t.Errorf("FI: %+v %v", list, err)
	}
}

// A number's messages are reported to us, and so is a message's status, under our own reference.
func TestTellsWhereWeAre(t *testing.T) {
	s := carriertest.NewServer(t)
	c := s.Client(public)
	c.TrunkSID = "TK1"
	if err := c.Buy(t.Context(), "+14155550100"); err != nil {
		t.Fatal(err)
	}
	if got := s.Trunk("+14155550100"); got != "TK1" {
		t.Errorf("calls go to trunk %q", got)
	}
	if got := s.Rented()["+14155550100"]; got != public+"/webhooks/twilio/sms" {
		t.Errorf("inbound messages go to %q", got)
	}
	if _, err := c.Send(t.Context(), carrier.SMS{Reference: "sms:7", From: "+14155550100", To: "+12025550777",
		Body: "Żółć & co=1"}); err != nil {
		t.Fatal(err)
	}
	if m := s.Messages()[0]; m.Callback != public+"/webhooks/twilio/status?reference=sms%3A7" ||
		m.Body != "Żółć & co=1" {
		t.Errorf("sent %+v", m)
	}
}

func TestRefusals(t *testing.T) {
	s := carriertest.NewServer(t)
	c := s.Client("")
	if _, err := c.Send(t.Context(), carrier.SMS{To: "+12025550777", Body: "x"}); carrier.Refusal(err) == nil ||
		s.Requests("POST", "") != 0 {
		t.Errorf("a message from nobody: %v", err)
	}
	_, err := c.Send(t.Context(), carrier.SMS{From: "+14155550100", To: "+12025550777", Body: "x"})
	if e := carrier.Refusal(err); e == nil || e.Code != 21606 || e.Later ||
		!strings.Contains(e.Message, "message-capable") {
		t.Errorf("from a number that is not ours: %v", err)
	}
	wrong := twilio.New(twilio.Config{AccountSID: carriertest.AccountSID, AuthToken: "wrong", BaseURL: s.URL})
	defer wrong.Close()
	err = wrong.Ping(t.Context())
	if e := carrier.Refusal(err); e == nil || e.Status != 401 || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong token: %v", err)
	}
	nowhere := twilio.New(twilio.Config{AccountSID: "AC1", AuthToken: "t", BaseURL: "http://127.0.0.1:1"})
	defer nowhere.Close()
	if e := carrier.Refusal(nowhere.Ping(t.Context())); e == nil || !e.Later {
		t.Errorf("nobody there: %v", e)
	}
}

// A request to slow down is obeyed; a failure at Twilio is not a refusal, and is not retried blindly.
func TestSlowAndBroken(t *testing.T) {
	s := carriertest.NewServer(t)
	c := s.Client("")
	var n atomic.Int32
	s.Fail = func(w http.ResponseWriter, r *http.Request) bool {
		if n.Add(1) > 2 {
			return false
		}
		carriertest.Refuse(w, 429, 20429, "Too Many Requests")
		return true
	}
	if err := c.Buy(t.Context(), "+14155550100"); err != nil || n.Load() != 3 {
		t.Errorf("after %d tries: %v", n.Load(), err)
	}
	s.Fail = func(w http.ResponseWriter, r *http.Request) bool {
		n.Add(1)
		w.Header().Set("Retry-After", "3600")
		carriertest.Refuse(w, 429, 20429, "Too Many Requests")
		return true
	}
	n.Store(0)
	_, err := c.Send(t.Context(), carrier.SMS{From: "+14155550100", To: "+12025550777", Body: "x"})
	if e := carrier.Refusal(err); e == nil || !e.Later || n.Load() != 1 {
		t.Errorf("told to come back in an hour, after %d tries: %v", n.Load(), err)
	}
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"500 with JSON": func(w http.ResponseWriter, _ *http.Request) bool {
			carriertest.Refuse(w, 500, 20500, "Internal")
			return true
		},
		"503 with HTML": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(503)
			w.Write([]byte("<html>"))
			return true
		},
		"200 with HTML": func(w http.ResponseWriter, _ *http.Request) bool { w.Write([]byte("<html>")); return true },
		"201 nameless": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(201)
			w.Write([]byte("{}"))
			return true
		},
		"a broken line": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"redirected off": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		},
	} {
		n.Store(0)
		s.Fail = func(w http.ResponseWriter, r *http.Request) bool { n.Add(1); return fail(w, r) }
		_, err := c.Send(t.Context(), carrier.SMS{From: "+14155550100", To: "+12025550777", Body: "x"})
		if name == "redirected off" {
			if err == nil || n.Load() != 1 {
				t.Errorf("%s: %v after %d", name, err, n.Load())
			}
			continue
		}
		if err == nil || carrier.Refusal(err) != nil || n.Load() != 1 {
			t.Errorf("%s: %v after %d tries", name, err, n.Load())
		}
		if strings.Contains(err.Error(), carriertest.AuthToken) || strings.Contains(err.Error(), "Basic ") {
			t.Errorf("%s: the token is in %v", name, err)
		}
	}
}

// A message whose answer was lost is found again; a similar message from another sender is not mistaken for it.
func TestFindAfterLostAnswer(t *testing.T) {
	s := carriertest.NewServer(t)
	c := s.Client("")
	if err := c.Buy(t.Context(), "+14155550100"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.Cut = func(r *http.Request) bool { return r.Method == "POST" }
	m := carrier.SMS{From: "+14155550100", To: "+12025550777", Body: "once"}
	if _, err := c.Send(t.Context(), m); err == nil || carrier.Refusal(err) != nil {
		t.Fatalf("a lost answer: %v", err)
	}
	sids, err := c.Find(t.Context(), m, began)
	if err != nil || len(sids) != 1 || sids[0] != s.Messages()[0].SID {
		t.Errorf("found %v %v", sids, err)
	}
	if sids, _ := c.Find(t.Context(), m, began.Add(24*time.Hour)); len(sids) != 0 {
		t.Errorf("found %v, which is older", sids)
	}
}

type receiver struct {
	in      []carrier.Inbound
	reports []carrier.Report
	fail    error
}

func (r *receiver) Receive(_ context.Context, in carrier.Inbound) error {
	r.in = append(r.in, in)
	return r.fail
}

func (r *receiver) Report(_ context.Context, rep carrier.Report) error {
	r.reports = append(r.reports, rep)
	return r.fail
}

// later is an error that is over in 5 s.
type later struct{ error }

func (later) Wait() int { return 5 }

func TestWebhooks(t *testing.T) {
	s := carriertest.NewServer(t)
	got := &receiver{}
	h := s.Client(public).Webhooks(got)
	ask := func(r *http.Request, want int) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s %s answered %d, want %d: %s", r.Method, r.URL, w.Code, want, w.Body)
		}
		return w
	}
	at := public + "/webhooks/twilio/sms"
	form := carriertest.Inbound("SM1", "+12025550777", "+14155550100", "Grüße 👋")
	w := ask(carriertest.Signed(at, form), 200)
	if w.Body.String() != "<Response></Response>" || w.Header().Get("Content-Type") != "text/xml" {
		t.Errorf("answered %q as %s", w.Body, w.Header().Get("Content-Type"))
	}
	if len(got.in) != 1 || got.in[0] != (carrier.Inbound{SID: "SM1", From: "+12025550777", To: "+14155550100",
		Body: "Grüße 👋"}) {
		t.Fatalf("received %+v", got.in)
	}
	form.Set("NumMedia", "1")
	form.Set("MediaContentType0", "image/jpeg")
	ask(carriertest.Signed(at, form), 200)
	if got.in[1].Body != "Grüße 👋\n[attachment: image/jpeg]" {
		t.Errorf("with a picture: %q", got.in[1].Body)
	}

	m := carriertest.Message{SID: "SM2", From: "+14155550100", To: "+12025550777", Callback: public +
		"/webhooks/twilio/status?reference=sms%3A7"}
	for status, want := range map[string]parley.SMSStatus{"accepted": "queued", "sending": "queued", "sent": "sent",
		"delivered": "delivered", "undelivered": "undelivered", "failed": "failed"} {
		got.reports = nil
		ask(m.Told(status, "ErrorCode", map[bool]string{true: "30003"}[want == "undelivered"]), 204)
		if len(got.reports) != 1 || got.reports[0].Status != want || got.reports[0].Reference != "sms:7" ||
			got.reports[0].SID != "SM2" {
			t.Errorf("%s: %+v", status, got.reports)
		}
		if want == "undelivered" && !strings.Contains(got.reports[0].Error, "30003") {
			t.Errorf("%s: no reason in %+v", status, got.reports)
		}
	}
	got.in, got.reports = nil, nil
	ask(m.Told("something-new"), 204)

	// A request that is not from Twilio changes nothing.
	forged := carriertest.Signed(at, form)
	forged.Header.Set("X-Twilio-Signature", "AAAA")
	ask(forged, 403)
	unsigned := carriertest.Signed(at, form)
	unsigned.Header.Del("X-Twilio-Signature")
	ask(unsigned, 403)
	moved := carriertest.Signed(at, form)
	moved.URL.Path = "/webhooks/twilio/status"
	ask(moved, 403)
	otherRow := m.Told("failed")
	otherRow.URL.RawQuery = "reference=sms%3A8"
	ask(otherRow, 403)
	changed := carriertest.Signed(at, form)
	form.Set("Body", "another")
	changed.Body = http.NoBody
	ask(changed, 403)
	ask(carriertest.Signed(at, url.Values{"AccountSid": {"AC2"}, "MessageSid": {"SM1"}}), 400)
	ask(carriertest.Signed(at, url.Values{"AccountSid": {carriertest.AccountSID}}), 400)
	huge := carriertest.Inbound("SM9", "+12025550777", "+14155550100", strings.Repeat("x", 1<<17))
	ask(carriertest.Signed(at, huge), 400)
	ask(httptest.NewRequest("GET", at, nil), 405)
	if len(got.in)+len(got.reports) != 0 {
		t.Errorf("forgeries were taken: %+v %+v", got.in, got.reports)
	}
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	got.fail = errors.New("the database is away")
	ask(m.Told("sent"), 500)
	got.fail = later{got.fail}
	if w := ask(m.Told("sent"), 503); w.Header().Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
	}
	w = ask(carriertest.Signed(at, carriertest.Inbound("SM3", "+12025550777", "+14155550100", "Hi")), 503)
	if w.Header().Get("Retry-After") != "5" {
		t.Errorf("Retry-After of a message is %q", w.Header().Get("Retry-After"))
	}
	if !strings.Contains(log.String(), "the database is away") ||
		strings.Contains(log.String(), carriertest.AuthToken) {
		t.Errorf("logged %s", log.String())
	}
}

// The example of Twilio's documentation.
func TestSignature(t *testing.T) {
	form := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675309"}, "Digits": {"1234"},
		"From": {"+14158675309"}, "To": {"+18005551212"}}
	if got := twilio.Signature("12345", "https://mycompany.com/myapp.php?foo=1&bar=2",
		form); got != "RSOYDt4T1cUTdK1PDd93/VVr8B8=" {
		t.Errorf("signature %s", got)
	}
}
