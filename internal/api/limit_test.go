package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/egress"
	"parley/internal/limit"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/tool"
)

// gated gives the house a gate with the plans that it has, and keys this rate.
func gated(rate auth.Rate) func(*api.Config) {
	return func(c *api.Config) {
		c.Rates.API = rate
		c.Gate = limit.New(c.Prices.Plan, rate)
	}
}

// tight is a plan that allows of one thing as much as is given, and enough of all others.
func tight(name string, n int) parley.Plan {
	var p parley.Plan
	for _, at := range p.Limits() {
		*at = 1000
	}
	*p.Limits()[name] = n
	return p
}

// The keys of an account share what the account may ask, each keeps its own figures, and a refusal says what to do.
func TestRateOfAccount(t *testing.T) {
	h := lite(t, gated(auth.Rate{PerSecond: 0.001, Burst: 20}))
	keys := []string{h.token}
	for range 9 {
		keys = append(keys, h.key(h.user, parley.APIKey))
	}
	taken := map[int]int{}
	var last *answer
	for i := range 100 {
		a := h.get("/user/me", header("Authorization", "Bearer "+keys[i%len(keys)]))
		if a.header.Get("X-RateLimit-Limit") != "20" {
			t.Fatalf("the key's own limit is said to be %q", a.header.Get("X-RateLimit-Limit"))
		}
		if taken[a.status]++; a.status == 429 {
			last = a
		}
	}
	if taken[200] != 40 || taken[429] != 60 {
		t.Fatalf("ten keys of one account were answered %v times, want 40 times: twice what a key may", taken)
	}
	body := last.json()
	if body["message"] != "Too Many Attempts." || body["retry_after"] == nil || last.header.Get("Retry-After") == "" ||
		!strings.Contains(fmt.Sprint(body["detail"]), "40 in a burst") || !strings.Contains(fmt.Sprint(body["detail"]), "PARLEY_RATE_API") {
		t.Errorf("refused with %s", last.body)
	}
	h.stranger().get("/user/me", status(200))
}

// A tool is tried, and a webhook sent again, as often as the plan allows a day and the table a minute.
func TestTriesAreCounted(t *testing.T) {
	eachPlanned(t, func(t *testing.T, db *store.DB, plan func(*billing.Prices)) {
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
		defer far.Close()
		var prices *billing.Prices
		h := open(t, db, func(c *api.Config) {
			plan(c.Prices)
			prices = c.Prices
			guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
			t.Cleanup(guard.Close)
			c.Assistants.Tools = tool.New(guard)
		})
		one := h.post("/user/tools", with(toolBody(), map[string]any{"endpoint": far.URL}), status(201)).json()["data"].(map[string]any)
		d := &parley.Delivery{Event: "call.completed", URL: far.URL, Payload: "{}"}
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueDelivery(ctx, h.user.ID, d) })
		for _, c := range []struct{ daily, rate, path string }{
			{parley.LimitToolTests, parley.LimitToolTestRate, fmt.Sprintf("/user/tools/%v/test", one["id"])},
			{parley.LimitResends, parley.LimitResendRate, fmt.Sprintf("/user/webhook-deliveries/%d/resend", d.ID)},
		} {
			prices.Plans[parley.DefaultPlan] = tight(c.daily, 3)
			for range 3 {
				h.post(c.path, map[string]any{}, status(200))
			}
			a := h.post(c.path, map[string]any{}, status(403))
			if want := "Your plan allows 3 " + parley.LimitNamed(c.daily).What + " a day (UTC)."; !strings.Contains(string(a.body), want) {
				t.Errorf("%s: refused with %s, want %q", c.path, a.body, want)
			}
			// as many a minute as the table says; the minute may change once meanwhile
			prices.Plans[parley.DefaultPlan] = tight(c.daily, 1000)
			most := int(parley.LimitNamed(c.rate).Most)
			n := 0
			for ; n <= 2*most; n++ {
				if a = h.post(c.path, map[string]any{}); a.status != 200 {
					break
				}
			}
			if a.status != 429 || n > 2*most ||
				!strings.Contains(string(a.body), fmt.Sprintf("%d %s per minute", most, parley.LimitNamed(c.rate).What)) {
				t.Errorf("%s: after %d more: %d %s", c.path, n, a.status, a.body)
			}
		}
	})
}

// Whoever reads the unpaginated list of assistants slowly holds a page of it in memory, not all of it; and an account
// has so many requests at once.
func TestSlowReaders(t *testing.T) {
	const readers, prompts = 12, 100
	h := lite(t, func(c *api.Config) {
		c.Prices.Plans[parley.DefaultPlan] = tight("requests_together", readers)
		gated(auth.Rate{})(c)
	})
	for range prompts {
		h.assistant(map[string]any{"system_prompt": strings.Repeat("é", 60_000)}) // 120 KB each: 12 MB in all
	}
	whole := h.get("/user/assistants", status(200))
	if list := whole.list(); len(list) != prompts {
		t.Fatalf("%d assistants", len(list))
	}
	var conns []net.Conn
	begin := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "GET /api/user/assistants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", h.token)
		return conn, bufio.NewReaderSize(conn, 16)
	}
	before := heap()
	var ins []*bufio.Reader
	for range readers {
		conn, in := begin()
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q, %v", line, err)
		}
		conns, ins = append(conns, conn), append(ins, in)
	}
	// what the kernel takes of each answer aside, they all stand in the middle of it
	held := int64(heap()) - int64(before)
	t.Logf("%d slow readers of %d KB hold %d KB", readers, len(whole.body)>>10, held>>10)
	if most := int64(readers) * int64(len(whole.body)) / 2; held > most {
		t.Errorf("%d slow readers hold %d KB, more than %d", readers, held>>10, most>>10)
	}
	a := h.get("/user/me", status(429))
	if !strings.Contains(string(a.body), fmt.Sprintf("Your plan allows %d requests being answered at the same time", readers)) {
		t.Errorf("one more: %s", a.body)
	}
	h.stranger().get("/user/me", status(200))
	if text, err := io.ReadAll(io.LimitReader(ins[0], 64<<10)); err != nil || !strings.Contains(string(text), "Transfer-Encoding: chunked") {
		t.Errorf("the list of a slow reader: %d bytes, %v", len(text), err)
	}
	for _, conn := range conns {
		conn.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); h.get("/user/me").status != 200; {
		if time.Now().After(deadline) {
			t.Fatal("the places of readers who left are not free")
		}
		runtime.Gosched()
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The reference shows every limit with how much of it is used.
func TestLimitsOfAccount(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.assistant(nil)
		rows := map[string]map[string]any{}
		for _, row := range h.get("/user/limits", status(200)).rows() {
			rows[row["name"].(string)] = row
		}
		if len(rows) != len(parley.Limits) {
			t.Errorf("%d limits of %d", len(rows), len(parley.Limits))
		}
		for name, want := range map[string]string{"assistants": "1 500", "tools": "0 100", "test_minutes": "0 3000", "trunk_checks": "<nil> 1",
			"tool_tests_rate": "0 30", "requests": "<nil> <nil>", "alerts": "0 50"} {
			if got := fmt.Sprint(rows[name]["used"], " ", rows[name]["most"]); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if rows["requests"]["setting"] != "PARLEY_RATE_API" || rows["tools"]["setting"] != nil || rows["notes"]["per"] != "conversation" {
			t.Errorf("%v, %v, %v", rows["requests"], rows["tools"], rows["notes"])
		}
	})
}

// docs/limits.md has a row for each limit, as the table in the program says, and the plans' values.
func TestLimitsInDocs(t *testing.T) {
	raw, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	prices := usual()
	var b strings.Builder
	for _, l := range parley.Limits {
		most, trial := fmt.Sprint(l.Most), fmt.Sprint(l.Most)
		switch {
		case l.OfPlan():
			most, trial = fmt.Sprint(l.Of(prices.Plan(parley.DefaultPlan))), fmt.Sprint(l.Of(prices.Plan(parley.TrialPlan)))
		case l.Setting != "":
			most, trial = "`"+l.Setting+"`", "`"+l.Setting+"`"
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", l.Name, l.What, l.Holder(), l.Span, most, trial)
		if b.WriteString(row); !strings.Contains(text, row) {
			t.Errorf("docs/limits.md lacks: %s", row)
		}
	}
	if n := strings.Count(text, "\n| `"); n != len(parley.Limits) {
		t.Errorf("docs/limits.md has %d rows, and there are %d limits. It should say:\n%s", n, len(parley.Limits), b.String())
	}
}
