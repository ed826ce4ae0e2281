package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchor is what a heading is linked by, as GitHub makes it.
func anchor(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

// TestHouseLinks follows every link of the pages to other files, and to headings.
func TestHouseLinks(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("examples/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]map[string]bool{}
	read := func(page string) string {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := fence.ReplaceAllString(string(raw), "")
		if anchors[page] == nil {
			anchors[page] = map[string]bool{}
			for _, m := range heading.FindAllStringSubmatch(text, -1) {
				anchors[page][anchor(m[1])] = true
			}
		}
		return text
	}
	links := 0
	for _, page := range slices.Concat(top, pages, examples, guides) {
		for _, m := range link.FindAllStringSubmatch(read(page), -1) {
			to, at, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			file := page
			if to != "" {
				file = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if at != "" && filepath.Ext(file) == ".md" {
				if read(file); !anchors[file][at] {
					t.Errorf("%s: %s has no heading #%s", page, file, at)
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("found %d links", links)
	}
}
