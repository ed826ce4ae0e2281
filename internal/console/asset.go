package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed asset
var assetFS embed.FS

// asset is a file that never changes under its name: the name holds a hash of the content.
type asset struct {
	plain, zipped []byte
	contentType   string
}

var (
	assets     = map[string]*asset{} // by the name that is served
	assetNames = map[string]string{} // the file's name -> the name that is served
)

func init() {
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	entries, err := assetFS.ReadDir("asset")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		file := e.Name()
		ext := path.Ext(file)
		if types[ext] == "" {
			continue // a licence
		}
		plain, err := assetFS.ReadFile("asset/" + file)
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(plain)
		name := strings.TrimSuffix(file, ext) + "." + hex.EncodeToString(sum[:6]) + ext
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		z.Write(plain)
		z.Close()
		assets[name] = &asset{plain, b.Bytes(), types[ext]}
		assetNames[file] = name
	}
}

// assetPath is where a file of the asset folder is served.
func assetPath(file string) string {
	name := assetNames[file]
	if name == "" {
		panic("console: no asset " + file)
	}
	return "/assets/" + name
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	a := assets[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := a.plain
	if acceptsGzip(r) {
		body = a.zipped
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
