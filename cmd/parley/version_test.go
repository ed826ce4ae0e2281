package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"},
			{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}}
	for want, got := range map[string]string{
		"parley devel, commit 0123456789ab with changes of 2026-01-02T03:04:05Z, ": describe("", "", "", info),
		"parley v1.2.0, commit fedcba987654 of 2025-01-01, ": describe("v1.2.0",
			"fedcba9876543210", "2025-01-01", nil),
		"parley v1.2.0-3-gabc, commit unknown with changes of unknown, ": describe("v1.2.0-3-gabc-dirty",
			"", "", nil),
		"parley devel, commit unknown of unknown, ": describe("", "", "", nil),
	} {
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestVersion: the command prints one line, and `make build` tells the program what it is and strips it.
func TestVersion(t *testing.T) {
	var out, fails bytes.Buffer
	if code := run([]string{"version"}, &out, &fails); code != 0 || !strings.HasPrefix(out.String(), "parley ") ||
		strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%d %q %q", code, out.String(), fails.String())
	}
	made, err := exec.Command("make", "-C", "../..", "-n", "build").Output()
	if err != nil || !regexp.MustCompile(`-ldflags '-s -w -X main\.version=\S* -X main\.commit=\S* -X main\.date=\S*'`).Match(made) {
		t.Errorf("%v %s", err, made)
	}
}

// make says in words which Go is needed where there is none, or one that is too old.
func TestNeedsGo(t *testing.T) {
	for name, c := range map[string]struct {
		have, toolchain, want string
	}{
		"none":                     {"", "", "there is no go on the PATH. Parley needs Go "},
		"Debian 12":                {"1.19.8", "", "is Go 1.19.8, which is too old. Parley needs Go "},
		"fetches nothing":          {"1.24.1", "local", "is Go 1.24.1, which is too old. Parley needs Go "},
		"fetches what it needs":    {"1.21.0", "auto", ""},
		"the one that is needed":   {"1.26.0", "local", ""},
		"a newer one":              {"1.100.2", "local", ""},
		"a newer major version":    {"2.0", "local", ""},
		"one that is not released": {"1.27rc1", "local", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, tool := range []string{"dirname", "head", "sed", "sort"} { // and no other go
				path, err := exec.LookPath(tool)
				if err == nil {
					err = os.Symlink(path, filepath.Join(dir, tool))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if c.have != "" {
				script := fmt.Sprintf("#!/bin/bash\ncase $1 in version) echo go version go%s linux/amd64;; env) echo %s;; esac\n", c.have, c.toolchain)
				if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("/bin/bash", "../../scripts/needs-go")
			cmd.Env = []string{"PATH=" + dir}
			said, err := cmd.CombinedOutput()
			if (err == nil) != (c.want == "") || !strings.Contains(string(said), c.want) || c.want == "" && len(said) > 0 {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}
