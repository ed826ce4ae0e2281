// Package widget is what stands on other people's websites: the script embed.js, which shows a chat window for an assistant and knows the
// server that it came from; its texts in the assistant's language; and a page to try it on. The script talks with the public routes of
// the API, and needs no other file until somebody makes a call.
package widget

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/internal/web"
)

//go:embed embed.js web-call.js demo.css demo.html text
var files embed.FS

// file is one of ours as it is sent.
type file struct {
	plain, zipped     []byte
	contentType, etag string
}

var (
	served = map[string]*file{} // by path
	demo   = template.Must(template.ParseFS(files, "demo.html"))
	texts  = map[string]json.RawMessage{} // by ISO 639-1 code
)

func init() {
	for name, contentType := range map[string]string{"embed.js": "text/javascript; charset=utf-8", "web-call.js": "text/javascript; charset=utf-8", "demo.css": "text/css; charset=utf-8"} {
		f := &file{plain: read(name), contentType: contentType}
		sum := sha256.Sum256(f.plain)
		f.etag = `"` + hex.EncodeToString(sum[:8]) + `"`
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		z.Write(f.plain)
		z.Close()
		f.zipped = b.Bytes()
		served["/"+name] = f
	}
	served["/widget-demo.css"] = served["/demo.css"]
	delete(served, "/demo.css")
	entries, err := files.ReadDir("text")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		var b bytes.Buffer
		if err := json.Compact(&b, read("text/"+e.Name())); err != nil {
			panic("widget: " + e.Name() + ": " + err.Error())
		}
		texts[strings.TrimSuffix(e.Name(), path.Ext(e.Name()))] = b.Bytes()
	}
}

func read(name string) []byte {
	raw, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return raw
}

// Paths are what Handler serves.
var Paths = []string{"/embed.js", "/web-call.js", "/widget-demo", "/widget-demo.css"}

// Texts are the widget's words in a language, by its ISO 639-1 code; English where there are none.
func Texts(iso string) json.RawMessage {
	if t := texts[iso]; t != nil {
		return t
	}
	return texts["en"]
}

// RightToLeft says whether a language is written so.
func RightToLeft(iso string) bool { return slices.Contains([]string{"ar", "fa", "he", "ur"}, iso) }

// demoPolicy is a strict one: what works under it works on websites that have one. Pictures may be the assistant's avatar.
const demoPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src https: http:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves Paths.
func Handler(front web.Front) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.URL.Path == "/widget-demo" {
			serveDemo(w, r, front.Base(r))
			return
		}
		f := served[r.URL.Path]
		if f == nil {
			http.NotFound(w, r)
			return
		}
		f.serve(w, r)
	})
}

// serve sends a file. Its address never changes, so it is asked for again after a few minutes; pages of every origin may load it, also
// those that are isolated from others.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=300, stale-while-revalidate=86400")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.contentType)
	body := f.plain
	if acceptsGzip(r) {
		body = f.zipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			weight := strings.TrimSpace(q)
			return weight == "" || strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != ""
		}
	}
	return false
}

func serveDemo(w http.ResponseWriter, r *http.Request, base string) {
	var b bytes.Buffer
	if err := demo.Execute(&b, map[string]string{"Base": base, "Assistant": r.URL.Query().Get("assistant")}); err != nil {
		http.Error(w, "The page can't be shown.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", demoPolicy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	w.Write(b.Bytes())
}
