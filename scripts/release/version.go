package main

import (
	"regexp"
	"strings"
	"time"
)

// version is the name of what is built, as programs, archives and packages have it.
type version struct {
	full string // "v1.2.3", or "0.1.0-dev.20261126T210500" between tags
	deb  string // "1.2.3", "1.2.4~dev.20261126T210500": older than 1.2.4
}

var tagged = regexp.MustCompile(`^v(\d+\.\d+\.\d+)(-[0-9A-Za-z.]+)?$`)

// versionOf names a build by what `git describe --tags --always --dirty` says of it. What isn't a tag alone is named by the time of
// its commit, so that a later one is newer.
func versionOf(described string, commit time.Time) version {
	if m := tagged.FindStringSubmatch(described); m != nil && !strings.HasSuffix(described, "-dirty") &&
		!regexp.MustCompile(`-g[0-9a-f]+$`).MatchString(described) {
		return version{described, m[1] + strings.Replace(m[2], "-", "~", 1)}
	}
	stamp := commit.Format("20060102T150405")
	if strings.HasSuffix(described, "-dirty") {
		stamp += ".changed"
	}
	return version{"0.1.0-dev." + stamp, "0.1.0~dev." + stamp}
}
