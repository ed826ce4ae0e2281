package main

import (
	"path/filepath"
	"strings"
	"testing"
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
