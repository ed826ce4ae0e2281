package parley_test

import (
	"strings"
	"testing"

	"parley/internal/parley"
)

// Numbers as people, lists and programs write them, by the country of the account.
func TestReadPhone(t *testing.T) {
	for _, c := range []struct{ in, country, want string }{
		{"0171 1234567", "DE", "+491711234567"}, {"0171/1234567", "DE", "+491711234567"},
		{"0171-123.45.67", "DE", "+491711234567"}, {"(0171) 1234567", "DE", "+491711234567"},
		{"[0171] 1234567", "DE", "+491711234567"}, {"'01711234567", "DE", "+491711234567"},
		{"’0171 1234567", "DE", "+491711234567"}, {"1711234567", "DE", "+491711234567"},
		{"491711234567", "DE", "+491711234567"}, {"49 171 1234567", "DE", "+491711234567"},
		{"4527100012", "DK", "+4527100012"}, {"45271000", "DK", "+4545271000"}, {"393 123 4567", "IT", "+393931234567"},
		{"12025550123", "US", "+12025550123"}, {"447400123456", "GB", "+447400123456"}, {"79123456789", "RU", "+79123456789"},
		{"0049 171 1234567", "DE", "+491711234567"},
		{"0049 171 1234567", "", "+491711234567"}, {"(0049) 171 1234567", "US", "+491711234567"},
		{"+49 (0)171 1234567", "", "+491711234567"}, {"(+49) 171 1234567", "", "+491711234567"},
		{"+49 171 1234567", "", "+491711234567"}, {"+49\u00a0171\u202f1234567", "", "+491711234567"},
		{"\u200b+49171\u200d1234567\ufeff", "", "+491711234567"}, {"\u202a+491711234567\u202c", "US", "+491711234567"},
		{"\u200e0171 1234567\u200f", "DE", "+491711234567"}, {"+49 171 12'34'567", "", "+491711234567"},
		{"０１７１　１２３４５６７", "DE", "+491711234567"}, {"＋４９ １７１ １２３４５６７", "", "+491711234567"},
		{"٠١٧١ ١٢٣٤٥٦٧", "DE", "+491711234567"}, {"०१७१ १२३४५६७", "DE", "+491711234567"},
		{"0171–1234567", "DE", "+491711234567"}, {"0171 — 1234567", "DE", "+491711234567"},
		{`="01711234567"`, "DE", "+491711234567"}, {`"0171 1234567"`, "DE", "+491711234567"},
		{"491711234567.0", "DE", "+491711234567"}, {"+491711234567.0", "", "+491711234567"},
		{"(202) 555-0123", "US", "+12025550123"}, {"202.555.0123", "US", "+12025550123"},
		{"1-202-555-0123", "US", "+12025550123"}, {"011 49 171 1234567", "US", "+491711234567"},
		{"020 7946 0018", "GB", "+442079460018"}, {"06 5550 0149", "IT", "+390655500149"},
		{"06 12 34 56 78", "FR", "+33612345678"}, {"078 123 45 67", "CH", "+41781234567"},
		{"079'123'45'67", "CH", "+41791234567"}, {"27 10 00 12", "DK", "+4527100012"},
		{"0664 1234567", "AT", "+436641234567"}, {"8 (912) 345-67-89", "RU", "+79123456789"},
		{"090-1234-5678", "JP", "+819012345678"}, {"098765 43210", "IN", "+919876543210"},
		{"(11) 91234-5678", "BR", "+5511912345678"}, {"+4930901820", "US", "+4930901820"},
	} {
		if got, err := parley.ReadPhone(c.in, c.country); err != nil || got != c.want {
			t.Errorf("%q in %q is read as %q (%v), want %s", c.in, c.country, got, err, c.want)
		}
	}
	for _, c := range []struct{ in, country, why string }{
		{"4.91512E+11", "DE", "spreadsheet"}, {"4,91512E+11", "DE", "spreadsheet"}, {"4.9E11", "", "spreadsheet"},
		{"+4.91512E+11", "DE", "spreadsheet"}, {"\u200e4.91512e+11", "DE", "spreadsheet"},
		{"", "DE", "There is no phone number."}, {"\u200b \u00a0", "DE", "There is no phone number."},
		{"0171 1234567", "", "0171 1234567 has no country code"}, {"0171 12", "DE", "There is no phone number 0171 12 in Germany"},
		{"110", "DE", "in Germany"}, {"0171 1234567", "US", "in United States"}, {"0171 1234567", "AQ", "in Antarctica"},
		{"+49 0", "DE", "There is no phone number +49 0."}, {"anna", "DE", "anna is not a phone number."},
		{"call 0171 1234567", "DE", "not a phone number"}, {"0171 1234567; 0172 7654321", "DE", "not a phone number"},
		{"0171 1234567, 0172 7654321", "DE", "not a phone number"}, {"tel:0171 1234567", "DE", "not a phone number"},
		{"-", "DE", "not a phone number"}, {strings.Repeat("anna", 50), "DE", "…"},
	} {
		got, err := parley.ReadPhone(c.in, c.country)
		if err == nil || !strings.Contains(err.Error(), c.why) || len(err.Error()) > 220 {
			t.Errorf("%q in %q is read as %q (%v), want an error with %q", c.in, c.country, got, err, c.why)
		}
	}
}

// A number that begins with + is the same in every country, however its country reads its own.
func FuzzReadPhone(f *testing.F) {
	for _, s := range []string{"+49 171 1234567", "0171 1234567", "4.9E+11", "＋４９", "(0049)", "011 49", "=\"+1\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, country := range []string{"DE", "US", "IT", ""} {
			e164, err := parley.ReadPhone(s, country)
			if err != nil {
				continue
			}
			if again, err := parley.ReadPhone(e164, "JP"); err != nil || again != e164 || !strings.HasPrefix(e164, "+") {
				t.Fatalf("%q is read as %q, and that as %q (%v)", s, e164, again, err)
			}
			if n, ok := parley.NormalizePhone(s); ok && n != e164 {
				t.Fatalf("%q is %s without a country and %s in %s", s, n, e164, country)
			}
		}
	})
}

func TestReadTransferTarget(t *testing.T) {
	for in, want := range map[string]string{"20": "20", "030123": "030123", "030 901820": "+4930901820",
		"sip:204@pbx.example.com": "sip:204@pbx.example.com", "0049 30 901820": "+4930901820"} {
		if got, _, ok := parley.ReadTransferTarget(in, "DE"); !ok || got != want {
			t.Errorf("%q is %q (%v), want %q", in, got, ok, want)
		}
	}
}

func TestZoneCountry(t *testing.T) {
	if len(parley.Countries) != 249 || parley.CountryName("DE") != "Germany" || parley.CountryName("XX") != "" {
		t.Errorf("%d countries; DE is %q, XX %q", len(parley.Countries), parley.CountryName("DE"), parley.CountryName("XX"))
	}
	for zone, want := range map[string]string{"Europe/Berlin": "DE", "Europe/Vienna": "AT", "America/New_York": "US",
		"America/Toronto": "CA", "Asia/Kolkata": "IN", "Asia/Calcutta": "IN", "US/Pacific": "US", "Europe/Kyiv": "UA",
		"Europe/Kiev": "UA", "Africa/Asmera": "ER", "Atlantic/Jan_Mayen": "SJ", "Europe/London": "GB",
		"UTC": "", "Etc/GMT+3": "", "CET": "", "Mars/Base": ""} {
		if got := parley.ZoneCountry(zone); got != want {
			t.Errorf("%s is in %q, want %q", zone, got, want)
		}
	}
}
