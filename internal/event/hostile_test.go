package event

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/store/storetest"
)

// raw is an endpoint that handles each connection itself once a request's header has been read. It ends with the test.
func (h *harness) raw(speak func(net.Conn, <-chan struct{})) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.Fatal(err)
	}
	over := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conns []chan struct{}
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			ended := make(chan struct{})
			conns = append(conns, ended)
			go func() {
				defer close(ended)
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					line, err := r.ReadString('\n')
					if err != nil || line == "\r\n" {
						break
					}
				}
				speak(c, over)
			}()
		}
		for _, c := range conns {
			<-c
		}
	}()
	h.Cleanup(func() { close(over); l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// trickle writes piece after piece until the reader is gone or the test is over.
func trickle(piece string) func(net.Conn, <-chan struct{}) {
	return func(c net.Conn, over <-chan struct{}) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := c.Write([]byte(piece)); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	}
}

// Whatever an endpoint does, an attempt ends in time, with a status or a reason.
func TestHostileEndpoints(t *testing.T) {
	h := open(t, storetest.SQLite(t))
	reached := make(chan string, 10)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		reached <- r.URL.Path
	}))
	t.Cleanup(target.Close)
	answer := func(fn http.HandlerFunc) string {
		srv := httptest.NewServer(fn)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	closed := answer(func(http.ResponseWriter, *http.Request) {})
	const refused = "http://127.0.0.1:1" // which no system lends to anybody who asks for a free port
	for _, c := range []struct {
		name, url string
		status    int // 0: none
		error     string
		kept      string // the beginning of the answer
	}{
		{"taken", answer(func(w http.ResponseWriter,
			r *http.Request) {
			w.WriteHeader(202)
			w.Write([]byte("thanks"))
		}), 202, "", "thanks"},
		{"empty", closed, 200, "", ""},
		{"broken", answer(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 500) }), 500,
			"The endpoint answered 500 Internal Server Error.", "no\n"},
		{"odd status", answer(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(599) }), 599,
			"The endpoint answered 599.", ""},
		{"gone", answer(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(410) }), 410,
			"The endpoint answered 410 Gone, so that it was disabled.", ""},
		{"redirect", answer(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL+"/from-redirect", http.StatusTemporaryRedirect)
		}), 307,
			"The endpoint answered 307 Temporary Redirect. Redirects are not followed: use the final URL.", ""},
		{"huge", answer(func(w http.ResponseWriter, r *http.Request) {
			for range 4096 {
				if _, err := w.Write([]byte(strings.Repeat("x", 64<<10))); err != nil {
					return
				}
			}
		}), 200, "", strings.Repeat("x", 4<<10)},
		{"binary", answer(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("a\x00b\xffc")) }), 200, "",
			"a\uFFFDb\uFFFDc"},
		{"hangs", h.raw(func(_ net.Conn, over <-chan struct{}) { <-over }), 0, "No answer came within 1s.", ""},
		{"slow head", h.raw(trickle("H")), 0, "", ""},
		{"slow body", h.raw(func(c net.Conn, over <-chan struct{}) {
			c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nbegin"))
			trickle(".")(c, over)
		}), 200, "", "begin"},
		{"body breaks off", h.raw(func(c net.Conn, _ <-chan struct{}) {
			c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin"))
		}), 200, "", "begin"},
		{"endless interim answers", h.raw(trickle("HTTP/1.1 103 Early Hints\r\n\r\n")), 0, "", ""},
		{"endless header", h.raw(trickle("HTTP/1.1 200 OK\r\n" +
			strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 100))), 0, "", ""},
		{"no HTTP", h.raw(func(c net.Conn, _ <-chan struct{}) { c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")) }), 0,
			"No answer came: the server's answer could not be understood.", ""},
		{"hangs up", h.raw(func(net.Conn, <-chan struct{}) {}), 0, "No answer came: the connection broke off.", ""},
		{"nobody there", refused, 0, "No answer came: the server does not accept connections there.", ""},
		{"no name", "http://nobody.invalid/", 0, "", ""},
		{"not a URL", "http://a b/", 0, "No answer came: the URL is not valid.", ""},
		{"not the web", "ftp://example.com/", 0, "No answer came: only http and https URLs may be reached.", ""},
		{"private", "http://10.0.0.1/", 0, "No answer came: the address is private, and only public addresses may be reached (the operator of " +
			"this server can allow it with PARLEY_EGRESS_ALLOW).", ""},
		{"metadata", "http://169.254.169.254/latest/meta-data/", 0,
			"No answer came: the address is link-local, and only public addresses may be reached (the operator of this server can allow it with " +
				"PARLEY_EGRESS_ALLOW).", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := parley.NewDelivery(parley.EventBalanceLow, c.url, map[string]string{"event": "balance.low"})
			within := attemptTime
			if slow := c.name; slow == "hangs" || strings.HasPrefix(slow, "slow") || slow == "endless interim answers" {
				within = time.Second
			}
			began := time.Now()
			a, _ := h.s.post(t.Context(), d, [][]byte{[]byte("key")}, within, maxKept)
			if took := time.Since(began); took > within+10*time.Second {
				t.Errorf("took %v", took)
			}
			status, text := 0, ""
			if a.Status != nil {
				status = *a.Status
			}
			if a.Error != nil {
				text = *a.Error
			}
			if status != c.status || c.error != "" && text != c.error || (text == "") != a.Delivered() {
				t.Errorf("status %d, error %q", status, text)
			}
			if c.name == "slow body" && strings.HasPrefix(a.Answer, c.kept) {
				return
			}
			if a.Answer != c.kept {
				t.Errorf("kept %d bytes %.40q", len(a.Answer), a.Answer)
			}
		})
	}
	if len(reached) != 0 {
		t.Errorf("a redirect was followed to %s", <-reached)
	}
}

// Loopback is refused where it is not allowed, before anything is sent.
func TestGuarded(t *testing.T) {
	h := open(t, storetest.SQLite(t))
	e := h.endpoint(200)
	guard := egress.New(nil)
	t.Cleanup(guard.Close)
	h.s.client = guard.Client(0)
	d := h.send(h.user.ID, e.URL)
	h.set(d.NextAttemptAt)
	h.round()
	if got := h.delivery(d); got.Status != parley.DeliveryPending || got.LastStatus != nil ||
		!strings.Contains(*got.LastError, "PARLEY_EGRESS_ALLOW") || len(e.got()) != 0 {
		t.Errorf("%+v", got)
	}
}

// The variables of a call are read from any JSON that an endpoint answers in time.
func TestInbound(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		for _, c := range []struct {
			name, answer, vars, error string
			status                    int
		}{
			{name: "flat", answer: `{"name":"Ana","age":41,"vip":true,"none":null,"big":12345678901234567890,"list":[1, 2],"o":{"a": 1}}`,
				vars: `map[age:41 big:12345678901234567890 list:[1,2] name:Ana o:{"a":1} vip:true]`},
			{name: "under variables", answer: `{"status":"ok","variables":{"name":"Zoë"}}`, vars: `map[name:Zoë]`},
			{name: "a variable of that name", answer: `{"variables":"x","y":"z"}`, vars: `map[variables:x y:z]`},
			{name: "none", answer: `{}`, vars: `map[]`},
			{name: "null", answer: `null`, vars: `map[]`},
			{name: "empty", answer: "", vars: `map[]`},
			{name: "null characters", answer: `{"a":"x\u0000y"}`, vars: "map[a:x\uFFFDy]"},
			{name: "a list", answer: `[1]`, vars: `map[]`,
				error: "The endpoint gave no variables: its answer is not a JSON object."},
			{name: "broken", answer: `{"a":`, vars: `map[]`,
				error: "The endpoint gave no variables: its answer is not a JSON object."},
			{name: "too long", answer: `{"a":"` + strings.Repeat("x", 64<<10) + `"}`, vars: `map[]`,
				error: "The endpoint gave no variables: its answer is longer than 64 KiB."},
			{name: "too many", answer: "{" + many(201) + "}", vars: `map[]`,
				error: "The endpoint gave no variables: its answer has more than 200."},
			{name: "refused", answer: `{"name":"Ana"}`, status: 403, vars: `map[]`,
				error: "The endpoint answered 403 Forbidden."},
		} {
			t.Run(c.name, func(t *testing.T) {
				var body string
				var header http.Header
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b := make([]byte, 1<<10)
					n, _ := r.Body.Read(b)
					body, header = string(b[:n]), r.Header
					w.WriteHeader(max(c.status, 200))
					w.Write([]byte(c.answer))
				}))
				defer srv.Close()
				a := h.assistant(h.user.ID, func(a *parley.Assistant) { a.InboundWebhookURL = &srv.URL })
				vars := h.s.Inbound(t.Context(), a, "+12025550123", "+12025550100", &parley.CallSignalling{CallerName: "Ana",
					Verification: &parley.CallVerification{Result: parley.Verified, Attestation: "A", By: parley.ByServer}})
				if got := fmt.Sprint(vars); got != c.vars {
					t.Errorf("variables %s", got)
				}
				if want := fmt.Sprintf(
					`{"event":"call.inbound","version":1,"customer_phone":"+12025550123","assistant_phone":"+12025550100","assistant_id":%d,`+
						`"assistant":{"id":%[1]d,"uuid":"%s","name":"%s"},"caller_name":"Ana","verification":{"result":"verified","attestation":"A","by":"server","reason":"","code":0,`+
						`"signed_by":"","origid":"","carrier":"","caller_name":"","call_reason":"","card_url":""}}`, a.ID, a.UUID, a.Name); body != want {
					t.Errorf("asked %s", body)
				}
				if err := h.verify(h.keys()[0], heard{header, body}); err != nil {
					t.Error(err)
				}
				list, _, err := h.db.Deliveries(t.Context(), h.user.ID, parley.EventCallInbound, "", pageOfOne)
				if err != nil || len(list) != 1 {
					t.Fatalf("%d deliveries: %v", len(list), err)
				}
				d, log := h.delivery(&list[0]), h.log(&list[0])
				if d.Payload != body || d.WebhookID != header.Get("webhook-id") || d.Attempts != 1 ||
					d.NextAttemptAt != 0 || *d.CustomerPhone != "+12025550123" {
					t.Errorf("%+v", d)
				}
				if got := log[0].Error; len(log) != 1 || (got == nil) != (c.error == "") || got != nil &&
					*got != c.error {
					t.Errorf("log %+v", log)
				}
				if want := map[bool]parley.DeliveryStatus{true: parley.DeliveryDelivered,
					false: parley.DeliveryFailed}[c.status == 0]; d.Status != want {
					t.Errorf("status %s", d.Status)
				}
			})
		}
	})
}

func many(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"v%d":%d`, i, i))
	}
	return strings.Join(list, ",")
}

// A caller never waits more than two seconds for an endpoint.
func TestInboundBudget(t *testing.T) {
	h := open(t, storetest.SQLite(t))
	url := h.raw(func(_ net.Conn, over <-chan struct{}) { <-over })
	a := h.assistant(h.user.ID, func(a *parley.Assistant) { a.InboundWebhookURL = &url })
	began := time.Now()
	vars := h.s.Inbound(t.Context(), a, "", "+12025550100", nil)
	if took := time.Since(began); took < 2*time.Second || took > 9*time.Second || vars != nil {
		t.Errorf("%v after %v", vars, took)
	}
	list, _, err := h.db.Deliveries(t.Context(), h.user.ID, "", parley.DeliveryFailed, pageOfOne)
	if err != nil || len(list) != 1 || *list[0].LastError != "No answer came within 2s." {
		t.Errorf("%+v %v", list, err)
	}
	a.InboundWebhookURL = nil
	if vars := h.s.Inbound(t.Context(), a, "", "", nil); vars != nil {
		t.Errorf("nobody was asked and said %v", vars)
	}
}

// Whatever an endpoint answers, what is kept of it is valid text for the database, and limited in length.
func FuzzVariables(f *testing.F) {
	for _, seed := range []string{`{"a":"b"}`, `{"variables":{"a":1,"b":null}}`, `{"variables":[]}`, `[]`, ``,
		`{"a":"\ud800","\u0000":"\u0000"}`, "{\"a\":\"\xff\"}", `{"a":{"b":[1, 2]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		vars, err := variables(answer)
		if err != nil && vars != nil || len(vars) > maxVariables {
			t.Errorf("%d variables and %v", len(vars), err)
		}
		for name, value := range vars {
			if s := name + value; !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				t.Errorf("%q: %q", name, value)
			}
		}
	})
}
