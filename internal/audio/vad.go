package audio

import "math"

// VAD says which frames hold speech. It compares the power in 14 bands with what each falls to (its minima over the
// last seconds), with what it usually is and with that of the other bands, looks how these differences are spread
// lately, how clear a pitch the sound has, how suddenly it came, how much fainter it is than who speaks nearest, and
// whether its tones and its pitch stay where they were, as those of music do, and has two small recurrent neural networks
// infer (vad_net.go): so it hears how a sound goes on, and gets less sensitive in noise that is itself restless, as that of
// other people. The networks learned from recordings of people and of noises, which testdata/real.tsv lists. Sound that
// it takes for speech must soon show a pitch, which breath and rustling paper don't have. On a line with noise a doubtful
// frame counts only if the next one is speech, too, and in music more is wanted.
//
// What may be speech is to be heard from its first frame on, but little of that is certain. The first network has a second
// opinion, of which coughs, doors and dogs were to be kept out at any price: Sure adds up its logits until the odds are
// enough, once there was a pitch.
type VAD struct {
	fft      *fft
	window   []float32
	history  []float32
	x        []float32
	spectrum []complex64
	edges    [vadBands + 1]int // of the bands, in values of the spectrum

	now    [vadBands]float64    // power of this frame
	upper  [vadBands]float64    // and that of the upper half of each band
	power  [vadBands]float64    // smoothed
	usual  [vadBands]float64    // dB, over seconds
	least  [2][vadBands]float64 // minima of power, of this stretch and of the one before
	loud   float64              // dB
	floor  float64              // dB of the minima
	peak   float64              // dB of the loudest frame lately
	scores [72]float64          // how often each score was seen lately, in steps of 0.25 dB
	last   float64              // score
	frames int

	mind   mind      // of the first network,
	second mind      // and of the second
	hang   int       // frames until the speech is over
	run    int       // voiced frames of it
	on     bool      // the last frame was one
	hint   bool      // it would have been, were it certain that there is speech
	hush   int       // frames without a sound until now
	broke  bool      // the present sound came after a while without any
	sure   float32   // evidence that there is
	tone   int       // frames of it that have a pitch
	bare   int       // frames that the network took for speech since one had a pitch
	wave   []float32 // for the pitch, at 4 kHz
	near   float64   // dB: how loud the nearest speaker is, or what else is loudest
	fine   [vadLater + 1]lines
	sung   tune

	words   words
	cadence cadence
}

// lines are what sticks out of the spectrum of a frame; -127 to 127, as the memory of calls is counted in kilobytes.
type lines [vadFine]int8

// set takes a frame's spectrum, of 256 values for 8 kHz.
func (a *lines) set(spectrum []complex64) {
	const first = 5
	var m [vadFine + 4]float32
	var out [vadFine]float32
	for i := range m {
		m[i] = float32(math.Sqrt(math.Sqrt(float64(power(spectrum[first-2+i])))))
	}
	most := float32(1e-3)
	for i := range out {
		out[i] = m[i+2] - 0.5*(m[i]+m[i+4])
		most = max(most, out[i], -out[i])
	}
	for i, x := range out {
		a[i] = int8(x / most * 127)
	}
}

// like is how alike two are, from -1 to 0.7: what is more alike than most music says no more.
func (a *lines) like(b *lines) float32 {
	var both, one, other int32
	for i := range a {
		x, y := int32(a[i]), int32(b[i])
		both, one, other = both+x*y, one+x*x, other+y*y
	}
	return min(float32(both)/float32(math.Sqrt(max(float64(one)*float64(other), 1))), 0.7)
}

const (
	vadBands   = 14
	vadBasic   = 3*vadBands + 14         // inputs, of which the network of words knows,
	vadTuned   = vadBasic + 8            // and those that tell music: all of the first network,
	vadInputs  = vadTuned + vadBands + 2 // and of the second
	vadHang    = 13                      // frames, 260 ms: bridges the pauses within words and between them,
	vadHiss    = 6                       // so many after sounds without a pitch
	vadFaint   = 22.0                    // that are so many dB fainter than who speaks nearest, as words may end with a long hiss,
	vadBrief   = 2                       // and so many after a single frame
	vadStretch = 60                      // frames

	vadShort = 3     // a note's pitch is compared with that of so many frames before, and its tones,
	vadFine  = 120   // values of the spectrum that are compared with those of
	vadSoon  = 6     // so many frames before,
	vadLater = 12    // and of so many
	vadFade  = 0.005 // dB a frame, 0.25 a second: so slowly it is forgotten how loud the nearest speaker was
	vadCome  = 0.15  // and so fast it is learned: a click is no speaker

	vadBare    = 10 // frames, 200 ms: so long may speech be without a pitch
	vadWhisper = 60 // and what goes on for longer than that is a whisper, or on a line that hides the pitch
	vadPitch   = 0.5
	vadVoice   = 0.8            // and with such a pitch a sound on a quiet line may be a voice,
	vadHush    = 25             // if it comes after so many frames without any
	vadAlike   = 3*vadBands + 7 // the input that it is compared with

	vadFirst     = 0.6  // so much of the logit is the first network's
	vadThreshold = 0    // logit
	vadDoubt     = 1.2  // in the first frames of a stream, when a noise that was always there seems new
	vadNew       = 8    // frames
	vadMusic     = 1.5  // so much more in music: where tones have stayed where they were, for seconds, twice as much as
	vadTonal     = 0.16 // they do in speech and other noises
	vadSilent    = -2   // for speech that begins on a line without any noise,
	vadStill     = 13   // dB: whose silence is below -70 dBFS
	vadQuiet     = 23   // dB: a frame at -60 dBFS; nothing below is taken for speech
	vadClear     = 1    // logit above the threshold, of a frame that counts alone

	vadTones     = 2    // frames, as one may have a pitch by chance: what slams and hisses has none
	vadSureDoubt = 0.25 // so much is taken off the second opinion's logit,
	maxVadSure   = 3    // so much of it counts of a frame at most,
	vadSureSum   = 5    // and so much is enough, with so many frames that have a pitch: 150 to 1
)

// NewVAD begins a stream.
func NewVAD(rate Rate) *VAD {
	n := int(rate) / 8000 * 256
	v := &VAD{fft: newFFT(n), window: make([]float32, n), history: make([]float32, n), x: make([]float32, n),
		spectrum: make([]complex64, n/2+1), peak: -100, wave: make([]float32, 128), mind: newMind(vadNetwork),
		second: newMind(vad2Network), words: words{mind: newMind(wordsNetwork)}}
	for i := range v.window {
		v.window[i] = float32(0.5-0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/float64(n))) / float32(n)
	}
	for b := range v.edges { // from 120 to 3900 Hz, wider and wider as the ear's
		x := float64(b) / vadBands
		hz := 600 * math.Sinh(math.Asinh(120.0/600)*(1-x)+math.Asinh(3900.0/600)*x)
		v.edges[b] = int(math.Round(hz * 256 / 8000))
		if b > 0 {
			v.edges[b] = max(v.edges[b], v.edges[b-1]+1)
		}
	}
	return v
}

// Detect takes a frame. speech says whether somebody speaks: from up to 60 ms after the first sound until 260 ms
// after the last. voiced says of the frame alone whether it sounds like speech: the last one that does is where the
// speech ended.
func (v *VAD) Detect(f Frame) (speech, voiced bool) {
	v.listen(f)
	logit := vadFirst*v.mind.infer() + (1-vadFirst)*v.second.infer()
	least := float32(vadThreshold)
	switch {
	case v.floor < vadStill && v.hang == 0:
		least = vadSilent
	case v.floor >= vadStill && v.frames < vadNew:
		least = vadDoubt
	}
	least += vadMusic * max(0, min((v.sung.tones-vadTonal)/vadTonal, 1))
	voiced = v.breaks() || v.loud > vadQuiet && logit > least
	switch {
	case !voiced:
		v.bare = max(v.bare-1, 0)
	case v.mind.x[vadAlike] > vadPitch:
		v.bare = max(v.bare-4, 0) // one frame may have a pitch by chance
	default:
		v.bare = min(v.bare+1, 2*vadWhisper)
		voiced = v.bare <= vadBare || v.bare > vadWhisper // between: rustling, breath
	}
	doubtful := v.floor >= vadStill && voiced && !v.on && !v.hint && logit < least+vadClear
	voiced, v.hint = voiced && !doubtful, doubtful
	v.on = voiced
	v.decide(voiced)
	v.cadence.hear(voiced, v.mind.x[vadAlike], v.mind.x[vadAlike+1], v.loud)
	return v.hang > 0, voiced
}

// breaks says whether a sound with a pitch broke a silence, as that of a voice which begins faintly does. There must have been no
// sound for a while: the notes of music come one after the other.
func (v *VAD) breaks() bool {
	if v.loud <= vadQuiet {
		v.hush, v.broke = v.hush+1, false
		return false
	}
	v.broke, v.hush = v.broke || v.hush >= vadHush, 0
	return v.broke && v.floor < vadStill && v.mind.x[vadAlike] > vadVoice
}

// decide takes the decision for a frame.
func (v *VAD) decide(voiced bool) {
	if voiced {
		v.run++
		most := vadHang
		if v.mind.x[vadAlike] <= vadPitch && v.near-v.loud > vadFaint {
			most = vadHiss
		}
		v.hang = max(v.hang-1, min(vadBrief+2*(v.run-1), most))
	} else {
		v.hang = max(v.hang-1, 0)
	}
	if v.hang == 0 {
		v.run, v.sure, v.tone, v.words.at = 0, 0, 0, 0
		return
	}
	if v.mind.x[vadAlike] > vadPitch {
		v.tone++
	}
	v.sure = max(0, min(v.sure+min(v.mind.value(headSure)-vadSureDoubt, maxVadSure), 2*vadSureSum))
}

// Sure reports whether it is certain, by now, that this is somebody's speech: neither a click nor a cough.
func (v *VAD) Sure() bool {
	return v.sure >= vadSureSum && (v.tone >= vadTones || v.bare > vadWhisper)
}

// pitch says how much the sound repeats itself as voices do, 65 to 400 times a second, and how often it does: from 0 at
// the lowest to 1. Only sound below 2 kHz counts.
func (v *VAD) pitch() (most, high float32) {
	const shortest, longest = 10, 61 // samples at 4 kHz
	step := len(v.history) / len(v.wave)
	last, total := float32(0), float32(1)
	for i := range v.wave {
		x := float32(0)
		for _, s := range v.history[i*step : (i+1)*step] {
			x += s
		}
		v.wave[i], last = x-0.8*last, x // without what rumbles
		total += v.wave[i] * v.wave[i]
	}
	var all [longest + 1]float32
	early, late, dipped, from := total, total, false, longest
	for lag := 1; lag <= longest; lag++ {
		n := len(v.wave) - lag
		late -= v.wave[lag-1] * v.wave[lag-1]
		early -= v.wave[n] * v.wave[n]
		if lag < shortest-1 {
			continue
		}
		alike := dot(v.wave[lag:], v.wave[:n]) / float32(math.Sqrt(float64(max(early*late, 1))))
		all[lag] = alike
		if lag < shortest {
			continue
		}
		if dipped && lag < from {
			from = lag
		}
		if dipped && alike > most {
			most, high = alike, float32(longest-lag)/(longest-shortest)
		}
		dipped = dipped || alike < 0.3
	}
	v.sung.sing(v.frames, all[:], from, most)
	return most, high
}

// listen sets the inputs of the network.
func (v *VAD) listen(f Frame) {
	v.spectral(f)
	v.frames++
	slow := 1 / float64(min(v.frames, 150))
	var score, total, floor, mean float64
	var shape [vadBands]float64
	inputs := v.second.x
	for b := range vadBands {
		p := v.now[b]
		total += p
		if v.frames == 1 {
			v.power[b], v.least[0][b], v.least[1][b] = p, p, p
		}
		v.power[b] += 0.4 * (p - v.power[b])
		v.least[0][b] = min(v.least[0][b], v.power[b])
		db := 10 * math.Log10(v.power[b])
		v.usual[b] += slow * (db - v.usual[b])
		least := min(v.least[0][b], v.least[1][b])
		floor += least
		above := min(max(db-10*math.Log10(1.5*least), 0), 24)
		score += min(above, 18) / vadBands
		inputs[b] = float32(above / 12)
		inputs[vadBands+b] = float32(min(max(db-v.usual[b], -12), 12) / 8)
		shape[b], mean = db, mean+db/vadBands
	}
	for b, db := range shape {
		inputs[2*vadBands+b] = float32(min(max(db-mean, -24), 24) / 8)
	}
	if v.frames%vadStretch == 0 {
		v.least[1], v.least[0] = v.least[0], v.power
	}
	v.loud, v.floor = 10*math.Log10(total), 10*math.Log10(floor)
	v.peak = max(v.loud, v.peak-0.06) // 3 dB a second
	rest := inputs[3*vadBands : vadBasic]
	rest[0], rest[1] = float32(score/6), float32((score-v.last)/6)
	rest[2], rest[3], rest[4] = v.quantiles(score)
	rest[5], rest[6] = float32(max(v.loud-v.peak, -40)/15), float32(slow*5)
	rest[7], rest[8] = v.pitch()
	sudden, sum := float32(0), float32(1)
	for _, s := range v.history[len(v.history)-len(f):] {
		sudden, sum = max(sudden, s*s), sum+s*s
	}
	rest[9] = float32(math.Log2(float64(1+sudden*float32(len(f))/sum)))/4 - 0.5
	rest[10] = float32(v.loud/20 - 3)
	rest[11] = float32(1 - v.far()/10)
	rest[12], rest[13] = v.steady()
	v.music(inputs[vadBasic:vadTuned], score, shape)
	v.finer(inputs[vadTuned:vadInputs])
	v.last = score
	copy(v.mind.x, inputs[:vadTuned])
	v.words.keep(v.frames, inputs[:vadBasic])
}

// finer sets the inputs that say how the power of each band is spread in it, and how loud noise and speech are on this line.
func (v *VAD) finer(inputs []float32) {
	for b, p := range v.upper {
		db := 10 * math.Log10((p+0.005)/(v.now[b]-p+0.005))
		inputs[b] = float32(min(max(db, -18), 18) / 8)
	}
	inputs[vadBands] = float32(v.floor/20 - 2)
	inputs[vadBands+1] = float32(min(v.near-v.floor, 60)/20 - 1)
}

// steady says how much of the spectrum's fine lines is where it was 120 and 240 ms before: the tones of music stay for
// a while, and the pitch of a voice glides.
func (v *VAD) steady() (soon, later float32) {
	n := len(v.fine)
	now := &v.fine[v.frames%n]
	now.set(v.spectrum)
	return 2 * now.like(&v.fine[(v.frames+n-vadSoon)%n]), 2 * now.like(&v.fine[(v.frames+n-vadLater)%n])
}

// far is by how many dB a frame is fainter than who speaks nearest, up to 30.
func (v *VAD) far() float64 {
	switch {
	case v.frames == 1:
		v.near = v.loud
	case v.loud > v.near:
		v.near += vadCome * (v.loud - v.near)
	default:
		v.near -= vadFade
	}
	return min(v.near-v.loud, 30)
}

// spectral takes a frame's power in each band.
func (v *VAD) spectral(f Frame) {
	copy(v.history, v.history[len(f):])
	for i, s := range f {
		v.history[len(v.history)-len(f)+i] = float32(s)
	}
	for i, s := range v.history {
		v.x[i] = s * v.window[i]
	}
	v.fft.forward(v.spectrum, v.x)
	for b := range vadBands {
		var low, high float32
		first, middle, last := v.edges[b], (v.edges[b]+v.edges[b+1])/2, v.edges[b+1]
		for _, c := range v.spectrum[first:middle] {
			low += power(c)
		}
		for _, c := range v.spectrum[middle:last] {
			high += power(c)
		}
		v.now[b], v.upper[b] = 0.01+float64(low)+float64(high), float64(high)
	}
}

// quantiles are what 20, 50 and 80 % of the last five seconds' scores are below.
func (v *VAD) quantiles(score float64) (low, middle, high float32) {
	var all, sum float64
	for i := range v.scores {
		v.scores[i] *= 0.996
		if i == min(int(score*4), len(v.scores)-1) {
			v.scores[i]++
		}
		all += v.scores[i]
	}
	for i, n := range v.scores {
		at := float32(i) / 4 / 6
		if sum < 0.2*all {
			low = at
		}
		if sum < 0.5*all {
			middle = at
		}
		if sum < 0.8*all {
			high = at
		}
		sum += n
	}
	return low, middle, high
}
