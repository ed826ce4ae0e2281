package audio

import (
	"math"
	"slices"
)

// Echo takes the echo of what the far end was sent out of what comes back from it. While there is none it does next to
// nothing. Sound that comes back while something is being said is compared with what was sent: their cross-correlation
// with the phase transform (Knapp and Carter, "The generalized correlation method for estimation of time delay", 1976),
// added up over a few frames, has one sharp peak where there is an echo, and tells its delay, up to half a second. From
// then on an adaptive filter imitates the echo's way, and what it makes of what was sent is subtracted. It has 80 ms, and
// more where it finds the tail of a room, 320 ms at most. It changes nothing until it has shown that it is one of an echo.
// The filter works in the frequency domain in partitions (Soo and Pang, "Multidelay block frequency domain adaptive filter",
// 1990); how far each frame changes it is decided by a Kalman filter for each frequency (Enzner and Vary, 2006; for
// partitions Kuech, Mabande and Enzner, 2014), so that it learns fast and learns nothing from the far end's own voice.
// A frame with no more in it than what usually remains (remnant.go) is turned down.
//
// Sent and Clean are called by one goroutine.
type Echo struct {
	rate  Rate
	sent  echoTape // what the far end was sent lately
	heard echoTape // what it has said lately, by the clock of what was sent
	lag   int      // the least that it was behind of what was sent lately
	seen  int      // frames since that was looked at
	said  int      // frames of sound that were sent

	loud   [echoFrames]float32 // energy of the frames that were sent
	search *echoSearch         // nil: nothing has come back yet
	filter *echoFilter         // nil: there is no echo
	trial  *echoFilter         // of what may be an echo: it learns, but changes nothing yet
	known  bool                // there was one
}

const (
	echoSaid   = 60  // frames, after which an echo would have been found if there were one
	echoFrames = 27  // that what was sent may still be heard
	maxEcho    = 500 // ms of delay
	echoBefore = 8   // ms: a path's strongest sound is not its first

	echoParts   = 2     // partitions of two frames each that a filter begins with,
	maxParts    = 8     // and that it may have where there is a tail: 320 ms
	echoGrows   = 2     // frames from one to the next
	echoShrinks = 100   // frames, after which the last is given up that has nothing
	echoRoom    = 0.01  // so much of the way there must be in the last partition, or may be, before there is one more
	echoTail    = 1e-3  // what is less of the way, in its last partition, is no tail
	echoBegin   = 1     // how far a filter may be wrong at most that has learned nothing, as power,
	echoDoubt   = 1.5   // and how far in a band, of what has come back there
	echoFloor   = 0.4   // so much of an error is never taken for the filter's, as it comes from other frequencies too
	echoKeep    = 0.998 // of the way that is known, from frame to frame
	echoLast    = 4     // frames of which an echo must be less when it is found:
	echoProof   = 0.5   // so much may be left at first of what is an echo
	echoHope    = 0.8   // and so much while it may still become one
	echoPatient = 25    // frames in which a filter must have shown that
	echoWaits   = 100   // and in which it waits for it where nothing is said
	echoSame    = 6     // ms: a delay that differs by less is the same
	echoYoung   = 25    // frames until it may do no harm,
	echoWrong   = 1.2   // times what came: a young filter that makes so much of it knows another way
	echoTrial   = 50    // until it must be good for something,
	echoOld     = 75    // and until that may be a voice that is louder than the echo
	echoAlone   = 10    // times what is expected to remain of the echo is more than that,
	minEcho     = 0.06  // as is so much of the echo
	echoMasked  = 0.2   // what is left of a frame that is mostly an echo
	echoGate    = 0.1   // the gain of what is an echo alone,
	echoHang    = 5     // frames after a voice,
	echoVoice   = 4     // which is so many times as loud as the line is when it is stillest
	echoForget  = 1.005 // from frame to frame: 1 dB a second
	echoSilence = 3000  // energy of a sample, -55 dBFS: what is fainter isn't looked at
)

// NewEcho begins a call.
func NewEcho(rate Rate) *Echo {
	n := int(rate) / 8000
	return &Echo{rate: rate, sent: echoTape{codes: make([]byte, n*8192)}, heard: echoTape{codes: make([]byte, n*2048)}}
}

// Sent takes a frame that the far end is going to hear.
func (e *Echo) Sent(f Frame) {
	l := sumOf(f) / float32(len(f))
	if e.loud[e.sent.end/len(f)%echoFrames] = l; l > echoSilence {
		e.said++
	}
	e.sent.put(f)
}

// Clean takes what comes back out of a frame that was heard. alone reports that the frame holds nothing else, doubt that
// it may well be so: only at the beginning of a call, as later it would be known.
func (e *Echo) Clean(f Frame) (alone, doubt bool) {
	e.align(len(f))
	at := e.heard.end
	e.heard.put(f)
	if e.filter != nil {
		alone = e.filter.clean(e, at, f)
		if e.filter.failed() {
			e.filter = nil
		}
		return alone, false
	}
	sent, came := slices.Max(e.loud[:]), sumOf(f)/float32(len(f))
	if sent < echoSilence || came < echoSilence || came > 2*sent {
		if e.search != nil {
			e.search.idle()
		}
		if e.trial != nil { // which must not miss a frame
			if e.trial.try(e, at, f); e.trial.frames > echoWaits {
				e.trial = nil
			}
		}
		return false, false
	}
	return e.look(at, f)
}

// align sees to it that what is heard now is compared with what is sent now. Frames come with the jitter of the
// network, but none is left out, unless the far end sends nothing while it is silent.
func (e *Echo) align(n int) {
	behind := e.sent.end - n - e.heard.end
	if e.seen == 0 || behind < e.lag {
		e.lag = behind
	}
	if e.seen++; e.heard.end == 0 || e.lag < -5*n || e.seen == 50 && e.lag > 3*n {
		e.heard.end, e.filter, e.trial, e.seen = max(e.sent.end-n, 0), nil, nil, 0
	} else if e.seen == 50 {
		e.seen = 0
	}
}

// look searches for an echo, and takes it out from here on if there is one.
func (e *Echo) look(at int, f Frame) (alone, doubt bool) {
	if e.search == nil {
		e.search = &echoSearch{}
		if e.said >= echoSaid && !e.known { // nothing came back of so much: if this is an echo, it is one that has begun meanwhile
			e.search.tries = searchTries
		}
	}
	delay, found, doubt := e.search.add(e, at)
	doubt = doubt && e.said < echoSaid
	n := len(f)
	switch t := e.trial; {
	case found && (t == nil || max(delay-t.found, t.found-delay) > int(e.rate)*echoSame/1000):
		first := min(len(e.heard.codes)/n-1, at/n)
		e.trial = newEchoFilter(e.rate, delay)
		e.trial.doubt(e, at, first)
		for back := first; back >= 0; back-- { // it learns from what has been heard already
			e.heard.take(e.trial.spare, at-back*n)
			alone = e.trial.try(e, at-back*n, e.trial.spare)
		}
	case t == nil:
		return false, doubt
	default:
		alone = t.try(e, at, f)
	}
	if e.trial.tested < echoProof*e.trial.proof { // it did not come by chance
		e.search.rest()
		copy(f, e.trial.spare)
		e.filter, e.trial, e.search, e.known = e.trial, nil, nil, true
		return alone, false
	}
	doubt = doubt || e.said < echoSaid && e.trial.tested < echoHope*e.trial.proof
	if e.trial.frames > echoPatient {
		e.trial = nil
	}
	return false, doubt
}

// echoTape keeps the newest samples of a call, as µ-law.
type echoTape struct {
	codes []byte
	end   int // samples so far
}

func (t *echoTape) put(f Frame) {
	for i, s := range f {
		t.codes[(t.end+i)&(len(t.codes)-1)] = ulawCode[(int(s)+1<<15)>>2]
	}
	t.end += len(f)
}

// take gets samples from a time on; what is not there is silence.
func (t *echoTape) take(to []int16, from int) {
	for i := range to {
		to[i] = 0
		if at := from + i; at >= max(t.end-len(t.codes), 0) && at < t.end {
			to[i] = ulawPCM[t.codes[at&(len(t.codes)-1)]]
		}
	}
}

func sumOf(f Frame) float32 {
	sum := float32(0)
	for _, s := range f {
		sum += float32(s) * float32(s)
	}
	return sum
}

// echoSearch looks for an echo's delay, at 4 kHz.
type echoSearch struct {
	cross  *crossed // of the spectra of what was sent and heard, over the last frames; nil between two looks
	frames int      // in it
	tries  int      // in the call
	still  int      // frames since something came
}

type crossed [searchSize/2 + 1]complex64

const (
	searchRate   = 4000
	searchSize   = 4096
	searchWindow = 256  // 64 ms of what was heard are compared at a time
	searchFade   = 0.85 // of what was found, from frame to frame
	searchSharp  = 11   // times the usual, a peak is an echo's
	searchVague  = 6    // and above that, it may be one
	searchFirst  = 2    // frames that tell nothing yet
	searchLong   = 25   // and so many are given at most
	searchIdle   = 10   // frames without a sound, after which what was compared is forgotten
	searchTries  = 60   // frames that are looked at; from then on, one in ten
)

// searching is the room that a search takes for the length of a frame.
type searching struct {
	fft  *fft
	x    []float32
	a, b []complex64
	wave []int16

	window [searchWindow]float32 // without it, the edges of what is compared would look alike
}

func newSearching() *searching {
	s := &searching{fft: newFFT(searchSize), x: make([]float32, searchSize), wave: make([]int16, searchSize*4),
		a: make([]complex64, searchSize/2+1), b: make([]complex64, searchSize/2+1)}
	for i := range s.window {
		s.window[i] = float32(0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/searchWindow))
	}
	return s
}

// What a search needs is lent, as most calls never need it: searches for a frame, crosses while something comes back.
// These are no sync.Pools, which forget what they have when garbage is collected, and now and then under the race detector:
// a frame would allocate it anew.
var (
	searches = make(chan *searching, 16)
	crosses  = make(chan *crossed, 64)
)

func borrow[T any](spare <-chan *T, make func() *T) *T {
	select {
	case x := <-spare:
		return x
	default:
		return make()
	}
}

func giveBack[T any](spare chan<- *T, x *T) {
	select {
	case spare <- x:
	default: // there are enough
	}
}

// idle takes a frame in which nothing came. A word has pauses, and a path is the same after them.
func (s *echoSearch) idle() {
	if s.still++; s.still > searchIdle {
		s.rest()
	}
}

// rest forgets what was compared: nothing more has come for now.
func (s *echoSearch) rest() {
	if s.cross != nil {
		clear(s.cross[:])
		giveBack(crosses, s.cross)
		s.cross, s.frames = nil, 0
	}
}

// add compares the frame that was heard at a time, and those before it. delay is in samples of the call.
func (s *echoSearch) add(e *Echo, at int) (delay int, found, doubt bool) {
	s.still = 0
	if s.tries++; s.tries > searchTries && s.tries%10 != 0 {
		return 0, false, false
	}
	if s.cross == nil {
		s.cross = borrow(crosses, func() *crossed { return new(crossed) })
	}
	w := borrow(searches, newSearching)
	defer giveBack(searches, w)
	step, end := int(e.rate)/searchRate, at+e.rate.FrameSize()
	const most = maxEcho * searchRate / 1000
	clear(w.x)
	w.sample(w.x[:searchWindow], &e.heard, end, step)
	for i, k := range w.window {
		w.x[i] *= k
	}
	w.fft.forward(w.a, w.x)
	clear(w.x)
	w.sample(w.x[:most+searchWindow], &e.sent, end, step)
	w.fft.forward(w.b, w.x)
	for k := range s.cross {
		c := w.a[k] * conj(w.b[k])
		s.cross[k] = s.cross[k]*searchFade + c
		size := float32(math.Sqrt(float64(power(s.cross[k])))) + 1
		w.a[k] = s.cross[k] * complex(1/size, 0)
	}
	s.frames++
	w.fft.inverse(w.x, w.a)
	// What was heard began most samples after what was sent: a delay of d has its peak at d-most.
	peak, sum := 0, float32(0)
	value := func(d int) float32 { return abs(w.x[(d-most)&(searchSize-1)]) }
	for d := range most {
		sum += value(d)
		if value(d) > value(peak) {
			peak = d
		}
	}
	sharp := value(peak) * most / (sum + 1e-9)
	found = sharp >= searchSharp && s.frames >= searchFirst
	return peak * step, found, s.frames <= searchFirst || sharp > searchVague && s.frames <= searchLong
}

// sample takes samples that end at a time, at 4 kHz.
func (w *searching) sample(to []float32, from *echoTape, end, step int) {
	wave := w.wave[:len(to)*step]
	from.take(wave, end-len(wave))
	for i := range to {
		for _, s := range wave[i*step : (i+1)*step] {
			to[i] += float32(s)
		}
	}
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

// echoFilter imitates the way of an echo.
type echoFilter struct {
	fft     *fft
	frame   int
	delay   int                         // of its first tap, in samples
	found   int                         // of the sound by which it was found
	sent    [2*maxParts - 1][]complex64 // spectra of what was sent, the newest first
	way     [maxParts][]complex64       // the filter
	unsure  [maxParts][]float32         // how far it may be wrong, as power
	other   []float32                   // power of what is no echo
	parts   int                         // that are in use
	wave    []int16
	spare   []int16 // a frame, while it is on trial
	x, each []float32
	y, gain []complex64
	err     []float32

	rest          *remnant
	came, left    float32 // energy of the last frame, and of what is left of it
	proof, tested float32 // the same, over the last frames of a trial
	before, after float32 // energy of what came, and of what was left of it, lately
	frames        int
	voice         int     // frames since there was something else than an echo
	still         float32 // energy of what is left of the stillest frame lately
	gate          float64
}

// newEchoFilter has learned nothing.
func newEchoFilter(rate Rate, delay int) *echoFilter {
	n := int(rate) / 8000 * 512
	e := &echoFilter{fft: newFFT(n), frame: rate.FrameSize(), delay: max(delay-int(rate)*echoBefore/1000, 0), found: delay,
		wave: make([]int16, n), spare: make([]int16, rate.FrameSize()), other: make([]float32, n/2+1),
		x: make([]float32, n), each: make([]float32, n/2+1),
		y: make([]complex64, n/2+1), gain: make([]complex64, n/2+1), err: make([]float32, rate.FrameSize()),
		gate: 1, voice: echoHang, parts: echoParts, rest: newRemnant(n)}
	for i := range e.sent {
		e.sent[i] = make([]complex64, n/2+1)
	}
	for b := range e.way {
		e.way[b], e.unsure[b] = make([]complex64, n/2+1), make([]float32, n/2+1)
	}
	return e
}

// doubt says how far a filter may be wrong that has learned nothing: by as much as has come back, in each band, of what was
// sent. A filter of a faint echo that believed it could be wrong by more would follow every noise at first, and forget the
// way again.
func (e *echoFilter) doubt(of *Echo, at, frames int) {
	var came, sent [restBands]float32
	for back := 0; back <= frames; back += len(e.x) / e.frame {
		end := at + e.frame - back*e.frame
		e.look(&of.heard, end)
		e.rest.add(&came, e.y)
		e.look(&of.sent, end-e.found)
		e.rest.add(&sent, e.y)
	}
	for b := range came {
		most := min(echoBegin, echoDoubt*(came[b]+1)/(sent[b]+1))
		for _, unsure := range e.unsure[:echoParts] {
			for k := e.rest.edges[b]; k < e.rest.edges[b+1]; k++ {
				unsure[k] = most
			}
		}
	}
}

// look takes the spectrum of what ends at a time, under a window.
func (e *echoFilter) look(tape *echoTape, end int) {
	n := len(e.wave)
	tape.take(e.wave, end-n)
	for i, s := range e.wave {
		e.x[i] = float32(s) * float32(min(i+1, n-i)) / float32(n/2)
	}
	e.fft.forward(e.y, e.x)
}

// try cleans a copy of a frame and keeps account of what that was worth lately.
func (e *echoFilter) try(of *Echo, at int, f Frame) (alone bool) {
	copy(e.spare, f)
	alone = e.clean(of, at, e.spare)
	e.proof += (e.came - e.proof) / echoLast
	e.tested += (e.left - e.tested) / echoLast
	return alone
}

// clean subtracts the echo from the frame that was heard at a time, and learns from what remains.
func (e *echoFilter) clean(of *Echo, at int, f Frame) (alone bool) {
	n := len(e.x)
	newest := e.sent[len(e.sent)-1]
	copy(e.sent[1:], e.sent[:])
	e.sent[0] = newest
	of.sent.take(e.wave, at+e.frame-e.delay-n)
	for i, s := range e.wave {
		e.x[i] = float32(s)
	}
	e.fft.forward(newest, e.x)

	clear(e.y)
	for b, way := range e.way[:e.parts] {
		for k, x := range e.sent[2*b] {
			e.y[k] += way[k] * x
		}
	}
	e.fft.inverse(e.x, e.y)
	came, echo, left := sumOf(f), float32(0), float32(0)
	for i, y := range e.x[n-e.frame:] {
		e.err[i] = float32(f[i]) - y
		echo, left = echo+y*y, left+e.err[i]*e.err[i]
	}
	e.came, e.left = came, left
	remains, near, rest := e.learn()
	e.frames++
	e.fit()
	if echo > 0.01*came {
		e.before += 0.1 * (came - e.before)
		e.after += 0.1 * (left - e.after)
	}
	switch {
	case left < came:
		for i, v := range e.err {
			f[i] = clip32(v)
		}
	case e.frames > echoYoung:
		remains = 0 // it knows nothing of this
	}
	alone = min(left, came) < max(echoAlone*remains, minEcho*echo) || near < max(rest, minEcho*echo)
	e.turnDown(f, alone, left)
	return alone || left < echoMasked*came // nobody who speaks is so much fainter than the echo of us
}

// learn changes the filter by the error, and says how much energy of the echo it expected to find in that; how much of the error
// is more than what usually remains (near), and how much is not (rest).
func (e *echoFilter) learn() (remains, near, rest float32) {
	n := len(e.x)
	share := float32(e.frame) / float32(n) // of the spectrum's samples, so many are known to be wrong
	clear(e.x[:n-e.frame])
	copy(e.x[n-e.frame:], e.err)
	e.fft.forward(e.gain, e.x)
	near, rest = e.rest.weigh(e.gain, e.y, share)
	for k, err := range e.gain {
		expected := float32(0)
		for b := range e.parts {
			expected += e.unsure[b][k] * power(e.sent[2*b][k])
		}
		p := power(err)
		e.other[k] += 0.15 * (max(p-share*expected, echoFloor*p) - e.other[k])
		e.each[k] = 1 / (expected + e.other[k]/share + 1)
		e.gain[k] = err * complex(e.each[k], 0)
		remains += share * expected
	}
	for b := range e.parts {
		e.follow(b, share)
	}
	scale := 2 / float32(n)
	return scale * remains, scale * near, scale * rest
}

// follow changes a partition, which has no taps beyond its two frames.
func (e *echoFilter) follow(b int, share float32) {
	way, unsure, sent := e.way[b], e.unsure[b], e.sent[2*b]
	for k, g := range e.gain {
		e.y[k] = g * conj(sent[k]) * complex(unsure[k], 0)
	}
	e.fft.inverse(e.x, e.y)
	clear(e.x[2*e.frame:])
	e.fft.forward(e.y, e.x)
	for k, change := range e.y {
		way[k] += change
		known := share * unsure[k] * power(sent[k]) * e.each[k]
		unsure[k] = echoKeep*(1-known)*unsure[k] + (1-echoKeep)*power(way[k])
	}
}

// fit adds a partition where the last has found a tail, and gives it up where it has found none. A partition is believed to
// have found something if that is more than what it may be wrong by. What comes after it is a little fainter.
func (e *echoFilter) fit() {
	grows, shrinks := e.parts < maxParts && e.frames%echoGrows == 0, e.parts > echoParts && e.frames%echoShrinks == 0
	if !grows && !shrinks {
		return
	}
	all, last, unsure := float32(0), float32(0), float32(0)
	for b, way := range e.way[:e.parts] {
		last, unsure = 0, 0
		for k, w := range way {
			last, unsure = last+power(w), unsure+e.unsure[b][k]
		}
		all += last
	}
	switch has := last > echoTail*all; {
	case grows && has && last+unsure > echoRoom*all && last > 0.1*unsure:
		clear(e.way[e.parts])
		for k, w := range e.way[e.parts-1] {
			e.unsure[e.parts][k] = 0.7 * (power(w) + e.unsure[e.parts-1][k])
		}
		e.parts++
	case shrinks && !has:
		e.parts--
	}
}

// turnDown makes a frame fainter that holds nothing but what is left of an echo; not just after a voice. The noise of the
// line in a pause of what is sent is no echo, but no voice either: taken for one, it would let the echo's next beginning
// through, and most of what is heard of an echo was that.
func (e *echoFilter) turnDown(f Frame, alone bool, left float32) {
	if e.still *= echoForget; left < e.still || e.frames == 1 {
		e.still = left + 1
	}
	if e.voice++; !alone && left > max(echoSilence*float32(len(f)), echoVoice*e.still) {
		e.voice = 0
	}
	was := e.gate
	if e.gate = 1; alone && e.voice > echoHang {
		e.gate = echoGate
	}
	if was == 1 && e.gate == 1 {
		return
	}
	quarter := len(f) / 4
	Fade(f[:quarter], was, e.gate)
	Fade(f[quarter:], e.gate, e.gate)
}

// failed reports whether it does more harm than good: there is no echo any more, or it comes another way.
func (e *echoFilter) failed() bool {
	if e.frames < echoOld {
		return e.frames > echoTrial && e.after > 0.6*e.before || e.frames > echoYoung && e.after > echoWrong*e.before
	}
	return e.after > e.before
}
