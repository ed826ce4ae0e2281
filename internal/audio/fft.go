package audio

import (
	"math"
	"math/bits"
	"sync"
)

// fft is the discrete Fourier transform of real signals of one length, a power of two from 8 on. It works on half as many
// complex values, the even samples being the real parts and the odd ones the imaginary.
type fft struct {
	*turns
	work []complex64
}

// turns are what all transforms of a length share.
type turns struct {
	n    int
	rev  []int32       // of the half-length transform
	turn []complex64   // e^(-2πik/n)
	step [][]complex64 // of the butterflies of each size from 8 on: those of turn that they need, one after the other
}

// turnsOf are by the power of two that the length is: every call has several transforms.
var turnsOf [64]struct {
	once sync.Once
	*turns
}

func newFFT(n int) *fft {
	t := &turnsOf[bits.TrailingZeros(uint(n))]
	t.once.Do(func() { t.turns = newTurns(n) })
	return &fft{turns: t.turns, work: make([]complex64, n/2)}
}

func newTurns(n int) *turns {
	t := &turns{n: n, rev: make([]int32, n/2), turn: make([]complex64, n/2)}
	for i := range t.rev {
		t.rev[i] = int32(bits.Reverse32(uint32(i)) >> (33 - bits.Len32(uint32(n/2))))
		s, c := math.Sincos(-2 * math.Pi * float64(i) / float64(n))
		t.turn[i] = complex(float32(c), float32(s))
	}
	for size := 8; size <= n/2; size *= 2 {
		var step []complex64
		for k := range size / 2 {
			step = append(step, t.turn[k*n/size])
		}
		t.step = append(t.step, step)
	}
	return t
}

// forward gives the n/2+1 values of x's spectrum.
func (f *fft) forward(spectrum []complex64, x []float32) {
	w, h := f.work, f.n/2
	for i, r := range f.rev {
		w[r] = complex(x[2*i], x[2*i+1])
	}
	f.butterflies(w)
	spectrum[0], spectrum[h] = complex(real(w[0])+imag(w[0]), 0), complex(real(w[0])-imag(w[0]), 0)
	for k := 1; k <= h/2; k++ { // and its mirror image
		a, b, t := w[k], w[h-k], f.turn[k]
		even, other := 0.5*(real(a)+real(b)), 0.5*(imag(a)-imag(b))
		re, im := 0.5*(imag(a)+imag(b)), 0.5*(real(b)-real(a)) // odd
		re, im = re*real(t)-im*imag(t), re*imag(t)+im*real(t)
		spectrum[k], spectrum[h-k] = complex(even+re, other+im), complex(even-re, im-other)
	}
}

// inverse gives the real signal of n/2+1 values.
func (f *fft) inverse(x []float32, spectrum []complex64) {
	w, h := f.work, f.n/2
	for k := range h {
		a, b := spectrum[k], conj(spectrum[h-k])
		even, odd := a+b, (a-b)*conj(f.turn[k])
		// The forward transform of the conjugate is the conjugate of the inverse one.
		w[f.rev[k]] = conj(even + odd*complex(0, 1))
	}
	f.butterflies(w)
	scale := 1 / float32(f.n)
	for i := range h {
		x[2*i], x[2*i+1] = real(w[i])*scale, -imag(w[i])*scale
	}
}

// butterflies begins with those of size 2 and 4, which turn by quarters only.
func (f *fft) butterflies(w []complex64) {
	for i := 0; i+4 <= len(w); i += 4 {
		p := (*[4]complex64)(w[i:])
		a, b, c, d := p[0]+p[1], p[0]-p[1], p[2]+p[3], p[2]-p[3]
		d = complex(imag(d), -real(d))
		p[0], p[1], p[2], p[3] = a+c, b+d, a-c, b-d
	}
	for _, step := range f.step {
		half := len(step)
		for start := 0; start < len(w); start += 2 * half {
			lo := w[start : start+half]
			hi := w[start+half : start+2*half]
			hi = hi[:len(lo)]
			turn := step[:len(lo)]
			for k, a := range lo {
				x, y, c, s := real(hi[k]), imag(hi[k]), real(turn[k]), imag(turn[k])
				re, im := x*c-y*s, x*s+y*c
				lo[k] = complex(real(a)+re, imag(a)+im)
				hi[k] = complex(real(a)-re, imag(a)-im)
			}
		}
	}
}

func conj(c complex64) complex64 { return complex(real(c), -imag(c)) }

func power(c complex64) float32 { return real(c)*real(c) + imag(c)*imag(c) }
