package opus

import "math/bits"

// coder writes symbols by their likelihood from the front of a frame, and raw bits from its end (RFC 6716, section 5.1).
type coder struct {
	data  []byte
	front int    // octets written there
	back  int    // octets written from the end
	low   uint32 // the interval
	width uint32
	held  int // the last octet, which a carry may still change; -1: none
	full  int // octets of 255 after it
	raw   uint32
	raws  int // bits in raw
	spent int // bits
	over  bool
}

const (
	top    = 1 << 31
	bottom = top >> 8
)

func (c *coder) begin(data []byte) {
	clear(data)
	*c = coder{data: data, width: top, held: -1, spent: 33}
}

func (c *coder) put(b int) {
	if c.front+c.back >= len(c.data) {
		c.over = true
		return
	}
	c.data[c.front] = byte(b)
	c.front++
}

// carry takes the next nine bits of the interval's low end.
func (c *coder) carry(b int) {
	if b == 255 {
		c.full++
		return
	}
	up := b >> 8
	if c.held >= 0 {
		c.put(c.held + up)
	}
	for ; c.full > 0; c.full-- {
		c.put(255 + up)
	}
	c.held = b & 255
}

func (c *coder) grow() {
	for c.width <= bottom {
		c.carry(int(c.low >> 23))
		c.low = c.low << 8 & (top - 1)
		c.width <<= 8
		c.spent += 8
	}
}

// symbol writes a symbol that has from low to high of total.
func (c *coder) symbol(low, high, total uint32) { c.part(low, high, total, c.width/total) }

// of writes a symbol that has from low to high of 2 to the power of log.
func (c *coder) of(low, high uint32, log int) { c.part(low, high, 1<<log, c.width>>log) }

func (c *coder) part(low, high, total, one uint32) {
	if low > 0 {
		c.low += c.width - one*(total-low)
		c.width = one * (high - low)
	} else {
		c.width -= one * (total - high)
	}
	c.grow()
}

// bit writes a bit that is 1 in one of 2 to the power of log cases.
func (c *coder) bit(set bool, log int) {
	if set {
		c.of(1<<log-1, 1<<log, log)
	} else {
		c.of(0, 1<<log-1, log)
	}
}

// choose writes one of the choices of a cumulative distribution of 2 to the power of log.
func (c *coder) choose(which int, from []uint8, log int) {
	low, all := uint32(0), uint32(1)<<log
	if which > 0 {
		low = all - uint32(from[which-1])
	}
	c.of(low, all-uint32(from[which]), log)
}

// number writes one of total equally likely numbers.
func (c *coder) number(n, total uint32) {
	if size := bits.Len32(total - 1); size > 8 {
		size -= 8
		c.symbol(n>>size, n>>size+1, (total-1)>>size+1)
		c.bits(n&(1<<size-1), size)
		return
	}
	c.symbol(n, n+1, total)
}

// bits writes raw bits.
func (c *coder) bits(n uint32, size int) {
	c.raw |= n << c.raws
	c.raws += size
	c.spent += size
	for ; c.raws >= 8; c.raws -= 8 {
		c.octet()
	}
}

func (c *coder) octet() {
	if c.front+c.back >= len(c.data) {
		c.over = true
		return
	}
	c.back++
	c.data[len(c.data)-c.back] = byte(c.raw)
	c.raw >>= 8
}

// tell is how many bits are written, rounded up.
func (c *coder) tell() int { return c.spent - bits.Len32(c.width) }

// tellEighths is the same in eighths of a bit.
func (c *coder) tellEighths() int {
	n := bits.Len32(c.width)
	w := c.width >> (n - 16)
	for range eighth {
		w = w * w >> 15
		b := w >> 16
		n = n<<1 | int(b)
		w >>= b
	}
	return c.spent<<eighth - n
}

// left is how many whole bits of the frame are not written yet.
func (c *coder) left() int { return len(c.data)*8 - c.tell() }

// end writes what is still held. The decoder's final range is the width that it returns.
func (c *coder) end() (width uint32) {
	size := 32 - bits.Len32(c.width)
	mask := uint32(top-1) >> size
	last := (c.low + mask) &^ mask
	if last|mask >= c.low+c.width {
		size++
		mask >>= 1
		last = (c.low + mask) &^ mask
	}
	for ; size > 0; size -= 8 {
		c.carry(int(last >> 23))
		last = last << 8 & (top - 1)
	}
	if c.held >= 0 || c.full > 0 {
		c.carry(0)
	}
	if c.raws > 0 { // the last bits may share an octet with the symbols, which don't use all of it
		if c.back >= len(c.data) {
			c.over = true
			return c.width
		}
		if free := -size; c.front+c.back >= len(c.data) && free < c.raws {
			c.raw &= 1<<free - 1
			c.over = true
		}
		c.data[len(c.data)-c.back-1] |= byte(c.raw)
	}
	return c.width
}

// step writes a step of the coarse energy (section 4.3.2.1): none has a likelihood in 1/32768, larger ones decay. The
// largest possible one is written instead of a larger one; step returns what was written.
func (c *coder) step(n int, none, decay uint32) int {
	const least, beyond = 1, 16
	if n == 0 {
		c.of(0, none, 15)
		return 0
	}
	minus := uint32(0)
	if n < 0 {
		n, minus = -n, 1
	}
	low, share := none, (32768-2*beyond*least-none)*(16384-decay)>>15
	i := 1
	for ; share > 0 && i < n; i++ {
		low += 2*share + 2*least
		share = share * 2 * decay >> 15
	}
	if share == 0 { // all further ones are equally likely
		most := int(32768-low+minus) >> 1
		more := min(n-i, most-1)
		low += uint32(2*more) + 1 - minus
		share = min(least, 32768-low)
		n = i + more
	} else {
		share += least
		if minus == 0 {
			low += share
		}
	}
	c.of(low, low+share, 15)
	if minus == 1 {
		return -n
	}
	return n
}
