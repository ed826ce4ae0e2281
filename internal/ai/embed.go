package ai

import "context"

// Embedder turns texts into vectors that lie near each other if the texts have similar meanings. It is safe for
// concurrent use.
type Embedder interface {
	// Name identifies which vectors can be compared: those with the same name.
	Name() string
	// Embed returns a vector for each text, in order, all of the same length. The error is an *Error, unless ctx ended:
	// then it is context.Cause(ctx).
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}
