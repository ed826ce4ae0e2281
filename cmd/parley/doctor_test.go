package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"parley"
	"parley/internal/ai"
)

func compare(t *testing.T, name string, got []finding, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %+v, want %q", name, got, want)
		return
	}
	for i, f := range got {
		w := strings.SplitN(want[i], "|", 3)
		if f.state != w[0] || f.what != w[1] || !strings.Contains(f.text, w[2]) ||
			strings.Contains(f.text, "k3y") || strings.Contains(f.text, "wr0ng") {
			t.Errorf("%s: got %+v, want %q", name, f, want[i])
		}
	}
}

func TestDoctorOnUploads(t *testing.T) {
	dir := t.TempDir()
	for blob, want := range map[string]string{"": "ok|uploads|takes and gives",
		filepath.Join(dir, "b"): "ok|uploads|takes and gives", "/dev/null/x": "FAIL|uploads|PARLEY_BLOB",
		"s3://k:s3cret@": "FAIL|uploads|PARLEY_BLOB"} {
		s := &Settings{Data: dir, Blob: blob}
		f := checkBlob(t.Context(), s)
		compare(t, blob, []finding{f}, []string{want})
		if strings.Contains(f.text, "s3cret") {
			t.Errorf("it tells a secret: %s", f.text)
		}
	}
}

// A vendor that hangs keeps the doctor from no other, and they are told in their order.
func TestDoctorAsksAllVendors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := func(state, what string) []parley.Finding {
			return []parley.Finding{{State: state, What: what, Text: "x"}}
		}
		answers := func(what string) *ai.Vendor {
			return &ai.Vendor{Check: func(ctx context.Context) []parley.Finding {
				if ctx.Err() != nil {
					return says("FAIL", what)
				}
				return says("ok", what)
			}}
		}
		hangs := &ai.Vendor{Check: func(ctx context.Context) []parley.Finding {
			<-ctx.Done()
			return says("FAIL", "b")
		}}
		compare(t, "vendors", checkVendors(t.Context(), []*ai.Vendor{answers("a"), hangs, {}, answers("c")}),
			[]string{"ok|a|", "FAIL|b|", "ok|c|"})
	})
}
