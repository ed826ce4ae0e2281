package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/document"
)

// manuals are Debian packages whose HTML is the corpus: manuals in English with many sections.
var manuals = []string{"debian-policy", "developers-reference", "debian-faq", "maint-guide", "debian-reference-en",
	"harden-doc", "git-doc"}

// corpus is what retrieval is measured with: the sections of manuals, and the headings of those whose heading says
// something and stands once in all manuals, as questions.
type corpus struct {
	pages     []page
	questions []question
}

type page struct {
	title    string
	sections []part
}

// part is a section of a page.
type part struct{ heading, body, mark string }

// question is a heading; its answer is any passage of the section below it.
type question struct {
	text, slipped string
	mark          string // of the section: its address
	heldOut       bool   // not looked at while the ranking was made
}

// readCorpus unpacks the manuals into a cache and reads them.
func readCorpus(b *bench) (*corpus, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "parley-bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &corpus{}
	for _, name := range manuals {
		at := filepath.Join(dir, name)
		if _, err := os.Stat(at); err != nil {
			if err := unpack(dir, name, at); err != nil {
				return nil, err
			}
		}
		if err := c.read(at, name); err != nil {
			return nil, err
		}
	}
	c.ask()
	fmt.Printf(" corpus: %d pages, %d questions from %s\n", len(c.pages), len(c.questions), strings.Join(manuals, ", "))
	return c, nil
}

// unpack downloads a package with apt and takes it apart.
func unpack(dir, name, to string) error {
	tmp, err := os.MkdirTemp(dir, "get-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	get := exec.Command("apt-get", "download", name)
	get.Dir = tmp
	if out, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get download %s: %w\n%s(apt-get update may help)", name, err, out)
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download %s left %v: %w", name, debs, err)
	}
	if out, err := exec.Command("dpkg-deb", "-x", debs[0], filepath.Join(tmp, "x")).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w\n%s", name, err, out)
	}
	return os.Rename(filepath.Join(tmp, "x"), to)
}

var (
	otherLanguage = regexp.MustCompile(`\.(?:[a-z]{2}|[a-z]{2}[-_][a-zA-Z]{2})\.html?$|/(?:de|fr|ja|ru|it|es|zh|pt|ko|nl|pl)(?:[-_][a-zA-Z]{2,4})?/|genindex|search\.html|RelNotes`)
	numbering     = regexp.MustCompile(`^(?:(?:Chapter|Appendix)\s+)?(?:[A-Z]|\d+)?(?:\.\d+)*\.?\s+`)
	blanks        = regexp.MustCompile(`[ \t]*\n\s*\n\s*`)
)

// read takes a manual's pages.
func (c *corpus) read(dir, name string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".html" ||
			otherLanguage.MatchString(strings.TrimPrefix(path, dir)) && !strings.HasSuffix(path, ".en.html") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		doc, err := goquery.NewDocumentFromReader(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		doc.Find("script, style, nav, header, footer, .navheader, .navfooter, .toc, .headerlink, .related, .sphinxsidebar").Remove()
		p := page{title: clear(doc.Find("title").Text())}
		var body strings.Builder
		heading := ""
		flush := func() {
			if text := strings.TrimSpace(blanks.ReplaceAllString(body.String(), "\n\n")); text != "" && heading != "" {
				mark := fmt.Sprintf("%s/%s#%d", name, filepath.Base(path), len(p.sections))
				p.sections = append(p.sections, part{heading, text, mark})
			}
			body.Reset()
		}
		doc.Find("h1, h2, h3, h4, p, pre, li, dt, dd, td").Each(func(_ int, s *goquery.Selection) {
			switch {
			case strings.HasPrefix(goquery.NodeName(s), "h"):
				flush()
				heading = clear(numbering.ReplaceAllString(clear(s.Text()), ""))
			case s.ParentsFiltered("p, pre, li, dt, dd, td").Length() > 0: // it is in the one around it
			default:
				body.WriteString(s.Text() + "\n\n")
			}
		})
		flush()
		if len(p.sections) > 0 {
			c.pages = append(c.pages, p)
		}
		return nil
	})
}

func clear(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("¶", " ", "\u00a0", " ").Replace(s)), " ")
}

// ask makes the questions: headings of at least two words of four letters, with at least 200 characters below them,
// that stand once.
func (c *corpus) ask() {
	times := map[string]int{}
	for _, p := range c.pages {
		for _, s := range p.sections {
			times[strings.ToLower(s.heading)]++
		}
	}
	for _, p := range c.pages {
		for _, s := range p.sections {
			long := 0
			for _, w := range strings.Fields(s.heading) {
				if len(w) >= 4 {
					long++
				}
			}
			if long < 2 || len(s.body) < 200 || times[strings.ToLower(s.heading)] > 1 {
				continue
			}
			h := fnv.New64a()
			h.Write([]byte(s.heading))
			seed := h.Sum64()
			c.questions = append(c.questions, question{s.heading, slip(s.heading, seed), s.mark, seed%2 == 1})
		}
	}
}

// slip puts one slip of the keyboard into every word of four letters or more: a letter is missing, doubled, wrong, or
// swapped with the next.
func slip(text string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	words := strings.Fields(text)
	for i, w := range words {
		letters := []rune(w)
		if len(letters) < 4 {
			continue
		}
		k := 1 + r.IntN(len(letters)-2)
		other := rune('a' + r.IntN(26))
		switch r.IntN(4) {
		case 0:
			letters = slices.Delete(letters, k, k+1)
		case 1:
			letters = slices.Insert(letters, k, letters[k])
		case 2:
			letters[k] = other
		default:
			letters[k], letters[k+1] = letters[k+1], letters[k]
		}
		words[i] = string(letters)
	}
	return strings.Join(words, " ")
}

// texts are the pages as an extractor gives them, a section's mark for its address; withheld leaves the headings out.
func (c *corpus) texts(withheld bool) []*document.Text {
	out := make([]*document.Text, 0, len(c.pages))
	for _, p := range c.pages {
		t := &document.Text{Title: p.title}
		for _, s := range p.sections {
			sec := document.Section{URL: s.mark, Text: s.body}
			if !withheld {
				sec.Heading = []string{s.heading}
			}
			t.Sections = append(t.Sections, sec)
		}
		out = append(out, t)
	}
	return out
}
