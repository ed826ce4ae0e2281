package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// What the API tells of the things that are judged.
type (
	callRow struct {
		ID        int64
		Status    string
		Customer  string  `json:"client_phone_number"`
		Ended     string  `json:"ended_reason"`
		Cost      float64 `json:"total_cost"`
		EndedAt   *string `json:"ended_at"`
		AnswerdAt *string `json:"answered_at"`
	}
	textRow struct {
		ID     int64
		Body   string
		Status string
		Cost   float64 `json:"total_cost"`
	}
	documentRow struct {
		ID     int64
		Status string
		Error  *string
	}
	entry struct {
		ID        int64
		Kind      string
		Amount    float64
		Reference string
	}
	message struct {
		ID      int64
		Role    string
		Content string
		Error   *string
	}
	conversation struct {
		ID       string
		Cost     float64 `json:"total_cost"`
		Messages []message
		History  []message
	}
)

// settled is for how long nothing of what was under way may come to an end: a webhook's second attempt comes after half a minute,
// the third after another minute, and calls of a process that was killed are closed after a quarter of a minute.
const settled = 3 * time.Minute

// judge waits until all that was under way has ended, and says what is wrong then. After a soak most rows are gone, as they should be: the
// ledger, which stays, is held against what the far ends counted.
func judge(w *world, l *load, soak bool) (wrong []string) {
	var open []string
	var err error
	fewest := math.MaxInt
	for deadline := time.Now().Add(settled); ; time.Sleep(500 * time.Millisecond) {
		if open, err = unfinished(w, l); err == nil && len(open) == 0 {
			break
		}
		if err == nil && len(open) < fewest { // documents stand in line on a slow machine
			fewest, deadline = len(open), time.Now().Add(settled)
		}
		if time.Now().After(deadline) {
			if err != nil {
				open = append(open, err.Error())
			}
			wrong = append(wrong, open...)
			break
		}
	}
	l.mu.Lock()
	wrong = append(wrong, l.wordless...)
	l.mu.Unlock()
	w.mu.Lock()
	wrong = append(wrong, w.unfit...)
	w.mu.Unlock()
	money, err := ledger(w)
	if err != nil {
		return append(wrong, err.Error())
	}
	wrong = append(wrong, money.wrong...)
	judges := []func(*world, *load, *account) ([]string, error){judgeCalls, judgeTexts, judgeDocuments, judgeChats}
	if soak {
		judges = []func(*world, *load, *account) ([]string, error){judgeLedger, judgeDocuments}
	}
	for _, by := range judges {
		found, err := by(w, l, money)
		if err != nil {
			return append(wrong, err.Error())
		}
		wrong = append(wrong, found...)
	}
	return wrong
}

// unfinished is what has not ended yet.
func unfinished(w *world, l *load) (open []string, err error) {
	calls, err := all[callRow](w.program, "/user/calls")
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		w.mu.Lock()
		told := w.told[c.ID]
		w.mu.Unlock()
		if c.Ended == "" || c.EndedAt == nil {
			open = append(open, fmt.Sprintf("call %d to %s has not ended: %s", c.ID, c.Customer, c.Status))
		} else if told == 0 {
			open = append(open, fmt.Sprintf("no webhook tells of call %d, which ended by %s", c.ID, c.Ended))
		}
	}
	texts, err := all[textRow](w.program, "/user/sms?status=queued")
	if err != nil {
		return nil, err
	}
	for _, m := range texts {
		open = append(open, fmt.Sprintf("text message %d is %s", m.ID, m.Status))
	}
	documents, err := all[documentRow](w.program, w.documents)
	for _, d := range documents {
		if d.Status == "processing" {
			open = append(open, fmt.Sprintf("document %d is %s", d.ID, d.Status))
		}
	}
	if err != nil {
		return open, err
	}
	l.mu.Lock()
	ids := slices.Clone(l.conversations)
	l.mu.Unlock()
	for _, id := range ids {
		var c conversation
		if err := w.must("GET", "/user/conversations/"+id, nil, &c); err != nil {
			return nil, err
		}
		list := slices.Concat(c.Messages, c.History)
		if n := len(list); n > 0 && list[n-1].Role == "user" && list[n-1].Error == nil {
			open = append(open, fmt.Sprintf("message %d of %s waits for its reply", list[n-1].ID, id))
		}
	}
	return open, nil
}

// account is the ledger: what was charged, by reference and kind.
type account struct {
	by    map[string][]entry
	wrong []string
}

func near(a, b float64) bool { return math.Abs(a-b) < 5e-7 }

// ledger reads the money, and compares its sum with the balance.
func ledger(w *world) (*account, error) {
	list, err := all[entry](w.program, "/user/billing/ledger")
	if err != nil {
		return nil, err
	}
	var me struct {
		Balance float64 `json:"total_balance"`
	}
	if err := w.must("GET", "/user/me", nil, &me); err != nil {
		return nil, err
	}
	a := &account{by: map[string][]entry{}}
	sum, once := 0.0, map[string]bool{}
	for _, e := range list {
		sum += e.Amount
		a.by[e.Reference] = append(a.by[e.Reference], e)
		if key := e.Kind + " " + e.Reference; once[key] {
			a.wrong = append(a.wrong, "charged twice: "+key)
		} else {
			once[key] = true
		}
	}
	if math.Abs(sum-me.Balance) > 1e-4 {
		a.wrong = append(a.wrong, fmt.Sprintf("the ledger's entries make %.6f, the balance is %.6f", sum, me.Balance))
	}
	return a, nil
}

// charged is the sum of a reference's entries, as a positive amount.
func (a *account) charged(reference string) (sum float64) {
	for _, e := range a.by[reference] {
		sum -= e.Amount
	}
	return sum
}

func judgeCalls(w *world, l *load, money *account) (wrong []string, err error) {
	rows, err := all[callRow](w.program, "/user/calls")
	if err != nil {
		return nil, err
	}
	by := map[string][]callRow{}
	for _, c := range rows {
		by[c.Customer] = append(by[c.Customer], c)
		if got := money.charged(fmt.Sprintf("call:%d", c.ID)); !near(got, c.Cost) {
			wrong = append(wrong, fmt.Sprintf("call %d costs %.6f, and %.6f was charged", c.ID, c.Cost, got))
		}
		if c.AnswerdAt != nil && c.Cost == 0 {
			wrong = append(wrong, fmt.Sprintf("call %d was answered, and costs nothing", c.ID))
		}
	}
	for to, n := range w.seen(w.rung) {
		if len(by[to]) < n {
			wrong = append(wrong, fmt.Sprintf("%s was called %d times, and has %d calls", to, n, len(by[to])))
		}
		if strings.HasPrefix(to, numbered("call", 0)[:6]) && len(by[to]) > 1 {
			wrong = append(wrong, fmt.Sprintf("%s was to be called once, and has %d calls", to, len(by[to])))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for to := range l.calls {
		if len(by[to]) != 1 {
			wrong = append(wrong, fmt.Sprintf("the call to %s was taken, and has %d rows", to, len(by[to])))
		}
	}
	return wrong, nil
}

func judgeTexts(w *world, l *load, money *account) (wrong []string, err error) {
	rows, err := all[textRow](w.program, "/user/sms")
	if err != nil {
		return nil, err
	}
	sent := map[string]int{}
	for _, m := range w.carrier.Messages() {
		sent[m.Body]++
	}
	by := map[string]int{}
	for _, m := range rows {
		by[m.Body]++
		want := m.Cost
		if m.Status == "failed" {
			want = 0
		}
		if got := money.charged(fmt.Sprintf("sms:%d", m.ID)); !near(got, want) {
			wrong = append(wrong, fmt.Sprintf("text message %d (%s) costs %.6f, and %.6f was charged", m.ID, m.Status, want, got))
		}
		if n := sent[m.Body]; (n == 1) != (m.Status != "failed") {
			wrong = append(wrong, fmt.Sprintf("text message %d is %s, and the carrier has it %d times", m.ID, m.Status, n))
		}
	}
	for body, n := range sent {
		if n != 1 || by[body] != 1 {
			wrong = append(wrong, fmt.Sprintf("the carrier has %q %d times, and there are %d rows of it", body, n, by[body]))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for body := range l.texts {
		if by[body] != 1 {
			wrong = append(wrong, fmt.Sprintf("%q was taken, and has %d rows", body, by[body]))
		}
	}
	return wrong, nil
}

func judgeDocuments(w *world, l *load, _ *account) (wrong []string, err error) {
	rows, err := all[documentRow](w.program, w.documents)
	if err != nil {
		return nil, err
	}
	there := map[int64]bool{}
	for _, d := range rows {
		there[d.ID] = true
		if d.Status != "active" && d.Status != "processing" && (d.Status != "failed" || d.Error == nil || *d.Error == "") {
			wrong = append(wrong, fmt.Sprintf("document %d is %s without a reason", d.ID, d.Status))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.documents {
		if !there[id] {
			wrong = append(wrong, fmt.Sprintf("document %d was taken, and is not there", id))
		}
	}
	return wrong, nil
}

func judgeChats(w *world, l *load, money *account) (wrong []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := map[string]int{}
	for _, id := range l.conversations {
		var c conversation
		if err := w.must("GET", "/user/conversations/"+id, nil, &c); err != nil {
			return nil, err
		}
		sum := 0.0
		list := slices.Concat(c.Messages, c.History)
		for i, m := range list {
			if m.Role != "user" {
				continue
			}
			got := money.charged(fmt.Sprintf("message:%d", m.ID))
			sum += got
			sign := mark.FindString(m.Content)
			rows[sign]++
			answered := i+1 < len(list) && list[i+1].Role == "assistant"
			if (got > 0) != (answered && m.Error == nil) {
				wrong = append(wrong, fmt.Sprintf("message %d of %s: answered %v, failed %v, charged %.6f", m.ID, id, answered, m.Error != nil, got))
			}
		}
		if !near(sum, c.Cost) {
			wrong = append(wrong, fmt.Sprintf("conversation %s costs %.6f, and %.6f was charged", id, c.Cost, sum))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for sign := range w.asked {
		if rows[sign] != 1 {
			wrong = append(wrong, fmt.Sprintf("the model was asked about %s, and there are %d rows of it", sign, rows[sign]))
		}
	}
	for sign := range l.replied {
		if rows[sign] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s was answered, and there are %d rows of it", sign, rows[sign]))
		}
	}
	return wrong, nil
}
