package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"parley/internal/parley"
)

// jsonLimit bounds a JSON body (decisions 1).
const jsonLimit = 1 << 20

var (
	errBadJSON   = &parley.Error{Kind: parley.Invalid, Code: badJSON, Message: "The request body is not valid JSON."}
	errNotObject = &parley.Error{Kind: parley.Invalid, Code: badJSON,
		Message: "The request body must be a JSON object."}
	errTooLarge    = &parley.Error{Kind: parley.TooLarge, Message: "The request body is too large: 1 MiB is the most."}
	errContentType = &parley.Error{Kind: parley.Unsupported, Message: "Send the request body as application/json."}
	errSlow        = &parley.Error{Kind: parley.Refused, Message: "The request body did not arrive."}
)

// bufferPool keeps buffers of ordinary size.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() *bytes.Buffer {
	if b, ok := p.pool.Get().(*bytes.Buffer); ok {
		return b
	}
	return bytes.NewBuffer(make([]byte, 0, 8<<10))
}

func (p *bufferPool) Put(b *bytes.Buffer) {
	if b.Cap() <= 256<<10 {
		b.Reset()
		p.pool.Put(b)
	}
}

var buffers bufferPool

// readBody reads a request's JSON object; an empty body is {}. It returns the bytes too, into b.
func readBody(w http.ResponseWriter, r *http.Request, b *bytes.Buffer) (map[string]any, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return map[string]any{}, nil
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, jsonLimit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, errTooLarge
	case err != nil:
		return nil, errSlow
	case len(bytes.TrimSpace(b.Bytes())) == 0:
		return map[string]any{}, nil
	case !isJSON(r.Header.Get("Content-Type")):
		return nil, errContentType
	}
	return parseObject(b.Bytes())
}

// markLoneSurrogates writes \u0000 for each half of a surrogate pair that stands alone. It is no character, and the
// decoder would put another in its place without a word; like this the field that holds it is refused.
func markLoneSurrogates(b []byte) []byte {
	out := b
	unit := func(i int) uint64 { // the \uXXXX at i, 0 where there is none
		if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(b[i+2:i+6]), 16, 16)
		return n
	}
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		switch u := unit(i); {
		case u>>10 == 0xd800>>10 && unit(i+6)>>10 == 0xdc00>>10:
			i += 11
		case u>>11 == 0xd800>>11:
			if &out[0] == &b[0] {
				out = bytes.Clone(b)
			}
			copy(out[i+2:], "0000")
			i += 5
		default:
			i++ // what is escaped is no beginning
		}
	}
	return out
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// parseObject decodes a JSON object with its numbers as they were written.
func parseObject(b []byte) (map[string]any, error) {
	if !utf8.Valid(b) {
		return nil, errBadJSON
	}
	dec := json.NewDecoder(bytes.NewReader(markLoneSurrogates(b)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errBadJSON
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errBadJSON
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	return obj, nil
}
