package audio

import (
	"math"
	"math/bits"
	"sync"
)

// fft is the discrete Fourier transform of real signals of one length, a power of two. It works on half as many
// complex values, the even samples being the real parts and the odd ones the imaginary.
type fft struct {
	*turns
	work []complex64
}

// turns are what all transforms of a length share.
type turns struct {
	n    int
	rev  []int32     // of the half-length transform
	turn []complex64 // e^(-2πik/n)
}

var turnsOf sync.Map // by length: every call has several transforms

func newFFT(n int) *fft {
	t, ok := turnsOf.Load(n)
	if !ok {
		t, _ = turnsOf.LoadOrStore(n, newTurns(n))
	}
	return &fft{turns: t.(*turns), work: make([]complex64, n/2)}
}

func newTurns(n int) *turns {
	t := &turns{n: n, rev: make([]int32, n/2), turn: make([]complex64, n/2)}
	for i := range t.rev {
		t.rev[i] = int32(bits.Reverse32(uint32(i)) >> (33 - bits.Len32(uint32(n/2))))
		s, c := math.Sincos(-2 * math.Pi * float64(i) / float64(n))
		t.turn[i] = complex(float32(c), float32(s))
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
	for k := 1; k < h; k++ {
		a, b := w[k], conj(w[h-k])
		even, odd := (a+b)*0.5, (a-b)*complex(0, -0.5)
		spectrum[k] = even + f.turn[k]*odd
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

func (f *fft) butterflies(w []complex64) {
	for size := 2; size <= len(w); size *= 2 {
		half, step := size/2, f.n/size
		for start := 0; start < len(w); start += size {
			lo, hi := w[start:start+half], w[start+half:start+size]
			for k := range lo {
				a, b := lo[k], hi[k]*f.turn[k*step]
				lo[k], hi[k] = a+b, a-b
			}
		}
	}
}

func conj(c complex64) complex64 { return complex(real(c), -imag(c)) }

func power(c complex64) float32 { return real(c)*real(c) + imag(c)*imag(c) }
