package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// embedTime is the longest time of one request for vectors.
const embedTime = time.Minute

// maxEmbedding is the most bytes of a text that are embedded: the models accept about 8,000 tokens.
const maxEmbedding = 16 << 10

// maxAnswer is the largest response with vectors, in bytes.
const maxAnswer = 64 << 20

// Embedder is one of the server's embedding models. Whether the model exists shows when it is used.
func (c *Client) Embedder(model string) ai.Embedder { return &embedder{c, model} }

type embedder struct {
	client *Client
	model  string
}

// Name implements ai.Embedder.
func (e *embedder) Name() string { return "openai:" + e.model }

// Embed implements ai.Embedder. A failed request is tried again if that may help.
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	var out [][]float32
	err := rest.Again(ctx, "embedding model", e.model, func() bool { return false }, func() (err error) {
		out, err = e.attempt(ctx, texts)
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

func (e *embedder) attempt(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, embedTime, rest.ErrStalled)
	defer cancel()
	short := make([]string, len(texts))
	for i, t := range texts {
		if short[i] = cut(t); short[i] == "" {
			short[i] = " " // servers refuse an empty one
		}
	}
	var res *http.Response
	got, err := e.client.embed.New(ctx, sdk.EmbeddingNewParams{Model: e.model,
		Input:          sdk.EmbeddingNewParamsInputUnion{OfArrayOfStrings: short},
		EncodingFormat: sdk.EmbeddingNewParamsEncodingFormatFloat}, option.WithResponseInto(&res),
		option.WithMiddleware(bounded))
	switch {
	case errors.Is(context.Cause(ctx), rest.ErrStalled):
		return nil, &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("no vectors within %v", embedTime)}
	case errors.Is(err, rest.ErrEndless):
		return nil, &ai.Error{Kind: ai.Malformed, Err: rest.ErrEndless}
	case err != nil:
		return nil, failure(err, res, false)
	case len(got.Data) != len(texts):
		return nil, rest.Malformed("%d vectors for %d texts", len(got.Data), len(texts))
	}
	out := make([][]float32, len(texts))
	for _, d := range got.Data {
		if d.Index < 0 || d.Index >= int64(len(out)) || out[d.Index] != nil || len(d.Embedding) == 0 ||
			len(d.Embedding) != len(got.Data[0].Embedding) {
			return nil, rest.Malformed("vector %d of %d, with %d dimensions", d.Index, len(texts), len(d.Embedding))
		}
		v := make([]float32, len(d.Embedding))
		for i, x := range d.Embedding {
			v[i] = float32(x)
		}
		out[d.Index] = v
	}
	return out, nil
}

// bounded fails a response that is larger than one with vectors can be.
func bounded(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(r)
	if res != nil && res.Body != nil {
		res.Body = &boundedBody{res.Body, maxAnswer}
	}
	return res, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, rest.ErrEndless
	}
	return n, err
}

// cut shortens a text to the length that is embedded, between runes.
func cut(s string) string {
	if len(s) <= maxEmbedding {
		return s
	}
	n := maxEmbedding
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
