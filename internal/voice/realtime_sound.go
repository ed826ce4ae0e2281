package voice

import (
	"time"

	"parley/internal/audio"
	"parley/internal/lang"
)

// How the playout keeps and measures the sound of a realtime model.

// fill adds audio to a part, however much there is already, and reports whether it is the first.
func (o *playout) fill(p *part, pcm []int16) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.ended || p.size > int(maxPart/time.Second)*int(o.rate) {
		return false
	}
	first = p.size == 0
	if p.pace == nil {
		p.pace = &pace{}
	}
	p.pace.add(pcm, o.rate.FrameSize())
	p.put(pcm)
	return first
}

// maxPart bounds what a model may say in one go.
const maxPart = 5 * time.Minute

// position is how much of a part was heard.
func (o *playout) position(p *part) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Duration(p.played) * time.Second / time.Duration(o.rate)
}

// broke cuts a part's text to what its audio is likely to hold, as no more will come, and returns it with the length of that audio.
func (o *playout) broke(p *part) (string, time.Duration) {
	o.mu.Lock()
	size := p.size
	o.mu.Unlock()
	p.text = lang.Cut(p.text, soundingTime(p.text, size, o.rate))
	return p.text, time.Duration(size) * time.Second / time.Duration(o.rate)
}

// each yields the kept audio in order, without consuming it.
func (p *tape) each(yield func(pcm []int16)) {
	for _, b := range p.blocks {
		yield(b.samples[b.from:b.n])
	}
}

// pace maps positions in a part to speech: pauses between sentences hold no words.
type pace struct {
	frames []int32 // how many samples up to the end of each 20 ms belong to sound
	rest   int     // samples of a frame that has begun
	loud   bool    // something was heard in it
	sum    int32
}

// faint is the amplitude up to which nothing can be heard.
const faint = 200

func (c *pace) add(pcm []int16, frame int) {
	for _, v := range pcm {
		c.loud = c.loud || v > faint || v < -faint
		if c.rest++; c.rest == frame {
			if c.loud {
				c.sum += int32(frame)
			}
			c.frames = append(c.frames, c.sum)
			c.rest, c.loud = 0, false
		}
	}
}

// at is how many audible samples come before a position.
func (c *pace) at(position int, rate audio.Rate) int {
	i := position/rate.FrameSize() - 1
	switch {
	case i < 0 || len(c.frames) == 0:
		return 0
	case i >= len(c.frames):
		return int(c.sum)
	}
	return int(c.frames[i])
}

// soundingTime estimates how much of a text a sound of that many samples holds, to guess where it broke off.
func soundingTime(text string, samples int, rate audio.Rate) float64 {
	return float64(samples) * charsPerSecond / float64(max(len([]rune(text)), 1)*int(rate))
}
