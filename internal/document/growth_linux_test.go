package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"parley/internal/testenv"
)

// linear fails when a text that is eight times as long takes far more than eight times the work: 64 times would be
// quadratic.
func linear(t *testing.T, short int, fn func(size int)) {
	t.Helper()
	few, many := testenv.Processor(t, func() { fn(short) }), testenv.Processor(t, func() { fn(8 * short) })
	if floor := 100 * time.Microsecond; many > 32*max(few, floor) {
		t.Errorf("%d characters take %v, eight times as many %v", short, few, many)
	}
}

// hostile are texts that tempt a parser to scan the same part again and again: a part, repeated, followed by a letter,
// and how often it is repeated to begin with.
var hostile = map[string]struct {
	part  string
	times int
}{
	"exclamations": {"!", 8 << 10}, "full stops": {".", 8 << 10}, "marks and brackets": {".)]", 4 << 10},
	"quotes": {"?”", 4 << 10}, "ellipses": {"…", 8 << 10},
	"no sentence": {"a", 1 << 19}, "no sentence, words": {"word ", 1 << 17}, "a table": {"a | b\n", 1 << 14},
	"a table of long rows": {strings.Repeat("x | ", 500) + "\n", 64},
	"abbreviations":        {"e.g. ", 1 << 14}, "small sentences": {"A. ", 1 << 14}, "items": {"- a\n", 1 << 14},
	"paragraphs": {"a\n\n", 1 << 14}, "stops before words": {"! a", 1 << 14},
}

func TestSplitIsLinear(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			linear(t, c.times, func(n int) {
				Split([]Section{{Text: strings.Repeat(c.part, n) + "a"}}, ChunkSize,
					ChunkOverlap)
			})
		})
	}
	t.Run("sections", func(t *testing.T) {
		linear(t, 1<<13, func(n int) {
			in := make([]Section, n)
			for i := range in {
				in[i] = Section{Page: i, Text: "a | b\nc | d"}
			}
			Split(in, ChunkSize, ChunkOverlap)
		})
	})
}

// TestSplitCovers: nothing of such texts is lost, and no passage is too long.
func TestSplitCovers(t *testing.T) {
	strip := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, s)
	}
	for name, c := range hostile {
		if strings.Contains(c.part, "|") { // the first row of a table is repeated
			continue
		}
		text := strings.Repeat(c.part, c.times) + "a"
		var all strings.Builder
		for _, p := range Split([]Section{{Text: text}}, ChunkSize, 0) {
			if len([]rune(p.Text)) > ChunkSize {
				t.Errorf("%s: a passage of %d characters", name, len([]rune(p.Text)))
			}
			all.WriteString(p.Text)
		}
		if strip(all.String()) != strip(text) {
			t.Errorf("%s: the passages do not make up the text", name)
		}
	}
}

// nested is a page of some size whose text is nested in this many elements, each of which makes the reader look at its
// content.
func nested(open, shut string, deep, size int) []byte {
	return []byte("<body><p>Before.</p>" + strings.Repeat(open, deep) + "<p>" +
		strings.Repeat("harbour office ", size/15) + "</p>" + strings.Repeat(shut, deep) + "<p>" +
		strings.Repeat("ware house ", size/8))
}

// TestHTMLIsLinear: the nesting of a page has little effect on the work of reading it.
func TestHTMLIsLinear(t *testing.T) {
	for open, shut := range map[string]string{`<div class="menu">`: "</div>", `<div id="share">`: "</div>",
		"<header>": "</header>", "<aside>": "</aside>", "<article><footer>": "</footer></article>",
		"<table><tbody><tr><td>": "</td></tr></tbody></table>", `<div role="navigation">`: "</div>",
		"<main>": "</main>", "<ul><li>": "</li></ul>", "<blockquote>": "</blockquote>"} {
		t.Run(open, func(t *testing.T) {
			read := func(deep int) func() {
				b := nested(open, shut, deep/strings.Count(open, "<"), 64<<10)
				return func() {
					if _, err := readHTML(b, "text/html; charset=utf-8", nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			flat, deep := testenv.Processor(t, read(3)), testenv.Processor(t, read(360))
			if deep > 8*flat {
				t.Errorf("a page takes %v, one that is nested 360 deep %v", flat, deep)
			}
		})
	}
	t.Run("many elements", func(t *testing.T) {
		for _, part := range []string{"<aside>a</aside>", "<header>b</header>", `<p class="menu">c`,
			"<table><tr><td>d</table>", "<b><p>"} {
			linear(t, 500, func(n int) {
				b := []byte("<body>" + strings.Repeat("<div>", 100) + strings.Repeat(part, n))
				if _, err := readHTML(b, "text/html; charset=utf-8", nil); err != nil &&
					!strings.Contains(err.Error(), "no HTML") {
					t.Fatal(err)
				}
			})
		}
	})
}

// TestHostileWhole: two inputs that once took an hour and 20 seconds respectively, by the way that every document goes.
func TestHostileWhole(t *testing.T) {
	x := &Extractor{}
	text, err := x.Extract(t.Context(), "txt", strings.NewReader(strings.Repeat("!", 1<<20)+"a"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := x.Cut(t.Context(), text.Sections); err != nil || len(got) < 1<<20/ChunkSize {
		t.Errorf("%d passages, %v", len(got), err)
	}
	page, err := x.Page(t.Context(), WebPage{URL: "http://example.com", ContentType: "text/html; charset=utf-8",
		Body: nested(`<div class="menu">`, "</div>", 450, 3<<20)})
	if err != nil || page.Size() < 2<<20 {
		t.Errorf("%v", err)
	}
}

// TestCutInAChild: passages are made in a child process, which ends with its context and at its limits; so are pages.
func TestCutInAChild(t *testing.T) {
	in := []Section{{Heading: []string{"A", "B"}, Page: 2, URL: "u", Text: "One. Two."}}
	if got, err := (&Extractor{}).Cut(t.Context(), in); err != nil ||
		fmt.Sprint(got) != fmt.Sprint(Split(in, ChunkSize, ChunkOverlap)) {
		t.Errorf("%v %+v", err, got)
	}
	if got, err := (&Extractor{}).Cut(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v %+v", err, got)
	}
	hang := Extractor{Program: []string{"/bin/sh", "-c", "exec sleep 60"}}
	page := WebPage{URL: "http://example.com", Body: bytes.Repeat([]byte("x"), 1<<20)}
	for name, c := range map[string]struct {
		ask  func(context.Context, *Extractor) error
		slow error
	}{
		"cut": {func(ctx context.Context, x *Extractor) error { _, err := x.Cut(ctx, in); return err }, errSlow},
		"page": {func(ctx context.Context, x *Extractor) error { _, err := x.Page(ctx, page); return err },
			errSlowPage},
	} {
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if err := c.ask(ctx, &hang); !errors.Is(err, context.Canceled) {
			t.Errorf("%s is not cancelled: %v", name, err)
		}
		slow := hang
		slow.limits = limits{memory: 1 << 30, cpu: time.Second, wall: 50 * time.Millisecond}
		if err := c.ask(t.Context(), &slow); !errors.Is(err, c.slow) {
			t.Errorf("%s: %v", name, err)
		}
		// the children would end by themselves only after a minute
		if took := time.Since(began); took > 30*time.Second {
			t.Fatalf("%s ends after %v", name, took)
		}
	}
	if runtime.GOOS == "linux" {
		x := Extractor{limits: limits{memory: 96 << 20, cpu: time.Minute, wall: time.Minute}}
		if _, err := x.Cut(t.Context(), []Section{{Text: strings.Repeat("a\n\n", 8<<20)}}); !errors.Is(err, errMemory) {
			t.Errorf("a glutton: %v", err)
		}
	}
}
