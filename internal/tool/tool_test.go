package tool

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"parley/internal/egress"
	"parley/internal/parley"
)

// No name resolves in these tests: their own DNS server sees to that.
func TestMain(m *testing.M) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 512)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			end := 12
			for b[end] != 0 {
				end += 1 + int(b[end])
			}
			copy(b[2:], []byte{0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0}) // RFC 1035 section 4.1.1: a response, name error
			if _, err := pc.WriteTo(b[:min(n, end+5)], from); err != nil {
				return
			}
		}
	})
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
	code := m.Run()
	pc.Close()
	wg.Wait()
	os.Exit(code)
}

func serve(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// runner may reach the local servers at 127.0.0.1 and no other address that is not public.
func runner(t *testing.T) *Runner {
	g := egress.New(nil, netip.MustParsePrefix("127.0.0.1/32"))
	t.Cleanup(g.Close)
	r := New(g)
	t.Cleanup(r.Close)
	return r
}

func call(t *testing.T, url string) Result {
	return runner(t).Run(t.Context(), &parley.Tool{Method: "GET", Endpoint: url, Timeout: 30}, nil, Variables{})
}

// raw answers every request with the bytes that talk writes.
func raw(t *testing.T, talk func(c net.Conn)) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		talk(c)
	})
}

func forever(w io.Writer, piece string) {
	for {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
	}
}

func TestRun(t *testing.T) {
	const limit = MaxAnswer
	for _, c := range []struct {
		name, contentType, body string
		status                  int
		want                    string // of Body
		text                    string
	}{
		{"JSON", "application/json", `{"a":"ü"}`, 200, `{"a":"ü"}`, `{"a":"ü"}`},
		{"created", "text/plain", "done", 201, "done", "done"},
		{"empty", "", "", 204, "", "The tool succeeded with HTTP status 204 No Content and an empty answer."},
		{"not found", "application/json", `{"message":"no such order"}`, 404, `{"message":"no such order"}`,
			"The tool failed with HTTP status 404 Not Found.\n\n" + `{"message":"no such order"}`},
		{"server error", "text/plain", "", 500, "", "The tool failed with HTTP status 500 Internal Server Error."},
		{"odd status", "text/plain", "x", 799, "x", "The tool failed with HTTP status 799.\n\nx"},
		{"not quite UTF-8", "text/plain", "ä\xff\xfeb\xc3", 200, "ä\uFFFDb\uFFFD", damagedNote + "\n\nä\uFFFDb\uFFFD"},
		{"Cyrillic undeclared", "application/json", "{\"city\":\"\xcc\xee\xf1\xea\xe2\xe0, \xd0\xee\xf1\xf1\xe8\xff\"}", 200,
			`{"city":"Москва, Россия"}`, ""},
		{"Japanese undeclared", "text/plain", "\x93\x8c\x8b\x9e\x82\xcd\x90\xb0\x82\xea\x82\xc5\x82\xb7", 200, "東京は晴れです", "東京は晴れです"},
		{"nobody knows", "text/plain", "\xbd\xbe\xbf", 200, "½¾¿", unsureNote + "\n\n½¾¿"},
		{"one odd character", "application/json", "{\"c\":\"K\xf6ln\",\"d\":\"Gr\xfc\xdfe\"}", 200, `{"c":"Köln","d":"Grüße"}`,
			`{"c":"Köln","d":"Grüße"}`},
		{"Latin-1 undeclared", "application/json", "{\"city\":\"K\xf6ln \x80 5\"}", 200, `{"city":"Köln € 5"}`, ""},
		{"Latin-1 called UTF-8", "text/plain; charset=utf-8", "K\xf6ln", 200, "Köln", "Köln"},
		{"UTF-8 called Latin-1", "text/plain; charset=iso-8859-1", "Köln", 200, "Köln", "Köln"},
		{"Latin-1 by its XML", "application/xml", "<?xml version='1.0' encoding='ISO-8859-1'?><a>K\xf6ln</a>", 200,
			"<?xml version='1.0' encoding='ISO-8859-1'?><a>Köln</a>", ""},
		{"Cyrillic by its XML", "text/xml", "<?xml version=\"1.0\" encoding=\"windows-1251\"?><a>\xcc\xe8\xf0</a>", 200,
			"<?xml version=\"1.0\" encoding=\"windows-1251\"?><a>Мир</a>", ""},
		{"Latin-2 by its page", "text/html", "<meta charset=\"iso-8859-2\"><p>\xb3\xf3d\xbc</p>", 200,
			"<meta charset=\"iso-8859-2\"><p>łódź</p>", pageNote + "\n\nłódź"},
		{"page for an error", "text/html", `<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>b{}</style></head>` +
			`<body><script>var x = "<b>"</script><center><h1>502 Bad&nbsp;Gateway</h1></center><hr><p>nginx</body></html>`, 502,
			`<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>b{}</style></head>` +
				`<body><script>var x = "<b>"</script><center><h1>502 Bad&nbsp;Gateway</h1></center><hr><p>nginx</body></html>`,
			"The tool failed with HTTP status 502 Bad Gateway. " + pageNote + "\n\n502 Bad Gateway\n502 Bad Gateway\nnginx"},
		{"page in place of data", "application/json", "<html><body>Please <a href=/>sign in</a></body></html>", 200,
			"<html><body>Please <a href=/>sign in</a></body></html>", pageNote + "\n\nPlease sign in"},
		{"page without words", "text/html", "<html><script>go()</script></html>", 200,
			"<html><script>go()</script></html>", emptyPage},
		{"JSON called HTML", "text/html", `{"note":"<b>new</b>"}`, 200, `{"note":"<b>new</b>"}`, `{"note":"<b>new</b>"}`},
		{"words called HTML", "text/html", "2 < 3, done", 200, "2 < 3, done", "2 < 3, done"},
		{"Latin-1", "text/plain; charset=ISO-8859-1", "K\xf6ln", 200, "Köln", "Köln"},
		{"unknown charset", "text/plain; charset=klingon", "x", 200, "x", "x"},
		{"byte order mark", "application/json", "\xef\xbb\xbf{}", 200, "{}", "{}"},
		{"UTF-16LE", "text/plain", "\xff\xfeh\x00i\x00", 200, "hi", "hi"},
		{"UTF-16BE", "text/plain", "\xfe\xff\x00h\x00i", 200, "hi", "hi"},
		{"declared UTF-16", "text/plain; charset=utf-16be", "\x00h\x00i", 200, "hi", "hi"},
		{"image", "image/png", "\x89PNG\r\n\x1a\n\x00\x00", 200,
			"[The answer is binary data (image/png, 10 bytes) and can't be shown as text.]",
			"[The answer is binary data (image/png, 10 bytes) and can't be shown as text.]"},
		{"image called text", "text/plain", "\x89PNG\r\n\x1a\n\x00\x00", 200,
			"[The answer is binary data (image/png, 10 bytes) and can't be shown as text.]", ""},
		{"PDF without type", "", "%PDF-1.7\n", 200,
			"[The answer is binary data (application/pdf, 9 bytes) and can't be shown as text.]", ""},
		{"text called binary", "application/octet-stream", "hello", 200, "hello", "hello"},
		{"NUL far behind", "text/plain", strings.Repeat("x", 600) + "\x00", 200,
			"[The answer is binary data (application/octet-stream, 601 bytes) and can't be shown as text.]", ""},
		{"binary failure", "image/png", "\x00\x01", 502,
			"[The answer is binary data (image/png, 2 bytes) and can't be shown as text.]",
			"The tool failed with HTTP status 502 Bad Gateway.\n\n[The answer is binary data (image/png, 2 bytes) and can't be shown as text.]"},
		{"exactly 64 KiB", "text/plain", strings.Repeat("x", limit), 200, strings.Repeat("x", limit),
			strings.Repeat("x", limit)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := call(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.contentType}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			if r.Status != c.status || r.Body != c.want || r.Truncated || r.Error != "" {
				t.Errorf("got %+v", r)
			}
			if c.text != "" && r.Text() != c.text {
				t.Errorf("Text is %q", r.Text())
			}
		})
	}
}

func TestTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		contentType string
		write       func(w io.Writer)
		want        string // repeated fills Body
		size        int
	}{
		"one byte more": {"text/plain", func(w io.Writer) {
			io.WriteString(w,
				strings.Repeat("x", MaxAnswer+1))
		}, "x", MaxAnswer},
		"rune cut through": {"text/plain", func(w io.Writer) {
			io.WriteString(w,
				strings.Repeat("\u20ac", MaxAnswer))
		}, "\u20ac", MaxAnswer - 1},
		"grows decoded": {"text/plain; charset=latin1",
			func(w io.Writer) { io.WriteString(w, strings.Repeat("\xe4", MaxAnswer)) }, "ä", MaxAnswer},
		"endless": {"text/plain", func(w io.Writer) { forever(w, "12345678") }, "12345678", MaxAnswer},
		"gzip bomb": {"gzip", func(w io.Writer) {
			z := gzip.NewWriter(w)
			defer z.Close()
			for range 64 {
				if _, err := io.WriteString(z, strings.Repeat("z", 1<<20)); err != nil {
					return
				}
			}
		}, "z", MaxAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.contentType == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
					c.contentType = "text/plain"
				}
				w.Header().Set("Content-Type", c.contentType)
				c.write(w)
			}))
			if r.Status != 200 || !r.Truncated || r.Error != "" ||
				r.Body != strings.Repeat(c.want, c.size/len(c.want)) {
				t.Errorf("status %d, truncated %t, error %q, %d bytes: %.20q", r.Status, r.Truncated, r.Error,
					len(r.Body), r.Body)
			}
			if s := r.Text(); len(s) > MaxAnswer || !utf8.ValidString(s) ||
				!strings.HasPrefix(s, "Only the beginning of the tool's answer follows") {
				t.Errorf("Text has %d bytes: %.80q", len(s), s)
			}
		})
	}
	r := call(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "x"+strings.Repeat("\U0001F600", MaxAnswer))
	}))
	if want := "x" + strings.Repeat("\U0001F600", MaxAnswer/4-1); r.Body != want || !r.Truncated {
		t.Errorf("the last rune is torn: %q", r.Body[len(r.Body)-8:])
	}
	r = call(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { forever(w, "\x00\x01\x02\x03") }))
	if want := "[The answer is binary data (application/octet-stream, more than 65536 bytes) and can't be shown as text.]"; r.Body != want ||
		r.Truncated {
		t.Errorf("endless binary: %+v", r)
	}
	r = call(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		io.WriteString(w, "looks like text")
	}))
	if want := "[The answer is binary data (application/octet-stream, 15 bytes) and can't be shown as text.]"; r.Body != want {
		t.Errorf("encoded: %+v", r)
	}
}

// Every failure is reported in plain words, without the URL, the address, the headers or Go's own words.
func TestFailures(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	closed := httptest.NewServer(nil)
	closed.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	to := func(location string) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
	}
	const setting = ", and only public addresses may be reached (the operator of this server can allow it with PARLEY_EGRESS_ALLOW)"
	for name, c := range map[string]struct{ url, want string }{
		"closed port":          {closed.URL, "the server does not accept connections there"},
		"no such name":         {"http://nowhere.test/", "the server's name could not be found"},
		"untrusted TLS":        {secure.URL, "the server's certificate is from an unknown authority"},
		"private":              {"http://10.0.0.1/", "the address is private" + setting},
		"metadata":             {"http://169.254.169.254/latest/meta-data/", "the address is link-local" + setting},
		"another loopback":     {"http://127.0.0.2/", "the address is a loopback address" + setting},
		"password in URL":      {"http://u:p@127.0.0.1/", "a URL must not hold a user name or password"},
		"file":                 {"file://localhost/etc/passwd", "only http and https URLs may be reached"},
		"redirect to private":  {to("http://192.168.0.1/"), "the address is private" + setting},
		"redirect to metadata": {to("http://169.254.169.254/"), "the address is link-local" + setting},
		"redirect to NAT64":    {to("http://[64:ff9b::a9fe:a9fe]/"), "the address is link-local" + setting},
		"redirect to file":     {to("file:///etc/passwd"), "only http and https URLs may be reached"},
		"redirect loop":        {to("/"), "the server redirects too often"},
		"hangs up":             {raw(t, func(net.Conn) {}), "the connection broke off"},
		"too short": {raw(t, func(c net.Conn) {
			io.WriteString(c,
				"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhello")
		}), "the connection broke off"},
		"breaks mid-body": {raw(t, func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		}), "the connection broke off"},
		"header bomb": {raw(t, func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			forever(c, "X: "+strings.Repeat("x", 999)+"\r\n")
		}), "the server's answer could not be understood"},
		"no HTTP": {raw(t, func(c net.Conn) { io.WriteString(c, "220 mail.test ESMTP\r\n") }),
			"the server's answer could not be understood"},
		"no gzip": {raw(t, func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\nhello, world")
		}), "the server's answer is badly compressed"},
		"slow header": {raw(t, func(net.Conn) { <-stop }), ""},
		"slow body": {raw(t, func(c net.Conn) {
			io.WriteString(c,
				"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhello")
			<-stop
		}), ""},
		"never accepts":      {"http://" + silent.Addr().String(), ""},
		"never shakes hands": {"https://" + silent.Addr().String(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			tool := &parley.Tool{Method: "GET", Endpoint: c.url, Timeout: 20,
				Headers: []parley.ToolHeader{{Name: "X-Key", Value: "s3cret"}}}
			want := "The tool failed: " + c.want + "."
			if c.want == "" {
				tool.Timeout = 1
				want = "The tool failed: no whole answer came within 1 s."
			}
			r := runner(t).Run(t.Context(), tool, nil, Variables{})
			if r.Error != want || r.Text() != want || r.Status != 0 || r.Body != "" || r.Truncated {
				t.Errorf("got %+v, want %s", r, want)
			}
			if c.want == "" && (r.DurationMS < 1000 || r.DurationMS > 10_000) {
				t.Errorf("took %d ms", r.DurationMS)
			}
		})
	}
}

// When the conversation is cancelled, it does not wait for the tool, and is not told that the tool was slow.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	r := runner(t).Run(ctx, &parley.Tool{Method: "GET", Endpoint: url, Timeout: 30}, nil, Variables{})
	if r.Error != "The tool failed: the request was canceled." {
		t.Errorf("got %+v", r)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond) // less time than the tool would have
	defer cancel()
	url = serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	r = runner(t).Run(ctx, &parley.Tool{Method: "GET", Endpoint: url, Timeout: 30}, nil, Variables{})
	if r.Error != "The tool failed: the server took too long." {
		t.Errorf("got %+v", r)
	}
}

func TestRedirectFollowed(t *testing.T) {
	got := make(chan string, 1)
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- r.Method + " " + r.Header.Get("X-Key") + " " + string(b)
		fmt.Fprint(w, "moved")
	})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other,
			http.StatusPermanentRedirect)
	})
	r := runner(t).Run(t.Context(), &parley.Tool{
		Method: "POST", Endpoint: url, Timeout: 30, Schema: params("city:string"),
		Headers: []parley.ToolHeader{{Name: "X-Key", Value: "s3cret"}},
	}, map[string]any{"city": "Rome"}, Variables{})
	if r.Body != "moved" || r.Status != 200 {
		t.Fatalf("got %+v", r)
	}
	if s := <-got; s != `POST  {"city":"Rome"}` {
		t.Errorf("the other origin got %q", s)
	}
}

// Of long JSON the model gets every key, the first entries of lists, and how many there are more, as JSON.
func TestLongJSON(t *testing.T) {
	list := func(w io.Writer, n int) {
		for i := range n {
			if i > 0 {
				io.WriteString(w, ",")
			}
			fmt.Fprintf(w, `{"id":%d,"name":"customer \"%d\", K\u00f6ln","tags":["a","b"]}`, i, i)
		}
	}
	for name, c := range map[string]struct {
		write func(w io.Writer)
		want  []string
	}{
		"a list of 10 MB": {func(w io.Writer) {
			io.WriteString(w, `{"found":true, "rows":[`)
			list(w, 150_000)
			io.WriteString(w, `], "total": 150000, "next":null}`)
		}, []string{`{"found":true,"rows":[{"id":0,"name":"customer \"0\", K\u00f6ln","tags":["a","b"]},{"id":1,`,
			`"… and 149`, `],"total":150000,"next":null}`}},
		"a bare list": {func(w io.Writer) {
			io.WriteString(w, "[")
			list(w, 3000)
			io.WriteString(w, "]")
		}, []string{`[{"id":0,`, `"… and 2`, `more"]`}},
		"a long string": {func(w io.Writer) {
			io.WriteString(w, `{"pdf":"`+strings.Repeat("QUJD", 500_000)+`","pages":3}`)
		}, []string{`{"pdf":"QUJDQUJD`, `… (cut off)","pages":3}`}},
		"many keys": {func(w io.Writer) {
			io.WriteString(w, `{"first":1`)
			for i := range 20_000 {
				fmt.Fprintf(w, `,"key %d":[{}]`, i)
			}
			io.WriteString(w, "}")
		}, []string{`{"first":1,"key 0":[{}]`, `"…":"and `}},
		"without an end": {func(w io.Writer) {
			io.WriteString(w, `{"rows":[`)
			list(w, 400_000) // 24 MB, and then nothing
		}, []string{`{"rows":[{"id":0,`, `"… and more"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				b := bufio.NewWriter(w)
				defer b.Flush()
				c.write(b)
			}))
			note, text, _ := strings.Cut(r.Text(), "\n\n")
			if note != shortNote || len(text) > excerptSize || !json.Valid([]byte(text)) || !r.Truncated ||
				len(r.Body) > MaxAnswer {
				t.Errorf("told %q and %d bytes, JSON %t: %.300s", note, len(text), json.Valid([]byte(text)), text)
			}
			for _, want := range c.want {
				i := strings.Index(text, want)
				if i < 0 {
					t.Fatalf("no %q in %.200s … %s", want, text, text[max(0, len(text)-300):])
				}
				text = text[i+len(want):]
			}
		})
	}
	for name, body := range map[string]string{"no JSON": "[" + strings.Repeat("x y ", MaxAnswer),
		"too deep": strings.Repeat("[", 2*MaxAnswer)} {
		r := call(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		if !strings.HasPrefix(r.Text(), "Only the beginning of the tool's answer follows") {
			t.Errorf("%s: %.100s", name, r.Text())
		}
	}
}

// A redirect that would make a GET of an order is told to the model as what it is: nobody knows whether it was placed.
func TestRedirectRefused(t *testing.T) {
	var asked []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if r.URL.Path == "/login" {
			fmt.Fprint(w, "<html><title>Sign in</title></html>")
			return
		}
		http.Redirect(w, r, "/login", http.StatusFound)
	})
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		asked = nil
		r := runner(t).Run(t.Context(), &parley.Tool{Method: method, Endpoint: url + "/order", Timeout: 30,
			Schema: params("city:string")}, map[string]any{"city": "Rome"}, Variables{})
		if !strings.HasPrefix(r.Text(), "The tool failed: the server answers the "+method+" with a redirect (302)") ||
			r.Status != 0 || r.Body != "" || !slices.Equal(asked, []string{method + " /order"}) {
			t.Errorf("%s: %q told of %+v", method, asked, r)
		}
	}
}

func TestResultJSON(t *testing.T) {
	for want, r := range map[string]Result{
		`{"status":200,"duration_ms":12,"body":"x"}`:                {Status: 200, DurationMS: 12, Body: "x"},
		`{"status":0,"duration_ms":0,"body":"","error":"gone"}`:     {Error: "gone"},
		`{"status":404,"duration_ms":1,"body":"","truncated":true}`: {Status: 404, DurationMS: 1, Truncated: true},
	} {
		if b, err := json.Marshal(r); err != nil || string(b) != want {
			t.Errorf("got %s, %v, want %s", b, err, want)
		}
	}
}

// Whatever a server sends, the model gets valid UTF-8 without NUL, at most 64 KiB of it.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"a":1}`), "application/json", "", 200, 1)
	f.Add([]byte("a\xff\xc3"), "text/plain; charset=utf-16le", "", 404, 1)
	f.Add([]byte("\xe2\x82\xac"), "text/plain", "", 200, 30_000)
	f.Add([]byte("\x1b$B"), "text/html; charset=iso-2022-jp", "", 200, 20_000)
	f.Add([]byte("\xff\xfe\x00\xd8"), "text/plain;charset=gb18030", "br", 500, 16_384)
	f.Add([]byte("\x00"), "image/"+strings.Repeat("x", 200), "", 200, 70_000)
	f.Fuzz(func(t *testing.T, piece []byte, contentType, encoding string, status, times int) {
		if times < 0 || len(piece)*times > 1<<20 {
			return
		}
		raw, more, err := egress.Read(strings.NewReader(strings.Repeat(string(piece), times)), MaxAnswer)
		if err != nil {
			t.Fatal(err)
		}
		body, _, more := text(raw, more, http.Header{"Content-Type": {contentType}, "Content-Encoding": {encoding}})
		r := Result{Status: status, Body: body, Truncated: more}
		for _, s := range []string{r.Body, r.Text()} {
			if len(s) > MaxAnswer || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				t.Errorf("%d bytes, valid %t: %.100q", len(s), utf8.ValidString(s), s)
			}
		}
		if r.Text() == "" {
			t.Error("the model is told nothing")
		}
		if !more && encoding == "" && strings.HasPrefix(http.DetectContentType(raw), "text/plain; charset=utf-8") &&
			utf8.Valid(raw) && contentType == "" &&
			!strings.Contains(string(raw), "\x00") && body != strings.TrimPrefix(string(raw), "\ufeff") {
			t.Errorf("plain text was changed: %.100q", body)
		}
	})
}
