package ai

import "context"

type nextKey struct{}

// WithNext is a context for a vendor that has another one behind it, as long as there says so: it fails at once where
// it would ask again after a pause, and the other goes on. there is called when something failed, from any goroutine.
func WithNext(ctx context.Context, there func() bool) context.Context {
	return context.WithValue(ctx, nextKey{}, there)
}

// HasNext says whether another vendor goes on at once where this one fails.
func HasNext(ctx context.Context) bool {
	there, _ := ctx.Value(nextKey{}).(func() bool)
	return there != nil && there()
}
