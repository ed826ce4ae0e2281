package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
)

// file is one of an archive.
type file struct {
	name string
	mode int64
	text []byte
}

// archive writes a .tar.gz of the program with its papers.
func (r *release) archive(program string, t target) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	files := []file{{"parley", 0o755, binary}, {"man/parley.1", 0o644, r.pages.man}, {"completions/parley.bash", 0o644, r.pages.bash},
		{"completions/_parley", 0o644, r.pages.zsh}, {"completions/parley.fish", 0o644, r.pages.fish}, {"parley.env", 0o644, r.pages.env}}
	for _, name := range []string{"LICENSE", "NOTICE", "CHANGELOG.md", "README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, file{name, 0o644, text})
	}
	if t.os == "linux" {
		unit, err := os.ReadFile("deploy/parley.service")
		if err != nil {
			return err
		}
		files = append(files, file{"parley.service", 0o644, unit})
	}
	base := fmt.Sprintf("parley-%s-%s", r.version.full, t)
	text, err := r.tarball(base, files)
	if err != nil {
		return err
	}
	if len(text) > maxBytes {
		return fmt.Errorf("%s.tar.gz has %d MB, and may have %d", base, len(text)>>20, maxBytes>>20)
	}
	return os.WriteFile(filepath.Join(r.dist, base+".tar.gz"), text, 0o644)
}

// tarball packs files below a directory. Nothing of this machine or hour is in it.
func (r *release) tarball(base string, files []file) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	tape := tar.NewWriter(zip)
	for _, f := range files {
		err := tape.WriteHeader(&tar.Header{Name: base + "/" + f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: r.date,
			Format: tar.FormatPAX})
		if err != nil {
			return nil, err
		}
		if _, err := tape.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := tape.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
