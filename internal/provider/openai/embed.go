package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

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
	got, err := e.ask(ctx, vectorRequest{Model: e.model, Input: short, Format: "float"})
	switch {
	case errors.Is(context.Cause(ctx), rest.ErrStalled):
		return nil, &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("no vectors within %v", embedTime)}
	case err != nil:
		return nil, err
	case len(got) != len(texts):
		return nil, rest.Malformed("%d vectors for %d texts", len(got), len(texts))
	}
	out := make([][]float32, len(texts))
	for _, d := range got {
		if d.Index < 0 || int(d.Index) >= len(out) || out[d.Index] != nil || len(d.Embedding) == 0 ||
			len(d.Embedding) != len(got[0].Embedding) {
			return nil, rest.Malformed("vector %d of %d, with %d dimensions", d.Index, len(texts), len(d.Embedding))
		}
		out[d.Index] = d.Embedding
	}
	return out, nil
}

// vectorRequest is the body of POST /embeddings.
type vectorRequest struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

type vector struct {
	Index     number    `json:"index"`
	Embedding []float32 `json:"embedding"`
}

// ask makes the request once. The server may be silent as long as the request may take.
func (e *embedder) ask(ctx context.Context, body vectorRequest) ([]vector, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	req, err := http.NewRequest(http.MethodPost, e.client.rest.Base+"/embeddings", bytes.NewReader(raw))
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	patient := *e.client.rest
	patient.Stall = embedTime
	var got struct {
		Data []vector `json:"data"`
	}
	err = patient.Ask(ctx, req, maxAnswer, func(res *http.Response) error {
		whole, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		return json.Unmarshal(whole, &got)
	}, func() bool { return false })
	return got.Data, err
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
