// Package carriertest is for tests: a scripted carrier, a server that speaks Twilio's REST protocol, and what every
// carrier must do.
package carriertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/carrier"
)

// Fake is a carrier in memory. It takes everything until its script says otherwise.
type Fake struct {
	mu     sync.Mutex
	Stock  []carrier.Number
	rented map[string]int // by number, how often it was bought
	sent   []Sent

	// Before and After, where they are set, are called before and after an act ("buy", "release", "send"; what) has
	// its effect. Their error is the answer; a panic is the caller's death.
	Before, After func(act, what string) error
}

// Sent is a message that the Fake has taken.
type Sent struct {
	carrier.SMS
	SID string
	At  time.Time
}

func hook(f func(string, string) error, act, what string) error {
	if f == nil {
		return nil
	}
	return f(act, what)
}

// Search finds numbers of the stock.
func (f *Fake) Search(_ context.Context, country, contains string) (list []carrier.Number, err error) {
	for _, n := range f.Stock {
		if n.CountryCode == country && strings.Contains(n.PhoneNumber, contains) {
			list = append(list, n)
		}
	}
	return list, hook(f.Before, "search", country)
}

// Buy rents a number.
func (f *Fake) Buy(_ context.Context, number string) error {
	if err := hook(f.Before, "buy", number); err != nil {
		return err
	}
	f.mu.Lock()
	if f.rented == nil {
		f.rented = map[string]int{}
	}
	if f.rented[number] == 0 {
		f.rented[number] = 1
	}
	f.mu.Unlock()
	return hook(f.After, "buy", number)
}

// Release gives a number back.
func (f *Fake) Release(_ context.Context, number string) error {
	if err := hook(f.Before, "release", number); err != nil {
		return err
	}
	f.mu.Lock()
	delete(f.rented, number)
	f.mu.Unlock()
	return hook(f.After, "release", number)
}

// Send takes a message.
func (f *Fake) Send(_ context.Context, m carrier.SMS) (string, error) {
	if err := hook(f.Before, "send", m.Body); err != nil {
		return "", err
	}
	f.mu.Lock()
	sid := fmt.Sprintf("SM%d", len(f.sent)+1)
	f.sent = append(f.sent, Sent{m, sid, time.Now()})
	f.mu.Unlock()
	return sid, hook(f.After, "send", m.Body)
}

// Find finds messages that were taken.
func (f *Fake) Find(_ context.Context, m carrier.SMS, since time.Time) (sids []string, err error) {
	if err := hook(f.Before, "find", m.Body); err != nil {
		return nil, err
	}
	for _, s := range f.Sent() {
		if s.From == m.From && s.To == m.To && s.Body == m.Body && !s.At.Before(since.Add(-time.Second)) {
			sids = append(sids, s.SID)
		}
	}
	return sids, nil
}

// Sent are the messages that were taken, oldest first.
func (f *Fake) Sent() []Sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// Rented says whether a number is rented.
func (f *Fake) Rented(number string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rented[number] > 0
}

// Conform holds a carrier against what the house asks of every one. The carrier must have numbers in the US and take
// messages to good.
func Conform(t *testing.T, c carrier.Carrier, good string) {
	t.Helper()
	ctx := t.Context()
	list, err := c.Search(ctx, "US", "")
	if err != nil || len(list) == 0 {
		t.Fatalf("a search found %d numbers: %v", len(list), err)
	}
	seen := map[string]bool{}
	for _, n := range list {
		if seen[n.PhoneNumber] || n.CountryCode != "US" || !strings.HasPrefix(n.PhoneNumber, "+1") {
			t.Errorf("found %+v", n)
		}
		if !slices.Contains([]string{"none", "local", "foreign", "inventory"}, n.AddressRequirements) {
			t.Errorf("address requirements %q", n.AddressRequirements)
		}
		seen[n.PhoneNumber] = true
	}
	digits := list[0].PhoneNumber[len(list[0].PhoneNumber)-5:]
	for _, contains := range []string{digits, digits[:1], "999999999"} {
		found, err := c.Search(ctx, "US", contains)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range found {
			if !strings.Contains(n.PhoneNumber, contains) {
				t.Errorf("%s was found for %s", n.PhoneNumber, contains)
			}
		}
		if contains == digits && len(found) == 0 {
			t.Errorf("nothing was found for %s", digits)
		}
	}
	number := list[0].PhoneNumber
	for range 2 { // a number that is ours already is no failure
		if err := c.Buy(ctx, number); err != nil {
			t.Fatalf("buy: %v", err)
		}
	}
	sid, err := c.Send(ctx, carrier.SMS{UserID: 1, Reference: "sms:1", From: number, To: good, Body: "Hello"})
	if err != nil || sid == "" {
		t.Fatalf("send: %q %v", sid, err)
	}
	if f, ok := c.(carrier.Finder); ok {
		for body, want := range map[string]int{"Hello": 1, "Something else": 0} {
			sids, err := f.Find(ctx, carrier.SMS{From: number, To: good, Body: body}, time.Now().Add(-time.Minute))
			if err != nil || len(sids) != want || want == 1 && sids[0] != sid {
				t.Errorf("find %q: %v %v", body, sids, err)
			}
		}
	}
	if _, ok := c.(carrier.Once); ok {
		if again, err := c.Send(ctx, carrier.SMS{UserID: 1, Reference: "sms:1", From: number, To: good,
			Body: "Hello"}); err != nil || again != sid {
			t.Errorf("the same message again: %q, not %q: %v", again, sid, err)
		}
	}
	for range 2 { // nor is one that is not
		if err := c.Release(ctx, number); err != nil {
			t.Fatalf("release: %v", err)
		}
	}
	err = c.Buy(ctx, "+12025559999")
	if refused := carrier.Refusal(err); refused == nil || !refused.Taken {
		t.Errorf("a number that nobody offers was bought: %v", err)
	}
}
