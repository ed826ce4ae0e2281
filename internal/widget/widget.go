// Package widget is for other people's websites: the script embed.js, which shows an assistant's chat window and knows
// the server that it came from; its texts in the assistant's language; and a page to try it on. The script uses the
// public routes of the API, and needs no other file until somebody makes a call.
package widget

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"parley/internal/web"
)

//go:embed embed.js web-call.js demo.css demo.html text
var files embed.FS

var (
	served = map[string]*web.Asset{} // by path
	demo   = template.Must(template.ParseFS(files, "demo.html"))
	texts  = map[string]json.RawMessage{} // by ISO 639-1 code
)

func init() {
	for name, contentType := range map[string]string{"embed.js": "text/javascript; charset=utf-8",
		"web-call.js": "text/javascript; charset=utf-8", "demo.css": "text/css; charset=utf-8"} {
		served["/"+name] = web.NewAsset(read(name), contentType)
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

// demoPolicy is a strict one: what works under it works on websites that have one. Pictures may be the assistant's
// avatar.
const demoPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src https: http:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

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
		serve(w, r, f)
	})
}

// serve sends a file. Its address never changes, so it is asked for again after a few minutes; pages of every origin
// may load it, also those that are isolated from others.
func serve(w http.ResponseWriter, r *http.Request, f *web.Asset) {
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=300, stale-while-revalidate=86400")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Vary", "Accept-Encoding")
	tag := `"` + f.Tag + `"`
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	f.Serve(w, r)
}

func serveDemo(w http.ResponseWriter, r *http.Request, base string) {
	var b bytes.Buffer
	if err := demo.Execute(&b, map[string]string{"Base": base,
		"Assistant": r.URL.Query().Get("assistant")}); err != nil {
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
