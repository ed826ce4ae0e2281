package console

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/store"
)

func TestPagesNeedASession(t *testing.T) {
	h := open(t)
	u := h.user(t)
	paths := h.paths(t, u)
	stranger, owner := h.visitor(t), h.signedIn(t, u)
	for _, path := range paths {
		stranger.get(path).moved("/signin?return=" + url.QueryEscape(path))
		owner.get(path).is(http.StatusOK)
	}
	for _, path := range []string{"/assistants/1", "/assistants/1/delete", "/assistants/1/choices", "/tools/1",
		"/keys", "/keys/1/delete", "/account/password"} {
		stranger.post(path, nil).moved("/signin")
		if got := stranger.post(path, nil, "HX-Request", "true"); got.status != http.StatusUnauthorized {
			t.Errorf("a script's POST %s without a session is answered %d", path, got.status)
		}
	}
	stranger.get("/nothing/here").is(http.StatusNotFound)
	stranger.get("/").moved("/signin")
	owner.get("/").says("Overview")
}

func TestEveryPageIsGuarded(t *testing.T) {
	h := open(t)
	u := h.user(t)
	owner := h.signedIn(t, u)
	pages := append(h.paths(t, u), "/", "/nothing")
	replies := []*reply{h.visitor(t).get("/signin"), owner.post("/tools/new", nil), owner.post("/keys", nil)}
	for _, path := range pages {
		replies = append(replies, owner.get(path))
	}
	for _, r := range replies {
		csp := r.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'",
			"frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("policy %q lacks %q", csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || r.header.Get("X-Content-Type-Options") != "nosniff" ||
			r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Request-Id") == "" {
			t.Errorf("headers %v", r.header)
		}
		doc := r.doc()
		doc.Find("script:not([src]), style, [style], iframe, object, base").Each(func(_ int, s *goquery.Selection) {
			html, _ := goquery.OuterHtml(s)
			t.Errorf("inline: %s", html)
		})
		doc.Find("*").Each(func(_ int, s *goquery.Selection) {
			for _, a := range s.Nodes[0].Attr {
				if strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Key, "hx-on") ||
					strings.HasPrefix(a.Val, "javascript:") {
					t.Errorf("script in attribute %s=%q", a.Key, a.Val)
				}
				if (a.Key == "src" || a.Key == "href" && goquery.NodeName(s) == "link") &&
					!strings.HasPrefix(a.Val, "/assets/") &&
					!(goquery.NodeName(s) == "audio" && strings.HasPrefix(a.Val, "/calls/")) {
					t.Errorf("loads %s", a.Val)
				}
			}
		})
		seen := map[string]bool{}
		doc.Find("[id]").Each(func(_ int, s *goquery.Selection) {
			name := s.AttrOr("id", "")
			if seen[name] && s.Closest("template").Length() == 0 {
				t.Errorf("two elements have the id %s", name)
			}
			seen[name] = true
		})
	}
}

func TestCrossOriginRequestsAreRefused(t *testing.T) {
	h := open(t, func(c *Config) { c.Front.PublicURL = "https://voice.example.com/sub" })
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID) + "/delete"
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site", "HX-Request", "true"}, {"Origin", "http://voice.example.com"},
		{"Origin", "https://voice.example.com:8443"},
		{"Origin", "https://voice.example.com.evil.example"},
		{"Origin", strings.Replace(h.url, "http:", "https:", 1)}, {"Origin", "http://127.0.0.1"},
		{"Origin", "http://[::1"},
	} {
		v.post(path, nil, headers...).is(http.StatusForbidden).says("came from another website")
	}
	v.get("/assistants/"+id(a.ID), "Sec-Fetch-Site", "cross-site").is(http.StatusOK) // a link from another website
	v.post("/theme", nil, "Origin", h.url).is(http.StatusSeeOther)
	v.post("/theme", nil, "Origin", "https://voice.example.com").is(http.StatusSeeOther)
	v.post(path, nil, "Origin", "https://voice.example.com", "Sec-Fetch-Site",
		"same-origin").moved("/assistants?done=deleted")
}

func TestForeignIdsAreUnknown(t *testing.T) {
	h := open(t)
	owner, other := h.user(t), h.user(t)
	a, tool := h.assistant(t, owner, "Secret plans"), h.tool(t, owner, "secret_tool")
	key := h.key(t, owner)
	v := h.signedIn(t, other)
	const unknown = "424242"
	for _, c := range []struct{ method, path, id string }{
		{"GET", "/assistants/%", id(a.ID)}, {"POST", "/assistants/%", id(a.ID)},
		{"POST", "/assistants/%/choices", id(a.ID)}, {"POST", "/assistants/%/delete", id(a.ID)},
		{"GET", "/assistants/%/versions", id(a.ID)}, {"GET", "/assistants/%/versions/1", id(a.ID)},
		{"POST", "/assistants/%/versions/1/restore", id(a.ID)},
		{"GET", "/tools/%", id(tool.ID)}, {"POST", "/tools/%", id(tool.ID)},
		{"POST", "/tools/%/delete", id(tool.ID)}, {"POST", "/keys/%/delete", id(key)},
	} {
		bodies := map[string]bool{}
		for _, one := range []string{c.id, unknown, "0", "007", "-1", "x", "99999999999999999999"} {
			form := url.Values{"name": {"stolen"}}
			if c.method == "GET" {
				form = nil
			}
			r := v.send(c.method, strings.Replace(c.path, "%", one, 1), form).is(http.StatusNotFound)
			bodies[r.doc().Find("main").Text()] = true
		}
		if len(bodies) != 1 {
			t.Errorf("%s %s tells a foreign id from an unknown one: %v", c.method, c.path, bodies)
		}
	}
	if got, err := h.Assistants.Get(t.Context(), owner.ID, a.ID); err != nil || got.Name != "Secret plans" {
		t.Errorf("the owner's assistant became %v, %v", got, err)
	}
	if keys, err := h.DB.Keys(t.Context(), owner.ID); err != nil || len(keys) != 1 {
		t.Errorf("the owner's keys became %v, %v", keys, err)
	}
	for _, path := range []string{"/assistants", "/assistants?q=secret", "/tools", "/keys"} {
		if body := v.get(path).is(http.StatusOK).doc().Find("main").Text(); strings.Contains(strings.ToLower(body),
			"secret plans") || strings.Contains(body, "secret_tool") {
			t.Errorf("%s shows another user's things", path)
		}
	}
}

func TestHostileTextStaysText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)> {{x}} ' </textarea></title> \u0000 ${7*7} ` + "\u202e"
	h := open(t)
	u := h.user(t)
	u.Name = evil
	if err := h.DB.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.SaveUser(ctx, u)
	}); err != nil {
		t.Fatal(err)
	}
	a := h.assistant(t, u, evil)
	_, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		map[string]any{"system_prompt": evil, "initial_message": evil, "variables": map[string]any{evil: evil},
			"keywords": []any{"</textarea><script>"}, "reengagement_prompt": evil,
			"tools": []any{map[string]any{"type": "call_transfer", "phone_number": "+4930901820",
				"description": evil}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"system_prompt": "plain"})
	if err != nil {
		t.Fatal(err)
	}
	v := h.signedIn(t, u)
	v.post("/keys", url.Values{"name": {evil}}).is(http.StatusOK)
	one := "/assistants/" + id(a.ID)
	for _, r := range []*reply{v.get("/assistants"), v.get("/assistants?q=" + url.QueryEscape(evil)),
		v.get("/assistants?q=" + url.QueryEscape(evil+"none")), v.get(one), v.get(one + "/versions"),
		v.get(one + "/versions/1"), v.get(one + "/versions/2"), v.get("/keys"), v.get("/account"),
		v.post("/signin", url.Values{"email": {evil}, "password": {"x"}, "return": {evil}}),
		v.post("/assistants/new", url.Values{"name": {evil}, "template": {evil}, "language_id": {evil}}),
		v.post("/tools/new", url.Values{"name": {evil}, "endpoint": {evil}})} {
		doc := r.doc()
		if n := doc.Find("script:not([src]), img, [onerror]").Length(); n > 0 {
			t.Errorf("%d elements of the text came alive:\n%s", n, r.body)
		}
		if strings.Contains(r.body, "<script>") {
			t.Error("the page holds a bare <script>")
		}
	}
	if got := v.get(one).doc().Find("h1").Text(); got != strings.TrimSpace(evil) {
		t.Errorf("the name is shown as %q", got)
	}
}

func TestAssets(t *testing.T) {
	h := open(t)
	v := h.visitor(t)
	page := v.get("/signin")
	small := len(gzipped(t, page.body))
	page.doc().Find("script[src], link[href]").Each(func(_ int, s *goquery.Selection) {
		path := s.AttrOr("src", s.AttrOr("href", ""))
		r := v.get(path, "Accept-Encoding", "br, gzip").is(http.StatusOK)
		if r.header.Get("Content-Encoding") != "gzip" ||
			!strings.Contains(r.header.Get("Cache-Control"), "immutable") ||
			r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s has headers %v", path, r.header)
		}
		z, err := gzip.NewReader(strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		unzipped, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if plain := v.get(path, "Accept-Encoding", "gzip;q=0").is(http.StatusOK); plain.header.Get(
			"Content-Encoding") != "" || plain.body != string(unzipped) {
			t.Errorf("%s differs without gzip", path)
		}
		small += len(r.body)
	})
	if small > 48<<10 {
		t.Errorf("the first load is %d bytes", small)
	}
	t.Logf("first load: %d bytes gzipped", small)
	v.get("/assets/console.css").is(http.StatusNotFound) // only under its hash
	v.get("/assets/..%2fconsole.go").is(http.StatusNotFound)
	if editor := gzipped(t, h.signedIn(t, h.user(t)).get("/assistants/new").body); len(editor) > 20<<10 {
		t.Errorf("a page is %d bytes", len(editor))
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPagesAreCompressed(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	r := v.get("/tools/new", "Accept-Encoding", "gzip").is(http.StatusOK)
	z, err := gzip.NewReader(strings.NewReader(r.body))
	if err != nil || r.header.Get("Vary") != "Accept-Encoding" {
		t.Fatal(err, r.header)
	}
	body, err := io.ReadAll(z)
	if err != nil || !strings.Contains(string(body), "</html>") {
		t.Error(err, len(body))
	}
}

func TestPanicIsOnePagesFailure(t *testing.T) {
	h := open(t)
	h.open("GET /broken", func(*request) (*answer, error) { panic("broken") })
	v := h.visitor(t)
	if r := v.get("/broken").is(http.StatusInternalServerError); strings.Contains(r.body, "goroutine") ||
		!strings.Contains(r.body, r.header.Get("X-Request-Id")) {
		t.Errorf("a panic shows %s", r.body)
	}
	v.get("/signin").is(http.StatusOK)
}

func TestFailureHidesItsCause(t *testing.T) {
	h := open(t)
	h.open("GET /broken", func(*request) (*answer, error) { return nil, io.ErrUnexpectedEOF })
	if r := h.visitor(t).get("/broken").is(http.StatusInternalServerError); strings.Contains(r.body, "EOF") ||
		!strings.Contains(r.body, r.header.Get("X-Request-Id")) {
		t.Errorf("a failure shows %s", r.body)
	}
}

func TestFormIsBounded(t *testing.T) {
	h := open(t)
	v := h.signedIn(t, h.user(t))
	v.post("/keys", url.Values{"name": {strings.Repeat("x", formLimit)}}).is(http.StatusRequestEntityTooLarge)
	v.post("/signin", url.Values{"email": {strings.Repeat("x", formLimit)}}).is(http.StatusRequestEntityTooLarge)
}

func TestSlowFormIsGivenUp(t *testing.T) {
	h := open(t)
	h.guard.Whole = 20 * time.Millisecond
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(conn, "POST /signin HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Content-Length: 100\r\n\r\nemail=")
	answer, err := io.ReadAll(conn) // to the end: the connection is closed
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("%.200s %v", answer, err)
	}
}

func TestTheme(t *testing.T) {
	h := open(t)
	v := h.visitor(t)
	for _, want := range []string{"auto", "light", "dark", "auto"} {
		if got := v.get("/signin").doc().Find("html").AttrOr("data-theme", ""); got != want {
			t.Fatalf("theme %s, want %s", got, want)
		}
		v.post("/theme", nil, "Referer", h.url+"/signin?return=%2Ftools").moved("/signin?return=%2Ftools")
	}
	v.post("/theme", nil, "Referer", "https://evil.example/x").moved("/")
	v.post("/theme", nil, "Referer", h.url+"//evil.example/x").moved("/")
	if got := h.visitor(t).get("/signin", "Cookie",
		`parley_theme="><script>`).doc().Find("html").AttrOr("data-theme", ""); got != "auto" {
		t.Errorf("theme %q", got)
	}
}

// Every page that a page links to exists.
func TestLinksLead(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	var links []string
	for _, path := range h.paths(t, u) {
		v.get(path).doc().Find("a[href^='/']").Each(func(_ int,
			s *goquery.Selection) {
			links = append(links, s.AttrOr("href", ""))
		})
	}
	slices.Sort(links)
	for _, link := range slices.Compact(links) {
		if strings.HasPrefix(link, "/api/") || strings.HasPrefix(link, "/widget-demo?") {
			continue // the API's, and the widget's
		}
		if r := v.get(link); r.status != http.StatusOK && r.header.Get("Location") != "/assistants" {
			t.Errorf("%s answers %d", link, r.status)
		}
	}
}

func TestAddress(t *testing.T) {
	h := open(t, func(c *Config) { c.Front.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	for _, c := range []struct {
		peer, forwarded, proto, want string
		secure                       bool
	}{
		{"192.0.2.7:1", "198.51.100.1", "https", "192.0.2.7", false}, // not our proxy: its claim is ignored
		{"10.1.2.3:1", "198.51.100.1", "https", "198.51.100.1", true},
		{"10.1.2.3:1", "203.0.113.9, 198.51.100.1, 10.9.9.9", "http", "198.51.100.1", false},
		{"10.1.2.3:1", "junk", "", "10.1.2.3", false},
		{"[::ffff:10.1.2.3]:1", "2001:db8::1", "https", "2001:db8::/64", true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-For", c.forwarded)
		r.Header.Set("X-Forwarded-Proto", c.proto)
		if got := h.Front.Client(r); got != c.want || h.Front.Secure(r) != c.secure {
			t.Errorf("%+v: %s, secure %t", c, got, h.Front.Secure(r))
		}
	}
}

// Every entry of the navigation leads to a page that marks it as current, and every icon exists.
func TestNavigationIsComplete(t *testing.T) {
	h := open(t)
	v := h.signedIn(t, h.user(t))
	for _, group := range nav {
		for _, e := range group {
			if icons[e.icon] == "" {
				t.Errorf("no icon %s", e.icon)
			}
			doc := v.get(e.path).is(http.StatusOK).doc()
			if got := doc.Find("nav [aria-current=page]"); got.Length() != 1 || got.AttrOr("href", "") != e.path {
				t.Errorf("%s is not marked in the navigation", e.path)
			}
		}
	}
	for _, tpl := range templates {
		if icons[tpl.icon] == "" {
			t.Errorf("no icon %s", tpl.icon)
		}
	}
}

// When a script's request ends up on another page, the answer gives the browser that page's address.
func TestScriptsLearnTheAddress(t *testing.T) {
	h := open(t)
	v := h.signedIn(t, h.user(t))
	for path, want := range map[string]string{"/assistants?q=a+b": "/assistants?q=a+b",
		"/tools?done=saved": "/tools", "/keys": "/keys"} {
		if got := v.get(path, "HX-Request", "true").is(http.StatusOK).header.Get("HX-Replace-Url"); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	for _, path := range []string{"/setup", "/phone?phone_number=030+901820", "/phone/transfer?x=204"} {
		if got := v.get(path, "HX-Request", "true").is(http.StatusOK).header.Get("HX-Replace-Url"); got != "" {
			t.Errorf("a part of a page changes its address to %q", got)
		}
	}
	if got := v.post("/keys", nil, "HX-Request", "true").header.Get("HX-Replace-Url"); got != "" {
		t.Errorf("a form's answer changes the address to %q", got)
	}
}
