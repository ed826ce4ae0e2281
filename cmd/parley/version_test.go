package main

import (
	"bytes"
	"os/exec"
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
