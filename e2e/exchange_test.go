package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/e2e/phone"
)

// goroutines is how many the program has, as /metrics says.
func (p *program) goroutines(t *testing.T) int {
	t.Helper()
	res, err := http.Get(p.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^go_goroutines (\d+)`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no go_goroutines in /metrics, answered %s", res.Status)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// portsFree says whether all RTP ports of the program are free.
func (l *line) portsFree(t *testing.T) bool {
	t.Helper()
	for port := int(l.sip.Port()) + 2; port <= int(l.sip.Port())+501; port++ {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
		if err != nil {
			return false
		}
		conn.Close()
	}
	return true
}

// rich lets the account have so many calls at once.
func rich(t *testing.T, calls int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf("plans:\n  default: {parallel_calls: %d}\n", calls)), 0o644); err != nil {
		t.Fatal(err)
	}
	return "PARLEY_PRICES=" + file
}

// A hundred short calls leave nothing behind: no goroutine, no port, no live row, nothing reserved.
func TestPhoneMany(t *testing.T) {
	t.Parallel()
	need(t, "sipp")
	const calls = 100
	l := telephone(t, rich(t, calls))
	l.change(t, map[string]any{"record": false, "post_call_evaluation": false})
	quick := func(n, all int) {
		t.Helper()
		l.sipp(t, "quick", l.ports, nil, "-s", itoa(l.Assistant), "-m", strconv.Itoa(n), "-r", "20", "-l", strconv.Itoa(n), l.sip.String())()
		eventually(t, "all calls to be over", func() bool { return l.total(t, "/user/calls?status=completed") == all })
		http.DefaultClient.CloseIdleConnections()
	}
	quick(20, 20) // what stays for ever is there after these: connections, the queue's workers
	before := l.goroutines(t)
	quick(calls, 20+calls)
	now := 0
	defer func() { t.Logf("%d goroutines before %d calls, %d after", before, calls, now) }()
	eventually(t, "as many goroutines as before", func() bool { now = l.goroutines(t); return now <= before+calls/10 })
	eventually(t, "free ports", func() bool { return l.portsFree(t) })
	for _, c := range l.talks(t) {
		if c.EndedReason != parley.CustomerHangup {
			t.Errorf("call %d ended by %s", c.ID, c.EndedReason)
		}
	}
}

// A program that is killed in a live call closes it after its restart: one row, one charge, one end, one event.
func TestPhoneKilled(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told := map[string]int{}
	hook := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		told[r.Header.Get("webhook-id")]++
	}))
	l := telephone(t)
	l.change(t, map[string]any{"record": true, "is_webhook_active": true, "webhook_url": hook, "send_webhook_only_on_completed": false})
	before := l.balance(t)
	c := l.ring(t, l.phone)
	hears(t, c, c.Answered)
	eventually(t, "seven seconds of the call", func() bool { return time.Since(c.Answered) > 7*time.Second }) // a node says every five that it lives
	id := l.talks(t)[0].ID
	l.kill(t)
	c.Drop()
	l.restart(t)
	row := l.over(t)
	row.expect(t, parley.CallFailed, parley.NodeLost)
	if row.ID != id || len(l.talks(t)) != 1 {
		t.Errorf("%d rows", len(l.talks(t)))
	}
	if !strings.HasPrefix(row.Transcript, "AI: Hello") {
		t.Errorf("what was said before is lost: %q", row.Transcript)
	}
	if paid := before - l.balance(t); row.TotalCost <= 0 || paid-row.TotalCost > 1e-6 || row.TotalCost-paid > 1e-6 {
		t.Errorf("the balance fell by %v, the call cost %v", paid, row.TotalCost)
	}
	left, right, rate := l.recording(t, row)
	if len(left) < rate || len(left) != len(right) {
		t.Errorf("the recording has %d samples at %d Hz", len(left), rate)
	}
	eventually(t, "the event", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) > 0 })
	l.kill(t)
	l.restart(t)
	if again := l.talk(t, id); again.Status != row.Status || again.TotalCost != row.TotalCost || again.Duration != row.Duration {
		t.Errorf("after another restart: %+v, before: %+v", again, row)
	}
	c = l.ring(t, handset(t, phone.Options{})) // and it takes calls
	hears(t, c, c.Answered)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
	eventually(t, "the second event", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) > 1 })
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 2 {
		t.Errorf("two calls were told as %d", len(told))
	}
}

// A server that is full turns a call away with 503, or with 486 where it is the account that has no more room, and live calls go on.
func TestPhoneFull(t *testing.T) {
	t.Parallel()
	l := telephone(t, rich(t, 1))
	c := l.ring(t, l.phone)
	hears(t, c, c.Answered)
	ctx, cancel := timeout(t, patience)
	defer cancel()
	_, err := handset(t, phone.Options{}).Call(ctx, "visitor", strconv.FormatInt(l.Assistant, 10), l.sip)
	if r, ok := err.(*phone.Refused); !ok || r.Code != 486 {
		t.Errorf("the second call: %v", err)
	}
	before := len(c.Packets())
	eventually(t, "the first call to go on", func() bool { return len(c.Packets()) > before+25 })
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	eventually(t, "two rows", func() bool {
		return l.total(t, "/user/calls?status=completed") == 1 && l.total(t, "/user/calls?status=busy") == 1
	})
}
