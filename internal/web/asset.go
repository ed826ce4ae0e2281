package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Asset is a file that browsers load, also compressed.
type Asset struct {
	Tag           string // names the content, in 16 hexadecimal digits
	plain, zipped []byte
	contentType   string
}

// NewAsset makes an asset of a content.
func NewAsset(plain []byte, contentType string) *Asset {
	sum := sha256.Sum256(plain)
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	z.Write(plain)
	z.Close()
	return &Asset{hex.EncodeToString(sum[:8]), plain, b.Bytes(), contentType}
}

// Serve answers with the asset. For how long it may be kept is the caller's to say.
func (a *Asset) Serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Vary", "Accept-Encoding")
	body := a.plain
	if acceptsGzip(r) {
		body = a.zipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// SendZipped answers with a body, compressed where that is worth it and the client takes it.
func SendZipped(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	if len(body) > 1400 && acceptsGzip(r) {
		var small bytes.Buffer
		z := zippers.Get().(*gzip.Writer)
		z.Reset(&small)
		z.Write(body)
		z.Close()
		zippers.Put(z)
		body = small.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) // a reader who left is nobody's error
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
