package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var commitDate = time.Date(2026, 11, 26, 21, 5, 0, 0, time.UTC)

func TestVersions(t *testing.T) {
	for described, want := range map[string]version{
		"v1.2.3":            {"v1.2.3", "1.2.3"},
		"v1.2.3-rc.1":       {"v1.2.3-rc.1", "1.2.3~rc.1"},
		"v1.2.3-4-g0123abc": {"0.1.0-dev.20261126T210500", "0.1.0~dev.20261126T210500"},
		"v1.2.3-dirty":      {"0.1.0-dev.20261126T210500.changed", "0.1.0~dev.20261126T210500.changed"},
		"0123abc":           {"0.1.0-dev.20261126T210500", "0.1.0~dev.20261126T210500"},
	} {
		if got := versionOf(described, commitDate); got != want {
			t.Errorf("%s: %+v, want %+v", described, got, want)
		}
	}
}

// made is a release of a program that is a script: building the real one takes minutes, and is the release's own proof.
func made(t *testing.T) *release {
	t.Chdir("../..")
	dir := t.TempDir()
	r := &release{version: versionOf("v1.2.3", commitDate), date: commitDate, dist: dir,
		pages: pages{[]byte("#PARLEY_LISTEN=\n"), []byte(".TH PARLEY 1\n"), []byte("complete parley\n"), []byte("#compdef parley\n"),
			[]byte("complete -c parley\n")}}
	program := filepath.Join(t.TempDir(), "parley-linux-amd64")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho parley v1.2.3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	linux := target{"linux", "amd64"}
	if err := r.archive(program, linux); err != nil {
		t.Fatal(err)
	}
	if err := r.packages(program, linux); err != nil {
		t.Fatal(err)
	}
	if err := sums(dir); err != nil {
		t.Fatal(err)
	}
	return r
}

// The same commit gives the same bytes, and their sums are right.
func TestSameBytes(t *testing.T) {
	read := func() map[string]string {
		r, all := made(t), map[string]string{}
		files, err := os.ReadDir(r.dist)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(r.dist, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all[f.Name()] = string(text)
		}
		cmd := exec.Command("sha256sum", "--strict", "-c", "SHA256SUMS")
		cmd.Dir = r.dist
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 3 {
			t.Errorf("%v\n%s", err, out)
		}
		return all
	}
	first := read()
	t.Chdir("scripts/release")
	second := read()
	if len(first) != 4 {
		t.Errorf("%d files", len(first))
	}
	for name, text := range first {
		if second[name] != text {
			t.Errorf("%s differs", name)
		}
	}
}

// The archive unpacks to the program and its papers, and nobody's name is in it.
func TestArchive(t *testing.T) {
	r := made(t)
	raw, err := os.ReadFile(filepath.Join(r.dist, "parley-v1.2.3-linux-amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tape := tar.NewReader(zip); ; {
		h, err := tape.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(h.Name, "parley-v1.2.3-linux-amd64/"))
		if h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(commitDate) || (h.Mode == 0o755) != strings.HasSuffix(h.Name, "/parley") {
			t.Errorf("%+v", h)
		}
	}
	slices.Sort(names)
	want := []string{"CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "completions/_parley", "completions/parley.bash",
		"completions/parley.fish", "man/parley.1", "parley", "parley.env", "parley.service"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// dpkg reads the package: its fields, its files, its scripts, and what the administrator may change.
func TestDeb(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb")
	}
	r := made(t)
	ask := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("dpkg-deb", append(args, filepath.Join(r.dist, "parley_1.2.3_amd64.deb"))...).Output()
		if err != nil {
			t.Fatalf("dpkg-deb %v: %v", args, err)
		}
		return string(out)
	}
	fields := ask("--field")
	for _, want := range []string{"Package: parley\n", "Version: 1.2.3\n", "Architecture: amd64\n",
		"Recommends: flite, espeak-ng, pocketsphinx"} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in\n%s", want, fields)
		}
	}
	list := ask("--contents")
	for _, want := range []string{"-rwxr-xr-x root/root", "./usr/bin/parley\n", "./usr/lib/systemd/system/parley.service\n",
		"./usr/lib/sysusers.d/parley.conf\n",
		"./etc/parley/parley.env\n", "./usr/share/man/man1/parley.1.gz\n", "./usr/share/bash-completion/completions/parley\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "--control", filepath.Join(r.dist, "parley_1.2.3_amd64.deb"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if out, err := exec.Command("sh", "-n", filepath.Join(dir, script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", script, err, out)
		}
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "conffiles")); err != nil || string(kept) != "/etc/parley/parley.env\n" {
		t.Errorf("conffiles: %q %v", kept, err)
	}
}

// rpm reads the package, and unpacks it into a root of its own.
func TestRpm(t *testing.T) {
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("there is no rpm")
	}
	r := made(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("rpm", append(args, filepath.Join(r.dist, "parley_1.2.3_amd64.rpm"))...).CombinedOutput()
		if err != nil {
			t.Fatalf("rpm %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, ask := range []struct {
		what  string
		wants []string
	}{
		{"-qpi", []string{"Name        : parley\n", "Version     : 1.2.3\n", "Architecture: x86_64\n", "License     : Apache-2.0\n"}},
		{"-qpc", []string{"/etc/parley/parley.env\n"}},
		{"-qp --recommends", []string{"flite\n", "espeak-ng\n", "pocketsphinx\n", "poppler-utils\n"}},
		{"-qp --scripts",
			[]string{"postinstall scriptlet", "preuninstall scriptlet", "postuninstall scriptlet", "systemctl enable --now parley.service"}},
	} {
		out := run(strings.Fields(ask.what)...)
		for _, want := range ask.wants {
			if !strings.Contains(out, want) {
				t.Errorf("rpm %s: no %q in\n%s", ask.what, want, out)
			}
		}
	}
	if os.Geteuid() != 0 {
		return // --root is root's
	}
	root := t.TempDir()
	run("-i", "--root", root, "--nodeps", "--noscripts", "--nosignature")
	for name, mode := range map[string]os.FileMode{"usr/bin/parley": 0o755, "usr/lib/systemd/system/parley.service": 0o644,
		"etc/parley/parley.env": 0o640} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

// The service can do little harm by systemd's own measure.
func TestUnitIsHardened(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze")
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=25", "../../deploy/parley.service").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A program that does not serve is found out, and one of another system is left alone.
func TestStarts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the programs of a release are started on Linux")
	}
	here := target{runtime.GOOS, runtime.GOARCH}
	if err := starts(t.Context(), "/bin/false", here); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("a program that ends: %v", err)
	}
	if err := starts(t.Context(), "/bin/false", target{"darwin", runtime.GOARCH}); err != nil {
		t.Errorf("a program of another system: %v", err)
	}
}
