package egress

import (
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

func TestRedirects(t *testing.T) {
	bad, conns := serve(t, foe, func(http.ResponseWriter, *http.Request) {})
	var hops atomic.Int32
	home, _ := serve(t, friend, func(w http.ResponseWriter, r *http.Request) {
		hops.Add(1)
		switch to := r.URL.Query().Get("to"); {
		case to != "":
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case r.URL.Path == "/pong":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case r.URL.Path == "/three":
			http.Redirect(w, r, "/two", http.StatusSeeOther)
		case r.URL.Path == "/two":
			http.Redirect(w, r, "/one", http.StatusMovedPermanently)
		case r.URL.Path == "/one":
			http.Redirect(w, r, "/zero", http.StatusTemporaryRedirect)
		}
	})
	g := guard(t)
	for to, reason := range map[string]string{
		bad:                                    "loopback",
		"http://169.254.169.254/latest/":       "link-local",
		"//169.254.169.254/latest/":            "link-local",
		"http://[::ffff:169.254.169.254]/":     "link-local",
		"http://[fd00:ec2::254]/":              "private",
		"http://10.0.0.1:8080/":                "private",
		"file:///etc/passwd":                   "only http and https",
		"gopher://127.0.0.1:25/x":              "only http and https",
		"data:text/html,x":                     "only http and https",
		"http://user:password@" + friend + "/": "user name or password",
		"/loop":                                "too often",
		"/pong":                                "too often",
	} {
		t.Run(to, func(t *testing.T) {
			_, err := get(t, lazy(t), g.Client(5), home+"/?to="+to)
			mustRefuse(t, err, reason)
		})
	}
	if conns.Load() != 0 {
		t.Error("a connection was made to where none may be")
	}
	hops.Store(0)
	if resp, err := get(t, lazy(t), g.Client(3), home+"/three"); err != nil || resp.StatusCode != 200 ||
		hops.Load() != 4 {
		t.Errorf("three of three redirects: %v after %d hops", err, hops.Load())
	}
	hops.Store(0)
	_, err := get(t, lazy(t), g.Client(2), home+"/three")
	mustRefuse(t, err, "too often")
	if hops.Load() != 3 {
		t.Errorf("%d hops, want 3", hops.Load())
	}
	// No redirects are followed: the redirect is the answer.
	hops.Store(0)
	if resp, err := get(t, lazy(t), g.Client(0), home+"/?to="+bad); err != nil || resp.StatusCode != 302 ||
		hops.Load() != 1 {
		t.Errorf("got %v, %v", resp, err)
	}
	for _, to := range []string{"http://%zz/", "http://[::1", "http://a b/", ":"} {
		if _, err := get(t, lazy(t), g.Client(5), home+"/?to="+url.QueryEscape(to)); err == nil {
			t.Errorf("a redirect to %q was followed", to)
		}
	}
}

// The request's own headers are sent only to the origin that it was made for.
func TestRedirectHeaders(t *testing.T) {
	seen := make(chan http.Header, 8)
	var back atomic.Value // where the other origin redirects to, if anywhere
	back.Store("")
	other, _ := serve(t, friend, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		if to := back.Load().(string); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	})
	home, _ := serve(t, friend, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	})
	for _, c := range []struct {
		name, to, back string
		kept           []bool // at each hop
	}{
		{"same origin", "/next", "", []bool{true, true}},
		{"another port", other, "", []bool{true, false}},
		{"and back", other, home + "/next", []bool{true, false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			back.Store(c.back)
			req, err := http.NewRequestWithContext(lazy(t), http.MethodGet, home+"/?key=secret&to="+c.to, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Referer"} {
				req.Header.Set(name, "secret")
			}
			req.Header.Set("User-Agent", "Parley/1")
			resp, err := guard(t).Client(5).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			for i, kept := range c.kept {
				h := <-seen
				for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
					if (h.Get(name) == "secret") != kept {
						t.Errorf("hop %d: %s is %q", i, name, h.Get(name))
					}
				}
				if i > 0 && h.Get("Referer") != "" {
					t.Errorf("hop %d: Referer is %q", i, h.Get("Referer"))
				}
				if h.Get("User-Agent") != "Parley/1" {
					t.Errorf("hop %d: User-Agent is %q", i, h.Get("User-Agent"))
				}
			}
		})
	}
}

func TestRedirectDowngrade(t *testing.T) {
	var plainHits atomic.Int32
	plainURL, _ := serve(t, friend, func(http.ResponseWriter, *http.Request) { plainHits.Add(1) })
	code := http.StatusTemporaryRedirect
	s, _ := server(t, friend, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plainURL, code) })
	s.StartTLS()
	g := guard(t)
	trust(g, s.Certificate())
	g.dialer.Resolver = resolver(t, func(string) []string { return []string{friend} })
	for _, c := range []struct {
		name, method, header, body string
		code                       int
		ok                         bool
	}{
		{"nothing to lose", "GET", "User-Agent", "", 307, true},
		{"a key", "GET", "X-Api-Key", "", 307, false},
		{"a body", "POST", "Content-Type", "{}", 307, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			code = c.code
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			req, err := http.NewRequestWithContext(lazy(t), c.method, byName(s.URL), body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(c.header, "x")
			plainHits.Store(0)
			resp, err := g.Client(5).Do(req)
			if c.ok {
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			} else {
				mustRefuse(t, err, "from https to http")
			}
			if (plainHits.Load() == 1) != c.ok {
				t.Errorf("%d hits", plainHits.Load())
			}
		})
	}
}

// A redirect never makes another request of one: it keeps method and body, or is refused in words.
func TestRedirectKeepsMethod(t *testing.T) {
	var hits atomic.Int32
	url, _ := serve(t, friend, func(w http.ResponseWriter, r *http.Request) {
		if code, err := strconv.Atoi(r.URL.Query().Get("code")); err == nil {
			http.Redirect(w, r, "/next", code)
			return
		}
		hits.Add(1)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Method, body)
	})
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(method, code), func(t *testing.T) {
				hits.Store(0)
				var body io.Reader
				if method == "POST" || method == "PUT" || method == "PATCH" {
					body = strings.NewReader("order 7")
				}
				req, err := http.NewRequestWithContext(lazy(t), method, fmt.Sprintf("%s/?code=%d", url, code), body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := guard(t).Client(5).Do(req)
				if code < 307 && method != "GET" && method != "HEAD" {
					mustRefuse(t, err, fmt.Sprintf("answers the %s with a redirect (%d)", method, code))
					if hits.Load() != 0 {
						t.Error("something else was asked for")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, _ := io.ReadAll(resp.Body)
				want := method + " "
				if body != nil {
					want += "order 7"
				}
				if method != "HEAD" && string(got) != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

func TestOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"http://a.test/x", "http://A.test:80/y?z", true},
		{"https://a.test", "https://a.test:443/", true},
		{"https://a.test", "http://a.test", false},
		{"https://a.test", "https://b.a.test", false},
		{"https://a.test", "https://a.test:8443", false},
		{"http://[::1]/", "http://[::1]:80/", true},
	} {
		a, _ := http.NewRequest("GET", c.a, nil)
		b, _ := http.NewRequest("GET", c.b, nil)
		if (origin(a.URL) == origin(b.URL)) != c.same {
			t.Errorf("%s and %s: %s, %s", c.a, c.b, origin(a.URL), origin(b.URL))
		}
	}
}

func trust(g *Guard, cert *x509.Certificate) {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	g.transport.TLSClientConfig = tlsConfig(pool)
}
