package document

import (
	"mime"
	"net/url"
	"strings"

	"github.com/PuerkitoBio/goquery"
)

// RobotName is how robots.txt, headers and meta tags address whoever reads web pages here.
const RobotName = "ParleyBot"

// WebPage is what a server sent.
type WebPage struct {
	URL         string // where it was in the end
	ContentType string
	Body        []byte
}

// read makes a page of it.
func (f *WebPage) read() (*Page, error) {
	base, err := url.Parse(f.URL)
	if err != nil {
		return nil, Fail("it is not the address of a web page")
	}
	if kind, params, _ := mime.ParseMediaType(f.ContentType); kind == "text/plain" {
		s, warning, err := decodeText(f.Body, params["charset"])
		if err != nil {
			return nil, Fail("its text can't be decoded")
		}
		p := &Page{}
		if warning != "" {
			p.Warnings = append(p.Warnings, "some of its characters may be wrong: the server doesn't say its character set")
		}
		if s = blankLines(Clean(s)); s != "" {
			p.Sections = []Section{{Text: s}}
		}
		return p, nil
	}
	if binary(f.Body) && wideZeros(f.Body) == nil {
		return nil, Fail("it is not a web page, although the server says so")
	}
	return readHTML(f.Body, f.ContentType, base)
}

// Page is a web page as a crawler sees it.
type Page struct {
	Text
	Canonical string   // absolute, or ""
	Noindex   bool     // its owner does not want it found
	Nofollow  bool     // nor its links followed
	Refresh   string   // where it sends its readers on
	Barrier   string   // why what it says is not what it is about: a check for robots, a sign-in; "" for a page that is itself
	Links     []string // absolute, in the order of the page, without fragments
}

// head reads what a page says about itself.
func (p *Page) head(doc *goquery.Document, base *url.URL) {
	p.Title = squeeze(doc.Find("title").First().Text())
	doc.Find("meta").Each(func(_ int, m *goquery.Selection) {
		content := m.AttrOr("content", "")
		switch strings.ToLower(m.AttrOr("name", m.AttrOr("http-equiv", ""))) {
		case "robots", strings.ToLower(RobotName):
			index, follow := RobotsRules(content)
			p.Noindex, p.Nofollow = p.Noindex || !index, p.Nofollow || !follow
		case "refresh":
			if _, to, ok := strings.Cut(content, ";"); ok {
				if to = strings.TrimSpace(to); len(to) > 4 && strings.EqualFold(to[:4], "url=") {
					p.Refresh = absolute(base, strings.Trim(to[4:], `'"`))
				}
			}
		}
	})
	p.Canonical = absolute(base, doc.Find(`link[rel="canonical"]`).First().AttrOr("href", ""))
}

// RobotsRules reads a robots meta tag or X-Robots-Tag header.
func RobotsRules(content string) (index, follow bool) {
	index, follow = true, true
	for _, word := range strings.FieldsFunc(strings.ToLower(content),
		func(r rune) bool { return r == ',' || r == ' ' || r == ':' }) {
		switch word {
		case "noindex":
			index = false
		case "nofollow":
			follow = false
		case "none":
			return false, false
		}
	}
	return index, follow
}

// absolute resolves a reference; "" for what is no web address.
func absolute(base *url.URL, ref string) string {
	ref = strings.TrimSpace(ref)
	if ref == "" || len(ref) > 2000 || strings.HasPrefix(ref, "#") {
		return ""
	}
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

func (p *Page) findLinks(doc *goquery.Document, base *url.URL) {
	if href := doc.Find("base[href]").First().AttrOr("href", ""); href != "" {
		if u, err := url.Parse(absolute(base, href)); err == nil && u.Host != "" {
			base = u
		}
	}
	seen := map[string]bool{}
	doc.Find("a[href], area[href]").EachWithBreak(func(_ int, a *goquery.Selection) bool {
		u := absolute(base, a.AttrOr("href", ""))
		if u != "" && !seen[u] && !strings.Contains(a.AttrOr("rel", ""), "nofollow") {
			seen[u] = true
			p.Links = append(p.Links, u)
		}
		return len(p.Links) < 2000
	})
}
