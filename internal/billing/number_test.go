package billing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/billing"
	"parley/internal/parley"
)

func TestNumberAndSMSPrices(t *testing.T) {
	p, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	for _, country := range []string{"US", "CA", "GB", "AU", "IL", "PL", "FI", "NL", "DK", "IT"} {
		if n, ok := p.Numbers[country]; !ok || n.Rent <= 0 || n.StripePriceID != "" || p.Segment(country) <= 0 {
			t.Errorf("%s: %+v, %v a segment", country, n, p.Segment(country))
		}
	}
	if len(p.Numbers) != 10 || p.Segment("NO") == p.Segment("default") || p.Segment("ZZ") != p.Segment("default") ||
		p.Segment("") != p.SMS["default"] {
		t.Errorf("prices %+v %+v", p.Numbers, p.SMS)
	}
	path := filepath.Join(t.TempDir(), "prices.yaml")
	read := func(text string) (*billing.Prices, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return billing.ReadPrices(path)
	}
	p, err = read("numbers:\n  US: {stripe_price_id: price_1}\n  GB: {rent: 2.5}\nsms:\n  default: 0.2\n  BR: 0.03\n")
	if err != nil || p.Numbers["US"] != (billing.NumberPrice{Rent: 1_150_000, StripePriceID: "price_1"}) ||
		p.Numbers["GB"].Rent != 2_500_000 ||
		p.Segment("BR") != 30_000 || p.Segment("ZZ") != parley.USD/5 || p.Segment("US") != 8300 {
		t.Errorf("read %+v: %v", p, err)
	}
	for text, want := range map[string]string{
		"numbers: {DE: {rent: 1}}": "DE", "numbers: {US: {rent: -1}}": "negative",
		"numbers: {US: {price: 1}}": "price", "sms: {Germany: 1}": "Germany", "sms: {us: 1}": "us", "sms: {US: x}": "x",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
