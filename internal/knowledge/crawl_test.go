package knowledge

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/document"
	"parley/internal/egress"
)

// website is a local site that misbehaves as it is told.
type website struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // paths, in order
	slept  []time.Duration
	agents map[string]bool
}

func newWebsite(t *testing.T, pages map[string]http.HandlerFunc) *website {
	w := &website{agents: map[string]bool{}}
	mux := http.NewServeMux()
	for path, h := range pages {
		mux.HandleFunc(path, h)
	}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.URL.RequestURI())
		w.agents[r.UserAgent()] = true
		w.mu.Unlock()
		mux.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

// read crawls without pauses.
func (w *website) read(t *testing.T, s Site, change ...func(*crawl)) (*document.Text, error) {
	t.Helper()
	// each page has a process of its own, which is slow under the race detector
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := &Crawler{Guard: egress.New(nil, netip.MustParsePrefix("127.0.0.1/32")), Reader: reader,
		sleep: func(_ context.Context, d time.Duration) error {
			w.slept = append(w.slept, d)
			return nil
		}}
	if len(change) > 0 {
		c.limit = change[0]
	}
	return c.Crawl(ctx, s)
}

func (w *website) count(path string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.asked {
		if p == path {
			n++
		}
	}
	return n
}

// say serves HTML with links.
func say(body string, links ...string) http.HandlerFunc {
	for _, l := range links {
		body += fmt.Sprintf(`<a href="%s">link</a> `, l)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html>"+body)
	}
}

// paths are the pages that the kept sections come from, in order.
func (w *website) paths(got *document.Text) (out []string) {
	for _, s := range got.Sections {
		if p := strings.TrimPrefix(s.URL, w.URL); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func TestCrawl(t *testing.T) {
	w := newWebsite(t, map[string]http.HandlerFunc{
		"/{$}": say("<title>Home</title><p>front", "/a", "b/", "/a#x", "/a?utm_source=z", "/b/index.html",
			"http://other.example/", "/pic.png", "/doc.pdf", "mailto:x@y.z", "/cal?month=5", "/2024/05/",
			"/x/y/x/y/x/y"),
		"/a": say("<h1>A</h1><p>alpha", "/deep"), "/b/": say("<p>beta", "/", "/deep"), "/deep": say("<p>deep"),
	})
	var progress [][2]int
	c := &Crawler{Guard: egress.New(nil, netip.MustParsePrefix("127.0.0.1/32")), Reader: reader,
		Progress: func(done, total int) { progress = append(progress, [2]int{done, total}) },
		sleep:    func(context.Context, time.Duration) error { return nil }}
	got, err := c.Crawl(t.Context(), Site{URL: w.URL + "/", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if p := w.paths(got); !slices.Equal(p, []string{"/", "/a", "/b/", "/deep"}) {
		t.Errorf("kept %q", p)
	}
	if want := []string{"/robots.txt", "/", "/a", "/b/", "/deep"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %q", w.asked)
	}
	if !slices.Equal(progress, [][2]int{{1, 3}, {2, 4}, {3, 4}, {4, 4}}) {
		t.Errorf("progress %v", progress)
	}
	if got.Title != "Home" || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], "/doc.pdf: it is a file") || len(w.agents) != 1 ||
		!w.agents["ParleyBot/1.0"] {
		t.Errorf("%q %q %v", got.Title, got.Warnings, w.agents)
	}
	if s := got.Sections; s[0].Heading[0] != "Home" || s[1].Heading[0] != "A" || s[1].URL != w.URL+"/a" ||
		s[1].Text != "alpha" && !strings.HasPrefix(s[1].Text, "alpha") {
		t.Errorf("%+v", s)
	}
	if got, err = w.read(t, Site{URL: w.URL + "/", Limit: 1}); err != nil ||
		!slices.Equal(w.paths(got), []string{"/", "/a"}) {
		t.Errorf("limit 1: %v %q", err, w.paths(got))
	}
	if got, err = w.read(t, Site{Links: []string{w.URL + "/deep", w.URL + "/a", w.URL + "/deep"}}); err != nil ||
		!slices.Equal(w.paths(got), []string{"/deep", "/a"}) {
		t.Errorf("links: %v %q", err, w.paths(got))
	}
}

func TestCrawlRules(t *testing.T) {
	moved := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusMovedPermanently) }
	}
	busy := 0
	w := newWebsite(t, map[string]http.HandlerFunc{
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "User-agent: *\nDisallow: /\n\nUser-agent: ParleyBot\nCrawl-delay: 2\nDisallow: /secret\n")
		},
		"/{$}": say("<p>front", "/secret/a", "/hidden", "/header", "/nofollow", "/twin1", "/twin2",
			"/canon?v=1", "/canon?v=2", "/moved", "/out", "/loop", "/busy", "/gone", "/bin", "/json", "/empty",
			"/refresh", "/text", "/private"),
		"/secret/a": say("<p>secret"),
		"/hidden":   say(`<meta name="robots" content="noindex"><p>hidden`, "/found"),
		"/found":    say("<p>found behind hidden"),
		"/header": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("X-Robots-Tag", "otherbot: nofollow")
			rw.Header().Add("X-Robots-Tag", "noindex")
			say("<p>header")(rw, r)
		},
		"/nofollow":   say(`<meta name="robots" content="nofollow"><p>nofollow`, "/unfollowed"),
		"/unfollowed": say("<p>x"),
		"/twin1":      say("<p>the same"), "/twin2": say("<p>the  same"),
		"/canon": func(rw http.ResponseWriter, r *http.Request) {
			say(`<link rel=canonical href="/canon"><p>canon `+r.URL.RawQuery)(rw, r)
		},
		"/moved": moved("/there"), "/there": say("<p>there"),
		"/out": moved("http://elsewhere.example/"), "/loop": moved("/loop2"), "/loop2": moved("/loop"),
		"/private": moved("http://10.1.2.3/"),
		"/busy": func(rw http.ResponseWriter, r *http.Request) {
			if busy++; busy == 1 {
				rw.Header().Set("Retry-After", "7")
				rw.WriteHeader(http.StatusTooManyRequests)
				return
			}
			say("<p>busy no more")(rw, r)
		},
		"/bin": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Write([]byte("\x7fELF\x00\x01\x02\x00\x00"))
		},
		"/json": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprint(rw, "{}")
		},
		"/empty":   say(`<div id="app"></div><script>draw()</script>`),
		"/refresh": say(`<meta http-equiv="refresh" content="0; url=/there2">`), "/there2": say("<p>there2"),
		"/text": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/plain")
			rw.Write([]byte("gr\xfc\xdfe aus dem S\xfcden"))
		},
	})
	got, err := w.read(t, Site{URL: w.URL, Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "/nofollow", "/twin1", "/canon", "/there", "/busy", "/text", "/found",
		"/there2"}; !slices.Equal(w.paths(got), want) {
		t.Errorf("kept %q\nwant %q", w.paths(got), want)
	}
	all := strings.Join(got.Warnings, "\n")
	for path, why := range map[string]string{"/secret/a": "robots.txt forbids", "/hidden": "noindex",
		"/header": "noindex", "/out": "another website", "/loop": "too often", "/private": "another website",
		"/gone": "404", "/bin": "not a web page, although",
		"/json": "not a web page but application/json", "/empty": "made by scripts"} {
		if !strings.Contains(all, w.URL+path+": ") || !strings.Contains(all, why) {
			t.Errorf("%s: %q is not in\n%s", path, why, all)
		}
	}
	if w.count("/secret/a") != 0 || w.count("/unfollowed") != 0 || w.count("/busy") != 2 ||
		w.count("/robots.txt") != 1 {
		t.Errorf("asked %q", w.asked)
	}
	if !slices.Contains(w.slept, 7*time.Second) || !slices.Contains(w.slept, 2*time.Second) ||
		!slices.Contains(w.slept, politeness) {
		t.Errorf("slept %v", w.slept)
	}
	for _, s := range got.Sections {
		if strings.HasSuffix(s.URL, "/text") && s.Text != "grüße aus dem Süden" {
			t.Errorf("%q", s.Text)
		}
	}
}

// TestCrawlHostile: pages that try to take all the memory, time or network.
func TestCrawlHostile(t *testing.T) {
	stop := make(chan struct{})
	w := newWebsite(t, map[string]http.HandlerFunc{
		"/good": say("<p>good"),
		"/slow": func(rw http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		},
		"/endless": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			for r.Context().Err() == nil {
				if _, err := rw.Write([]byte(strings.Repeat("<p>more and more</p>", 1000))); err != nil {
					return
				}
			}
		},
		"/drip": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			for i := 0; r.Context().Err() == nil; i++ {
				fmt.Fprint(rw, "a")
				rw.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
		"/bomb": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(rw)
			for range 200 {
				if _, err := z.Write([]byte(strings.Repeat("<b>", 1<<18))); err != nil {
					return
				}
			}
			z.Close()
		},
		"/badzip": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(rw, "\x1f\x8bnonsense that is no gzip")
		},
		"/brotli": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Content-Encoding", "br")
			fmt.Fprint(rw, "xx")
		},
		"/cut": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Content-Length", "1000")
			fmt.Fprint(rw, "<p>short")
		},
		"/charset": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html; charset=\"no such; thing")
			fmt.Fprint(rw, "<p>charset \xff\xfe ok")
		},
		"/later": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Retry-After", "86400")
			rw.WriteHeader(503)
		},
		"/private": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "http://169.254.169.254/latest/", http.StatusFound)
		},
		"/file": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "file:///etc/passwd", http.StatusFound)
		},
	})
	defer close(stop)
	var links []string
	for _, p := range []string{"good", "slow", "endless", "drip", "bomb", "badzip", "brotli", "cut", "charset",
		"later", "private", "file"} {
		links = append(links, w.URL+"/"+p)
	}
	got, err := w.read(t, Site{Links: append(links, "not an address", "http://10.0.0.1/")},
		func(r *crawl) { r.pageTime, r.pageSize = 2*time.Second, 1<<20 })
	if err != nil {
		t.Fatal(err)
	}
	if p := w.paths(got); !slices.Equal(p, []string{"/good", "/endless", "/charset"}) {
		t.Errorf("kept %q", p)
	}
	all := strings.Join(got.Warnings, "\n")
	for _, want := range []string{"/slow: the server took too long", "/endless: only the first 1 MB",
		"/drip: the server took too long", "/badzip: the server's answer is badly compressed",
		"/brotli: the server compresses it",
		"/cut: the connection broke off", "/later: the server is busy (503)", "/private: the address is link-local",
		"/file: ", "not an address: it is not the address", "http://10.0.0.1/: the address is private"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if got.Size() > 4<<20 {
		t.Errorf("kept %d bytes", got.Size())
	}
}

// TestCrawlNested: a page whose text is nested in hundreds of elements, each of which makes the reader look at its
// content, is read like any other.
func TestCrawlNested(t *testing.T) {
	text := func(word string) string { return "<p>" + strings.Repeat(word, 3<<20/len(word)) + "</p>" }
	w := newWebsite(t, map[string]http.HandlerFunc{"/robots.txt": http.NotFound,
		"/": say(strings.Repeat(`<div class="menu">`, 450) + text("harbour office ") + strings.Repeat("</div>",
			450) + text("ware house "))})
	if got, err := w.read(t, Site{URL: w.URL}); err != nil || got.Size() < 2<<20 {
		t.Errorf("%v", err)
	}
}

// TestCrawlTraps: a site without an end, with different text on every page.
func TestCrawlTraps(t *testing.T) {
	n := 0
	w := newWebsite(t, map[string]http.HandlerFunc{"/": func(rw http.ResponseWriter, r *http.Request) {
		n++
		say(fmt.Sprintf("<p>page %d %s", n, r.URL), fmt.Sprintf("/p%d/", n),
			fmt.Sprintf("%s/x", strings.TrimSuffix(r.URL.Path, "/")), fmt.Sprintf("?PHPSESSID=%d", n),
			fmt.Sprintf("?sort=%d", n))(rw, r)
	}, "/robots.txt": http.NotFound})
	got, err := w.read(t, Site{URL: w.URL, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.paths(got)); n != 21 || len(w.asked) > 60 {
		t.Errorf("%d pages, %d requests", n, len(w.asked))
	}
	// When all pages say the same thing, only a limited number of them is fetched.
	same := newWebsite(t, map[string]http.HandlerFunc{"/": func(rw http.ResponseWriter, r *http.Request) {
		n++
		say("<p>nothing new <a href=/q"+fmt.Sprint(n)+">next</a><a href=/r"+fmt.Sprint(n)+">next</a>")(rw, r)
	}, "/robots.txt": http.NotFound})
	got, err = same.read(t, Site{URL: same.URL, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(same.paths(got)); n != 1 || len(same.asked) > 40 {
		t.Errorf("%d pages, %d requests", n, len(same.asked))
	}
}

func TestCrawlFails(t *testing.T) {
	for name, c := range map[string]struct {
		pages map[string]http.HandlerFunc
		want  string
	}{
		"robots.txt forbids": {map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter,
			_ *http.Request) {
			fmt.Fprint(w, "User-agent: *\nDisallow: /")
		}, "/": say("<p>x")}, "robots.txt forbids"},
		"robots.txt breaks": {map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter,
			_ *http.Request) {
			w.WriteHeader(500)
		}, "/": say("<p>x")}, "robots.txt can't be read (the server answers 500)"},
		"not there": {map[string]http.HandlerFunc{"/robots.txt": http.NotFound, "/": http.NotFound},
			"404 Not Found"},
		"always busy": {map[string]http.HandlerFunc{"/robots.txt": http.NotFound,
			"/": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }}, "busy (429)"},
		"a PDF": {map[string]http.HandlerFunc{"/": func(w http.ResponseWriter,
			_ *http.Request) {
			w.Header().Set("Content-Type", "application/pdf")
		}}, "it is a PDF"},
		"noindex": {map[string]http.HandlerFunc{"/": say("<meta name=parleybot content=none><p>x")},
			"noindex"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebsite(t, c.pages)
			_, err := w.read(t, Site{URL: w.URL, Limit: 3})
			if failure := (*document.Failure)(nil); !errors.As(err, &failure) ||
				!strings.Contains(failure.Reason, c.want) ||
				!strings.HasPrefix(failure.Reason, "Nothing could be read from the website: "+w.URL) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestCrawlStops: at the crawl's own time limit it ends, and what was read is kept; when the caller cancels, the error
// is the caller's.
// Pages that are not what their address is about are refused by name, and the others are read.
func TestCrawlBarriers(t *testing.T) {
	fails := func(code int, name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, value)
			w.WriteHeader(code)
		}
	}
	w := newWebsite(t, map[string]http.HandlerFunc{
		"/{$}": say("<title>Bakery</title><p>Bread from six in the morning.", "/challenge", "/mitigated", "/consent", "/gone", "/members",
			"/basic", "/app"),
		"/challenge": say(`<title>Just a moment...</title><script>window._cf_chl_opt={}</script>`),
		"/mitigated": fails(http.StatusForbidden, "Cf-Mitigated", "challenge"),
		"/consent": say(
			`<h1>We value your privacy</h1><p>We and our partners use cookies for personalised ads.</p><button>Accept all</button>`),
		"/gone":    say(`<title>Page not found</title><h1>404</h1>`),
		"/members": say(`<h1>Sign in</h1><form><input type=email><input type=password></form>`),
		"/basic":   fails(http.StatusUnauthorized, "WWW-Authenticate", "Basic"),
		"/app":     say(`<div id=root></div><noscript>You need to enable JavaScript to run this app.</noscript><script src=/app.js></script>`),
	})
	got, err := w.read(t, Site{URL: w.URL + "/", Limit: 20})
	if err != nil || !slices.Equal(w.paths(got), []string{"/"}) {
		t.Fatalf("%v %+v", err, got)
	}
	all := strings.Join(got.Warnings, "\n")
	for path, want := range map[string]string{"/challenge": "a check for robots", "/mitigated": "a check for robots",
		"/consent": "cookies or consent", "/gone": "no such page", "/members": "sign in", "/basic": "sign in", "/app": "made by scripts"} {
		if !regexp.MustCompile(path + ": .*" + want).MatchString(all) {
			t.Errorf("%s: no %q in %s", path, want, all)
		}
	}
	_, err = w.read(t, Site{Links: []string{w.URL + "/members"}})
	if failure := (*document.Failure)(nil); !errors.As(err, &failure) ||
		!strings.Contains(failure.Reason, "/members: it asks visitors to sign in") {
		t.Errorf("a site of members: %v", err)
	}
}

func TestCrawlStops(t *testing.T) {
	w := newWebsite(t, map[string]http.HandlerFunc{"/": say("<p>first", "/hang"), "/robots.txt": http.NotFound,
		"/hang": func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	// the first page's process starts slowly here
	got, err := w.read(t, Site{URL: w.URL, Limit: 3}, func(r *crawl) { r.total = 5 * time.Second })
	if err != nil || len(w.paths(got)) != 1 || !strings.Contains(strings.Join(got.Warnings, ""), "took longer than") {
		t.Errorf("%v %+v", err, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &Crawler{Guard: egress.New(nil, netip.MustParsePrefix("127.0.0.1/32")), Reader: reader,
		Progress: func(int, int) { cancel() }}
	if _, err := c.Crawl(ctx, Site{URL: w.URL, Limit: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	same := [][]string{
		{"http://example.com", "https://www.example.com/", "http://EXAMPLE.com:80/index.html",
			"https://example.com:443/#top", "http://example.com/?utm_source=a&fbclid=b"},
		{"http://example.com/a/b", "http://example.com/a/b/", "http://example.com/a//b",
			"http://example.com/a/./c/../b;jsessionid=12?PHPSESSID=9"},
		{"http://example.com/?a=1&b=2", "http://example.com/?b=2&a=1&sid=7"},
		{"http://example.com:8080/"}, {"http://sub.example.com/"}, {"http://example.com/a/c"},
		{"http://example.com/?a=2"},
	}
	at := map[string]int{}
	for i, list := range same {
		for _, s := range list {
			u, err := url.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			k := key(u)
			if j, ok := at[k]; ok && j != i {
				t.Errorf("%s is taken for another page", s)
			} else if at[k] = i; list[0] != s && k != func() string { u, _ := url.Parse(list[0]); return key(u) }() {
				t.Errorf("%s and %s are told apart", s, list[0])
			}
		}
	}
	for link, want := range map[string]string{"/a": "", "/2024/05/my-article": "", "/v2/2024": "",
		"/2024/05": "trap", "/2024/05/12/": "trap", "/news/2024-05-12": "trap", "/a.PNG": "trap", "/a.docx": "file",
		"/x?page=2": "", "/x?Month=5": "trap",
		"/a/b/a/b/a/b": "trap", "/1/2/3/4/5/6/7/8/9/10/11/12/13": "trap", "/" + strings.Repeat("a", 1000): "trap"} {
		u, err := url.Parse("http://example.com" + link)
		if err != nil {
			t.Fatal(err)
		}
		if got := trap(u); got != want {
			t.Errorf("%.40s: %q", link, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for v, want := range map[string]time.Duration{"": 5 * time.Second, "12": 12 * time.Second,
		"-1": 5 * time.Second, "soon": 5 * time.Second, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		if got := retryAfter(http.Header{"Retry-After": {v}}, 1); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

func FuzzRobots(f *testing.F) {
	for _, s := range []string{"User-agent: *\nDisallow: /", "User-agent: parleybot\nAllow: /a*$\nCrawl-delay: 1e9",
		"Crawl-delay: -1\n\xff", "Disallow: *****************a"} {
		f.Add([]byte(s), "/a")
	}
	f.Fuzz(func(t *testing.T, b []byte, path string) {
		rules := parseRobots(b)
		if rules.delay < 0 || rules.delay > maxDelay || rules.err != nil {
			t.Fatalf("%+v", rules)
		}
		if u, err := url.Parse("http://example.com/" + path); err == nil && rules.group != nil {
			rules.group.Test(u.RequestURI())
			key(u)
			trap(u)
		}
	})
}
