package opus

import "math"

// mdct is the transform of n new samples (section 4.3.7), through a discrete Fourier transform of n/2 = rows*columns
// values.
type mdct struct {
	n, rows, columns int
	twist            []complex64 // before and after
	turns            []complex64 // all n/2 roots of 1
	in, mid          []complex64
	fold             []float32
}

func newMDCT(n, rows int) *mdct {
	h := n / 2
	m := &mdct{n: n, rows: rows, columns: h / rows, twist: make([]complex64, h), turns: make([]complex64, h),
		in: make([]complex64, h), mid: make([]complex64, h), fold: make([]float32, n)}
	for i := range h {
		sin, cos := math.Sincos(-math.Pi * (float64(i) + 0.125) / float64(n))
		m.twist[i] = complex(float32(cos), float32(sin))
		sin, cos = math.Sincos(-2 * math.Pi * float64(i) / float64(h))
		m.turns[i] = complex(float32(cos), float32(sin))
	}
	return m
}

// overlap is how many samples two transforms share, at 16 kHz: 2.5 ms.
const overlap = 40

// window is how the shared samples rise.
var window = func() (w [overlap]float32) {
	for i := range w {
		s := math.Sin(math.Pi / 2 * (float64(i) + 0.5) / overlap)
		w[i] = float32(math.Sin(math.Pi / 2 * s * s))
	}
	return w
}()

// transform gives the spectrum of n+overlap samples in every step-th place of out.
func (m *mdct) transform(x, out []float32, step int) {
	// The samples are those in the middle of 2n, of which the window makes the others 0. The 2n are folded to n.
	n, h := m.n, m.n/2
	edge := (n - overlap) / 2
	at := func(i int) float32 { // of the 2n
		i -= edge
		switch {
		case i < 0 || i >= n+overlap:
			return 0
		case i < overlap:
			return x[i] * window[i]
		case i >= n:
			return x[i] * window[n+overlap-1-i]
		}
		return x[i]
	}
	for i := range h {
		m.fold[i] = -at(3*h-1-i) - at(3*h+i)
		m.fold[h+i] = at(i) - at(n-1-i)
	}
	for i := range h {
		m.in[i] = complex(m.fold[2*i], m.fold[n-1-2*i]) * m.twist[i]
	}
	m.dft()
	scale := complex(2/float32(n), 0)
	for i, v := range m.in {
		v *= m.twist[i] * scale
		out[2*i*step] = real(v)
		out[(n-1-2*i)*step] = -imag(v)
	}
}

// dft transforms in, by rows and by columns.
func (m *mdct) dft() {
	h, r, c := len(m.in), m.rows, m.columns
	for j := range c { // x[i*c+j], over i
		for k := range r {
			var sum complex64
			t := 0
			for i := range r {
				sum += m.in[i*c+j] * m.turns[t]
				if t += k * c; t >= h {
					t %= h
				}
			}
			m.mid[k*c+j] = sum * m.turns[j*k]
		}
	}
	for k := range r {
		row := m.mid[k*c : (k+1)*c]
		for l := range c {
			var sum complex64
			t := 0
			for _, v := range row {
				sum += v * m.turns[t]
				if t += l * r; t >= h {
					t -= h
				}
			}
			m.in[l*r+k] = sum
		}
	}
}
