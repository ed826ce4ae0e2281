package main

import (
	"bytes"
	"path/filepath"
	"regexp"
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

// The last line names the checks that failed: it is what remains of a report that was cut off.
func TestDoctorNamesWhatFailed(t *testing.T) {
	t.Setenv("PARLEY_SIP_LISTEN", "off")
	var out, errs bytes.Buffer
	code := run([]string{"doctor", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--blob", "/dev/null/x"}, &out, &errs)
	if last := errs.String(); code != 1 || !regexp.MustCompile(`parley: \d+ of \d+ checks failed: .*\buploads\b`).MatchString(last) {
		t.Errorf("code %d: %q", code, last)
	}
}
