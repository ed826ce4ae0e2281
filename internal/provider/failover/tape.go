package failover

import (
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// tapeTime is how much sound is kept for a recognizer that may have to take over: of longer utterances the end.
const tapeTime = 15 * time.Second

// tape keeps the sound of the utterances whose texts have not come, as μ-law: an octet a sample.
type tape struct {
	rate       audio.Rate
	ring       []byte
	begin, end int64 // positions in all that was written; what is between is there
	marks      []mark
	scratch    []byte
}

// mark is the end of an utterance.
type mark struct {
	pos int64
	at  time.Time
}

func newTape(rate audio.Rate) *tape { return &tape{rate: rate} }

func (t *tape) write(pcm []int16) {
	if t.ring == nil { // a recognizer that nobody talks to needs none
		t.ring = make([]byte, int(tapeTime*time.Duration(t.rate)/time.Second))
		t.scratch = make([]byte, 0, int(t.rate)/50)
	}
	for len(pcm) > 0 {
		n := min(len(pcm), cap(t.scratch))
		codes := audio.EncodeULaw(t.scratch[:0], pcm[:n])
		pcm = pcm[n:]
		for len(codes) > 0 {
			k := copy(t.ring[t.end%int64(len(t.ring)):], codes)
			codes, t.end = codes[k:], t.end+int64(k)
		}
	}
	t.begin = max(t.begin, t.end-int64(len(t.ring)))
}

// ended ends an utterance.
func (t *tape) ended(now time.Time) { t.marks = append(t.marks, mark{t.end, now}) }

// done forgets the oldest utterance that has ended.
func (t *tape) done() {
	if len(t.marks) == 0 {
		return
	}
	t.begin = max(t.begin, t.marks[0].pos)
	t.marks = append(t.marks[:0], t.marks[1:]...)
	if t.begin == t.end && len(t.marks) == 0 {
		t.begin, t.end = 0, 0 // the ring's first pages are there already
	}
}

// replay gives a recognizer all that is there.
func (t *tape) replay(write func(pcm []int16), end func()) {
	pcm, pos := make([]int16, 0, int(t.rate)/50), t.begin
	until := func(to int64) {
		for pos < to {
			at := pos % int64(len(t.ring))
			n := min(int64(cap(pcm)), to-pos, int64(len(t.ring))-at)
			write(audio.DecodeULaw(pcm[:0], t.ring[at:at+n]))
			pos += n
		}
	}
	for _, m := range t.marks {
		until(m.pos)
		end()
	}
	until(t.end)
}

// gate lets through what is speech, with a little before it, until the utterance's end: for a recognizer that takes
// utterances where all that is heard is written.
type gate struct {
	vad    *audio.VAD
	rate   audio.Rate
	open   bool
	before []int16 // the newest sound that was not let through
}

// gateBefore is how much before the speech is let through.
const gateBefore = 300 * time.Millisecond

func newGate(rate audio.Rate) *gate {
	return &gate{vad: audio.NewVAD(rate), rate: rate,
		before: make([]int16, 0, int(gateBefore*time.Duration(rate)/time.Second))}
}

func (g *gate) write(pcm []int16, to ai.Recognition) {
	frame := int(audio.FrameTime * time.Duration(g.rate) / time.Second)
	for len(pcm) > 0 {
		n := min(frame, len(pcm))
		if n == frame {
			if speech, _ := g.vad.Detect(audio.Frame(pcm[:n])); speech && !g.open {
				g.open = true
				to.Write(g.before)
				g.before = g.before[:0]
			}
		}
		if g.open {
			to.Write(pcm[:n])
		} else {
			if over := len(g.before) + n - cap(g.before); over > 0 {
				g.before = g.before[:copy(g.before, g.before[over:])]
			}
			g.before = append(g.before, pcm[:n]...)
		}
		pcm = pcm[n:]
	}
}
