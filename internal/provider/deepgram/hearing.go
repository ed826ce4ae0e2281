package deepgram

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

const (
	// piece is how much sound is sent in one message, as Deepgram advises for Flux. It doesn't delay the text of an
	// utterance: End sends what is left.
	piece = 80 * time.Millisecond
	// signs is the time between two pings of a listening socket.
	signs = 10 * time.Second
	// maxKeywords is the most keywords that are sent. Deepgram accepts 500 tokens.
	maxKeywords = 50
)

// The models whose parameters are known here.
const (
	nova3     = "nova-3"
	nova2     = "nova-2"
	fluxModel = "flux-general-en"
	fluxMulti = "flux-general-multi"
)

// fluxLanguages lists the languages of flux-general-multi.
const fluxLanguages = "en es de fr hi ru pt ja it nl"

// onlyNova2 lists the languages that nova-2 understands and nova-3 doesn't.
const onlyNova2 = "th"

// mixed lists the languages that nova-3 tells from each other in one call.
const mixed = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he fa hi ta zh ja ko th vi id ms et lv lt ca"

// mixedBy lists the languages that can be told from each other where this model is configured.
func mixedBy(set string) string {
	if set = cmp.Or(set, nova3); strings.HasPrefix(set, nova3) || strings.HasPrefix(set, "flux") {
		return mixed
	}
	return ""
}

// modelFor returns the model for one or more languages: the configured one if it understands all of them. tells means
// that it tells in which language something was said; the others are not understood where no model does.
func modelFor(set string, h ai.Hearing) (model string, tells bool) {
	all := append([]string{h.Language}, h.Others...)
	every := func(list string) bool {
		return !slices.ContainsFunc(all, func(l string) bool { return !slices.Contains(strings.Fields(list), l) })
	}
	switch {
	case len(h.Others) == 0 || !every(mixedBy(set)):
		return plainModel(set, h.Language), false
	case strings.HasPrefix(set, nova3):
		return set, true
	case strings.HasPrefix(set, "flux") && every(fluxLanguages):
		return fluxMulti, true
	}
	return nova3, true
}

// plainModel returns the model for one language.
func plainModel(set, language string) string {
	model := cmp.Or(set, nova3)
	speaks := func(list string) bool { return slices.Contains(strings.Fields(list), language) }
	switch {
	case model == fluxModel && language == "en", model == fluxMulti && speaks(fluxLanguages):
		return model
	case speaks(onlyNova2):
		return nova2
	case model == fluxModel || model == fluxMulti:
		return nova3
	}
	return model
}

// recognizer listens with the model that is set, or another that understands the language.
type recognizer struct {
	client *client
	model  string

	mu    sync.Mutex
	plain map[string]bool // models and languages that take no keywords, as the server said
}

// Listen implements ai.Recognizer. It connects at once, so that a wrong key is noticed before anybody speaks.
func (r *recognizer) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if h.Rate != audio.Narrow && h.Rate != audio.Wide {
		return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("hear at %d Hz: calls have 8000 or 16000", h.Rate)}
	}
	model, tells := modelFor(r.model, h)
	if !tells {
		h.Others = nil
	}
	conn, err := r.dial(ctx, model, h)
	if err != nil {
		return nil, err
	}
	o := wire.RecognitionOptions{Rate: h.Rate, Piece: piece}
	if strings.HasPrefix(model, "flux") {
		o.Continuous = true
		return wire.NewRecognition(ctx, conn, o, func(e *wire.Recognition) wire.Protocol { return newFlux(conn, e, h.Rate, tells) }), nil
	}
	return wire.NewRecognition(ctx, conn, o, func(e *wire.Recognition) wire.Protocol { return newNova(conn, e, h.Rate) }), nil
}

// dial opens a socket to listen on. Not every model accepts keywords in every language. If a model refuses them, it is
// asked again without them, now and from then on.
func (r *recognizer) dial(ctx context.Context, model string, h ai.Hearing) (*wire.Conn, error) {
	kind := strings.Join(append([]string{model, h.Language}, h.Others...), " ")
	r.mu.Lock()
	if r.plain[kind] {
		h.Keywords = nil
	}
	r.mu.Unlock()
	path, query := question(model, h)
	conn, err := r.client.dial(ctx, path, query, signs)
	if wire.StatusOf(err) != http.StatusBadRequest || len(h.Keywords) == 0 {
		return conn, err
	}
	h.Keywords = nil
	path, query = question(model, h)
	if conn, err = r.client.dial(ctx, path, query, signs); err == nil {
		r.mu.Lock()
		r.plain[kind] = true
		r.mu.Unlock()
	}
	return conn, err
}

// question returns the query with which a model is opened.
func question(model string, h ai.Hearing) (path string, query url.Values) {
	query = url.Values{"model": {model}, "encoding": {"linear16"}, "sample_rate": {strconv.Itoa(int(h.Rate))}}
	keywords := h.Keywords[:min(len(h.Keywords), maxKeywords)]
	if strings.HasPrefix(model, "flux") {
		query.Set("eager_eot_threshold", eagerThreshold)
		query.Set("eot_threshold", endThreshold)
		query.Set("eot_timeout_ms", endTimeout)
		if model == fluxMulti {
			query["language_hint"] = append([]string{h.Language}, h.Others...)
		}
		query["keyterm"] = keywords
		return "/v2/listen", query
	}
	if query.Set("language", h.Language); len(h.Others) > 0 {
		query.Set("language", "multi")
		query["language_hint"] = append([]string{h.Language}, h.Others...)
	}
	query.Set("channels", "1")
	query.Set("interim_results", "true")
	query.Set("punctuate", "true")
	query.Set("smart_format", "true")
	// The session decides where an utterance ends, and Finalize tells Deepgram. Deepgram's own endpointing would only
	// cut utterances into more pieces.
	query.Set("endpointing", "false")
	if strings.HasPrefix(model, nova3) {
		query["keyterm"] = keywords
	} else {
		query["keywords"] = keywords
	}
	return "/v1/listen", query
}
