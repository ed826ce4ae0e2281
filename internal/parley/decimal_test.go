package parley_test

import (
	"encoding/json"
	"testing"

	"parley/internal/parley"
)

func TestDecimal(t *testing.T) {
	for text, want := range map[string]string{"0.7": "0.70", "1": "1.00", "0.005": "0.01", "0.004": "0.00",
		"-0.05": "-0.05", "-0.005": "0.00", "-0.006": "-0.01",
		"1e-1": "0.10", "1E2": "100.00", "+2": "2.00", ".5": "0.50", "5.": "5.00", "1e-99": "0.00"} {
		d, err := parley.ParseDecimal(text)
		if err != nil || d.String() != want {
			t.Errorf("%q is %s, want %s: %v", text, d, want, err)
		}
	}
	for _, text := range []string{"", "abc", "1/2", "0x1", "1_0", "NaN", "Inf", "-Inf", "1e1000", "1e-999", "1e999",
		"1e30", "--1", "1.2.3", " 1", "1 ", "e5", ".", "0.1234567890123456789012345"} {
		if d, err := parley.ParseDecimal(text); err == nil {
			t.Errorf("%q was read as %s", text, d)
		}
	}
	var v struct{ A, B, C parley.Decimal }
	if err := json.Unmarshal([]byte(`{"A":0.7,"B":"1.25","C":1e-1}`), &v); err != nil || v.A != 70 || v.B != 125 ||
		v.C != 10 || v.B.Float() != 1.25 {
		t.Errorf("read %+v: %v", v, err)
	}
	if b, _ := json.Marshal(v); string(b) != `{"A":"0.70","B":"1.25","C":"0.10"}` {
		t.Errorf("written %s", b)
	}
	for _, bad := range []string{`{"A":true}`, `{"A":"x"}`, `{"A":[]}`, `{"A":1e99}`} {
		if err := json.Unmarshal([]byte(bad), &v); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0.7", "-0.005", "1e-3", "10737418.24", "1e999", "..", "+-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parley.ParseDecimal(s)
		if err != nil {
			return
		}
		if again, err := parley.ParseDecimal(d.String()); err != nil || again != d {
			t.Errorf("%q is %s, read again %s: %v", s, d, again, err)
		}
		var back parley.Decimal
		if err := json.Unmarshal(must(json.Marshal(d)), &back); err != nil || back != d {
			t.Errorf("%s came back as %s: %v", d, back, err)
		}
	})
}

func TestFlag(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "true": true, "0": false, "false": false, "null": false} {
		f := parley.Flag(!want)
		if err := json.Unmarshal([]byte(text), &f); err != nil || bool(f) != want {
			t.Errorf("%s is %v: %v", text, f, err)
		}
	}
	for _, text := range []string{"2", "-1", `"1"`, `"true"`, "1.0", "[]", "{}"} {
		var f parley.Flag
		if err := json.Unmarshal([]byte(text), &f); err == nil {
			t.Errorf("%s was read as %v", text, f)
		}
	}
	if b, _ := json.Marshal([]parley.Flag{true, false}); string(b) != "[1,0]" {
		t.Errorf("written %s", b)
	}
}
