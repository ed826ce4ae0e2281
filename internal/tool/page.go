package tool

import (
	"encoding/json"
	"net/http"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isPage reports whether an answer is HTML, by its beginning, or by what it calls itself and its tags: many servers call
// everything HTML.
func isPage(body, contentType string) bool {
	called := strings.HasPrefix(strings.ToLower(contentType), "text/html") && strings.Contains(body, "</")
	return (called || strings.HasPrefix(http.DetectContentType([]byte(body)), "text/html")) && !json.Valid([]byte(body))
}

// What of a page is no text, and what ends a line.
var (
	silent = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true,
		atom.Svg: true, atom.Iframe: true, atom.Textarea: true, atom.Select: true}
	lines = map[atom.Atom]bool{atom.Title: true, atom.P: true, atom.Br: true, atom.Div: true, atom.Li: true, atom.Tr: true,
		atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true, atom.Hr: true,
		atom.Table: true, atom.Ul: true, atom.Ol: true, atom.Pre: true, atom.Section: true, atom.Article: true,
		atom.Header: true, atom.Footer: true, atom.Body: true, atom.Dt: true, atom.Dd: true, atom.Blockquote: true}
)

// pageText is what a page says: its title and its text, line by line.
func pageText(page string) string {
	var b strings.Builder
	within := atom.Atom(0) // an element whose content is no text
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		t := z.Token()
		switch {
		case within != 0:
			if kind == html.EndTagToken && t.DataAtom == within {
				within = 0
			}
		case kind == html.TextToken:
			b.WriteString(strings.NewReplacer("\n", " ", "\u00a0", " ").Replace(t.Data))
		case kind == html.StartTagToken && silent[t.DataAtom]:
			within = t.DataAtom
		case lines[t.DataAtom]:
			b.WriteByte('\n')
		case t.DataAtom == atom.Td || t.DataAtom == atom.Th:
			b.WriteByte(' ')
		}
	}
	var out []string
	for line := range strings.Lines(b.String()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
