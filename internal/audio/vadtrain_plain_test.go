//go:build train && !goexperiment.simd

package audio

func inner(a, b []float32) float32 { return dot(a, b) }

// along adds k times b to a.
func along(a, b []float32, k float32) {
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		x, y := (*[4]float32)(a), (*[4]float32)(b)
		x[0] += k * y[0]
		x[1] += k * y[1]
		x[2] += k * y[2]
		x[3] += k * y[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		a[i] += k * b[i]
	}
}

// gather adds rows, each times a number, to a: row i begins at i times step.
func gather(a, k, rows []float32, step int) {
	for i, v := range k {
		along(a, rows[i*step:][:len(a)], v)
	}
}
