package billing_test

import (
	"testing"

	"parley/internal/parley"
)

func TestVendorPrices(t *testing.T) {
	p, err := read(t, "vendors:\n  acme: {minute: 0.06, characters: 30, input: 1}\n  acme/big: {input: 2, cached: 0.5, output: "+
		"8}\n  acme/hears: {audio_input: 32, audio_cached: 0.4, audio_output: 64}\n")
	if err != nil {
		t.Fatal(err)
	}
	cost := func(u parley.VendorUse) parley.Money {
		t.Helper()
		if u.Price(p.Vendor(u.Vendor, u.Model)); u.Cost == nil {
			return -1
		}
		return *u.Cost
	}
	for _, c := range []struct {
		use  parley.VendorUse
		want parley.Money
	}{
		{parley.VendorUse{Vendor: "acme", Model: "big", TokensIn: 1000, TokensCached: 400, TokensOut: 100}, 1200 + 200 + 800},
		{parley.VendorUse{Vendor: "acme", Model: "small", TokensIn: 1000, TokensCached: 400, TokensOut: 100}, 1000},
		{parley.VendorUse{Vendor: "acme", SecondsHeard: 90}, 90_000},
		{parley.VendorUse{Vendor: "acme", CharactersSpoken: 1000}, 30_000},
		{parley.VendorUse{Vendor: "other", CharactersSpoken: 1000}, -1},
		{parley.VendorUse{Vendor: "acme", Model: "big", SecondsHeard: 60}, -1},
		{parley.VendorUse{Vendor: "acme", Model: "hears", AudioTokensIn: 1000, AudioTokensCached: 900, AudioTokensOut: 100},
			3200 + 360 + 6400},
	} {
		if got := cost(c.use); got != c.want {
			t.Errorf("%+v costs %d, want %d", c.use, got, c.want)
		}
	}
	if _, err := read(t, "vendors:\n  acme: {minutes: 1}\n"); err == nil {
		t.Error("a misspelt price is none")
	}
}
