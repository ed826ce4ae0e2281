package parley_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/internal/parley"
)

func TestRender(t *testing.T) {
	vars := map[string]string{"name": "Zoë", "a.b": "dot", "a-b": "dash", "evil": "{{name}} {{evil}}", "open": "{{",
		"close": "}}", "empty": ""}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "Hi {{name}}!": "Hi Zoë!", "{{ name }}{{\tname\n}}": "ZoëZoë",
		"{{name}}{{name}}": "ZoëZoë", "{{unknown}}.": ".",
		"{{a.b}} {{a-b}}": "dot dash", "{{evil}}": "{{name}} {{evil}}", "{{open}}name{{close}}": "{{name}}",
		"{{empty}}": "", "{{Name}}": "",
		"{name}": "{name}", "{{": "{{", "}}": "}}", "{{name": "{{name", "{{}}": "{{}}", "{{ }}": "{{ }}",
		"{{a b}}": "{{a b}}", "{{na{{name}}me}}": "{{naZoëme}}",
		`{"json":{"a":{}}} {{name}}`: `{"json":{"a":{}}} Zoë`, "{{näme}}": "{{näme}}", "{{{{name}}}}": "{{Zoë}}",
	} {
		if got := parley.Render(text, vars); got != want {
			t.Errorf("%q renders as %q, want %q", text, got, want)
		}
	}
	if got := parley.Render("a{{x}}b", nil); got != "ab" {
		t.Errorf("without variables: %q", got)
	}
}

// A text keeps all of its own words, however long its variables are; the variables together are limited.
func TestRenderIsBounded(t *testing.T) {
	big := strings.Repeat("ü", 400)
	got := parley.Render(strings.Repeat("{{big}}", 10_000)+"the end {{last}}.",
		map[string]string{"big": big, "last": "x"})
	if len(got) > parley.MaxRendered+len("the end .") || len(got) < parley.MaxRendered-1 ||
		!strings.HasSuffix(got, "the end .") || !utf8.ValidString(got) {
		t.Errorf("rendered %d bytes, ending in %q", len(got), got[max(0, len(got)-20):])
	}
	// Braces that never close are scanned once each, not each to the end of the text.
	open := strings.Repeat("{{", 2_000_000)
	if got := parley.Render(open, nil); got != open {
		t.Errorf("%d bytes became %d", len(open), len(got))
	}
}

// A variable's value is never rendered: a secret that the text does not name can't come out, whatever the customer
// says.
func FuzzRender(f *testing.F) {
	f.Add("Hi {{x}}.", "{{secret}}")
	f.Add("{{x}}secret}}", "{{")
	f.Add("{{{x}}{secret}}", "{")
	f.Add("{{x}}{{x}}", "}}{{secret}}{{")
	f.Fuzz(func(t *testing.T, text, said string) {
		const secret = "\x01hidden\x01"
		got := parley.Render(text, map[string]string{"x": said, "secret": secret})
		// Only the text's own mention of secret may bring it out. With x empty, everything that the text itself can
		// name is there.
		own := strings.Count(parley.Render(text, map[string]string{"secret": secret}), secret)
		if strings.Contains(text, secret) || strings.Contains(said, "\x01") || strings.Contains(text, "\x01") {
			return
		}
		if n := strings.Count(got, secret); n != own {
			t.Errorf("%q with %q gives the secret %d times, %d are the text's own", text, said, n, own)
		}
		if !strings.Contains(text, "{{") && got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}
