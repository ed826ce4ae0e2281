package audio

// ITU-T G.722 at 64 kbit/s: a quadrature mirror filter splits 16 kHz sound into two bands, and each goes through
// adaptive differential coding, the lower one with six bits, the upper one with two. The names in capitals are those
// of the Recommendation's blocks.

type g722Encoder struct {
	low, high g722Band
	history   [22]int32 // the filter's, newest last
}

type g722Decoder struct {
	low, high g722Band
	history   [22]int32
}

func newG722Encoder() *g722Encoder {
	return &g722Encoder{low: g722Band{det: 32}, high: g722Band{det: 8}}
}

func newG722Decoder() *g722Decoder {
	return &g722Decoder{low: g722Band{det: 32}, high: g722Band{det: 8}}
}

func (e *g722Encoder) encode(dst []byte, pcm []int16) []byte {
	var line [22 + MaxFrame]int32 // what the filter slides over
	for len(pcm) > 1 {
		n := min(len(pcm)&^1, MaxFrame)
		copy(line[:], e.history[:])
		for i, s := range pcm[:n] {
			line[22+i] = int32(s)
		}
		for i := 0; i < n; i += 2 {
			a, b := mirror((*[24]int32)(line[i:]))
			low := e.low.quantizeLow((a + b) >> 14)
			e.low.adaptLow(low)
			high := e.high.quantizeHigh((a - b) >> 14)
			e.high.adaptHigh(high)
			dst = append(dst, byte(high<<6|low))
		}
		copy(e.history[:], line[n:])
		pcm = pcm[n:]
	}
	return dst
}

func (d *g722Decoder) decode(dst []int16, data []byte) []int16 {
	var line [22 + MaxFrame]int32
	for len(data) > 0 {
		n := min(len(data), MaxFrame/2)
		copy(line[:], d.history[:])
		for i, code := range data[:n] {
			// The lower band is heard with six bits (block 5L), but predicted with the upper four of them, so that
			// the two that may be stolen for data don't matter.
			low, high := int32(code&63), int32(code>>6)
			rl := clamp15(d.low.s + d.low.det*g722QM6[low]>>15)
			d.low.adaptLow(low)
			dh := d.high.det * g722QM2[high] >> 15
			rh := clamp15(d.high.s + dh)
			d.high.adaptHigh(high)
			window := (*[24]int32)(line[2*i:])
			window[22], window[23] = rl+rh, rl-rh
			a, b := mirror(window)
			dst = append(dst, int16(sat16(a>>11)), int16(sat16(b>>11)))
		}
		copy(d.history[:], line[2*n:])
		data = data[n:]
	}
	return dst
}

// mirror is the 24-tap filter over the newest samples (RECA/RECB, table 11): its two phases.
func mirror(h *[24]int32) (a, b int32) {
	q := &g722QMF
	b = h[0]*q[0] + h[2]*q[1] + h[4]*q[2] + h[6]*q[3] + h[8]*q[4] + h[10]*q[5] + h[12]*q[6] + h[14]*q[7] + h[16]*q[8] + h[18]*q[9] + h[20]*q[10] + h[22]*q[11]
	a = h[1]*q[11] + h[3]*q[10] + h[5]*q[9] + h[7]*q[8] + h[9]*q[7] + h[11]*q[6] + h[13]*q[5] + h[15]*q[4] + h[17]*q[3] + h[19]*q[2] + h[21]*q[1] + h[23]*q[0]
	return a, b
}

// g722Band is the state of one band's differential coder, the same in encoder and decoder. Index 0 is the newest value.
type g722Band struct {
	s, sz  int32    // SL or SH, the prediction; SZ, its part by zeros
	nb     int32    // NABLA, the logarithm of the step
	det    int32    // DET, the step
	a      [2]int32 // poles
	b      [6]int32 // zeros
	d      [6]int32 // quantized differences, doubled
	r      [2]int32 // reconstructed signal, doubled
	pSigns [2]bool  // p < 0: the partly reconstructed signal
}

// quantizeLow is SUBTRA and QUANTL.
func (g *g722Band) quantizeLow(x int32) int32 {
	e := sat16(x - g.s)
	m := e
	if e < 0 {
		m = ^e
	}
	level := int32(1)
	for step := int32(16); step > 0; step >>= 1 { // the levels rise: halve
		if at := level + step - 1; at < 30 && m >= g722Q6[at]*g.det>>12 {
			level += step
		}
	}
	if e < 0 {
		return g722ILN[level]
	}
	return 62 - level // ILP
}

// quantizeHigh is SUBTRA and QUANTH.
func (g *g722Band) quantizeHigh(x int32) int32 {
	e := sat16(x - g.s)
	m, code := e, int32(3)
	if e < 0 {
		m, code = ^e, 1
	}
	if m >= 564*g.det>>12 {
		code--
	}
	return code
}

// adaptLow is INVQAL, LOGSCL and SCALEL.
func (g *g722Band) adaptLow(code int32) {
	code >>= 2
	d := g.det * g722QM4[code] >> 15
	g.nb = min(max(g.nb*127>>7+g722WL[code], 0), 18432)
	g.det = scale(g.nb, 8)
	g.predict(d)
}

// adaptHigh is INVQAH, LOGSCH and SCALEH.
func (g *g722Band) adaptHigh(code int32) {
	d := g.det * g722QM2[code] >> 15
	g.nb = min(max(g.nb*127>>7+g722WH[code], 0), 22528)
	g.det = scale(g.nb, 10)
	g.predict(d)
}

func scale(nb, shift int32) int32 {
	v := g722ILB[nb>>6&31]
	if shift -= nb >> 11; shift < 0 {
		return v << -shift << 2
	}
	return v >> shift << 2
}

// predict takes the quantized difference in and forms the next prediction: RECONS, PARREC, UPPOL2, UPPOL1, UPZERO,
// FILTEP, FILTEZ, PREDIC.
func (g *g722Band) predict(d int32) {
	r := sat16(g.s + d)
	p := sat16(g.sz+d) < 0

	turn := sat16(g.a[0] << 2)
	if p == g.pSigns[0] {
		turn = sat16(-turn)
	}
	step := int32(-128)
	if p == g.pSigns[1] {
		step = 128
	}
	a2 := min(max(turn>>7+step+g.a[1]*32512>>15, -12288), 12288)
	step = -192
	if p == g.pSigns[0] {
		step = 192
	}
	limit := 15360 - a2
	a1 := min(max(sat16(step+g.a[0]*32640>>15), -limit), limit)

	step = 128
	if d == 0 {
		step = 0
	}
	d = sat16(2 * d)
	for i, old := range g.d {
		unlike := (old ^ d) >> 31                            // -1 where the signs differ
		g.b[i] = g.b[i]*32640>>15 + (step ^ unlike) - unlike // can't overflow: 255/256 of 1<<15, and 128
	}
	g.d = [6]int32{d, g.d[0], g.d[1], g.d[2], g.d[3], g.d[4]}
	g.r = [2]int32{sat16(2 * r), g.r[0]}
	g.pSigns = [2]bool{p, g.pSigns[0]}
	g.a = [2]int32{a1, a2}

	sp := sat16(a1*g.r[0]>>15 + a2*g.r[1]>>15)
	sz := int32(0)
	for i, b := range g.b {
		sz += b * g.d[i] >> 15
	}
	g.sz = sat16(sz)
	g.s = sat16(sp + g.sz)
}

func sat16(v int32) int32 { return min(max(v, -1<<15), 1<<15-1) }

// clamp15 is LIMIT.
func clamp15(v int32) int32 { return min(max(v, -1<<14), 1<<14-1) }
