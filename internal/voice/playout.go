package voice

import (
	"sync"

	"parley/internal/audio"
	"parley/internal/lang"
)

// part is a sentence on its way to the far end: its text, and its sound as far as it is there.
type part struct {
	reply   int
	step    int    // the step of thinking that it comes from
	aside   bool   // a filler: it is in the transcript, and not in what the model is told
	initial bool   // it is the initial message
	keep    bool   // its sound goes into the cache
	text    string // as it is read; the texts of a reply's parts are the reply
	speak   string // as it is said

	// The session's lock guards what follows.
	pcm    []int16  // a known sound, whole; it is shared and never written
	blocks []*block // otherwise: what has arrived and was not played yet
	size   int      // samples that have arrived
	played int
	whole  bool // all has arrived
	ended  bool // it was played, or left out
	cut    bool // it was left out
}

// block is a piece of sound. Blocks go round: a call that is silent has none.
type block struct {
	samples [1600]int16
	from, n int
}

var blocks = sync.Pool{New: func() any { return new(block) }}

// put adds sound that arrived.
func (p *part) put(pcm []int16) {
	p.size += len(pcm)
	for len(pcm) > 0 {
		var b *block
		if n := len(p.blocks); n > 0 && p.blocks[n-1].n < len(b.samples) {
			b = p.blocks[n-1]
		} else {
			b = blocks.Get().(*block)
			b.from, b.n = 0, 0
			p.blocks = append(p.blocks, b)
		}
		n := copy(b.samples[b.n:], pcm)
		b.n, pcm = b.n+n, pcm[n:]
	}
}

// take moves up to len(dst) samples into dst; with peek they stay.
func (p *part) take(dst []int16, peek bool) int {
	if p.pcm != nil {
		n := copy(dst, p.pcm[p.played:])
		if !peek {
			p.played += n
		}
		return n
	}
	done := 0
	for i := 0; i < len(p.blocks) && done < len(dst); i++ {
		b := p.blocks[i]
		n := copy(dst[done:], b.samples[b.from:b.n])
		done += n
		if peek {
			continue
		}
		b.from += n
		if b.from == b.n {
			blocks.Put(b)
			copy(p.blocks, p.blocks[1:])
			p.blocks[len(p.blocks)-1] = nil
			p.blocks = p.blocks[:len(p.blocks)-1]
			i--
		}
	}
	if !peek {
		p.played += done
	}
	return done
}

// drop lets the sound go.
func (p *part) drop() {
	for _, b := range p.blocks {
		blocks.Put(b)
	}
	p.blocks, p.pcm, p.ended = nil, nil, true
}

// heard is the text as far as its sound was heard: cut between words, by how much of the sound was played. rate is of the samples.
func (p *part) heard(rate audio.Rate) string {
	switch {
	case p.whole && p.played >= p.size && !p.cut && p.ended:
		return p.text
	case p.played == 0:
		return ""
	case p.whole && p.played >= p.size:
		return p.text
	}
	size := p.size
	if !p.whole { // the rest is not there yet: guess by the usual pace
		size = max(size, len([]rune(p.text))*int(rate)/charsPerSecond)
	}
	return lang.Cut(p.text, float64(p.played)/float64(size))
}

// charsPerSecond is how quickly people, and their imitations, speak.
const charsPerSecond = 15

// playout is what the far end is going to hear: the parts of the present reply, in order. The session's lock guards it.
type playout struct {
	parts  []*part
	paused bool
	fade   bool // the next frame goes over into silence, or out of it
}

// pull fills a frame. It says whether there is sound in it, whose first sound that is (0: nobody's), and how many parts ended.
func (o *playout) pull(dst audio.Frame) (sound bool, first *part, ended int) {
	n := 0
	for len(o.parts) > 0 && n < len(dst) {
		p := o.parts[0]
		if p.ended {
			o.shift()
			continue
		}
		was := p.played
		if o.paused {
			if !o.fade || was == 0 {
				break
			}
			// What fades away here is heard again from its beginning: nothing is lost.
			n += p.take(dst[n:], true)
			break
		}
		got := p.take(dst[n:], false)
		n += got
		if was == 0 && got > 0 && first == nil {
			first = p
		}
		if !p.whole || p.played < p.size {
			if n < len(dst) {
				break // more is to come
			}
			continue
		}
		p.drop()
		ended++
		o.shift()
	}
	clear(dst[n:])
	if o.fade {
		o.fade = false
		if o.paused {
			audio.Fade(dst[:len(dst)/2], 1, 0)
			clear(dst[len(dst)/2:])
		} else {
			audio.Fade(dst[:len(dst)/2], 0, 1)
		}
	}
	return n > 0, first, ended
}

func (o *playout) shift() {
	copy(o.parts, o.parts[1:])
	o.parts[len(o.parts)-1] = nil
	o.parts = o.parts[:len(o.parts)-1]
}

// pause silences it from the next frame on.
func (o *playout) pause() { o.paused, o.fade = true, true }

// resume goes on where it was paused.
func (o *playout) resume() { o.paused, o.fade = false, true }

// clear leaves out everything.
func (o *playout) clear() {
	for _, p := range o.parts {
		p.cut = p.cut || !p.ended
		p.drop()
	}
	clear(o.parts)
	o.parts, o.paused, o.fade = o.parts[:0], false, false
}

// buffered is how many samples wait that a vendor sent.
func (o *playout) buffered() int {
	n := 0
	for _, p := range o.parts {
		if p.pcm == nil && !p.ended {
			n += p.size - p.played
		}
	}
	return n
}
