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

// gather adds rows, each times a number, to a: row i begins at i times step.
func gather(a, k, rows []float32, step int) {
	at := 0
	for ; at+64 <= len(a); at += 64 {
		to := (*[64]float32)(a[at:])
		s0 := archsimd.LoadFloat32x8((*[8]float32)(to[0:]))
		s1 := archsimd.LoadFloat32x8((*[8]float32)(to[8:]))
		s2 := archsimd.LoadFloat32x8((*[8]float32)(to[16:]))
		s3 := archsimd.LoadFloat32x8((*[8]float32)(to[24:]))
		s4 := archsimd.LoadFloat32x8((*[8]float32)(to[32:]))
		s5 := archsimd.LoadFloat32x8((*[8]float32)(to[40:]))
		s6 := archsimd.LoadFloat32x8((*[8]float32)(to[48:]))
		s7 := archsimd.LoadFloat32x8((*[8]float32)(to[56:]))
		for i, v := range k {
			by, row := archsimd.BroadcastFloat32x8(v), (*[64]float32)(rows[i*step+at:])
			s0 = archsimd.LoadFloat32x8((*[8]float32)(row[0:])).MulAdd(by, s0)
			s1 = archsimd.LoadFloat32x8((*[8]float32)(row[8:])).MulAdd(by, s1)
			s2 = archsimd.LoadFloat32x8((*[8]float32)(row[16:])).MulAdd(by, s2)
			s3 = archsimd.LoadFloat32x8((*[8]float32)(row[24:])).MulAdd(by, s3)
			s4 = archsimd.LoadFloat32x8((*[8]float32)(row[32:])).MulAdd(by, s4)
			s5 = archsimd.LoadFloat32x8((*[8]float32)(row[40:])).MulAdd(by, s5)
			s6 = archsimd.LoadFloat32x8((*[8]float32)(row[48:])).MulAdd(by, s6)
			s7 = archsimd.LoadFloat32x8((*[8]float32)(row[56:])).MulAdd(by, s7)
		}
		s0.Store((*[8]float32)(to[0:]))
		s1.Store((*[8]float32)(to[8:]))
		s2.Store((*[8]float32)(to[16:]))
		s3.Store((*[8]float32)(to[24:]))
		s4.Store((*[8]float32)(to[32:]))
		s5.Store((*[8]float32)(to[40:]))
		s6.Store((*[8]float32)(to[48:]))
		s7.Store((*[8]float32)(to[56:]))
	}
	for ; at+32 <= len(a); at += 32 {
		to := (*[32]float32)(a[at:])
		s0 := archsimd.LoadFloat32x8((*[8]float32)(to[0:]))
		s1 := archsimd.LoadFloat32x8((*[8]float32)(to[8:]))
		s2 := archsimd.LoadFloat32x8((*[8]float32)(to[16:]))
		s3 := archsimd.LoadFloat32x8((*[8]float32)(to[24:]))
		for i, v := range k {
			by, row := archsimd.BroadcastFloat32x8(v), (*[32]float32)(rows[i*step+at:])
			s0 = archsimd.LoadFloat32x8((*[8]float32)(row[0:])).MulAdd(by, s0)
			s1 = archsimd.LoadFloat32x8((*[8]float32)(row[8:])).MulAdd(by, s1)
			s2 = archsimd.LoadFloat32x8((*[8]float32)(row[16:])).MulAdd(by, s2)
			s3 = archsimd.LoadFloat32x8((*[8]float32)(row[24:])).MulAdd(by, s3)
		}
		s0.Store((*[8]float32)(to[0:]))
		s1.Store((*[8]float32)(to[8:]))
		s2.Store((*[8]float32)(to[16:]))
		s3.Store((*[8]float32)(to[24:]))
	}
	for ; at+16 <= len(a); at += 16 {
		to := (*[16]float32)(a[at:])
		s0 := archsimd.LoadFloat32x8((*[8]float32)(to[0:]))
		s1 := archsimd.LoadFloat32x8((*[8]float32)(to[8:]))
		for i, v := range k {
			by, row := archsimd.BroadcastFloat32x8(v), (*[16]float32)(rows[i*step+at:])
			s0 = archsimd.LoadFloat32x8((*[8]float32)(row[0:])).MulAdd(by, s0)
			s1 = archsimd.LoadFloat32x8((*[8]float32)(row[8:])).MulAdd(by, s1)
		}
		s0.Store((*[8]float32)(to[0:]))
		s1.Store((*[8]float32)(to[8:]))
	}
	for ; at < len(a); at += 8 {
		to := (*[8]float32)(a[at:])
		s := archsimd.LoadFloat32x8(to)
		for i, v := range k {
			s = archsimd.LoadFloat32x8((*[8]float32)(rows[i*step+at:])).MulAdd(archsimd.BroadcastFloat32x8(v), s)
		}
		s.Store(to)
	}
	archsimd.ClearAVXUpperBits()
}
