package billing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/billing"
	"parley/internal/parley"
)

func read(t *testing.T, text string) (*billing.Prices, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return billing.ReadPrices(path)
}

func TestDefaultPrices(t *testing.T) {
	p, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][3]int{"default": {20, 10, 100}, "trial": {1, 2, 5}, "gone": {20, 10, 100},
		"": {20, 10, 100}} {
		got := p.Plan(name)
		if [3]int{got.Campaigns, got.ParallelCalls, got.Tools} != want {
			t.Errorf("plan %q is %+v", name, got)
		}
		for limit, n := range got.Limits() { // a limit that the file omits would refuse everything
			if *n < 1 {
				t.Errorf("plan %q has no %s", name, limit)
			}
		}
	}
	for kind, want := range map[string]parley.Money{"widget": parley.USD / 100, "test": 0, "api": parley.USD / 100,
		"whatsapp": parley.USD / 100, "sms": parley.USD / 100} {
		if got, ok := p.Messages[kind]; !ok || got != want {
			t.Errorf("a %s message costs %s", kind, got)
		}
	}
	// The file that is printed as a template can be read.
	if _, err := read(t, string(billing.DefaultFile())); err != nil {
		t.Error(err)
	}
}

func TestPricesFile(t *testing.T) {
	p, err := read(t, "plans:\n  gold: {campaigns: 0, parallel_calls: 7, tools: 1}\n  trial: {campaigns: 2, parallel_calls: 3, tools: 4}\n"+
		"messages:\n  widget: 0.0075 # less\n  api: \"2\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if gold := p.Plan("gold"); gold.Campaigns != 0 || gold.ParallelCalls != 7 || gold.Tools != 1 ||
		gold.Assistants != p.Plan("default").Assistants || p.Plan("trial").Tools != 4 ||
		p.Plan("default").Tools != 100 {
		t.Errorf("plans %+v", p.Plans)
	}
	if p.Messages["widget"] != 7500 || p.Messages["api"] != 2*parley.USD || p.Messages["sms"] != parley.USD/100 {
		t.Errorf("messages %v", p.Messages)
	}
	p, err = read(t, "plans:\n  basic: {tools: 9, leads: }\n  default: {parallel_calls: 12, document_mb: 7}\n")
	basic := p.Plan("default")
	if basic.Tools = 9; err != nil || basic.Campaigns != 20 || basic.ParallelCalls != 12 || basic.DocumentMB != 7 ||
		p.Plan("basic") != basic {
		t.Errorf("what a plan leaves out: %+v, %v", p, err)
	}
	for _, text := range []string{"", "# nothing\n", "plans: {}\n", "---\n"} {
		if p, err := read(t, text); err != nil || p.Plan("default").Tools != 100 {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, says := range map[string]string{
		"plan: {}":                                          "plan",   // misspelt
		"plans:\n  default: {tool: 5}":                      "tool",   // misspelt
		"plans:\n  x: {parallel_calls: 0}":                  "plan x", // nobody could make calls
		"plans:\n  x: {parallel_calls: 1, tools: -1}":       "plan x",
		"plans:\n  x: {parallel_calls: 1, campaigns: many}": "many",
		"messages:\n  widget: -1":                           "line 2",
		"messages:\n  widget: free":                         "line 2",
		"messages:\n  widget: [1]":                          "line 2",
		"messages:\n  fax: 1":                               "fax",
		"messages: 5":                                       "",
		"\tplans:":                                          "",
		"plans: [":                                          "",
		"a: b\na: c":                                        "",
		"plans: \xff":                                       "",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "prices.yaml") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := billing.ReadPrices(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
