package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/testenv"
)

// campaign makes a campaign of the first assistant, which must be outbound.
func (p *program) campaign(t *testing.T, assistant int64, fields map[string]any) int64 {
	t.Helper()
	body := map[string]any{"name": "Spring", "assistant_id": assistant}
	for k, v := range fields {
		body[k] = v
	}
	var made struct {
		Message string
		Data    struct{ ID int64 }
	}
	if status := p.call(t, "POST", "/user/campaigns", body, &made); status != http.StatusCreated {
		t.Fatalf("the campaign is answered %d %s", status, made.Message)
	}
	return made.Data.ID
}

// importLeads adds a CSV list to a campaign.
func (p *program) importLeads(t *testing.T, campaign int64, list string) (imported, skipped int) {
	t.Helper()
	out, in := io.Pipe()
	w := multipart.NewWriter(in)
	go func() {
		w.WriteField("campaign_id", fmt.Sprint(campaign))
		f, _ := w.CreateFormFile("file", "list.csv")
		io.WriteString(f, list)
		in.CloseWithError(w.Close())
	}()
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/api/user/leads/import", out)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.Key)
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Data struct{ Imported, Skipped int }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the list is answered %s: %v", res.Status, err)
	}
	return answer.Data.Imported, answer.Data.Skipped
}

// campaignDo starts or stops a campaign.
func (p *program) campaignDo(t *testing.T, campaign int64, action string) {
	t.Helper()
	var answer struct{ Message string }
	if status := p.call(t, "POST", "/user/campaigns/update-status",
		map[string]any{"campaign_id": campaign, "action": action}, &answer); status != http.StatusOK {
		t.Fatalf("%s is answered %d %s", action, status, answer.Message)
	}
}

func (p *program) campaignStats(t *testing.T, campaign int64) (s parley.CampaignStats) {
	t.Helper()
	if status := p.call(t, "GET", fmt.Sprintf("/user/campaigns/%d/stats", campaign), nil, &s); status != http.StatusOK {
		t.Fatalf("the stats are answered %d", status)
	}
	return s
}

// A campaign on a server without a trunk: one lead answers, one is busy, one does not answer, one has voicemail. The
// exported list has the result of each.
func TestCampaignSandbox(t *testing.T) {
	share(t, call)
	l := telephone(t)
	number, _ := l.purchase(t)
	l.outbound(t, number, map[string]any{"ringing_time": 2, "end_call_on_voicemail": 1,
		"initial_message": "Good morning, {{name}}.", "record": false})
	c := l.campaign(t, l.Assistant, map[string]any{"max_calls_in_parallel": 4})
	if n, bad := l.importLeads(t, c, "phone_number;name\n+12025550123;Ana\n+12025550003;Bo\n+12025550004;Cy\n"+
		"+12025550005;Di\nnobody;Ed\n"); n != 4 || bad != 1 {
		t.Fatalf("%d imported, %d skipped", n, bad)
	}
	l.campaignDo(t, c, "start")
	var s parley.CampaignStats
	eventually(t, "four calls", func() bool { s = l.campaignStats(t, c); return s.Calls == 4 })
	if s.Answered != 1 || s.Busy != 1 || s.NoAnswer != 1 || s.Voicemail != 1 || s.ByStatus["completed"] != 2 ||
		s.ByStatus["rescheduled"] != 2 {
		t.Errorf("%+v", s)
	}
	for _, row := range l.talks(t) {
		t.Logf("call %d: %s by %s, %d s, answered by %s", row.ID, row.Status, row.EndedReason, row.Duration,
			row.AnsweredBy)
	}
	rows := l.export(t, c)
	want := map[string]string{"Ana": "completed answered human", "Bo": "rescheduled busy unknown",
		"Cy": "rescheduled no_answer unknown", "Di": "completed voicemail machine"}
	for _, r := range rows {
		if got := r["lead_status"] + " " + r["outcome"] + " " + r["answered_by"]; got != want[r["name"]] {
			t.Errorf("%s is %s, want %s", r["name"], got, want[r["name"]])
		}
		if r["lead_status"] == "rescheduled" {
			if next, err := time.Parse(time.DateTime, r["next_attempt_at"]); err != nil ||
				time.Until(next) < 55*time.Minute {
				t.Errorf("%s is called again at %s: %v", r["name"], r["next_attempt_at"], err)
			}
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
	var page struct {
		Data []struct {
			Transcript   string
			CampaignName string `json:"campaign_name"`
		}
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls?campaign_id=%d&phone_number=%%2B12025550123", c), nil, &page)
	if len(page.Data) != 1 || page.Data[0].CampaignName != "Spring" ||
		!strings.HasPrefix(page.Data[0].Transcript, "AI: Good morning, Ana.") {
		t.Errorf("%+v", page.Data)
	}
}

// export reads a campaign's exported list, each row by column.
func (p *program) export(t *testing.T, campaign int64) (list []map[string]string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET",
		fmt.Sprintf("%s/api/user/campaigns/%d/export", p.URL, campaign), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("the export is answered %s: %v", res.Status, err)
	}
	for _, row := range rows[1:] {
		of := map[string]string{}
		for i, name := range rows[0] {
			of[name] = row[i]
		}
		list = append(list, of)
	}
	return list
}

// crowd is the far end of many calls: sipp, which writes down who is called.
type crowd struct{ log string }

func newCrowd(t *testing.T, port int) *crowd {
	t.Helper()
	need(t, "sipp")
	dir := t.TempDir()
	greeting := append(speech(t, "You have reached my voice mail. I am not available. Please leave a message after the tone."),
		make([]int16, 3000)...)
	greeting = append(append(greeting, tone(1000, 500*time.Millisecond)...), make([]int16, 20*8000)...)
	if err := os.WriteFile(filepath.Join(dir, "greeting.ulaw"), audio.EncodeULaw(nil, greeting), 0o644); err != nil {
		t.Fatal(err)
	}
	scenario, err := filepath.Abs("testdata/sipp/crowd.xml")
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{filepath.Join(dir, "log")}
	cmd := exec.Command("sipp", "-sf", scenario, "-i", "127.0.0.1", "-mi", "127.0.0.1", "-p", strconv.Itoa(port),
		"-mp", strconv.Itoa(port+100), "-nostdin",
		"-trace_logs", "-log_file", c.log, "-trace_err", "-error_file", filepath.Join(dir, "errors"))
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if wrong, err := os.ReadFile(filepath.Join(dir, "errors")); err == nil && t.Failed() {
			t.Logf("sipp says: %.2000s", wrong)
		}
	})
	return c
}

// called returns when each number was called.
func (c *crowd) called(t *testing.T) map[string][]time.Time {
	t.Helper()
	f, err := os.Open(c.log)
	if err != nil {
		return nil // nobody was called
	}
	defer f.Close()
	list := map[string][]time.Time{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // day, time, seconds since 1970, number
		if len(fields) != 4 {
			continue // the line is still being written
		}
		seconds, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			t.Fatalf("sipp wrote down %q", lines.Text())
		}
		list["+"+fields[3]] = append(list["+"+fields[3]], time.UnixMicro(int64(seconds*1e6)))
	}
	return list
}

func (c *crowd) total(t *testing.T) (n int) {
	for _, times := range c.called(t) {
		n += len(times)
	}
	return n
}

// joinLine runs one more node, with its own telephone line, on another node's database.
func (l *line) joinLine(t *testing.T) *program {
	t.Helper()
	first := testenv.Ports(t, 800)
	own := *l.program
	own.env = append(append([]string{}, l.env...), fmt.Sprintf("PARLEY_SIP_LISTEN=127.0.0.1:%d", first),
		fmt.Sprintf("PARLEY_RTP_PORTS=%d-%d", first+2, first+501))
	return own.join(t)
}

// Three processes on one PostgreSQL run campaigns against far ends that answer, are busy, ring out or play a greeting,
// and one process is killed in the middle. By the far end's own log, nobody is rung twice for one attempt, nobody is
// lost, and nobody is called outside their hours.
func TestCampaignNodes(t *testing.T) {
	share(t, recognizer)
	const secret, each = "the same on all nodes", 30
	pg := storetest.Postgres(t)
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("plans:\n  default: {campaigns: 20, parallel_calls: 16, tools: 100}\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	l := telephone(t, "PARLEY_DATABASE="+pg, "PARLEY_SECRET_KEY="+secret, "PARLEY_PRICES="+prices,
		"PARLEY_CALL_DAILY_SPEND=0", "PARLEY_BLOB="+t.TempDir()) // any node may finish an import
	two, three := l.joinLine(t), l.joinLine(t)
	far := newCrowd(t, l.ports)
	l.trunk(t, l.ports, map[string]any{"ringing_time": 2, "end_call_on_voicemail": 1, "record": false,
		"post_call_evaluation": false, "post_call_schema": []any{}})
	now := time.Now().UTC()
	clock := func(d time.Duration) string { return now.Add(d).Format("15:04") }
	open := map[string]any{"max_calls_in_parallel": 8, "retry_interval": 10, "timezone": "UTC",
		"allowed_hours_start_time": clock(-time.Hour), "allowed_hours_end_time": clock(time.Hour)}
	closed := map[string]any{"timezone": "UTC", "allowed_hours_start_time": clock(2 * time.Hour),
		"allowed_hours_end_time": clock(4 * time.Hour)}
	list := func(from int) string {
		var b strings.Builder
		b.WriteString("phone_number\n")
		for i := range each {
			fmt.Fprintf(&b, "+4930901820%03d\n", from+i)
		}
		return b.String()
	}
	a, b, night := l.campaign(t, l.Assistant, open), l.campaign(t, l.Assistant, open),
		l.campaign(t, l.Assistant, closed)
	for i, c := range []int64{a, b, night} {
		if n, bad := []*program{l.program, two, three}[i].importLeads(t, c, list(100+100*i)); n != each || bad != 0 {
			t.Fatalf("%d imported, %d skipped", n, bad)
		}
		three.campaignDo(t, c, "start") // the third node sees the start first, and has most of the calls
	}
	// What is killed must have had calls.
	eventually(t, "the middle", func() bool { return far.total(t) >= each && three.gauge(t, "parley_calls_live") >= 2 })
	three.kill(t)
	killed := time.Now()
	defer func() { // which leads hang, and in what calls
		for _, lead := range append(leadsOf(t, l.program, a), leadsOf(t, l.program, b)...) {
			if t.Failed() && lead.Status != parley.LeadCompleted && lead.Status != parley.LeadRescheduled {
				var page struct{ Data []talk }
				l.call(t, "GET", fmt.Sprintf("/user/calls?phone_number=%%2B%s&per_page=100", lead.PhoneNumber[1:]), nil, &page)
				t.Logf("%+v: %+v", lead, page.Data)
			}
		}
	}()
	settled := func() bool {
		sa, sb := l.campaignStats(t, a), l.campaignStats(t, b)
		return sa.ByStatus["completed"]+sa.ByStatus["rescheduled"]+sb.ByStatus["completed"]+sb.ByStatus["rescheduled"] == 2*each
	}
	// What the node had claimed and not begun is free after 30 s, and is then called.
	inTime(t, 6*patience, "every lead's first attempt", settled)
	t.Logf("settled %s after the kill", time.Since(killed).Round(time.Second))
	lost := judgeCrowd(t, l, far, a, b)
	if lost == 0 {
		t.Error("the node had no calls when it was killed: this proves nothing")
	}
	t.Logf("%d calls at the far end, %d calls lost with the node", far.total(t), lost)

	// The interval is over: each lead that waits for another attempt gets exactly one.
	hastened := hasten(t, pg, secret, l.Email)
	eventually(t, "the second attempts", func() bool { return attempts(t, l, a, b) >= 2*each+hastened && settled() })
	judgeCrowd(t, l, far, a, b)
	for number := range far.called(t) {
		if strings.HasPrefix(number, "+49309018203") {
			t.Errorf("%s was called outside of its hours", number)
		}
	}
	if s := two.campaignStats(t, night); s.ByStatus["created"] != each {
		t.Errorf("%+v", s)
	}
}

// leadRow is a lead as the API returns it.
type leadRow struct {
	ID          int64
	PhoneNumber string `json:"phone_number"`
	Status      parley.LeadStatus
	Attempts    int
	Outcome     *parley.Outcome
}

func leadsOf(t *testing.T, p *program, campaign int64) []leadRow {
	t.Helper()
	var page struct{ Data []leadRow }
	p.call(t, "GET", fmt.Sprintf("/user/leads?campaign_id=%d&per_page=100", campaign), nil, &page)
	return page.Data
}

// attempts counts the calls of campaigns.
func attempts(t *testing.T, l *line, campaigns ...int64) (n int) {
	t.Helper()
	for _, c := range campaigns {
		n += l.total(t, fmt.Sprintf("/user/calls?campaign_id=%d", c))
	}
	return n
}

// judgeCrowd compares the far end's log with the calls of campaigns: each call reached it once, except the calls that
// were lost with a node. It returns how many were lost.
func judgeCrowd(t *testing.T, l *line, far *crowd, campaigns ...int64) (lost int) {
	t.Helper()
	called := far.called(t)
	for _, c := range campaigns {
		for _, lead := range leadsOf(t, l.program, c) {
			var page struct{ Data []talk }
			l.call(t, "GET", fmt.Sprintf("/user/calls?campaign_id=%d&phone_number=%%2B%s&per_page=100", c,
				lead.PhoneNumber[1:]), nil, &page)
			gone := 0
			for _, call := range page.Data {
				if call.EndedReason == parley.NodeLost {
					gone++
				}
			}
			lost += gone
			if n := len(called[lead.PhoneNumber]); n > len(page.Data) || n < len(page.Data)-gone ||
				len(page.Data) == 0 {
				t.Errorf("%s has %d calls, %d of them lost with their node, and was rung %d times",
					lead.PhoneNumber, len(page.Data), gone, n)
			}
			want := map[byte]parley.Outcome{'6': parley.OutcomeBusy, '7': parley.OutcomeBusy,
				'8': parley.OutcomeNoAnswer, '9': parley.OutcomeVoicemail}[lead.PhoneNumber[len(lead.PhoneNumber)-1]]
			if want == "" {
				want = parley.OutcomeAnswered
			}
			if lead.Outcome == nil || *lead.Outcome != want && gone == 0 {
				t.Errorf("%s is %s", lead.PhoneNumber, value(lead.Outcome))
			}
		}
	}
	return lost
}

func value(o *parley.Outcome) string {
	if o == nil {
		return "without an outcome"
	}
	return string(*o)
}

// hasten ends the waiting interval of every lead, and returns how many leads wait.
func hasten(t *testing.T, postgres, secret, email string) (n int) {
	t.Helper()
	key := sha256.Sum256([]byte(secret))
	db, err := store.Open(t.Context(), store.Options{Postgres: postgres, Secret: key[:]})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	u, err := db.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := db.Leads(t.Context(), u.ID, store.LeadFilter{Status: parley.LeadRescheduled},
		store.Page{Number: 1, Size: 1000})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for i := range list {
			l, err := tx.LockLead(ctx, u.ID, list[i].ID)
			if err != nil || l.Status != parley.LeadRescheduled {
				return err
			}
			l.DueAt = parley.Now()
			if err := tx.SaveLead(ctx, u.ID, l); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
