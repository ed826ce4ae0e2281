package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/carrier/carriertest"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
	"parley/internal/store"
	"parley/internal/testenv"
)

const secretKey = "0123456789abcdef0123456789abcdef"

// twilio returns the settings of a program whose carrier is a local server.
func twilio(s *carriertest.Server) []string {
	return []string{"PARLEY_TWILIO_ACCOUNT_SID=" + carriertest.AccountSID, "PARLEY_TWILIO_AUTH_TOKEN=" +
		carriertest.AuthToken, "PARLEY_TWILIO_BASE_URL=" + s.URL,
		"PARLEY_SECRET_KEY=" + secretKey}
}

// data opens the stopped program's database.
func (p *program) data(t *testing.T, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	secret := sha256.Sum256([]byte(secretKey))
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(strings.TrimPrefix(p.env[0],
		"PARLEY_DATA="), "parley.db"), Secret: secret[:]})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// purchase searches for a number and buys it.
func (p *program) purchase(t *testing.T) (id int64, number string) {
	t.Helper()
	var found struct {
		Data []struct {
			PhoneNumber string `json:"phone_number"`
		} `json:"data"`
	}
	p.call(t, "GET", "/user/phone-numbers/search", nil, &found)
	var bought struct {
		Data struct {
			ID int64 `json:"id"`
		} `json:"data"`
	}
	number = found.Data[0].PhoneNumber
	if status := p.call(t, "POST", "/user/phone-numbers/purchase", map[string]any{"phone_number": number},
		&bought); status != 201 {
		t.Fatalf("buying %s answered %d", number, status)
	}
	return bought.Data.ID, number
}

// until polls until so returns true.
func until(t *testing.T, what string, wait time.Duration, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(wait); !so(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

// total returns how many rows a list has.
func (p *program) total(t *testing.T, path string) (n int) {
	t.Helper()
	var page struct {
		Total int `json:"total"`
	}
	p.call(t, "GET", path, nil, &page)
	return page.Total
}

// A program that is killed while messages are on their way to the carrier, a purchase is under way and rent is being
// collected finishes all of it after its restart: every message is sent once, every number is rented once, and
// everything is charged once.
func TestLineKilled(t *testing.T) {
	share(t, call)
	const due, messages = 3000, 12
	carrier := carriertest.NewServer(t)
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, fmt.Appendf(nil, "plans:\n  default:\n    numbers: %d\n", due+2),
		0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, append(twilio(carrier), "PARLEY_PRICES="+prices)...)
	from, _ := p.purchase(t)
	var wanted string
	{
		var found struct {
			Data []struct {
				PhoneNumber string `json:"phone_number"`
			} `json:"data"`
		}
		p.call(t, "GET", "/user/phone-numbers/search", nil, &found)
		wanted = found.Data[0].PhoneNumber
	}
	p.stop(t)
	rent := parley.USD / 100
	p.data(t, func(ctx context.Context, tx *store.Tx) error {
		u, err := tx.UserByEmail(ctx, p.Email)
		if err != nil {
			return err
		}
		for i := range due {
			n := &parley.Number{PhoneNumber: fmt.Sprintf("+1310%07d", 2000000+i), CountryCode: "US",
				Type: parley.NumberNormal, Rent: rent, PaidUntil: parley.Now().Add(-time.Hour)}
			if err := tx.CreateNumber(ctx, u.ID, n); err != nil {
				return err
			}
		}
		return nil
	})

	// The purchase and half of the messages reach the carrier, but its answers don't come back; the other half of the
	// messages is not accepted.
	arrived, release := make(chan string, messages+1), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	defer answer() // otherwise the carrier hangs for ever if the test gives up
	hang := func(r *http.Request, key string) {
		arrived <- key
		<-release
	}
	carrier.Fail = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "POST" {
			return false
		}
		r.ParseForm()
		if i, err := strconv.Atoi(strings.TrimPrefix(r.Form.Get("Body"), "message ")); err == nil && i%2 == 1 {
			hang(r, r.Form.Get("Body"))
			return true
		}
		return false
	}
	carrier.Cut = func(r *http.Request) bool {
		if r.Method != "POST" {
			return false
		}
		hang(r, r.Form.Get("Body"))
		return true
	}
	p.restart(t)
	until(t, "rent is being collected", patience, func() bool { return p.total(t, "/user/billing/ledger") > 2 })
	var clients sync.WaitGroup
	post := func(path string, body any) {
		clients.Go(func() { // its answer never comes
			raw, _ := json.Marshal(body)
			r, err := http.NewRequest("POST", p.URL+"/api"+path, bytes.NewReader(raw))
			if err != nil {
				return
			}
			r.Header.Set("Authorization", "Bearer "+p.Key)
			r.Header.Set("Content-Type", "application/json")
			if res, err := http.DefaultClient.Do(r); err == nil {
				res.Body.Close()
			}
		})
	}
	for i := range messages {
		post("/user/sms", map[string]any{"from": from, "to": "+12025550777", "body": fmt.Sprint("message ", i)})
	}
	post("/user/phone-numbers/purchase", map[string]any{"phone_number": wanted})
	for range messages + 1 {
		select {
		case <-arrived:
		case <-time.After(patience):
			t.Fatal("not everything reached the carrier")
		}
	}
	collected := p.total(t, "/user/billing/ledger")
	p.kill(t)
	t.Logf("killed with %d ledger entries", collected)
	answer()
	clients.Wait()
	carrier.Fail, carrier.Cut = nil, nil
	p.restart(t)

	entries := 1 + 1 + due + messages + 1 // the opening balance, the first number, rent, messages, the second number
	until(t, "everything is finished", 2*time.Minute, func() bool {
		return p.total(t, "/user/billing/ledger") >= entries && p.total(t, "/user/sms?status=queued") == 0
	})
	sent := map[string]int{}
	for _, m := range carrier.Messages() {
		sent[m.Body]++
	}
	for i := range messages {
		if n := sent[fmt.Sprint("message ", i)]; n != 1 {
			t.Errorf("message %d was sent %d times", i, n)
		}
	}
	if n := p.total(t, "/user/sms?status=sent"); n != messages {
		t.Errorf("%d messages stand as sent", n)
	}
	if _, ok := carrier.Rented()[wanted]; !ok || carrier.Requests("DELETE", "") != 0 {
		t.Errorf("the number that was being bought is not rented")
	}
	seen, sum := map[string]int{}, parley.Money(0)
	for page := 1; page <= entries/100+1; page++ {
		var list struct {
			Data []parley.LedgerEntry `json:"data"`
		}
		p.call(t, "GET", fmt.Sprint("/user/billing/ledger?per_page=100&page=", page), nil, &list)
		for _, e := range list.Data {
			seen[string(e.Kind)]++
			sum += e.Amount
		}
	}
	if seen["rent"] != due+2 || seen["sms"] != messages || seen["refund"] != 0 || seen["credit"] != 1 {
		t.Errorf("the ledger holds %v", seen)
	}
	var me struct {
		Balance parley.Money `json:"total_balance"`
	}
	p.call(t, "GET", "/user/me", nil, &me)
	want := 100*parley.USD - due*rent - 2*1_150_000 - messages*8300
	if me.Balance != want || sum != want {
		t.Errorf("balance %v, ledger %v, want %v", me.Balance, sum, want)
	}
	if strings.Contains(p.log.String(), carriertest.AuthToken) {
		t.Error("the carrier's secret is in the log")
	}
}

// An incoming message through Twilio is answered by the number's assistant, and the answer's delivery status is known.
func TestTwilioWebhooks(t *testing.T) {
	share(t, call)
	at := fmt.Sprintf("127.0.0.1:%d", testenv.Ports(t, 1))
	public := "http://" + at
	carrier := carriertest.NewServer(t)
	p := start(t, append(twilio(carrier), "PARLEY_LISTEN="+at, "PARLEY_PUBLIC_URL="+public)...)
	id, number := p.purchase(t)
	if got := carrier.Rented()[number]; got != public+"/webhooks/twilio/sms" {
		t.Errorf("the number's messages go to %q", got)
	}
	if status := p.call(t, "PUT", fmt.Sprint("/user/assistant/", p.Assistant),
		map[string]any{"phone_number_id": id}, nil); status != 200 {
		t.Fatalf("assigning the number answered %d", status)
	}
	tell := func(r *http.Request, want int) {
		t.Helper()
		body, _ := io.ReadAll(r.Body)
		out, err := http.NewRequest("POST", r.URL.String(), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		out.Header = r.Header
		res, err := http.DefaultClient.Do(out)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != want {
			text, _ := io.ReadAll(res.Body)
			t.Errorf("%s answered %d, want %d: %s", r.URL, res.StatusCode, want, text)
		}
	}
	form := func() url.Values { return carriertest.Inbound("SMin1", "+12025550777", number, "When are you open?") }
	forged := carriertest.Signed(public+"/webhooks/twilio/sms", form())
	forged.Header.Set("X-Twilio-Signature", "Zm9yZ2Vk")
	tell(forged, 403)
	for range 3 { // Twilio repeats some webhooks
		tell(carriertest.Signed(public+"/webhooks/twilio/sms", form()), 200)
	}
	until(t, "the assistant answers", patience, func() bool { return len(carrier.Messages()) == 1 })
	reply := carrier.Messages()[0]
	if reply.To != "+12025550777" || reply.From != number || !strings.Contains(reply.Body, "7 am") {
		t.Errorf("the answer is %+v", reply)
	}
	for _, status := range []string{"delivered", "sent", "delivered", "queued"} {
		tell(reply.Told(status), 204)
	}
	if n := p.total(t, "/user/sms?status=delivered"); n != 1 {
		t.Errorf("%d messages are delivered", n)
	}
	if n := p.total(t, "/user/conversations?type=api"); n != 1 {
		t.Errorf("%d conversations", n)
	}
	tell(carriertest.Signed(public+"/webhooks/twilio/sms",
		carriertest.Inbound("SMin2", "+12025550777", number, "STOP")), 200)
	var refused struct {
		Message string `json:"message"`
	}
	if status := p.call(t, "POST", "/user/sms", map[string]any{"from": id, "to": "+12025550777", "body": "Buy!"},
		&refused); status != 400 || !strings.Contains(refused.Message, "opted out") {
		t.Errorf("after STOP: %d %s", status, refused.Message)
	}
	if len(carrier.Messages()) != 1 {
		t.Errorf("sent %+v", carrier.Messages()[1:])
	}
}

// The doctor checks the account at Twilio, and never prints its secret.
func TestDoctorAsksTwilio(t *testing.T) {
	share(t, call)
	carrier := carriertest.NewServer(t)
	doctor := func(env ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, "doctor")
		cmd.Env = append(os.Environ(), append([]string{"PARLEY_DATA=" + t.TempDir(), "PARLEY_LISTEN=127.0.0.1:0"},
			env...)...)
		out, _ := cmd.CombinedOutput() // it fails because other things are missing here
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, " carrier ") {
				return line
			}
		}
		t.Fatalf("no word of the carrier in\n%s", out)
		return ""
	}
	for want, env := range map[string][]string{
		"note sandbox":                        nil,
		"note but without PARLEY_PUBLIC_URL":  twilio(carrier),
		"ok " + carriertest.AccountSID:        append(twilio(carrier), "PARLEY_PUBLIC_URL=https://voice.example.com"),
		"FAIL refuses":                        append(twilio(carrier), "PARLEY_TWILIO_AUTH_TOKEN=wrong-token"),
		"FAIL needs PARLEY_TWILIO_AUTH_TOKEN": {"PARLEY_TWILIO_ACCOUNT_SID=AC1"},
		"FAIL can't be reached":               append(twilio(carrier), "PARLEY_TWILIO_BASE_URL=http://127.0.0.1:1"),
	} {
		state, text, _ := strings.Cut(want, " ")
		if got := doctor(env...); !strings.HasPrefix(got, state+" ") || !strings.Contains(got, text) ||
			strings.Contains(got, carriertest.AuthToken) || strings.Contains(got, "wrong-token") {
			t.Errorf("the doctor says %q, want %q", got, want)
		}
	}
}

// A test call over a trunk, to an extension, says its sentence in a voice of this server, and reports what it saw.
func TestTrunkTestCall(t *testing.T) {
	share(t, call)
	l := telephone(t)
	desk := handset(t, phone.Options{})
	var made struct{ Data struct{ ID int64 } }
	if status := l.call(t, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "Desk", "phone_number": "+4930901820",
		"sip_address": desk.Addr().String(), "inbound_authorization_type": "ip", "allowed_inbound_ips": []string{"127.0.0.1"}},
		&made); status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	var report parley.TestCall
	done := make(chan int, 1)
	go func() {
		done <- l.call(t, "POST", fmt.Sprintf("/user/phone-numbers/sip-trunks/%d/test-call", made.Data.ID),
			map[string]any{"phone_number": "204"}, &report)
	}()
	ctx, cancel := timeout(t, patience)
	defer cancel()
	in, err := desk.Next(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, l.log)
	}
	in.Ring()
	d, err := in.Answer()
	if err != nil {
		t.Fatal(err)
	}
	hears(t, d, d.Answered)
	if status := <-done; status != http.StatusOK {
		t.Fatalf("the test call is answered %d", status)
	}
	loud := 0
	for _, p := range d.Packets() {
		if p.Loud() {
			loud++
		}
	}
	if loud < 150 { // of 20 ms: the sentence takes over five seconds
		t.Errorf("%d packets have sound", loud)
	}
	if report.EndedReason != parley.AssistantHangup || report.AnsweredMS == nil {
		t.Errorf("the report: %+v", report)
	}
	for _, f := range report.Findings {
		if f.State == parley.FindingFail && !strings.Contains(f.Text, "No sound came") { // the desk says nothing
			t.Errorf("the report: %+v", f)
		}
	}
	if strings.Contains(l.log.String(), "panicked") {
		t.Error(l.log)
	}
}
