package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/catalog"
	"parley/internal/preview"
	"parley/internal/provider"
	"parley/internal/provider/local"
)

// Each voice in the list plays at its preview_url without a credential, in full and by ranges.
func TestVoicePreviews(t *testing.T) {
	voice := &aitest.Synthesizer{}
	h := lite(t, func(c *api.Config) {
		c.Front.PublicURL = ""
		c.Catalog = catalog.New("", provider.All())
		c.Assistants.Catalog = c.Catalog
		blobs, err := blob.OpenDir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		c.Previews = &preview.Samples{Catalog: c.Catalog, Blobs: blobs,
			Synthesizer: func(code string) (ai.Synthesizer, error) {
				if code == local.ESpeakCode {
					return nil, &ai.Error{Kind: ai.Config}
				}
				return voice, nil
			}}
	})
	list := h.get("/user/assistants/voices?language_id=1&mode=pipeline", status(200)).list()
	if len(list) < 7 {
		t.Fatalf("%d voices", len(list))
	}
	get := func(url string, head http.Header) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = head
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	for _, v := range list {
		url := v["preview_url"].(string)
		if !strings.HasPrefix(url, h.url+"/api/voices/") {
			t.Fatalf("preview_url %q", url)
		}
		res, body := get(url, nil)
		if fmt.Sprint(v["synthesizer_provider_id"]) == "2" {
			if res.StatusCode != 503 || !strings.Contains(body, "apt-get install espeak-ng") {
				t.Errorf("not installed: %d %s", res.StatusCode, body)
			}
			continue
		}
		wav, err := audio.NewWAVReader(strings.NewReader(body))
		if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "audio/wav" ||
			res.Header.Get("Access-Control-Allow-Origin") != "*" || wav.Rate != 16000 {
			t.Errorf("%s: %d %v, %v", url, res.StatusCode, res.Header, err)
		}
		part, some := get(url, http.Header{"Range": {"bytes=44-143"}})
		if part.StatusCode != 206 || some != body[44:144] {
			t.Errorf("%s: a part is %d, %d octets", url, part.StatusCode, len(some))
		}
	}
	if n := len(voice.Said()); n != 5 {
		t.Errorf("said %d times", n)
	}
	for _, id := range []string{"0", "x", "999999999", "99999999999999999999", "1001x"} {
		if res, body := get(h.url+"/api/voices/"+id+"/preview", nil); res.StatusCode != 404 ||
			body != `{"message":"Voice not found"}`+"\n" {
			t.Errorf("voice %s: %d %s", id, res.StatusCode, body)
		}
	}
	limited := 0
	for range 150 {
		res, _ := get(h.url+"/api/voices/"+strconv.Itoa(1001)+"/preview", http.Header{"Range": {"bytes=0-1"}})
		if res.StatusCode == 429 {
			limited++
		}
	}
	if limited == 0 {
		t.Error("nobody is limited")
	}
}
