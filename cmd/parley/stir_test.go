package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/sip"
	"parley/internal/stir/stirtest"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestDoctorSTIR: the doctor says whether callers can be verified, and whether certificate, key and address agree.
func TestDoctorSTIR(t *testing.T) {
	a, server := stirtest.New(t), stirtest.Serve(t)
	file := func(name string, text []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own, other := a.Issue(nil), a.Issue(nil)
	url := server.Put("/cert.pem", own.Chain)
	for name, c := range map[string]struct {
		s    Settings
		want []string // of both lines
	}{
		"nothing": {Settings{STIRVerify: "on"}, []string{"note no caller counts as verified", "note none: set PARLEY_STIR_CERT"}},
		"off":     {Settings{STIRVerify: "off"}, []string{"note off (PARLEY_STIR_VERIFY)", "note none"}},
		"roots":   {Settings{STIRVerify: "on", STIRRoots: file("roots.pem", a.RootPEM())}, []string{"ok calls are verified", "note none"}},
		"no roots in it": {Settings{STIRVerify: "on", STIRRoots: file("roots.pem", []byte("x"))},
			[]string{"FAIL PARLEY_STIR_ROOTS: ", "note none"}},
		"skew": {Settings{STIRVerify: "on", STIRClockSkew: 301}, []string{"FAIL PARLEY_STIR_CLOCK_SKEW: 301", "note none"}},
		"half": {Settings{STIRVerify: "on", STIRCert: url},
			[]string{"note", "FAIL PARLEY_STIR_CERT: PARLEY_STIR_CERT and PARLEY_STIR_KEY belong together"}},
		"no such file": {Settings{STIRVerify: "on", STIRCert: url, STIRKey: "/nowhere"},
			[]string{"note", "FAIL PARLEY_STIR_CERT: PARLEY_STIR_KEY: open"}},
		"by http": {Settings{STIRVerify: "on", STIRCert: "http://a/b", STIRKey: file("k", own.KeyPEM())},
			[]string{"note", "FAIL PARLEY_STIR_CERT: PARLEY_STIR_CERT, PARLEY_STIR_KEY: the certificate's address must be an https"}},
		"guarded": {Settings{STIRVerify: "on", STIRCert: url, STIRKey: file("k", own.KeyPEM())},
			[]string{"note", "FAIL PARLEY_STIR_CERT: the certificate could not be fetched: the address is a loopback address"}},
		"unknown issuer of the web server": {
			Settings{STIRVerify: "on", STIRCert: url, STIRKey: file("k", other.KeyPEM()),
				EgressAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			[]string{"note", "FAIL PARLEY_STIR_CERT: the certificate could not be fetched: "}},
	} {
		list := checkSTIR(t.Context(), &c.s)
		for i, want := range c.want {
			if got := list[i].state + " " + list[i].text; !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// TestAttest: how a call is signed, by what is known of the number that it shows.
func TestAttest(t *testing.T) {
	db := storetest.SQLite(t)
	u := storetest.User(t, db, parley.USD)
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.CreateNumber(ctx, u.ID, &parley.Number{PhoneNumber: "+12025550101", CountryCode: "US", Type: parley.NumberCallerID})
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind         parley.NumberType
		number, from string
		signs, wants bool
		want         string
	}{
		"rented":         {parley.NumberNormal, "+12025550100", "", true, true, "A"},
		"rented, shown":  {parley.NumberNormal, "+12025550100", "+12025550100", true, true, "A"},
		"a trunk's":      {parley.NumberSIP, "+12025550100", "", true, true, "B"},
		"proved":         {parley.NumberSIP, "+12025550101", "", true, true, "A"},
		"a customer's":   {parley.NumberNormal, "+12025550100", "+12025550177", true, true, "C"},
		"no certificate": {parley.NumberNormal, "+12025550100", "", false, true, ""},
		"not wanted":     {parley.NumberNormal, "+12025550100", "", true, false, ""},
	} {
		p := &telephone{db: db, signs: c.signs}
		got, err := p.attest(t.Context(), call.Route{Number: parley.Number{UserID: u.ID, Type: c.kind, PhoneNumber: c.number}, From: c.from},
			&sip.Trunk{Manners: sip.Manners{Sign: c.wants}})
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
