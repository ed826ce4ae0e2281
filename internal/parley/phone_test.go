package parley_test

import (
	"testing"
	"time"

	"parley/internal/parley"
)

func TestFormatPhone(t *testing.T) {
	for e164, want := range map[string][2]string{
		"+12025550123": {"(202) 555-0123", "US"}, "+14165550123": {"(416) 555-0123", "CA"},
		"+442079460018": {"+44 20 7946 0018", "GB"}, "+4527100012": {"+45 27 10 00 12", "DK"},
		"+390655500149": {"+39 06 5550 0149", "IT"}, "+97237001234": {"+972 3-700-1234", "IL"},
		"nothing": {"nothing", ""}, "+80012345678": {"+800 1234 5678", ""},
	} {
		if got := [2]string{parley.FormatPhone(e164), parley.PhoneCountry(e164)}; got != want {
			t.Errorf("%s is %q, want %q", e164, got, want)
		}
	}
}

// Rent is due on the day of the purchase, or on the last day of a month that has no such day; later months use the
// original day again.
func TestNextRent(t *testing.T) {
	day := func(s string) parley.Time {
		d, err := time.Parse("2006-01-02 15:04", s+" 13:45")
		if err != nil {
			t.Fatal(err)
		}
		return parley.At(d)
	}
	for bought, months := range map[string][]string{
		"2026-01-31": {"2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"},
		"2027-12-30": {"2028-01-30", "2028-02-29", "2028-03-30"},
		"2026-11-15": {"2026-12-15", "2027-01-15"},
		"2026-12-01": {"2027-01-01", "2027-02-01"},
	} {
		n := &parley.Number{CreatedAt: day(bought)}
		at := n.CreatedAt
		for _, want := range months {
			if at = n.NextRent(at); at != day(want) {
				t.Errorf("bought on %s: due on %v, want %v", bought, at, day(want))
			}
		}
	}
}

func TestSMSStatusOrder(t *testing.T) {
	order := []parley.SMSStatus{parley.SMSQueued, parley.SMSSent, parley.SMSDelivered}
	for i, a := range order {
		for j, b := range order {
			if a.Before(b) != (i < j) {
				t.Errorf("%s before %s: %v", a, b, a.Before(b))
			}
		}
	}
	for _, end := range []parley.SMSStatus{parley.SMSDelivered, parley.SMSUndelivered, parley.SMSFailed} {
		for _, other := range []parley.SMSStatus{parley.SMSDelivered, parley.SMSUndelivered, parley.SMSFailed} {
			if end.Before(other) {
				t.Errorf("%s became %s", end, other)
			}
		}
	}
}

// FuzzHostPort: an accepted address is neither empty nor too long, and has none of the characters that must not be in
// it.
func FuzzHostPort(f *testing.F) {
	for _, s := range []string{"pbx.lan:5060", "[::1]:5061", "10.0.0.1", "a..b", "::", "x:1:2", "[::1]5060"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !parley.ValidHostPort(s) {
			return
		}
		for _, c := range s {
			if c <= ' ' || c > '~' || c == '/' || c == '@' || c == '<' || c == '"' || c == ';' {
				t.Fatalf("%q holds %q", s, c)
			}
		}
		if len(s) == 0 || len(s) > 300 {
			t.Fatalf("%q", s)
		}
	})
}

// Numbers +1 NPA-976 pay whoever has them, in every area code of the United States and Canada; the tables list them as ordinary ones.
func TestCostlyPhone(t *testing.T) {
	for e164, want := range map[string]bool{"+12129765550": true, "+14169761234": true, "+19005550123": true, "+12125550123": false,
		"+12127765550": false, "+18769765555": false, "+442079769760": false, "+4930976976": false} {
		if got := parley.CostlyPhone(e164); got != want {
			t.Errorf("%s: %v", e164, got)
		}
	}
}
