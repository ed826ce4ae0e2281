package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// recommended are the packages that give the built-in voices, recognizer and PDF reader, by the kind of package. Parley works without.
var recommended = map[string][]string{
	"deb": {"flite", "espeak-ng", "pocketsphinx", "pocketsphinx-en-us", "python3", "poppler-utils"},
	"rpm": {"flite", "espeak-ng", "pocketsphinx", "python3", "poppler-utils"},
}

// packages writes a .deb and a .rpm.
func (r *release) packages(program string, t target) error {
	dir, err := os.MkdirTemp("", "package")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var man bytes.Buffer
	zip, err := gzip.NewWriterLevel(&man, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zip.Write(r.pages.man); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	var contents files.Contents
	add := func(source, destination, kind string, mode os.FileMode) {
		contents = append(contents, &files.Content{Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.date}})
	}
	for _, page := range []struct {
		text []byte
		to   string
		kind string
		mode os.FileMode
	}{
		{r.pages.env, "/etc/parley/parley.env", files.TypeConfigNoReplace, 0o640},
		{man.Bytes(), "/usr/share/man/man1/parley.1.gz", "", 0o644},
		{r.pages.bash, "/usr/share/bash-completion/completions/parley", "", 0o644},
		{r.pages.zsh, "/usr/share/zsh/vendor-completions/_parley", "", 0o644},
		{r.pages.fish, "/usr/share/fish/vendor_completions.d/parley.fish", "", 0o644},
	} {
		source := filepath.Join(dir, filepath.Base(page.to))
		if err := os.WriteFile(source, page.text, 0o600); err != nil {
			return err
		}
		add(source, page.to, page.kind, page.mode)
	}
	add(program, "/usr/bin/parley", "", 0o755)
	add("deploy/parley.service", "/usr/lib/systemd/system/parley.service", "", 0o644)
	add("deploy/parley.sysusers", "/usr/lib/sysusers.d/parley.conf", "", 0o644)
	for _, name := range []string{"LICENSE", "NOTICE", "CHANGELOG.md"} {
		add(name, "/usr/share/doc/parley/"+name, "", 0o644)
	}
	for kind, end := range map[string]string{"deb": "deb", "rpm": "rpm"} {
		if err := r.pack(kind, filepath.Join(r.dist, fmt.Sprintf("parley_%s_%s.%s", r.version.deb, t.arch, end)), t, contents); err != nil {
			return fmt.Errorf("%s for %s: %w", kind, t, err)
		}
	}
	return nil
}

// pack writes one package.
func (r *release) pack(kind, path string, t target, contents files.Contents) error {
	info := nfpm.WithDefaults(&nfpm.Info{Name: "parley", Arch: t.arch, Platform: "linux", Version: r.version.deb, VersionSchema: "none",
		Section: "comm", Priority: "optional", Maintainer: "The Parley authors <parley@localhost>", License: "Apache-2.0", MTime: r.date,
		Description: "Voice and chat assistants on your own server\nParley answers and places telephone calls, talks in the browser and chats, " +
			"with an HTTP API\nand a web console.",
		Overridables: nfpm.Overridables{Contents: contents, Recommends: recommended[kind],
			Scripts: nfpm.Scripts{PostInstall: "deploy/postinst.sh", PreRemove: "deploy/prerm.sh", PostRemove: "deploy/postrm.sh"}}})
	if kind == "rpm" {
		info.RPM.BuildHost = "localhost"
	}
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Chtimes(path, time.Time{}, r.date)
}
