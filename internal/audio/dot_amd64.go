package audio

// dot is the scalar product of a and as much of b. Networks and resamplers spend most of their time here, so four products are
// made at a time: the compiler makes one. Every amd64 processor can.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	n, sum := len(a)&^3, float32(0)
	if n > 0 {
		sum = dotSSE(&a[0], &b[0], n)
	}
	for i := n; i < len(a); i++ {
		sum += a[i] * b[i]
	}
	return sum
}

//go:noescape
func dotSSE(a, b *float32, n int) float32
