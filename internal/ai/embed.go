package ai

import "context"

// Embedder turns texts into vectors that lie near each other where the texts mean alike. It is safe for concurrent use.
type Embedder interface {
	// Name says which vectors can be compared: those of one name.
	Name() string
	// Embed gives a vector for each text, in order, all of one length. The error is an *Error, unless ctx ended: then
	// it is context.Cause(ctx).
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}
