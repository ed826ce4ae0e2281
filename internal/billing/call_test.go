package billing_test

import (
	"strings"
	"testing"

	"parley/internal/billing"
)

func TestCallPrices(t *testing.T) {
	p, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	if p.Calls.Trunk != 500 || p.Calls.Assistant <= 0 {
		t.Errorf("a trunk costs %s, an assistant %s", p.Calls.Trunk, p.Calls.Assistant)
	}
	for country := range p.Numbers {
		if p.Outbound(country) <= 0 || p.Outbound(country) >= p.Outbound("default") || p.Inbound(country) <= 0 {
			t.Errorf("%s: %s out, %s in", country, p.Outbound(country), p.Inbound(country))
		}
	}
	if p.Outbound("ZZ") != p.Calls.Outbound["default"] || p.Outbound("") != p.Outbound("ZZ") ||
		p.Inbound("") != p.Calls.Inbound["default"] {
		t.Error("a country without a price does not cost the default")
	}
	p, err = read(t, "calls:\n  assistant: 0.12\n  outbound:\n    BR: 0.2\n    US: 0.02\n  inbound: {default: 0.03}\n")
	if err != nil || p.Calls.Assistant != 120_000 || p.Calls.Trunk != 500 || p.Outbound("BR") != 200_000 ||
		p.Outbound("US") != 20_000 || p.Outbound("CA") != 14_000 ||
		p.Inbound("FR") != 30_000 || p.Inbound("US") != 8500 {
		t.Errorf("read %+v: %v", p.Calls, err)
	}
	for text, want := range map[string]string{
		"calls: {asistant: 1}": "asistant", "calls: {trunk: -1}": "negative",
		"calls: {outbound: {Germany: 1}}": "calls.outbound", "calls: {inbound: {us: 1}}": "calls.inbound",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
