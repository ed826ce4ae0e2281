package document

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/testenv"
)

// minimal makes a PDF with a page for each content; more are objects, numbered from 100.
func minimal(contents []string, more ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n")
	kids := ""
	for i, c := range contents {
		kids += fmt.Sprintf("%d 0 R ", 10+2*i)
		fmt.Fprintf(&b, "%d 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>/XObject<</X 100 0 R>>>>/Contents "+
			"%d 0 R>>endobj\n%d 0 obj<</Length %d>>stream\n%s\nendstream endobj\n", 10+2*i, 11+2*i, 11+2*i, len(c), c)
	}
	fmt.Fprintf(&b, "2 0 obj<</Type/Pages/Count %d/Kids[%s]>>endobj\n", len(contents), kids)
	for i, m := range more {
		fmt.Fprintf(&b, "%d 0 obj%s endobj\n", 100+i, m)
	}
	b.WriteString("trailer<</Root 1 0 R>>\n%%EOF\n")
	return b.Bytes()
}

func deflated(n int, part string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	for range n {
		if _, err := io.WriteString(z, part); err != nil {
			panic(err)
		}
	}
	z.Close()
	return fmt.Sprintf("<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream", b.Len(), b.String())
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// engines are the ways to read a PDF: our own, and poppler where it is installed.
func engines(t testing.TB) []string {
	t.Helper()
	if _, err := exec.LookPath("pdftotext"); !testenv.Met(t, err) {
		return []string{"off"}
	}
	return []string{"", "off"}
}

func TestExtract(t *testing.T) {
	guide := "harbour office opens at six flagship, efficient affinity for difficult offices Café Zoë 4.50 € Berth North 45 € breakwater, " +
		"Опоздавшие платят за полный день. Breakfast is not served in winter."
	for _, engine := range engines(t) {
		x := Extractor{PDFToText: engine}
		for _, name := range []string{"guide-libreoffice.pdf", "guide-cairo.pdf", "guide-owner.pdf",
			"guide-aes128.pdf", "guide-aes256.pdf", "guide-libreoffice.docx", "guide-pandoc.docx"} {
			kind := filepath.Ext(name)[1:]
			got, err := x.Extract(t.Context(), kind, bytes.NewReader(testdata(t, name)))
			if err != nil {
				t.Errorf("%s, engine %q: %v", name, engine, err)
				continue
			}
			all := ""
			for _, s := range got.Sections {
				all += s.Text + "\n"
				if (s.Page == 1) != (kind == "pdf") {
					t.Errorf("%s: page %d", name, s.Page)
				}
			}
			have := strings.Fields(all)
			for _, w := range strings.Fields(guide) {
				if !slices.Contains(have, w) {
					t.Errorf("%s, engine %q: %q is not there", name, engine, w)
				}
			}
			if strings.Contains(name, "libreoffice") && got.Title != "Harbour Guide" {
				t.Errorf("%s, engine %q: title %q", name, engine, got.Title)
			}
		}
	}
	got, err := (&Extractor{}).Extract(t.Context(), "txt", strings.NewReader("gr\xfc\xdfe aus dem S\xfcden"))
	if err != nil || got.Sections[0].Text != "grüße aus dem Süden" {
		t.Errorf("%v %+v", err, got)
	}
}

// TestPages: text keeps its page number, words split across lines are joined, and ligatures are resolved.
func TestPages(t *testing.T) {
	file := minimal([]string{"BT /F 12 Tf 50 700 Td (The \\256rst page has a hyphen-) Tj 0 -14 Td (ated word.) Tj ET", "",
		"BT /F 12 Tf 50 700 Td (Third.) Tj ET"})
	for _, engine := range engines(t) {
		got, err := (&Extractor{PDFToText: engine}).Extract(t.Context(), "pdf", bytes.NewReader(file))
		if err != nil || len(got.Sections) != 2 || got.Sections[0].Page != 1 || got.Sections[1].Page != 3 ||
			got.Sections[1].Text != "Third." {
			t.Fatalf("%q: %v %+v", engine, err, got)
		}
		if text := strings.Join(strings.Fields(got.Sections[0].Text),
			" "); text != "The first page has a hyphenated word." {
			t.Errorf("%q: %q", engine, text)
		}
		if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "1 of 3 pages hold no text") {
			t.Errorf("%q: %q", engine, got.Warnings)
		}
	}
	for in, want := range map[string]string{"a-\nb c": "ab\nc", "non-\nUnicode": "non-Unicode", "1-\n2": "1-\n2",
		"x -\ny": "x -\ny", "end-": "end-", "a-\nb": "ab", "a-\nb-\nc d": "ab-\nc d", "ﬁne ﬀx²": "fine ffx²",
		"co\u2010\nop": "coop", "a-\n\nb": "a-\n\nb"} {
		if got := tidyPage(in); got != want {
			t.Errorf("tidyPage(%q) = %q", in, got)
		}
	}
}

// TestReasons: the error for a file that can't be read says why, whichever engine reads it.
func TestReasons(t *testing.T) {
	whole := testdata(t, "guide-libreoffice.pdf")
	loop := minimal([]string{"/X Do BT /F 12 Tf (after the loop) Tj ET"},
		"<</Type/XObject/Subtype/Form/Resources<</XObject<</X 100 0 R>>>>/Length 11>>stream\n/X Do /X Do\nendstream")
	var many bytes.Buffer
	many.WriteString("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 10001/Kids[")
	for i := range maxPages + 1 {
		fmt.Fprintf(&many, "%d 0 R ", 10+i)
	}
	many.WriteString("]>>endobj\n")
	for i := range maxPages + 1 {
		fmt.Fprintf(&many, "%d 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n", 10+i)
	}
	many.WriteString("trailer<</Root 1 0 R>>\n%%EOF\n")
	for name, c := range map[string]struct {
		kind string
		file []byte
		want string // "" if it can be read
	}{
		"a password": {"pdf", testdata(t, "guide-password.pdf"), "protected by a password"},
		"AES":        {"pdf", testdata(t, "guide-password256.pdf"), "protected by a password"},
		"a scan": {"pdf", minimal([]string{"q 100 0 0 100 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q",
			""}), "scanned pages without text"},
		"no PDF":     {"pdf", []byte("hello, this is text"), "not a PDF"},
		"empty":      {"pdf", nil, ""},
		"cut off":    {"pdf", whole[:600], "damaged"},
		"no trailer": {"pdf", whole[:len(whole)-300], "read"},
		"many pages": {"pdf", many.Bytes(), "more than 10000 pages"},
		"a loop":     {"pdf", loop, "read"},
		"a loop of Kids": {"pdf",
			[]byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 9/Kids[2 0 R 2 0 R]/Parent 2 0 R>>endobj\n" +
				"trailer<</Root 1 0 R>>\n%%EOF"), ""},
		"huge counts": {"pdf",
			[]byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 2147483647/Kids[]>>endobj\nxref\n" +
				"0 2147483647\n0000000000 65535 f\ntrailer<</Root 1 0 R/Size 2147483647>>\nstartxref\n110\n%%EOF"), ""},
		"an old Word":   {"docx", testdata(t, "guide.doc"), "older Word document (.doc)"},
		"a bomb":        {"docx", bomb(24<<20, 24<<20+uint64(len(wordNS))+37), "unpacks to far more"},
		"a PDF as text": {"txt", whole, "not a text file but a PDF"},
	} {
		for _, engine := range engines(t) {
			t.Run(name+engine, func(t *testing.T) {
				t.Parallel()
				got, err := (&Extractor{PDFToText: engine}).Extract(t.Context(), c.kind, bytes.NewReader(c.file))
				if c.want == "read" {
					if err != nil || got.Size() == 0 {
						t.Errorf("%v", err)
					}
					return
				}
				if failure := (*Failure)(nil); !errors.As(err, &failure) || !strings.Contains(failure.Reason, c.want) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// TestLimits: a file that needs more than its limits costs only its child process.
func TestLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux has limits that hold")
		return
	}
	// A page with sixty million bytes of text, from a few thousand: each character expands to many times its size.
	glutton := minimal([]string{"/X Do"}, strings.Replace(deflated(60, "BT /F 9 Tf "+
		strings.Repeat("(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj 0 1 Td ", 1<<20/47)+" ET "), "<<",
		"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>>>", 1))
	for _, engine := range engines(t) {
		t.Run("memory"+engine, func(t *testing.T) {
			x := Extractor{PDFToText: engine, limits: limits{memory: 48 << 20, cpu: 30 * time.Second,
				wall: time.Minute}}
			if engine == "" { // this one needs no memory to start
				x.limits.memory = 24 << 20
			}
			_, err := x.Extract(t.Context(), "pdf", bytes.NewReader(glutton))
			if !errors.Is(err, errMemory) && !(engine == "" && errors.Is(err, errCrash)) {
				t.Errorf("got %v", err)
			}
		})
		t.Run("processor"+engine, func(t *testing.T) {
			x := Extractor{PDFToText: engine, limits: limits{memory: 8 << 30, cpu: time.Second, wall: time.Minute}}
			slow := make([]string, 200)
			for i := range slow {
				slow[i] = "/X Do"
			}
			file := minimal(slow, strings.Replace(deflated(8, "BT /F 9 Tf "+
				strings.Repeat("(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj 1 1 Td ", 1<<18/47)+" ET "), "<<",
				"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>>>", 1))
			if _, err := x.Extract(t.Context(), "pdf", bytes.NewReader(file)); !errors.Is(err, errSlow) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("time", func(t *testing.T) {
		x := Extractor{Program: []string{"/bin/sh", "-c", "exec sleep 60"},
			limits: limits{memory: 1 << 30, cpu: time.Second, wall: 100 * time.Millisecond}}
		if _, err := x.Extract(t.Context(), "txt", strings.NewReader("x")); !errors.Is(err, errSlow) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("output", func(t *testing.T) {
		x := Extractor{Program: []string{"/bin/sh", "-c", "head -c 200000000 /dev/zero; exec sleep 60"},
			limits: limits{memory: 1 << 30, cpu: time.Minute, wall: time.Minute}}
		if _, err := x.Extract(t.Context(), "txt", strings.NewReader("x")); err == nil || err.Error() != tooLong {
			t.Errorf("got %v", err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (&Extractor{}).Extract(ctx, "txt", strings.NewReader("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no secrets", func(t *testing.T) {
		t.Setenv("PARLEY_SECRET_KEY", "secret")
		x := Extractor{Program: []string{"/bin/sh", "-c", "env >&2; exit 3"}}
		f, err := spool(strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(f.Name())
		defer f.Close()
		cmd := exec.Command("/bin/sh", "-c", "env")
		cmd.Env = childEnv
		out, err := cmd.Output()
		if err != nil || strings.Contains(string(out), "PARLEY") {
			t.Errorf("%v %s", err, out)
		}
		if _, err := x.child(t.Context(), f, defaultLimits, "txt"); !errors.Is(err, errCrash) {
			t.Errorf("got %v", err)
		}
	})
}

func FuzzPages(f *testing.F) {
	for _, s := range []string{"a-\nb", "ﬁ\f", "x-\n-\ny", "\u00ad-\nz", "a-\nb-\nc-\nd e"} {
		f.Add(s)
	}
	strip := func(s string) string {
		return strings.NewReplacer(" ", "", "\n", "", "\t", "", "-", "", "\u2010", "").Replace(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := strip(tidyPage(s)), strip(ligatures(Clean(s))); strings.TrimSpace(got) != strings.TrimSpace(
			want) {
			t.Fatalf("%q became %q", want, got)
		}
	})
}
