package knowledge

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// recovered is the share of want's words that got has, in any order. Hyphens don't count: where a line ends in one, either reading may be
// right.
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

// corpus are the PDF files of small Debian packages, by what made them. `make test` installs the packages.
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

// TestRecovery holds both readers of PDFs against pdftotext: at least 99 of 100 words of each file. Files of packages that are not
// installed are passed over; our own are always there.
func TestRecovery(t *testing.T) {
	files := []string{"testdata/guide-libreoffice.pdf", "testdata/guide-cairo.pdf", "testdata/guide-owner.pdf"}
	root := os.Getenv("PARLEY_TEST_CORPUS") // a tree of more of them, to measure
	for _, f := range corpus {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
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
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want := string(testdata(t, "guide.txt")) // pdftotext's, where it is not installed
		if tool, err := exec.LookPath("pdftotext"); err == nil {
			out, err := exec.Command(tool, "-enc", "UTF-8", f, "-").Output()
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
