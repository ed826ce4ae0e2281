package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
)

// previewRate is how often an address may ask for previews: a page shows a dozen voices, and a player asks two or
// three times for one.
var previewRate = auth.Rate{PerSecond: 2, Burst: 120}

func (a *API) previewRoutes() {
	handle(a, op{Method: "GET", Path: "/voices/{id}/preview", Name: "previewVoice", Tag: "Catalogue",
		NotFound: "Voice not found", Access: public, Stream: "audio/wav",
		Limit: auth.NewLimiter(previewRate), Summary: "Hear a voice say a sentence in its language (WAV, without a credential)"}, a.previewVoice)
}

func (a *API) previewVoice(ctx context.Context, r *request, in *struct {
	ID int64 `path:"id"`
}) (*struct{}, error) {
	o, err := a.Previews.Open(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	h := r.W.Header()
	h.Set("Content-Type", "audio/wav")
	h.Set("Cache-Control", "public, max-age=86400")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(r.W, r.Request, "", time.Time{}, o)
	return nil, errAnswered
}

// playable makes the addresses of previews whole, where the catalogue doesn't know what links to this server start
// with.
func (a *API) playable(r *request, voices []parley.Voice) []parley.Voice {
	if a.Front.PublicURL != "" {
		return voices
	}
	voices = slices.Clone(voices) // the catalogue's own
	base := a.baseURL(r.Request)
	for i, v := range voices {
		if strings.HasPrefix(v.PreviewURL, "/") {
			voices[i].PreviewURL = base + v.PreviewURL
		}
	}
	return voices
}
