package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker (make build); what it does not set comes from the build's own record.
var version, commit, date string

// versionCmd says which build this is.
type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(t *terminal) error {
	_, err := fmt.Fprintln(t.Out, built())
	return err
}

func built() string {
	info, _ := debug.ReadBuildInfo()
	return describe(version, commit, date, info)
}

// release is the name of a build's version, "" where it has none.
func release(version string, info *debug.BuildInfo) string {
	if version == "" && info != nil && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	return strings.TrimSuffix(version, "-dirty")
}

// buildName is the name of this build's version.
func buildName() string {
	info, _ := debug.ReadBuildInfo()
	return cmp.Or(release(version, info), "devel")
}

// describe is a build in one line: "parley v1.2.0, commit 0123456789ab of 2026-01-02T03:04:05Z, go1.26.0 linux/amd64".
func describe(version, commit, date string, info *debug.BuildInfo) string {
	changed := ""
	if info != nil {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = cmp.Or(commit, s.Value)
			case "vcs.time":
				date = cmp.Or(date, s.Value)
			case "vcs.modified":
				if s.Value == "true" {
					changed = " with changes"
				}
			}
		}
	}
	if strings.HasSuffix(version, "-dirty") {
		changed = " with changes"
	}
	return fmt.Sprintf("parley %s, commit %s%s of %s, %s %s/%s", cmp.Or(release(version, info), "devel"),
		cmp.Or(commit[:min(12, len(commit))], "unknown"), changed, cmp.Or(date, "unknown"),
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
