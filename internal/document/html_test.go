package document

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

func TestHTML(t *testing.T) {
	base, err := url.Parse("https://example.com/a/b?x=1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		html string
		want []Section
	}{
		"headings": {
			`<title> The  Title </title><h1>One</h1><p>a<h2>Two <a class=headerlink href=#x>¶</a></h2>b<p>c<h2>Three</h2><h3></h3>d<h1>Four</h1>e`,
			[]Section{{Heading: []string{"One"}, Text: "a"}, {Heading: []string{"One", "Two"}, Text: "b\n\nc"},
				{Heading: []string{"One", "Three"}, Text: "d"}, {Heading: []string{"Four"}, Text: "e"}}},
		"inline": {`<p>a<b>b</b> <i>c</i><br>d <span>e</span>&nbsp;f<wbr>g &amp; &eacute;</p>`,
			[]Section{{Text: "ab c\nd e fg & é"}}},
		"lists": {`<p>Look:</p><ul><li>one<li>two<ol start=1><li>a</li><li>b<p>more</p></li></ol><li>three</ul><p>End`,
			[]Section{{Text: "Look:\n\n- one\n- two\n  1. a\n  2. b\nmore\n- three\n\nEnd"}}},
		"terms": {`<dl><dt>Term<dd>what it is<dt>Other<dd>that</dl>`,
			[]Section{{Text: "Term\nwhat it is\n\nOther\nthat"}}},
		"table": {`<table><caption>Prices</caption><tr><th>A<th>B</tr><tr><td>1<p>x</td><td>2</td></tr><tr><td></td><td></td></tr></table>`,
			[]Section{{Text: "Prices\n\nA | B\n1 x | 2"}}},
		"layout": {`<table><tr><td><h1>H</h1><p>a</p><p>b</p></td></tr></table>`,
			[]Section{{Heading: []string{"H"}, Text: "a\n\nb"}}},
		"pre": {"<p>Run<pre>\nmake test\n  -v\n</pre>", []Section{{Text: "Run\n\nmake test\n  -v"}}},
		"furniture": {`<header><a>Logo</a></header><nav>Menu</nav><div class="cookie-banner">We use cookies</div><aside>Ad</aside><div style="display: none">x</div><script>s</script><style>t</style><noscript>n</noscript><form><input value=v><button>Go</button></form><div role=navigation>n</div><main><header><h1>T</h1></header><p>Text of the page</p><aside>A note</aside></main><footer>Imprint</footer>`,
			[]Section{{Heading: []string{"T"}, Text: "Text of the page\n\nA note"}}},
		"not furniture": {`<body class="has-sidebar menu"><div id="content" class="page-menu"><h1>T</h1>All of the text is in here.</div>`,
			[]Section{{Heading: []string{"T"}, Text: "All of the text is in here."}}},
		"an article": {`<div>related</div><article><p>This is what the page is about and long.</p></article>`,
			[]Section{{Text: "This is what the page is about and long."}}},
		"two articles": {`<article>one</article><article>two</article>`, []Section{{Text: "one\n\ntwo"}}},
		"nothing":      {`<script>app()</script>`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readHTML([]byte(c.html), "text/html; charset=utf-8", base)
			if err != nil || !reflect.DeepEqual(got.Sections, c.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got.Sections, c.want)
			}
		})
	}
}

func TestHTMLHead(t *testing.T) {
	base, err := url.Parse("https://example.com/a/b?x=1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := readHTML([]byte(`<html><head><title>T</title><base href="/c/"><link rel="canonical" href="../canon"><meta name="ROBOTS" content="noindex, Follow"><meta http-equiv=refresh content="3; URL='/next'"></head>
		<a href="d#x">1</a><a href="d">2</a><a href="//other.com/e">3</a><a href="mailto:x@y">4</a><a href="javascript:f()">5</a><a href="#top">6</a><a rel="nofollow" href="g">7</a><area href="/h?i=1">`), "", base)
	if err != nil {
		t.Fatal(err)
	}
	if got.Title != "T" || got.Canonical != "https://example.com/canon" || !got.Noindex || got.Nofollow ||
		got.Refresh != "https://example.com/next" {
		t.Errorf("%+v", got)
	}
	if want := []string{"https://example.com/c/d", "https://other.com/e",
		"https://example.com/h?i=1"}; !reflect.DeepEqual(got.Links, want) {
		t.Errorf("links %q", got.Links)
	}
	for rules, want := range map[string][2]bool{"": {true, true}, "all": {true, true}, "none": {},
		"noindex,nofollow": {}, "NoFollow": {true, false}, "max-snippet:-1, noindex": {false, true}} {
		if index, follow := RobotsRules(rules); [2]bool{index, follow} != want {
			t.Errorf("%q: %v %v", rules, index, follow)
		}
	}
}

func TestHTMLCharsets(t *testing.T) {
	text := "Größe: 4 €"
	latin, err := charmap.Windows1252.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ contentType, html string }{
		"header":     {"text/html; charset=ISO-8859-1", "<p>" + latin},
		"meta":       {"text/html", `<meta charset="windows-1252"><p>` + latin},
		"http-equiv": {"text/html", `<meta http-equiv="Content-Type" content="text/html; charset=cp1252"><p>` + latin},
		"mark":       {"text/html; charset=windows-1252", "\ufeff<p>" + text},
		"nothing":    {"", "<p>" + text},
		"unknown":    {"text/html; charset=klingon", "<meta charset=utf-8><p>" + text},
	} {
		got, err := readHTML([]byte(c.html), c.contentType, nil)
		if err != nil || len(got.Sections) != 1 || got.Sections[0].Text != text {
			t.Errorf("%s: %v %+v", name, err, got)
		}
	}
}

// Pages whose character set nobody says, or wrongly, are read as what they say, or refused.
func TestHTMLUndeclared(t *testing.T) {
	russian, err := charmap.Windows1251.NewEncoder().String("Пекарня открыта с шести утра до шести вечера.")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ contentType, html, want string }{
		{"text/html", "<p>" + russian, "Пекарня открыта с шести утра до шести вечера."},
		{"text/html; charset=ISO-8859-1", "<p>" + russian, "Пекарня открыта с шести утра до шести вечера."},
		{"text/html", "<p>gr\xfc\xdfe aus dem S\xfcden", "grüße aus dem Süden"},
		{"text/html; charset=ISO-8859-1", "<p>Größe", "Größe"},
		{"text/plain; charset=ISO-8859-1", russian, "Пекарня открыта с шести утра до шести вечера."},
		{"text/html", "<p>\xbd\xbe\xbf", ""},
	} {
		p, err := (&WebPage{URL: "https://example.com/", ContentType: c.contentType, Body: []byte(c.html)}).read()
		if c.want == "" {
			if failure := (*Failure)(nil); !errors.As(err, &failure) || !strings.Contains(failure.Reason, "doesn't say its character set") {
				t.Errorf("%q: %v %+v", c.html, err, p)
			}
		} else if err != nil || len(p.Sections) != 1 || p.Sections[0].Text != c.want {
			t.Errorf("%q, %s: %v %+v", c.html, c.contentType, err, p)
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, s := range []string{`<h1>a</h1><p>b`, `<table><tr><td><table><tr><td>x`, `<ul><li><ol><li><pre>a`,
		"<title>\x00</title><meta name=robots content=none>", `<a href="//[::1]/%zz">`,
		strings.Repeat("<div>", 600) + "deep", "\xff\xfe<\x00p\x00>\x00a\x00", `<svg><p>x`, `<select><option>y`,
		`<li>z<dd>w`, "<p>a\u2028\u0085b"} {
		f.Add([]byte(s), "text/html")
	}
	base, err := url.Parse("http://example.com/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, contentType string) {
		got, err := readHTML(b, contentType, base)
		if err != nil {
			sound(t)(nil, err)
		} else if len(got.Sections) > 0 {
			sound(t)(&got.Text, nil)
		}
	})
}
