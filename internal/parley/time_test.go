package parley_test

import (
	"encoding/json"
	"testing"
	"time"

	"parley/internal/parley"
)

func TestTimes(t *testing.T) {
	zone := time.FixedZone("", 3600)
	at := parley.At(time.Date(2026, 1, 31, 10, 30, 0, 1_234_567, zone))
	b := must(json.Marshal(map[string]any{"iso": at, "datetime": parley.DateTime(at), "none": parley.Time(0),
		"nowhen": parley.DateTime(0)}))
	if string(b) != `{"datetime":"2026-01-31 09:30:00","iso":"2026-01-31T09:30:00.001234Z","none":null,"nowhen":null}` {
		t.Errorf("written %s", b)
	}
	if at.String() != "2026-01-31T09:30:00.001234Z" || at.Time().Location() != time.UTC {
		t.Errorf("%s in %s", at, at.Time().Location())
	}
	if !parley.Time(0).Time().IsZero() || parley.At(time.Time{}) != 0 {
		t.Error("no time is some time")
	}
	if at.Add(90*time.Second).Sub(at) != 90*time.Second || at.Add(-time.Microsecond) != at-1 {
		t.Error("arithmetic")
	}
	var v struct {
		A parley.Time
		B parley.DateTime
	}
	v.A, v.B = 5, 5
	if err := json.Unmarshal([]byte(`{"A":null,"B":null}`), &v); err != nil || v.A != 0 || v.B != 0 {
		t.Errorf("null is %v %v: %v", v.A, v.B, err)
	}
	for _, bad := range []string{`{"A":"2026-01-31"}`, `{"A":5}`, `{"A":"x"}`, `{"B":"2026-01-31T09:30:00Z"}`,
		`{"B":5}`, `{"B":"2026-02-30 00:00:00"}`} {
		if err := json.Unmarshal([]byte(bad), &v); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func FuzzTime(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 1_700_000_000_000_000, 253402300799999999, -62135596799999999} {
		f.Add(n)
	}
	const year1, year9999 = -62135596800000000, 253402300799999999
	f.Fuzz(func(t *testing.T, n int64) {
		if n < year1+1e6 || n > year9999 {
			return
		}
		at := parley.Time(n)
		var back parley.Time
		if err := json.Unmarshal(must(json.Marshal(at)), &back); err != nil || back != at {
			t.Errorf("%d came back as %d: %v", at, back, err)
		}
		var whole parley.DateTime
		err := json.Unmarshal(must(json.Marshal(parley.DateTime(n))), &whole)
		if off := at.Sub(parley.Time(whole)); err != nil || off < 0 || off >= time.Second {
			t.Errorf("%d came back as %d: %v", n, whole, err)
		}
	})
}

func TestValidTimezone(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5",
		"Asia/Kolkata"} {
		if !parley.ValidTimezone(name) {
			t.Errorf("%s is refused", name)
		}
	}
	for _, name := range []string{"", " ", "Local", "Mars/Olympus", "../etc/passwd", "/etc/localtime",
		"Europe/../Europe/Berlin", "Europe\\Berlin", "Europe/Berlin\x00", "+02:00", "zone.tab"} {
		if parley.ValidTimezone(name) {
			t.Errorf("%q is a time zone", name)
		}
	}
}
