package blob_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// s3 is a server that implements as much of Amazon's protocol as matters here: signatures of version 4, objects in one
// piece and in parts, ranges. It keeps objects in files, so that its memory is not mistaken for ours.
type s3 struct {
	testing.TB
	address string
	secret  string

	mu    sync.Mutex
	dir   string
	parts map[string][]int // upload id -> part numbers
	next  int
}

func newS3(t testing.TB) *s3 {
	s := &s3{TB: t, secret: "s3cr3t", dir: t.TempDir(), parts: map[string][]int{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.address = "s3://ana:s3cr3t@bucket/some/prefix?region=eu-1&endpoint=" + url.QueryEscape(srv.URL)
	return s
}

func (s *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.signed(r) {
		s.fail(w, http.StatusForbidden, "SignatureDoesNotMatch")
		return
	}
	key, ok := strings.CutPrefix(r.URL.Path, "/bucket/some/prefix/")
	if !ok {
		s.fail(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	path := filepath.Join(s.dir, url.QueryEscape(key))
	q := r.URL.Query()
	switch {
	case r.Method == "POST" && q.Has("uploads"):
		s.next++
		id := strconv.Itoa(s.next)
		s.parts[id] = []int{}
		s.answer(w, struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			UploadId string
		}{UploadId: id})
	case r.Method == "PUT":
		if id := q.Get("uploadId"); id != "" {
			n, _ := strconv.Atoi(q.Get("partNumber"))
			s.parts[id] = append(s.parts[id], n)
			path = filepath.Join(s.dir, "part-"+id+"-"+strconv.Itoa(n))
		}
		sum := md5.New()
		f, err := os.Create(path)
		if err == nil {
			_, err = io.Copy(io.MultiWriter(f, sum), plain(r))
			f.Close()
		}
		if err != nil {
			os.Remove(path)
			s.fail(w, http.StatusBadRequest, "IncompleteBody")
			return
		}
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum.Sum(nil))+`"`)
	case r.Method == "POST" && q.Has("uploadId"):
		f, err := os.Create(path)
		if err != nil {
			s.Error(err)
		}
		defer f.Close()
		numbers := s.parts[q.Get("uploadId")]
		slices.Sort(numbers)
		for _, n := range numbers {
			part, err := os.Open(filepath.Join(s.dir, "part-"+q.Get("uploadId")+"-"+strconv.Itoa(n)))
			if err != nil {
				s.Error(err)
			}
			io.Copy(f, part)
			part.Close()
		}
		s.answer(w, struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
			Bucket  string
			Key     string
			ETag    string
		}{Bucket: "bucket", Key: key, ETag: `"whole"`})
	case r.Method == "DELETE" && q.Has("uploadId"):
		delete(s.parts, q.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == "DELETE":
		os.Remove(path)
		w.WriteHeader(http.StatusNoContent)
	default:
		f, err := os.Open(path)
		if err != nil {
			s.fail(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		defer f.Close()
		w.Header().Set("ETag", `"whole"`)
		http.ServeContent(w, r, "", time.Unix(1_700_000_000, 0), f)
	}
}

func (s *s3) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(v); err != nil {
		s.Error(err)
	}
}

func (s *s3) fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

// plain returns a request's body without the signatures between its chunks.
func plain(r *http.Request) io.Reader {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return r.Body
	}
	out, in := io.Pipe()
	go func() {
		b := bufio.NewReader(r.Body)
		for {
			line, err := b.ReadString('\n')
			size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
			n, bad := strconv.ParseInt(size, 16, 64)
			if err != nil || bad != nil {
				in.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
			if n == 0 {
				in.Close()
				return
			}
			if _, err := io.CopyN(in, b, n); err != nil {
				in.CloseWithError(err)
				return
			}
			b.Discard(2)
		}
	}()
	return out
}

// signed checks the signature of a request (AWS Signature Version 4).
func (s *s3) signed(r *http.Request) bool {
	field := func(name string) string {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), name+"=")
		v, _, _ := strings.Cut(rest, ",")
		return v
	}
	scope := strings.SplitN(field("Credential"), "/", 2)
	if len(scope) != 2 || scope[0] != "ana" {
		return false
	}
	var canonical bytes.Buffer
	fmt.Fprintf(&canonical, "%s\n%s\n%s\n", r.Method, r.URL.EscapedPath(),
		strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20"))
	for _, h := range strings.Split(field("SignedHeaders"), ";") {
		value := strings.Join(r.Header.Values(h), ",")
		switch h {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		fmt.Fprintf(&canonical, "%s:%s\n", h, strings.TrimSpace(value))
	}
	fmt.Fprintf(&canonical, "\n%s\n%s", field("SignedHeaders"), r.Header.Get("X-Amz-Content-Sha256"))
	sum := sha256.Sum256(canonical.Bytes())
	key := []byte("AWS4" + s.secret)
	mac := func(text string) {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		key = m.Sum(nil)
	}
	for _, part := range strings.Split(scope[1], "/") {
		mac(part)
	}
	mac("AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + scope[1] + "\n" + hex.EncodeToString(sum[:]))
	return hex.EncodeToString(key) == field("Signature")
}
