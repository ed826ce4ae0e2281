package audio

// ITU-T G.711. Both laws divide the range into eight segments, each twice as coarse as the one before, of sixteen
// steps; a code is a sign, a segment and a step, with bits inverted on the line (all in µ-law, the even ones in
// A-law).

var (
	ulawPCM = decodeTable(func(code byte) int {
		code = ^code
		v := ((int(code&0x0F)<<3 + 0x84) << (code >> 4 & 7)) - 0x84
		if code&0x80 != 0 {
			return -v
		}
		return v
	})
	alawPCM = decodeTable(func(code byte) int {
		code ^= 0x55
		v, segment := int(code&0x0F)<<4+8, code>>4&7
		if segment > 0 {
			v = (v + 0x100) << (segment - 1)
		}
		if code&0x80 == 0 {
			return -v
		}
		return v
	})
	ulawCode = encodeTable(&ulawPCM, 0xFF)
	alawCode = encodeTable(&alawPCM, 0xD5)
)

func decodeTable(value func(byte) int) (t [256]int16) {
	for i := range t {
		t[i] = int16(value(byte(i)))
	}
	return t
}

// encodeTable gives the code of every sample, less its two lowest bits. zero is the code of the smallest positive
// value; codes go up with the magnitude as zero^1, zero^2, …, and the decision between two of them is half way, as in
// G.711's tables. The table is the mirror of itself around 0, and has one entry more on the negative side.
func encodeTable(pcm *[256]int16, zero byte) (t [1 << 14]byte) {
	const half = 1 << 13
	t[half] = zero
	j := 1
	for i := range 128 {
		end := half
		if i < 127 {
			end = (int(pcm[zero^byte(i)]) + int(pcm[zero^byte(i+1)]) + 4) >> 3
		}
		for ; j < end; j++ {
			t[half+j] = zero ^ byte(i)
			t[half-j] = zero ^ byte(i) ^ 0x80
		}
	}
	t[0] = t[1]
	return t
}

// EncodeULaw appends the µ-law codes of pcm to dst.
func EncodeULaw(dst []byte, pcm []int16) []byte {
	for _, s := range pcm {
		dst = append(dst, ulawCode[(int(s)+1<<15)>>2])
	}
	return dst
}

// DecodeULaw appends the samples of µ-law codes to dst.
func DecodeULaw(dst []int16, codes []byte) []int16 {
	for _, c := range codes {
		dst = append(dst, ulawPCM[c])
	}
	return dst
}

// EncodeALaw appends the A-law codes of pcm to dst.
func EncodeALaw(dst []byte, pcm []int16) []byte {
	for _, s := range pcm {
		dst = append(dst, alawCode[(int(s)+1<<15)>>2])
	}
	return dst
}

// DecodeALaw appends the samples of A-law codes to dst.
func DecodeALaw(dst []int16, codes []byte) []int16 {
	for _, c := range codes {
		dst = append(dst, alawPCM[c])
	}
	return dst
}
