package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/ai"
	"parley/internal/provider/openai"
)

// vectorServer answers requests for vectors as OpenAI does. A text's vector is its length and its position, and the
// vectors come in reverse order.
func vectorServer(t *testing.T, behave func(n int64, w http.ResponseWriter) (done bool)) (ai.Embedder, *atomic.Int64) {
	t.Helper()
	asked := new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k3y" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var req struct {
			Model  string   `json:"model"`
			Input  []string `json:"input"`
			Format string   `json:"encoding_format"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Model != "embedder" || req.Format != "float" {
			t.Errorf("asked %+v: %v", req, err)
		}
		if behave != nil && behave(n, w) {
			return
		}
		var list []string
		for i, text := range req.Input {
			list = append([]string{fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,%d]}`, i,
				len(text), i)}, list...)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"object":"list","model":"embedder","data":[%s],"usage":{"prompt_tokens":1,"total_tokens":1}}`, strings.Join(list, ","))
	}))
	t.Cleanup(srv.Close)
	c, err := openai.Open(openai.Config{BaseURL: srv.URL + "/v1", APIKey: "k3y"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Embedder("embedder"), asked
}

func TestEmbed(t *testing.T) {
	e, _ := vectorServer(t, nil)
	if e.Name() != "openai:embedder" {
		t.Errorf("it is called %q", e.Name())
	}
	long := strings.Repeat("ü", 20_000)
	got, err := e.Embed(t.Context(), []string{"one", "", long, "three"})
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	for i, want := range []float32{3, 1, 16 << 10, 5} {
		if got[i][0] != want || got[i][1] != float32(i) {
			t.Errorf("text %d has %v", i, got[i])
		}
	}
	if got, err := e.Embed(t.Context(), nil); err != nil || got != nil {
		t.Error(got, err)
	}
}

// Two thousand vectors of 1536 numbers are much more than any reply in words.
func TestEmbedMany(t *testing.T) {
	const texts, dimensions = 2000, 1536
	one := strings.TrimSuffix(strings.Repeat("0.0123456789,", dimensions), ",")
	e, _ := vectorServer(t, func(_ int64, w http.ResponseWriter) bool {
		fmt.Fprint(w, `{"data":[`)
		for i := range texts {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, `{"index":%d,"embedding":[%s]}`, i, one)
		}
		fmt.Fprint(w, "]}")
		return true
	})
	got, err := e.Embed(t.Context(), make([]string, texts))
	if err != nil || len(got) != texts || len(got[texts-1]) != dimensions || got[texts-1][0] != 0.0123456789 {
		t.Fatal(len(got), err)
	}
}

func TestEmbedFailures(t *testing.T) {
	answer := func(text string) func(int64, http.ResponseWriter) bool {
		return func(_ int64, w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text)
			return true
		}
	}
	status := func(code int, times int64) func(int64, http.ResponseWriter) bool {
		return func(n int64, w http.ResponseWriter) bool {
			if n > times {
				return false
			}
			w.WriteHeader(code)
			return true
		}
	}
	for _, c := range []struct {
		name   string
		behave func(int64, http.ResponseWriter) bool
		kind   ai.Kind
		asked  int64
	}{
		{"busy twice", status(503, 2), "", 3},
		{"busy for good", status(503, 99), ai.Overloaded, 3},
		{"no such model", status(404, 99), ai.Config, 1},
		{"too few", answer(`{"data":[{"index":0,"embedding":[1]}]}`), ai.Malformed, 1},
		{"one twice", answer(`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`), ai.Malformed, 1},
		{"out of range", answer(`{"data":[{"index":0,"embedding":[1]},{"index":9,"embedding":[1]}]}`), ai.Malformed, 1},
		{"of two lengths", answer(`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`),
			ai.Malformed, 1},
		{"empty", answer(`{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`), ai.Malformed, 1},
		{"no JSON", answer(`<html>`), ai.Malformed, 1},
		{"a page", func(_ int64, w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
			return true
		}, ai.Malformed, 1},
		{"in base64", answer(`{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":"AACAPw=="}]}`), ai.Malformed, 1},
		{"endless", func(_ int64, w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "application/json")
			for spaces := strings.Repeat(" ", 1<<20); ; {
				if _, err := io.WriteString(w, spaces); err != nil {
					return true
				}
			}
		}, ai.Malformed, 1},
	} {
		e, asked := vectorServer(t, c.behave)
		got, err := e.Embed(t.Context(), []string{"one", "two"})
		if ai.KindOf(err) != c.kind || (err == nil) != (len(got) == 2) || asked.Load() != c.asked {
			t.Errorf("%s: %v %v, asked %d times", c.name, got, err, asked.Load())
		}
	}
	e, _ := vectorServer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, []string{"x"}); err != context.Canceled { //nolint:errorlint // the very cause comes back
		t.Errorf("cancelled: %v", err)
	}
}
