package audio

// dot is the scalar product of a and as much of b. Networks and resamplers spend most of their time here, so four products are
// made at a time: the compiler makes one. Every amd64 processor can.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	n, sum := len(a)&^3, float32(0)
	if n > 0 {
		rowsSSE(&sum, &a[0], &b[0], n, 1, 0)
	}
	for i := n; i < len(a); i++ {
		sum += a[i] * b[i]
	}
	return sum
}

// products sets each of out to the scalar product of x and a row; the rows begin step values apart.
func products(out, x, rows []float32, step int) {
	if len(x) == 0 || len(x)%4 != 0 {
		for i := range out {
			out[i] = dot(x, rows[i*step:])
		}
		return
	}
	if last := len(out) - 1; last >= 0 {
		_ = rows[last*step : last*step+len(x)]
		rowsSSE(&out[0], &x[0], &rows[0], len(x), len(out), step)
	}
}

//go:noescape
func rowsSSE(out, x, rows *float32, n, count, step int)

// squashAll squashes each of x.
func squashAll(x []float32) {
	n := len(x) &^ 3
	if n > 0 {
		squashSSE(&x[0], n)
	}
	for i := n; i < len(x); i++ {
		x[i] = squash(x[i])
	}
}

//go:noescape
func squashSSE(x *float32, n int)
