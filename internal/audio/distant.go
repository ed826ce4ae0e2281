package audio

import (
	_ "embed"
	"math"
)

// distant tells, while a sound goes on, whether it is who has the telephone, or somebody else in the room, or a
// television. How loud it is doesn't tell: gain and echo control make the same voice 10 dB fainter. So the voice of who
// has the telephone is learned while they talk, and a network like that of words is told how a sound differs from it:
// in its spectrum, its pitch, its loudness, in how clear its pitch is and how slowly it fades. It begins anew with each
// sound. It learned from recordings of people in simulated rooms: `go test -tags train -run DistantTrain`.
type distant struct {
	mind   mind
	own    likeness // of who has the telephone
	now    likeness // of the present sound, lately,
	whole  likeness // and from its beginning
	others int      // frames of somebody else since who has the telephone was heard, or the assistant
	at     int      // the frame that it has heard last; 0 at the beginning of a sound
	last   float64  // dB: how loud that was
	learn  bool     // the present sound may be theirs
	run    int      // frames that are surely not,
	sure   bool     // so many that none of it is
	logit  float32
}

// likeness is how somebody sounds: means over the frames that have a pitch.
type likeness struct {
	n      float64 // frames
	shape  [vadBands]float64
	loud   float64 // dB
	spread float64 // of that, squared
	pitch  float64 // octaves
	clear  float64 // how clear it is
	fade   float64 // dB by which a frame is fainter than the one before, if it is
}

const (
	distantUnits  = 24
	distantInputs = vadInputs + vadBands + 10
	distantLately = 50  // frames
	distantOwn    = 400 // frames: so slowly changes who has the telephone
	distantKnown  = 50  // frames with a pitch, some two seconds of speech: with less of them, nobody else is told
	distantNearer = 8   // dB: who is so much louder than who was taken for the customer is the customer
	distantLoud   = 7   // dB: who is hardly fainter than the customer is as near,
	distantPitch  = 0.5
	distantLeast  = 8   // frames with a pitch before anything is told
	distantRun    = 5   // so many frames must have
	distantSure   = 4   // such a logit, so that a sound is somebody else's,
	distantLess   = 1   // and down to which it stays so
	distantOthers = 200 // frames: if only others are heard for so long while the assistant waits, one of them may have the telephone now
)

//go:embed distant.weights
var distantWeights []byte

var distantNetwork = newGRU(distantInputs, distantUnits, 1).learned(distantWeights)

// add takes a frame; the newest so many count.
func (l *likeness) add(x *[vadInputs]float32, fade, most float64) {
	l.n++
	k := 1 / min(l.n, most)
	for b := range l.shape {
		l.shape[b] += k * (8*float64(x[2*vadBands+b]) - l.shape[b])
	}
	loud := loudOf(x)
	off := loud - l.loud
	l.loud += k * off
	l.spread += k * (off*off*(1-k) - l.spread)
	l.pitch += k * (pitchOf(x) - l.pitch)
	l.clear += k * (float64(x[vadAlike]) - l.clear)
	l.fade += k * (fade - l.fade)
}

// merge takes another sound of the same voice.
func (l *likeness) merge(o *likeness) {
	k := o.n / (l.n + o.n)
	for b := range l.shape {
		l.shape[b] += k * (o.shape[b] - l.shape[b])
	}
	l.loud += k * (o.loud - l.loud)
	l.spread += k * (o.spread - l.spread)
	l.pitch += k * (o.pitch - l.pitch)
	l.clear += k * (o.clear - l.clear)
	l.fade += k * (o.fade - l.fade)
	l.n = min(l.n+o.n, distantOwn)
}

func loudOf(x *[vadInputs]float32) float64 { return 20 * (float64(x[3*vadBands+10]) + 3) }

// pitchOf is the pitch in octaves above 65 Hz.
func pitchOf(x *[vadInputs]float32) float64 { return math.Log2(61 / (61 - 51*float64(x[vadAlike+1]))) }

// Beside reports whether the present sound is certainly not who has the telephone, but somebody else in the room. It is asked
// with each frame. What is heard while it may learn is taken for the customer's, unless it seems to be somebody else's.
func (v *VAD) Beside(learn bool) bool {
	d := &v.distant
	if !learn {
		d.others = 0
	}
	if v.hang == 0 {
		if d.at > 0 {
			d.over()
		}
		return false
	}
	if d.at < v.frames-wordsBefore {
		d.at, d.learn, d.sure, d.run, d.logit = max(v.frames-wordsBefore, 0), true, false, 0, 0
		d.now, d.whole = likeness{}, likeness{}
		clear(d.mind.x)
	}
	d.learn = d.learn && learn
	for d.at < v.frames {
		d.at++
		d.hear(&v.words.before[d.at%wordsBefore])
	}
	d.decide()
	return d.sure
}

// decide is careful: a customer who is not heard is worse than a television that is.
func (d *distant) decide() {
	possible := d.own.n >= distantKnown && d.now.n >= distantLeast && d.now.loud < d.own.loud-distantLoud
	if d.run++; !possible || d.logit < distantSure {
		d.run = 0
	}
	d.sure = possible && (d.run >= distantRun || d.sure && d.logit > distantLess)
	switch {
	case d.sure && d.others > distantOthers: // one of them has the telephone now
		d.own, d.sure = likeness{}, false
	case d.sure:
		d.others++
	case d.now.n >= distantLeast && d.logit < 0:
		d.others = 0
	}
}

// hear takes the inputs of a frame.
func (d *distant) hear(x *[vadInputs]float32) {
	loud := loudOf(x)
	if x[vadAlike] > distantPitch {
		fade := max(d.last-loud, 0)
		d.now.add(x, fade, distantLately)
		d.whole.add(x, fade, distantOwn)
	}
	d.last = loud
	if d.own.n < distantKnown {
		return
	}
	copy(d.mind.x, x[:])
	d.compare(d.mind.x[vadInputs:distantInputs], x)
	d.logit = d.mind.infer()
}

// compare sets the inputs that tell how the present sound differs from the customer's voice.
func (d *distant) compare(to []float32, x *[vadInputs]float32) {
	clear(to)
	own, now := &d.own, &d.now
	within := func(x, most float64) float32 { return float32(max(-most, min(x, most))) }
	rest := to[vadBands:]
	rest[0] = within((loudOf(x)-own.loud)/10, 4)
	rest[1] = within(math.Log1p(now.n)/3, 2)
	rest[2] = within(math.Log1p(own.n)/4, 2)
	if x[vadAlike] > distantPitch {
		rest[3] = within(2*(pitchOf(x)-own.pitch), 3)
	}
	if now.n == 0 {
		return
	}
	for b := range own.shape {
		to[b] = within((now.shape[b]-own.shape[b])/8, 3)
	}
	rest[4] = within((now.loud-own.loud)/10, 4)
	rest[5] = within(2*(now.pitch-own.pitch), 3)
	rest[6] = within(5*(now.clear-own.clear), 3)
	rest[7] = within((math.Sqrt(now.spread)-math.Sqrt(own.spread))/4, 3)
	rest[8] = within(now.fade-own.fade, 3)
	rest[9] = within(2*own.pitch-3, 3)
}

// over ends a sound: it was the customer's, unless it seemed to be somebody else's.
func (d *distant) over() {
	s := &d.whole
	switch {
	case !d.learn || s.n < 5:
	case s.loud > d.own.loud+distantNearer && s.n >= 10 || d.own.n == 0:
		d.own = *s
	case d.own.n < distantKnown && s.loud > d.own.loud-distantNearer || d.own.n >= distantKnown && d.logit < 0:
		d.own.merge(s)
	}
	d.at = 0
}
