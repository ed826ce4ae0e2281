package document

import (
	"bytes"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// maxNodes bounds a page's elements and texts.
const maxNodes = 500_000

// readHTML reads a page: its main text with headings, without navigation and everything else that is on every page.
// contentType is the header's; base is the page's address, nil for none.
func readHTML(b []byte, contentType string, base *url.URL) (*Page, error) {
	source, warning, err := decodePage(b, contentType)
	if err != nil {
		return nil, err
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(source))
	if err != nil {
		return nil, Fail("The page can't be read as HTML.")
	}
	p := &Page{}
	if warning != "" {
		p.Warnings = append(p.Warnings, warning)
	}
	p.head(doc, base)
	body := doc.Find("body")
	p.findLinks(doc, base)
	shown := goquery.CloneDocument(doc)
	dropBoilerplate(body)
	main := mainPart(body)
	w := htmlWriter{left: maxNodes}
	w.holds = measure(main.Nodes)
	for _, n := range main.Nodes {
		w.walk(n, 0)
	}
	w.end()
	w.flush()
	p.Sections = w.sections
	count := 0
	for _, s := range p.Sections {
		count += wordsOf(s.Text)
	}
	p.Barrier = barrier(shown, source, count)
	if p.Title == "" {
		p.Title = squeeze(doc.Find("h1").First().Text())
	}
	return p, nil
}

// decodePage turns a page's bytes into UTF-8: by its mark, by its header or itself, or else by what they would say.
func decodePage(b []byte, contentType string) (source, warning string, err error) {
	e, name, certain := charset.DetermineEncoding(b, contentType)
	switch {
	case utf8.Valid(b) && !strings.HasPrefix(name, "utf-16") && !strings.HasPrefix(name, "iso-2022"):
		return strings.TrimPrefix(string(b), "\ufeff"), "", nil // whatever the header calls it
	case strings.HasPrefix(name, "utf-16"):
		source, warning, err = decodeWith(e, b)
	case certain || bytes.Contains(bytes.ToLower(b[:min(len(b), 1024)]), []byte("charset=")):
		source, warning, err = decodeText(b, name)
	default:
		source, warning, err = decodeText(b, "")
	}
	if err != nil {
		return "", "", Fail("the server doesn't say its character set, or a wrong one, and its characters can't be read")
	}
	if warning != "" {
		warning = "some of its characters are damaged, or its character set is not known"
	}
	return source, warning, nil
}

func squeeze(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// Elements that are no part of a page's text. A header within the main part stays, since it may hold the heading.
const (
	never  = `script, style, noscript, template, iframe, object, embed, svg, canvas, video, audio, select, button, input, textarea, dialog, menu, head, link, meta, [hidden], [aria-hidden="true"]`
	around = `nav, aside, footer, [role="navigation"], [role="banner"], [role="contentinfo"], [role="search"], [role="complementary"], [role="dialog"], [role="alertdialog"], [role="menu"], [role="menubar"]`
)

// furniture are words in an element's class and id that say it is not what the page is about.
var furniture = regexp.MustCompile(`(?i)(^|[\s_-])(cookies?|consent|gdpr|newsletter|breadcrumbs?|sidebar|share|sharing|social|pagination|pager|skip-link|skiplink|skip-to-content|headerlink|navbar|site-nav|menu|popup|modal|advert|ads|banner|sphinxsidebar|toctree-wrapper-nav|edit-link|editsection|noprint)($|[\s_-])`)

// dropBoilerplate asks of each element what is below and above it: that is measured once for all of them, before each
// step that removes some.
func dropBoilerplate(body *goquery.Selection) {
	body.Find(never).Remove()
	all, above := words(body), ancestry(body.Nodes)
	body.Find(around).Each(func(_ int, s *goquery.Selection) {
		if above[s.Get(0)] == withinMain && s.Is("aside, footer") && !boilerplateName(s) {
			return // a note within the text
		}
		s.Remove()
	})
	below := measure(body.Nodes)
	body.Find("header").Each(func(_ int, s *goquery.Selection) {
		if above[s.Get(0)] == withinNone && !below[s.Get(0)].h1 {
			s.Remove()
		}
	})
	below = measure(body.Nodes)
	body.Find("[class], [id], [style]").Each(func(_ int, s *goquery.Selection) {
		if style := strings.ReplaceAll(s.AttrOr("style", ""), " ", ""); strings.Contains(style, "display:none") {
			s.Remove()
		} else if has := below[s.Get(0)]; boilerplateName(s) && 2*has.words < all && !has.h1 {
			s.Remove()
		}
	})
}

func boilerplateName(s *goquery.Selection) bool {
	return furniture.MatchString(s.AttrOr("class", "")) || furniture.MatchString(s.AttrOr("id", ""))
}

// mainPart is the element that the page marks as its main part, if that holds most of what is there.
func mainPart(body *goquery.Selection) *goquery.Selection {
	all := words(body)
	for _, selector := range []string{`main, [role="main"]`, `article`} {
		if s := body.Find(selector); s.Length() == 1 && 3*words(s) >= all {
			return s
		}
	}
	return body
}

// htmlWriter writes elements as sections.
type htmlWriter struct {
	outline
	text  strings.Builder // of the block that is being written
	left  int             // nodes
	holds map[*html.Node]holds
	list  []int  // the lists that are open: the next number, or -1 for bullets
	item  string // what the next block begins with
	tied  bool   // the next block belongs to the one before: "\n" rather than an empty line
}

// maxTree bounds how deep elements are followed. The parser's own bound is 512.
const maxTree = 600

func (w *htmlWriter) walk(n *html.Node, depth int) {
	if w.left--; w.left < 0 || depth > maxTree {
		return
	}
	switch n.Type {
	case html.TextNode:
		w.text.WriteString(Clean(n.Data))
		return
	case html.ElementNode:
	default:
		return
	}
	switch n.DataAtom {
	case atom.Br:
		w.text.WriteString("\x00")
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.end()
		w.heading(int(n.Data[1]-'0'), w.plainOf(n))
	case atom.Table:
		if w.isLayout(n) {
			w.children(n, depth)
			return
		}
		w.end()
		w.table(n)
	case atom.Pre:
		w.end()
		w.paragraph(strings.Trim(Clean(textOf(n)), "\n"))
	case atom.Ul, atom.Ol:
		w.end()
		w.tied = len(w.list) > 0
		first := -1
		if n.DataAtom == atom.Ol {
			first = 1
		}
		w.list = append(w.list, first)
		w.children(n, depth)
		w.end()
		w.list = w.list[:len(w.list)-1]
		w.tied = len(w.list) > 0
	case atom.Li:
		w.end()
		w.item = w.bullet()
		w.children(n, depth)
		w.end()
		w.item, w.tied = "", true
	case atom.Dt:
		w.end()
		w.children(n, depth)
		w.end()
		w.tied = true
	case atom.Dd:
		w.children(n, depth)
		w.end()
	case atom.Img:
	case atom.Td, atom.Th, atom.Option:
		w.children(n, depth)
		w.text.WriteByte(' ')
	default:
		if inline[n.DataAtom] || n.DataAtom == 0 && n.FirstChild == nil {
			w.children(n, depth)
			return
		}
		w.end()
		w.children(n, depth)
		w.end()
	}
}

// inline elements are part of the line that they stand in.
var inline = map[atom.Atom]bool{atom.A: true, atom.Abbr: true, atom.B: true, atom.Bdi: true, atom.Bdo: true,
	atom.Big: true, atom.Cite: true, atom.Code: true, atom.Data: true, atom.Del: true,
	atom.Dfn: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Ins: true, atom.Kbd: true, atom.Label: true,
	atom.Mark: true, atom.Q: true, atom.Rp: true, atom.Rt: true, atom.Ruby: true,
	atom.S: true, atom.Samp: true, atom.Small: true, atom.Span: true, atom.Strike: true, atom.Strong: true,
	atom.Sub: true, atom.Sup: true, atom.Time: true, atom.Tt: true, atom.U: true, atom.Var: true, atom.Wbr: true}

func (w *htmlWriter) children(n *html.Node, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.walk(c, depth+1)
	}
}

// bullet is what a list's next item begins with.
func (w *htmlWriter) bullet() string {
	if len(w.list) == 0 {
		return "- "
	}
	last := &w.list[len(w.list)-1]
	indent := strings.Repeat("  ", min(len(w.list)-1, 8))
	if *last < 0 {
		return indent + "- "
	}
	*last++
	return indent + strconv.Itoa(*last-1) + ". "
}

// end closes the block that is being written.
func (w *htmlWriter) end() {
	s := lines(w.text.String())
	w.text.Reset()
	if s == "" {
		return
	}
	glue := "\n\n"
	if w.tied {
		glue = "\n"
	}
	w.block2(w.item+s, glue)
	w.item, w.tied = "", w.item != "" // a second paragraph of an item stays with it
}

// block2 keeps an item's indentation, which block would trim.
func (w *htmlWriter) block2(s, glue string) {
	if w.outline.text.Len() == 0 {
		s = strings.TrimLeft(s, " ")
	} else {
		w.outline.text.WriteString(glue)
	}
	w.outline.text.WriteString(s)
	w.size += len(s)
}

// lines squeezes white space but keeps <br>.
func lines(s string) string {
	if !strings.Contains(s, "\x00") {
		return strings.Join(strings.Fields(s), " ")
	}
	var out []string
	for l := range strings.SplitSeq(s, "\x00") {
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// isLayout says whether a table only places things: it holds blocks that no cell of a table of data has.
func (w *htmlWriter) isLayout(n *html.Node) bool {
	return w.holds[n].blocks || n.Parent == nil || attr(n, "role") == "presentation"
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// table writes a row on each line. A cell's own lines become one.
func (w *htmlWriter) table(n *html.Node) {
	doc := goquery.NewDocumentFromNode(n)
	w.paragraph(w.plainOf(first(doc.Find("caption"))))
	begun := false
	doc.Find("tr").Each(func(_ int, tr *goquery.Selection) {
		var cells []string
		full := false
		tr.ChildrenFiltered("td, th").Each(func(_ int, c *goquery.Selection) {
			text := w.plainOf(c.Get(0))
			cells, full = append(cells, text), full || text != ""
		})
		if !full {
			return
		}
		if row := strings.TrimSpace(strings.Join(cells, " | ")); begun {
			w.line(row)
		} else {
			w.paragraph(row)
			begun = true
		}
	})
}

func first(s *goquery.Selection) *html.Node {
	if s.Length() == 0 {
		return nil
	}
	return s.Get(0)
}

// plainOf is an element's text in one line; blocks within it are parted by a space.
func (w *htmlWriter) plainOf(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if n == nil || depth > maxTree {
			return
		}
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
			return
		}
		if n.Type == html.ElementNode && !inline[n.DataAtom] {
			b.WriteByte(' ')
			defer b.WriteByte(' ')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(n, 0)
	return squeeze(strings.TrimSuffix(strings.TrimSpace(b.String()), "¶"))
}

// textOf is the text as it stands, for <pre>.
func textOf(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if n.DataAtom == atom.Br {
			b.WriteByte('\n')
		}
		for c := n.FirstChild; c != nil && depth < maxTree; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(n, 0)
	return b.String()
}
