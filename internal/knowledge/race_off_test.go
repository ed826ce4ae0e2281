//go:build !race

package knowledge

func prepare() (done func(), err error) { return func() {}, nil }
