//go:build !amd64

package audio

// dot is the scalar product of a and as much of b.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	for len(a) >= 8 && len(b) >= 8 { // the compiler sees that there are eight, and looks no more
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s0 += x[4] * y[4]
		s1 += x[5] * y[5]
		s2 += x[6] * y[6]
		s3 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	if len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s0 += v * b[i]
	}
	return s0 + s1 + s2 + s3
}

// products sets each of out to the scalar product of x and a row; the rows begin step values apart.
func products(out, x, rows []float32, step int) {
	for i := range out {
		out[i] = dot(x, rows[i*step:])
	}
}

// squashAll squashes each of x.
func squashAll(x []float32) {
	for i, v := range x {
		x[i] = squash(v)
	}
}
