package sandbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"parley/internal/carrier"
	"parley/internal/carrier/carriertest"
	"parley/internal/carrier/sandbox"
	"parley/internal/parley"
)

// outbox keeps messages in memory.
type outbox struct {
	mu   sync.Mutex
	sids map[string]string
	last carrier.SMS
	fate parley.SMSStatus
}

func (o *outbox) keep(_ context.Context, m carrier.SMS, fate parley.SMSStatus) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.fate = m, fate
	if o.sids == nil {
		o.sids = map[string]string{}
	}
	if o.sids[m.Reference] == "" {
		o.sids[m.Reference] = fmt.Sprint("SM", len(o.sids))
	}
	return o.sids[m.Reference], nil
}

func TestConforms(t *testing.T) {
	carriertest.Conform(t, sandbox.New((&outbox{}).keep), "+12025550777")
}

// The stock is the same every time, and every number in it is valid in its country.
func TestStock(t *testing.T) {
	c := sandbox.New(nil)
	for _, country := range []string{"US", "CA", "GB", "AU", "IL", "PL", "FI", "NL", "DK", "IT"} {
		list, err := c.Search(t.Context(), country, "")
		if err != nil || len(list) < 100 {
			t.Errorf("%s: %d numbers, %v", country, len(list), err)
		}
		seen, sms := map[string]bool{}, 0
		for _, n := range list {
			p, err := phonenumbers.Parse(n.PhoneNumber, "")
			if err != nil || !phonenumbers.IsValidNumber(p) || phonenumbers.GetRegionCodeForNumber(p) != country ||
				seen[n.PhoneNumber] {
				t.Errorf("%s: %s is not valid there, or there twice", country, n.PhoneNumber)
			}
			seen[n.PhoneNumber] = true
			if n.SMSCapable {
				sms++
			}
			if kind := phonenumbers.GetNumberType(p); country != "US" && country != "CA" && country != "DK" &&
				n.SMSCapable != (kind == phonenumbers.MOBILE) {
				t.Errorf("%s: %s has type %v and sms %v", country, n.PhoneNumber, kind, n.SMSCapable)
			}
			if last := n.PhoneNumber[len(n.PhoneNumber)-4:]; country == "US" && (last < "0100" || last > "0199") {
				t.Errorf("%s is nobody's by luck alone", n.PhoneNumber)
			}
		}
		if sms == 0 {
			t.Errorf("%s: no number takes messages", country)
		}
		again, _ := c.Search(t.Context(), country, "")
		if fmt.Sprint(again) != fmt.Sprint(list) {
			t.Errorf("%s: the stock changes", country)
		}
	}
	if list, err := c.Search(t.Context(), "DE", ""); err != nil || len(list) != 0 {
		t.Errorf("DE: %v %v", list, err)
	}
}

func TestFates(t *testing.T) {
	o := &outbox{}
	c := sandbox.New(o.keep)
	for to, want := range map[string]parley.SMSStatus{"+12025550123": parley.SMSDelivered,
		"+12025550002": parley.SMSUndelivered, "+12025550001": ""} {
		o.fate = ""
		_, err := c.Send(t.Context(), carrier.SMS{Reference: "sms:" + to, To: to, Body: "x"})
		if o.fate != want || (want == "") != (carrier.Refusal(err) != nil) {
			t.Errorf("%s: %q %v", to, o.fate, err)
		}
	}
	if _, err := c.Send(t.Context(), carrier.SMS{Reference: "caller-id:1", To: "+12025550123"}); err != nil ||
		!strings.HasPrefix(o.last.From, "+1") {
		t.Errorf("a message of nobody's came from %q: %v", o.last.From, err)
	}
}
