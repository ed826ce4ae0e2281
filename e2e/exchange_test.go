package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/simulator/phone"
	"parley/internal/store/storetest"
	"parley/internal/testenv"
)

// gauge reads one whole number from /metrics.
func (p *program) gauge(t *testing.T, name string) int {
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
	m := regexp.MustCompile(`(?m)^` + name + ` (\d+)`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in /metrics, answered %s", name, res.Status)
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

// rich gives the account room for so many calls at once.
func rich(t *testing.T, calls int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf("plans:\n  default: {parallel_calls: %d}\n", calls)),
		0o644); err != nil {
		t.Fatal(err)
	}
	return "PARLEY_PRICES=" + file
}

// A hundred short calls leave nothing behind: no goroutine, no port, no live row, nothing reserved.
func TestPhoneMany(t *testing.T) {
	share(t, call)
	need(t, "sipp")
	const calls = 100
	l := telephone(t, rich(t, calls))
	l.change(t, map[string]any{"record": false, "post_call_evaluation": false})
	quick := func(n, all int) {
		t.Helper()
		l.sipp(t, "quick", l.ports, nil, "-s", itoa(l.Assistant), "-m", strconv.Itoa(n), "-r", "20", "-l",
			strconv.Itoa(n), l.sip.String())()
		eventually(t, "all calls to be over", func() bool { return l.total(t, "/user/calls?status=completed") == all })
		http.DefaultClient.CloseIdleConnections()
	}
	quick(20, 20) // after these, what stays for good is there: connections, the queue's workers
	before := l.gauge(t, "go_goroutines")
	quick(calls, 20+calls)
	now := 0
	defer func() { t.Logf("%d goroutines before %d calls, %d after", before, calls, now) }()
	eventually(t, "as many goroutines as before", func() bool { now = l.gauge(t, "go_goroutines"); return now <= before+calls/10 })
	eventually(t, "free ports", func() bool { return l.portsFree(t) })
	for _, c := range l.talks(t) {
		if c.EndedReason != parley.CustomerHangup {
			t.Errorf("call %d ended by %s", c.ID, c.EndedReason)
		}
	}
}

// A program that is killed during a live call closes it after its restart: one row, one charge, one end, one event.
func TestPhoneKilled(t *testing.T) {
	share(t, call)
	var mu sync.Mutex
	told := map[string]int{}
	hook := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		told[r.Header.Get("webhook-id")]++
	}))
	l := telephone(t)
	l.change(t, map[string]any{"record": true, "is_webhook_active": true, "webhook_url": hook,
		"send_webhook_only_on_completed": false})
	before := l.balance(t)
	c := l.ring(t, l.phone)
	hears(t, c, c.Answered)
	// a node gives a sign of life every five seconds
	eventually(t, "seven seconds of the call", func() bool { return time.Since(c.Answered) > 7*time.Second })
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
	if again := l.talk(t, id); again.Status != row.Status || again.TotalCost != row.TotalCost ||
		again.Duration != row.Duration {
		t.Errorf("after another restart: %+v, before: %+v", again, row)
	}
	c = l.ring(t, handset(t, phone.Options{})) // it takes calls again
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

// A full server turns a call away with 503, or with 486 when it is the account that has no room left, and live calls
// go on.
func TestPhoneFull(t *testing.T) {
	share(t, call)
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

// While the sound of calls is sent late, new ones are turned away with 503, those of the API too, and live calls go on. Once
// it is in time again, there is room again.
func TestPhoneLate(t *testing.T) {
	share(t, call)
	l := telephone(t, "PARLEY_MAX_LATE=1ns") // every frame is late
	c := l.ring(t, l.phone)
	hears(t, c, c.Answered)
	eventually(t, "the server to be behind", func() bool { return l.gauge(t, "parley_calls_refused") == 1 })
	call := func() (*phone.Call, error) {
		ctx, cancel := timeout(t, patience)
		defer cancel()
		return handset(t, phone.Options{}).Call(ctx, "visitor", strconv.FormatInt(l.Assistant, 10), l.sip)
	}
	_, err := call()
	if r, ok := err.(*phone.Refused); !ok || r.Code != 503 {
		t.Errorf("another call: %v", err)
	}
	before := len(c.Packets())
	eventually(t, "the first call to go on", func() bool { return len(c.Packets()) > before+25 })
	late := l.gauge(t, "parley_sound_late_frames_total")
	if frames := l.gauge(t, "parley_sound_frames_total"); late < 150 || late > frames {
		t.Errorf("%d of %d frames were late", late, frames)
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	eventually(t, "room for a call", func() bool { return l.gauge(t, "parley_calls_refused") == 0 })
	again, err := call()
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	if err := again.Hangup(); err != nil {
		t.Error(err)
	}
}

// A call over a trunk is authenticated by the trunk's password, and reaches the assistant of its number.
func TestPhoneTrunk(t *testing.T) {
	share(t, call)
	l := telephone(t)
	var made struct {
		Data struct {
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	if status := l.call(t, "POST", "/user/phone-numbers/sip-trunks",
		map[string]any{"name": "The exchange", "phone_number": "+4930901820", "sip_address": "127.0.0.2",
			"sip_username": "bakery", "sip_password": "four-in-the-morning", "inbound_authorization_type": "auth"},
		&made); status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	l.change(t, map[string]any{"phone_number_id": made.Data.PhoneNumberID})
	exchange, err := phone.ListenOn(netip.MustParseAddrPort("127.0.0.2:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer exchange.Close()
	exchange.Username = "bakery"
	call := func(password string) (*phone.Call, error) {
		ctx, cancel := timeout(t, patience)
		defer cancel()
		exchange.Password = password
		return exchange.Call(ctx, "+4930123456", "+4930901820", l.sip)
	}
	eventually(t, "the trunk to be known to the line", func() bool { // it looks every few seconds
		ctx, cancel := timeout(t, 300*time.Millisecond)
		defer cancel()
		_, err := exchange.Call(ctx, "+4930123456", "+4930901820", l.sip)
		var r *phone.Refused
		return errors.As(err, &r) && r.Code == 401
	})
	var r *phone.Refused
	if _, err := call("five-in-the-morning"); !errors.As(err, &r) {
		t.Errorf("with a wrong password: %v", err)
	}
	if n := len(l.talks(t)); n != 0 {
		t.Errorf("%d calls before anybody knew the password", n)
	}
	c, err := call("four-in-the-morning")
	if err != nil {
		t.Fatal(err)
	}
	hears(t, c, c.Answered)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if row.Customer != "+4930123456" || row.Own != "+4930901820" || row.Type != "inbound" {
		t.Errorf("%+v", row)
	}
}

// Two nodes share one database; when one is killed, the other closes its calls.
func TestPhoneNodes(t *testing.T) {
	share(t, call)
	one := telephone(t, "PARLEY_DATABASE="+storetest.Postgres(t), "PARLEY_SECRET_KEY=the same on all nodes")
	at := testenv.Ports(t, 800)
	// for the nodes that join
	one.env = append(one.env, fmt.Sprintf("PARLEY_SIP_LISTEN=127.0.0.1:%d", at),
		fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", at+2, at+501))
	two := &line{program: one.join(t), sip: netip.AddrPortFrom(one.sip.Addr(), uint16(at)), phone: one.phone}
	mine, theirs := one.ring(t, one.phone), two.ring(t, handset(t, phone.Options{}))
	hears(t, mine, mine.Answered)
	hears(t, theirs, theirs.Answered)
	eventually(t, "seven seconds of the call", func() bool { return time.Since(mine.Answered) > 7*time.Second })
	one.kill(t)
	mine.Drop()
	lost := func() (c talk) {
		for _, row := range two.talks(t) {
			if row.EndedReason == parley.NodeLost {
				c = row
			}
		}
		return c
	}
	eventually(t, "the other node to close the call", func() bool { return lost().ID != 0 })
	if c := lost(); c.Status != parley.CallFailed || c.TotalCost <= 0 {
		t.Errorf("%+v", c)
	}
	before := len(theirs.Packets())
	eventually(t, "its own call to go on", func() bool { return len(theirs.Packets()) > before+25 })
	if err := theirs.Hangup(); err != nil {
		t.Error(err)
	}
	eventually(t, "both rows to be over", func() bool {
		all := two.talks(t)
		return len(all) == 2 && !all[0].Status.Live() && !all[1].Status.Live()
	})
	spent := 0.0
	for _, c := range two.talks(t) {
		spent += c.TotalCost
	}
	if left := two.balance(t); left < 100-spent-1e-6 || left > 100-spent+1e-6 {
		t.Errorf("the calls cost %v, the balance is %v", spent, left)
	}
}

// Thousands of strangers who call at once get no call through and disturb no live one.
func TestPhoneFlood(t *testing.T) {
	share(t, call)
	l := telephone(t)
	c := l.ring(t, l.phone)
	hears(t, c, c.Answered)
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, net.UDPAddrFromAddrPort(l.sip))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const n = 10000
	began := time.Now()
	for i := range n {
		fmt.Fprintf(conn, "INVITE sip:%d@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.2:9;branch=z9hG4bK%d\r\nMax-Forwards: 70\r\n"+
			"From: <sip:scan@127.0.0.2>;tag=%d\r\n"+
			"To: <sip:%d@127.0.0.1>\r\nCall-ID: %d\r\nCSeq: 1 INVITE\r\nContact: <sip:scan@127.0.0.2>\r\nContent-Length: 0\r\n\r\n", i, i, i, i, i)
		if i%100 == 99 { // packets that overflow the socket's buffer would prove nothing
			time.Sleep(time.Until(began.Add(time.Duration(i) * 200 * time.Microsecond)))
		}
	}
	took := time.Since(began)
	eventually(t, "the live call to go on", func() bool {
		p := c.Packets()
		return p[len(p)-1].At.After(began.Add(took + time.Second))
	})
	var gaps []time.Duration
	packets := c.Packets()
	for i := 1; i < len(packets); i++ {
		if packets[i].At.After(began) {
			gaps = append(gaps, packets[i].At.Sub(packets[i-1].At))
		}
	}
	slices.Sort(gaps)
	t.Logf("%d INVITEs in %v; between packets of the live call p50 %v, p99 %v, at most %v", n,
		took.Round(time.Millisecond), gaps[len(gaps)/2], gaps[len(gaps)*99/100], gaps[len(gaps)-1])
	if p := gaps[len(gaps)*9/10]; p > 45*time.Millisecond {
		t.Errorf("every tenth packet of the live call came after %v and more", p)
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
	if rows := len(l.talks(t)); rows != 1 {
		t.Errorf("%d rows", rows)
	}
}
