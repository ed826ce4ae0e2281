package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// party makes calls in which not only the customer is heard: somebody else in their room, or a television.
type party struct {
	t      *testing.T
	rand   *rand.Rand
	people [][]float64 // each what one person says, at 16 kHz
	others [][]float64 // who says too little to be a customer
	music  [][]float64
	noises [][]float64
}

// newParty takes the recordings that are for a use. A reader of LibriSpeech is a person, and so is a directory of Common
// Voice, but for one.
func newParty(t *testing.T, use string, seed uint64) *party {
	p := &party{t: t, rand: rand.New(rand.NewPCG(seed, 4))}
	said := map[string][]float64{}
	for _, r := range recordings(t, use, "speech", "music", "machines", "office", "babble") {
		most := 25 * 16000
		switch {
		case r.kind == "music":
			p.music = append(p.music, unit(floats(r.pcm[:min(len(r.pcm), most)])))
		case r.kind != "speech":
			p.noises = append(p.noises, unit(floats(r.pcm[:min(len(r.pcm), most)])))
		case still(r.pcm):
			who := r.who
			if dir := filepath.Dir(who); strings.Contains(dir, "CV/CV") && !strings.HasSuffix(dir, "CV00017") {
				who = dir
			} else if strings.Contains(dir, "MycroftAI") { // nobody knows who of them said what
				who = fmt.Sprint(dir, len(said))
			}
			if len(said[who]) > most {
				continue
			}
			pcm := alone(r.pcm[:min(len(r.pcm), most)], Wide)
			x, k := floats(pcm), 1/(32768*activeLevel(pcm, Wide)+1)
			for i := range x {
				x[i] *= k
			}
			said[who] = append(append(said[who], x...), make([]float64, 8000)...)
		}
	}
	for _, who := range sortedKeys(said) {
		p.add(said[who])
	}
	return p
}

func sortedKeys(m map[string][]float64) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// add adds a person.
func (p *party) add(x []float64) {
	if len(x) > 7*16000 {
		p.people = append(p.people, x)
	} else {
		p.others = append(p.others, x)
	}
}

func floats(pcm []int16) []float64 {
	x := make([]float64, len(pcm))
	for i, v := range pcm {
		x[i] = float64(v)
	}
	return x
}

// part is a piece of a sound that begins with sound, so long at most.
func (p *party) part(x []float64, seconds float64) []float64 {
	n := min(int(seconds*16000), len(x))
	at := p.rand.IntN(len(x) - n + 1)
	for at+n < len(x) && math.Abs(x[at]) < 0.02 {
		at++
	}
	return slices.Clone(x[at : at+n])
}

// room is a sound in a room: the direct sound, and echoes that get denser and duller, and fall by 60 dB in so many seconds.
// direct is by how many dB the direct sound is louder than all of these.
func (p *party) room(x []float64, fall, direct float64) []float64 {
	r := p.rand
	out := make([]float64, len(x)+int(fall*16000*0.7))
	echo := make([]float64, len(out))
	energy, dull := 0.0, make([]float64, len(x))
	copy(dull, x)
	part, keep := 0, 0.2+0.4*r.Float64()
	for at := 0.002 + 0.006*r.Float64(); at < 0.7*fall; at += 0.004 * r.Float64() * (0.3 + r.Float64()) {
		if next := int(at / 0.06); next > part {
			part = next
			last := 0.0
			for i, v := range dull {
				last += (1 - keep*0.6) * (v - last)
				dull[i] = last
			}
		}
		k := math.Pow(10, -3*at/fall) * (0.5 + r.Float64())
		energy += k * k
		if r.IntN(2) == 0 {
			k = -k
		}
		late := int(at * 16000)
		for i, v := range dull {
			echo[late+i] += k * v
		}
	}
	k := 1 / math.Sqrt(energy*math.Pow(10, direct/10)+1e-9)
	for i := range echo {
		out[i] = k * echo[i]
		if i < len(x) {
			out[i] += x[i]
		}
	}
	return unitActive(out)
}

// passed is a sound without what is below and above (in Hz; 0 for no limit), and with more or less of the high tones.
func passed(x []float64, low, high, tilt float64) []float64 {
	out := slices.Clone(x)
	pole := func(hz float64) float64 { return 1 - math.Exp(-2*math.Pi*hz/16000) }
	for range 2 {
		if low > 0 {
			last, k := 0.0, pole(low)
			for i, v := range out {
				last += k * (v - last)
				out[i] = v - last
			}
		}
		if high > 0 && high < 7000 {
			last, k := 0.0, pole(high)
			for i, v := range out {
				last += k * (v - last)
				out[i] = last
			}
		}
	}
	last, before := 0.0, 0.0
	for i, v := range out {
		if tilt < 0 {
			out[i], before = 0.7*(v+tilt*before), v
		} else {
			last = (1-tilt)*v + tilt*last
			out[i] = last
		}
	}
	return out
}

// unitActive makes the active level 1.
func unitActive(x []float64) []float64 {
	pcm := make([]int16, len(x))
	for i, v := range x {
		pcm[i] = clip(3000 * v)
	}
	k := 3000 / (32768*activeLevel(pcm, Wide) + 1)
	for i := range x {
		x[i] *= k
	}
	return x
}

// higher is a voice as a child's: everything is faster and higher.
func higher(x []float64, by float64) []float64 {
	out := make([]float64, int(float64(len(x)-1)/by))
	for i := range out {
		at := float64(i) * by
		j, share := int(at), at-math.Floor(at)
		out[i] = x[j]*(1-share) + x[j+1]*share
	}
	return out
}

// The sounds of a call.
const (
	customer  = iota
	handed    // somebody else who has the telephone now
	talk      // somebody else in the room
	broadcast // a television
	soundKinds
)

// probe is a sound in a call, and where it is.
type probe struct {
	kind     int
	gain     float64 // dB, against the customer's first words
	gained   bool    // by a gain that makes the noise fainter, too
	from, to int     // samples at 16 kHz
}

// partyCall is a call with its probes.
type partyCall struct {
	rate   Rate
	pcm    []int16
	near   []bool // whoever has the telephone speaks, by frames
	beside []bool // somebody else does
	probes []probe
}

// again is the customer once more: the gain control, the echo control and the hand that holds the telephone make them
// sound a little different.
func (p *party) again(x []float64) []float64 {
	r := p.rand
	x = passed(x, 0, 0, 0.5*r.Float64()-0.25)
	if r.IntN(3) == 0 { // echo control is heard as a gain that trembles
		hz, deep, at := 1+6*r.Float64(), 0.2+0.4*r.Float64(), 6*r.Float64()
		for i := range x {
			x[i] *= 1 - deep*(0.5+0.5*math.Sin(at+2*math.Pi*hz*float64(i)/16000))
		}
	}
	if r.IntN(4) == 0 { // they have turned away a little
		x = p.room(x, 0.2+0.3*r.Float64(), 2+8*r.Float64())
	}
	return unitActive(x)
}

// sound makes a sound of a kind. A call's own customer is not heard as somebody else.
func (p *party) sound(kind, self int, seconds float64) []float64 {
	r := p.rand
	somebody := func(seconds float64) []float64 {
		if len(p.others) > 0 && r.IntN(6) == 0 {
			return p.part(p.others[r.IntN(len(p.others))], seconds)
		}
		other := r.IntN(len(p.people) - 1)
		if other >= self {
			other++
		}
		return p.part(p.people[other], seconds)
	}
	switch kind {
	case customer:
		return p.again(p.part(p.people[self], seconds))
	case handed:
		return unitActive(passed(somebody(seconds), 0, 0, 0.5*r.Float64()-0.25))
	}
	x := somebody(seconds)
	direct := -8 + 11*r.Float64()
	if kind == talk {
		if r.IntN(5) == 0 {
			x = higher(x, 1.1+0.25*r.Float64())
		}
		return p.room(passed(x, 60+150*r.Float64()*float64(r.IntN(2)), 2500+5000*r.Float64(), 0.7*r.Float64()-0.2), 0.2+0.6*r.Float64(), direct)
	}
	if r.IntN(3) == 0 {
		k := 0.3 + 0.7*r.Float64()
		for i, v := range somebody(seconds) {
			if i < len(x) {
				x[i] += k * v
			}
		}
	}
	if len(p.music) > 0 && r.IntN(4) > 0 {
		k := Gain(-18 + 18*r.Float64())
		for i, v := range p.part(p.music[r.IntN(len(p.music))], seconds) {
			if i < len(x) {
				x[i] += k * v
			}
		}
	}
	x = unitActive(x)
	for i, v := range x { // broadcasters press everything to the same loudness
		x[i] = v / (0.5 + 0.5*math.Abs(v))
	}
	return p.room(passed(x, 100+250*r.Float64(), 2500+5000*r.Float64(), 0.7*r.Float64()-0.35), 0.2+0.6*r.Float64(), direct)
}

// call makes a call: the customer speaks for some seconds, and then sounds follow, each after a pause.
func (p *party) call(n int) partyCall {
	r := p.rand
	c := partyCall{rate: []Rate{Narrow, Narrow, Wide}[r.IntN(3)]}
	self := r.IntN(len(p.people))
	pause := func(least, more float64) []float64 { return make([]float64, int(16000*(least+more*r.Float64()))) }
	var x, near, beside []float64
	put := func(part []float64, k float64, held bool) {
		for _, v := range part {
			x = append(x, k*v)
			if held {
				near, beside = append(near, k*v), append(beside, 0)
			} else {
				near, beside = append(near, 0), append(beside, k*v)
			}
		}
	}
	put(pause(0.3, 1), 1, true)
	put(unitActive(p.part(p.people[self], 2.5+7*r.Float64()*r.Float64())), 1, true)
	put(pause(0.6, 1), 1, true)
	for range n {
		pr := probe{kind: []int{customer, customer, customer, customer, handed, talk, talk, broadcast, broadcast}[r.IntN(9)]}
		switch pr.kind {
		case customer:
			pr.gain = -15 + 20*r.Float64()
		case handed:
			pr.gain = -6 + 11*r.Float64()
		default:
			pr.gain = -25 + 15*r.Float64()
		}
		part := p.sound(pr.kind, self, 0.5+2.5*r.Float64())
		pr.from = len(x)
		put(part, Gain(pr.gain), pr.kind <= handed)
		pr.to = len(x)
		pr.gained = pr.kind <= handed && pr.gain < 0 && r.IntN(3) > 0
		if pr.kind <= handed && r.IntN(8) == 0 { // a television is heard beside it
			k := Gain(min(pr.gain-8, -12) - 8*r.Float64())
			at := max(pr.from-r.IntN(24000), 0)
			for i, v := range p.sound(broadcast, self, 1+3*r.Float64()) {
				if at+i < len(x) {
					x[at+i], beside[at+i] = x[at+i]+k*v, beside[at+i]+k*v
				}
			}
		}
		c.probes = append(c.probes, pr)
		put(pause(0.5, 1), 1, true)
	}
	p.line(&c, x, near, beside)
	return c
}

// line sends a call over a line that has some noise.
func (p *party) line(c *partyCall, x, near, beside []float64) {
	r := p.rand
	if r.IntN(4) == 0 { // a telephone that stands on the table
		wet := p.room(x, 0.2+0.3*r.Float64(), 3*r.Float64()+1)
		x = wet[:len(x)]
	}
	snr := 10 + 10*r.Float64()
	if r.IntN(2) == 0 {
		snr = 20 + 40*r.Float64()
	}
	noise := make([]float64, len(x))
	if len(p.noises) > 0 && r.IntN(3) > 0 {
		from := p.noises[r.IntN(len(p.noises))]
		for i, at, k := 0, r.IntN(len(from)), Gain(-snr); i < len(x); i++ {
			noise[i] = k * from[(at+i)%len(from)]
		}
	} else {
		for i, k := 0, Gain(-snr); i < len(x); i++ {
			noise[i] = k * r.NormFloat64()
		}
	}
	for _, pr := range c.probes {
		for i := max(pr.from-6000, 0); pr.gained && i < min(pr.to+3000, len(x)); i++ {
			noise[i] *= Gain(pr.gain)
		}
	}
	for i, v := range noise {
		x[i] += v
	}
	low, high := 0.0, 0.0
	if r.IntN(2) == 0 {
		low, high = 100+250*r.Float64(), 3000+3000*r.Float64()
	}
	x = passed(x, low, high, 0.6*r.Float64()-0.3)
	loud := 32768 * Gain(-34+18*r.Float64())
	pcm := make([]int16, len(x)/320*320)
	for i := range pcm {
		pcm[i] = clip(loud * x[i])
	}
	c.pcm = pcm
	if c.rate == Narrow {
		c.pcm = resampled(p.t, pcm, 16000, 8000)
	}
	if c.rate == Narrow || r.IntN(3) == 0 {
		c.pcm = DecodeULaw(nil, EncodeULaw(nil, c.pcm))
	}
	c.near, c.beside = active(near, len(pcm)/320), active(beside, len(pcm)/320)
}

// active says which frames are less than 20 dB below the loudest around.
func active(x []float64, n int) []bool {
	out, most := make([]bool, n), make([]float64, n)
	for i := range out {
		for _, v := range x[i*320 : (i+1)*320] {
			most[i] += v * v
		}
	}
	for i := range out {
		loudest := slices.Max(most[max(i-25, 0):min(i+25, n)])
		out[i] = most[i] > loudest/100 && most[i] > 1e-4
	}
	return out
}
