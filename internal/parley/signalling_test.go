package parley

import (
	"maps"
	"strings"
	"testing"
)

func TestSIPHeaders(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"order": "4711", "note": "a\r\nVia: x", "none": ""}
	got := SIPHeaders(vars, map[string]string{"X-Order": "{{order}}", "X-From": "trunk", "X-None": "{{none}}"},
		map[string]string{"x-from": "call", "X-Note": "{{note}}", "X-Long": strings.Repeat("ä", 1000)})
	want := map[string]string{"X-Order": "4711", "x-from": "call", "X-Note": "a  Via: x", "X-Long": strings.Repeat("ä", 512)}
	if !maps.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for name, c := range map[string]struct {
		headers map[string]string
		wrong   string // "" for none
	}{
		"fine":     {map[string]string{"X-Order-Id": "{{order}} ä", "x-a_b": ""}, ""},
		"others":   {map[string]string{"Via": "x"}, "h.Via"},
		"no name":  {map[string]string{"X-": "x"}, "h.X-"},
		"split":    {map[string]string{"X-A:b": "x"}, "h.X-A:b"},
		"injected": {map[string]string{"X-A": "x\r\nVia: y"}, "h.X-A"},
		"long":     {map[string]string{"X-A": strings.Repeat("x", 1025)}, "h.X-A"},
	} {
		var f Fields
		CheckSIPHeaders("h", c.headers, &f)
		if (c.wrong == "") != (len(f) == 0) || c.wrong != "" && !f.Has(c.wrong) {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestGivenBySignalling(t *testing.T) {
	t.Parallel()
	s := &CallSignalling{Headers: map[string]string{"X-Order-Id": "1", "x-ORDER_id": "2", "X-Company": "theirs",
		"X-Customer-Phone": "+1", "X-Caller-Verification": "verified A", "X-Caller-Name": "theirs"},
		Diversions: []Diversion{{PhoneNumber: "+493012", Reason: "no-answer"}}}
	got := s.Given(map[string]string{"company": "ours"})
	if want := map[string]string{"order_id": "1", "diverted_from": "+493012", "caller_verification": "none"}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.CallerName, s.Verification = "Ana", &CallVerification{Result: VerificationFailed, By: ByCarrier, Reason: "why"}
	if got := s.Given(nil); got["caller_name"] != "Ana" || got["caller_verification"] != "carrier: failed: why" {
		t.Errorf("got %q", got)
	}
}
