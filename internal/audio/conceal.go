package audio

// Conceal fills what is missing from a stream in the manner of ITU-T G.711 Appendix I: the last pitch period is
// repeated, then the last two, then three, weaker by a fifth each 10 ms after the first; after 60 ms there is
// silence. Where sound comes back the two are blended. It adds no delay.
type Conceal struct {
	rate    int
	buffer  []int16 // has room for some more frames behind the history
	history []int16 // the last 48.75 ms that were played, newest last; a window of buffer
	lost    int     // samples concealed in a row
	period  int     // of the pitch, in samples
	at      int     // in the cycle that is repeated
	cycles  int     // how many periods it has
	step    float32 // between the last good sample and the cycle
}

// NewConceal begins a stream with silence.
func NewConceal(rate Rate) *Conceal {
	n := int(rate) * 39 / 800
	c := &Conceal{rate: int(rate), buffer: make([]int16, n+4*rate.FrameSize())}
	c.history = c.buffer[:n]
	return c
}

// Good takes samples that arrived, and blends their beginning with what was made before it.
func (c *Conceal) Good(pcm []int16) {
	if c.lost > 0 {
		// A quarter of a period, and 4 ms more for each 10 ms that are missing, at most 10 ms.
		n := min(c.period/4+c.lost*4/10, c.rate/100, len(pcm))
		for i := range n {
			w := float32(i+1) / float32(n+1)
			pcm[i] = clip32(w*float32(pcm[i]) + (1-w)*c.next())
		}
		c.lost = 0
	}
	c.remember(pcm)
}

// Lost makes samples in place of those that are missing.
func (c *Conceal) Lost(pcm []int16) {
	if c.lost == 0 {
		c.begin()
	}
	for i := range pcm {
		pcm[i] = clip32(c.next())
	}
}

// Seam tells that what comes next doesn't follow what was last: it is blended as after a loss.
func (c *Conceal) Seam() {
	if c.lost == 0 {
		c.begin()
		c.next()
	}
}

// Silent says whether what is concealed has faded away.
func (c *Conceal) Silent() bool { return c.lost > c.rate*60/1000 }

func (c *Conceal) remember(pcm []int16) {
	n := len(c.history)
	pcm = pcm[max(0, len(pcm)-n):]
	at := cap(c.buffer) - cap(c.history) // where the history begins
	if at+n+len(pcm) > len(c.buffer) {
		copy(c.buffer, c.history[len(pcm):])
		at = -len(pcm)
	}
	copy(c.buffer[at+n:], pcm)
	c.history = c.buffer[at+len(pcm):][:n]
}

func (c *Conceal) begin() {
	h := c.history
	c.period = pitch(h, c.rate/200, c.rate*3/200, c.rate/50)
	c.at, c.cycles = 0, 1
	c.step = float32(h[len(h)-1]) - float32(h[len(h)-1-c.period])
}

// next is the sample that goes on what was heard.
func (c *Conceal) next() float32 {
	n10 := c.rate / 100
	if c.lost > 6*n10 {
		c.lost++
		return 0
	}
	h, cycle, blend := c.history, c.cycles*c.period, c.period/4
	v := float32(h[len(h)-cycle+c.at])
	if over := c.at - (cycle - blend); over >= 0 { // the cycle's end goes over into what came before its beginning
		w := float32(over+1) / float32(blend+1)
		v = (1-w)*v + w*float32(h[len(h)-2*cycle+c.at])
	}
	if c.lost < blend {
		v += c.step * float32(blend-c.lost) / float32(blend)
	}
	if c.lost > n10 {
		v *= 1 - float32(c.lost-n10)/float32(5*n10)
	}
	c.lost++
	if c.at++; c.at == cycle {
		c.at = 0
		// More periods sound less like a buzz; there must be enough history for them and the blending.
		if more := min(1+c.lost/n10, 3); more > c.cycles && 2*more*c.period <= len(h) {
			c.cycles = more
		}
	}
	return v
}

// pitch is the lag from least to most at which the last n samples are most like those before them.
func pitch(pcm []int16, least, most, n int) int {
	end := len(pcm)
	most = min(most, end-n)
	step := max(1, least/40) // at 16 kHz every other sample will do
	best, lag := float32(-1), most
	for l := least; l <= most; l += step {
		var xy, yy float32
		for i := end - n; i < end; i += step {
			y := float32(pcm[i-l])
			xy += float32(pcm[i]) * y
			yy += y * y
		}
		if xy > 0 {
			if score := xy / (yy + 1) * xy; score > best {
				best, lag = score, l
			}
		}
	}
	return lag
}
