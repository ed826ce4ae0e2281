// Command release builds what is released into dist/: archives of the program for Linux and macOS on amd64 and arm64, packages for
// Debian and Fedora and their like, a container image where Debian's packages can be had, a bill of materials, and the checksums of all.
// The same commit gives the same bytes; the image does as long as Debian's archive has the same packages. Run it by
// `make release`, in the root of the repository.
//
// It is a module of its own, so that what it needs is not among what Parley needs.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// target is a system that Parley runs on.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "-" + t.arch }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// maxBytes is how large an archive may be.
const maxBytes = 35 << 20

// release is one build of everything.
type release struct {
	version version
	commit  string
	date    time.Time // of the commit; every file has it
	dist    string
	pages   pages
}

// pages are the files that the program prints of itself.
type pages struct{ env, man, bash, zsh, fish []byte }

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "build for these alone, such as linux-amd64,linux-arm64")
	dist := flag.String("dist", "dist", "the directory to build into; what is in it goes")
	flat := flag.String("flatten", "",
		"write the files of this image of dist/ for this machine's architecture to standard output, as tar, and build nothing")
	image := flag.Bool("image", true, "build the container image too")
	flag.Parse()
	if *flat != "" {
		if err := flatten(*flat, runtime.GOARCH, os.Stdout); err != nil {
			log.Fatal("release: ", err)
		}
		return
	}
	if err := build(context.Background(), *dist, *only, *image); err != nil {
		log.Fatal("release: ", err)
	}
}

// build builds everything into a directory.
func build(ctx context.Context, dist, only string, image bool) error {
	chosen := slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		return only != "" && !slices.Contains(strings.Split(only, ","), t.String())
	})
	if len(chosen) == 0 {
		return fmt.Errorf("-only %s: there are %v", only, targets)
	}
	r, err := describe(ctx, dist)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dist), os.MkdirAll(dist, 0o755)); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	// what the program says of itself is printed by one that runs here
	host, err := r.compile(ctx, work, target{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return err
	}
	if r.pages, err = printed(ctx, host); err != nil {
		return err
	}
	programs := map[string]string{} // for Linux, by architecture
	for _, t := range chosen {
		began := time.Now()
		program, err := r.compile(ctx, work, t)
		if err != nil {
			return err
		}
		if err := starts(ctx, program, t); err != nil {
			return err
		}
		if err := r.archive(program, t); err != nil {
			return err
		}
		if t.os == "linux" {
			programs[t.arch] = program
			if err := r.packages(program, t); err != nil {
				return err
			}
		}
		log.Printf("%-14s %s", t, time.Since(began).Round(time.Second))
	}
	if err := r.materials(host); err != nil {
		return err
	}
	if image {
		if err := r.image(ctx, work, programs); err != nil {
			return err
		}
	}
	return sums(dist)
}

// describe reads what is built from git.
func describe(ctx context.Context, dist string) (*release, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	stamp, err := git("show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return nil, err
	}
	date, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return nil, err
	}
	tag, err := git("describe", "--tags", "--always", "--dirty")
	if err != nil {
		return nil, err
	}
	return &release{version: versionOf(tag, date.UTC()), commit: commit, date: date.UTC(), dist: dist}, nil
}

// compile builds the program for a target, and returns its path.
func (r *release) compile(ctx context.Context, dir string, t target) (string, error) {
	program := filepath.Join(dir, "parley-"+t.String())
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "-ldflags", fmt.Sprintf(
		"-s -w -buildid= -X main.version=%s -X main.commit=%s -X main.date=%s", r.version.full, r.commit, r.date.Format(time.RFC3339)),
		"./cmd/parley")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build for %s: %w\n%s", t, err, out)
	}
	return program, nil
}

// printed asks the program for its settings, manual page and completions.
func printed(ctx context.Context, program string) (p pages, err error) {
	for _, ask := range []struct {
		into *[]byte
		args []string
	}{{&p.env, []string{"env"}}, {&p.man, []string{"man"}}, {&p.bash, []string{"completion", "bash"}},
		{&p.zsh, []string{"completion", "zsh"}}, {&p.fish, []string{"completion", "fish"}}} {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, program, ask.args...)
		cmd.Stdout, cmd.Stderr, cmd.Env = &out, os.Stderr, []string{}
		if err := cmd.Run(); err != nil {
			return p, fmt.Errorf("parley %s: %w", strings.Join(ask.args, " "), err)
		}
		*ask.into = out.Bytes()
	}
	return p, nil
}

// sums writes SHA256SUMS, which `sha256sum -c` reads.
func sums(dist string) error {
	files, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dist, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(text), f.Name())
	}
	return os.WriteFile(filepath.Join(dist, "SHA256SUMS"), []byte(list.String()), 0o644)
}
