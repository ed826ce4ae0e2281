//go:build train && goexperiment.simd

package audio

import "simd/archsimd"

// Training is many times as fast with these. All rows that they are given are as long as a multiple of eight. What is left in
// the upper halves of the registers would make every scalar operation after it wait.

func inner(a, b []float32) float32 {
	b = b[:len(a)]
	var s, t archsimd.Float32x8
	for ; len(a) >= 16; a, b = a[16:], b[16:] {
		s = archsimd.LoadFloat32x8((*[8]float32)(a)).MulAdd(archsimd.LoadFloat32x8((*[8]float32)(b)), s)
		t = archsimd.LoadFloat32x8((*[8]float32)(a[8:])).MulAdd(archsimd.LoadFloat32x8((*[8]float32)(b[8:])), t)
	}
	if len(a) >= 8 {
		s = archsimd.LoadFloat32x8((*[8]float32)(a)).MulAdd(archsimd.LoadFloat32x8((*[8]float32)(b)), s)
	}
	var out [8]float32
	s.Add(t).Store(&out)
	archsimd.ClearAVXUpperBits()
	return out[0] + out[1] + out[2] + out[3] + out[4] + out[5] + out[6] + out[7]
}

// along adds k times b to a.
func along(a, b []float32, k float32) {
	b = b[:len(a)]
	by := archsimd.BroadcastFloat32x8(k)
	for ; len(a) >= 8; a, b = a[8:], b[8:] {
		to := (*[8]float32)(a)
		archsimd.LoadFloat32x8((*[8]float32)(b)).MulAdd(by, archsimd.LoadFloat32x8(to)).Store(to)
	}
	archsimd.ClearAVXUpperBits()
}
