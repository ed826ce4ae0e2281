package document

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// recovered is the share of the words in want that got contains, in any order. Hyphens don't count: where a line ends
// in one, either reading may be right.
func recovered(want, got string) (share float64, words int) {
	have := map[string]int{}
	split := func(s string) []string {
		return strings.Fields(strings.NewReplacer("-", "", "\u2010", "", "\u2212", "").Replace(s))
	}
	for _, w := range split(got) {
		have[w]++
	}
	hit := 0
	for _, w := range split(want) {
		words++
		if have[w] > 0 {
			have[w]--
			hit++
		}
	}
	return float64(hit) / float64(max(words, 1)), words
}

// corpus are PDF files from small Debian packages, with the programs that made them. `make test` installs the packages.
var corpus = []string{
	"/usr/share/doc/debian/FAQ/debian-faq.en.pdf",                     // debian-faq: xdvipdfmx
	"/usr/share/doc/maint-guide/maint-guide.en.pdf",                   // maint-guide: xdvipdfmx
	"/usr/share/doc/libtasn1-doc/libtasn1.pdf",                        // libtasn1-doc: pdfTeX
	"/usr/share/doc/flex-doc/flex.pdf",                                // flex-doc: pdfTeX
	"/usr/share/doc/debian-policy/fhs/fhs-3.0.pdf",                    // debian-policy: FOP
	"/usr/share/doc/debian-policy/policy.pdf",                         // debian-policy: xdvipdfmx
	"/usr/share/doc/gutenprint-doc/gutenprint-users-manual.pdf",       // gutenprint-doc: LibreOffice
	"/usr/share/doc/fonts-sil-doulos/documentation/pdf/about.pdf",     // fonts-sil-doulos: WeasyPrint
	"/usr/share/doc/fonts-sil-doulos/documentation/pdf/faq.pdf",       // fonts-sil-doulos: WeasyPrint
	"/usr/share/doc/fonts-sil-doulos/documentation/pdf/history.pdf",   // fonts-sil-doulos: WeasyPrint
	"/usr/share/doc/fonts-sil-doulos/documentation/pdf/resources.pdf", // fonts-sil-doulos: WeasyPrint
}

// unpacked reads a file, and unzips it if its name ends in .gz.
func unpacked(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			b, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRecovery compares both PDF readers with pdftotext: each must find at least 99 of 100 words of each file. Files of
// packages that are not installed are skipped; our own are always there.
func TestRecovery(t *testing.T) {
	files := []string{"testdata/guide-libreoffice.pdf", "testdata/guide-cairo.pdf", "testdata/guide-weasyprint.pdf",
		"testdata/guide-owner.pdf"}
	root := os.Getenv("PARLEY_TEST_CORPUS") // a directory of more files, to measure
	for _, f := range corpus {
		for _, f := range []string{f, f + ".gz"} { // Debian compresses the larger ones
			if _, err := os.Stat(f); err == nil {
				files = append(files, f)
			}
		}
	}
	if root != "" {
		if err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(p, ".pdf") {
				files = append(files, p)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		b := unpacked(t, f)
		want := string(testdata(t, "guide.txt")) // the output of pdftotext, for where it is not installed
		if tool, err := exec.LookPath("pdftotext"); err == nil {
			cmd := exec.Command(tool, "-enc", "UTF-8", "-", "-")
			cmd.Stdin = bytes.NewReader(b)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			want = string(out)
		} else if !strings.HasPrefix(f, "testdata") {
			continue
		}
		for _, engine := range engines(t) {
			got, err := (&Extractor{PDFToText: engine}).Extract(t.Context(), "pdf", bytes.NewReader(b))
			if failure := (*Failure)(nil); errors.As(err, &failure) && strings.TrimSpace(want) == "" {
				continue // a picture
			} else if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			var all strings.Builder
			for _, s := range got.Sections {
				all.WriteString(s.Text + "\n")
			}
			share, words := recovered(tidyPage(want), all.String())
			t.Logf("%7.3f %% of %6d words, engine %-3q %s", 100*share, words, engine, f)
			if share < 0.99 && root == "" {
				t.Errorf("%s: only %.2f %% of %d words, engine %q", f, 100*share, words, engine)
			}
		}
	}
}

// TestRecoveryHTML compares web pages from Debian packages with the plain-text versions of the same documents.
func TestRecoveryHTML(t *testing.T) {
	const dir = "/usr/share/doc/debian-policy/"
	for _, name := range []string{"copyright-format-1.0", "debconf_specification"} {
		if _, err := os.Stat(dir + name + ".txt.gz"); err != nil {
			t.Logf("debian-policy is not installed: %s is passed over", name)
			continue
		}
		got, err := readHTML(unpacked(t, dir+name+".html"), "text/html", nil)
		if err != nil {
			t.Error(err)
			continue
		}
		plain := func(s string) string {
			return strings.NewReplacer("*", " ", "\"", " ", "“", " ", "”", " ", "‘", " ", "’", " ", "'", " ", "|",
				" ", "`", " ", ".", " ", ",", " ", ":", " ", ";", " ", "(", " ", ")", " ", "[", " ", "]", " ", "=",
				"", "+", "", "—", " ", "–", " ", "…", " ", "<", " ", ">", " ", "/", " ").Replace(s)
		}
		all := got.Title
		for _, s := range got.Sections {
			all += "\n" + strings.Join(s.Heading[max(0, len(s.Heading)-1):], " ") + "\n" + s.Text
		}
		share, words := recovered(plain(tidyPage(string(unpacked(t, dir+name+".txt.gz")))), plain(all))
		t.Logf("%7.3f %% of %6d words %s", 100*share, words, name)
		if share < 0.99 {
			t.Errorf("%s: only %.2f %% of %d words", name, 100*share, words)
		}
	}
}
