package voice

import (
	"log/slog"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/turn"
)

// peer is what the leg calls: the ear's and the mouth's side of a session, frame by frame. Nothing here blocks, or allocates
// but for the first noise.
type peer struct {
	r        *run
	detector Detector
	cleans   bool            // noise is to be taken out, where there is any
	denoiser *audio.Denoiser // nil while there was none
	floor    floor
	signals  *audio.SignalDetector // nil when nobody wants to know
	frame    []int16

	open   bool      // the ear hears
	before [][]int16 // what was heard before it did, a ring
	first  int       // the oldest of it
	count  int

	spoken float64 // how loud the far end has been spoken to lately, as energy per sample

	place *audio.Ambient
	gain  float64
	at    int
}

// preroll is how much of what was said before the detector noticed goes to the ear.
const preroll = 300 * time.Millisecond

func (p *peer) init(r *run) {
	p.r = r
	if r.Detect != nil {
		p.detector = r.Detect(r.rate)
	} else {
		p.detector = audio.NewVAD(r.rate)
	}
	if r.Outbound {
		p.signals = audio.NewSignalDetector(r.rate)
	}
	n := r.rate.FrameSize()
	p.frame = make([]int16, n)
	p.before = make([][]int16, preroll/audio.FrameTime)
	ring := make([]int16, len(p.before)*n)
	for i := range p.before {
		p.before[i] = ring[i*n : i*n : (i+1)*n]
	}
	p.settle(r.Persona)
}

// settle is for a persona who listens and speaks from here on.
func (p *peer) settle(who Persona) {
	a := who.Assistant
	if p.cleans = a.EnableNoiseCancellation; !p.cleans {
		p.denoiser = nil
	}
	p.place, p.gain = nil, 2*a.AmbientSoundVolume.Float()
	if a.AmbientSound != "" && a.AmbientSound != "off" && p.gain > 0 {
		p.place = placeOf(a.AmbientSound, p.r.rate)
		p.at = int(time.Now().UnixNano()/1e6) % (int(p.r.rate) * 16)
	}
}

// Hear implements audio.Peer.
func (p *peer) Hear(f audio.Frame) {
	defer p.guard()
	r := p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	speech, voiced := p.detector.Detect(f)
	if voiced && !p.open && energy(f) < p.spoken*echoShare {
		voiced = false // our own voice, coming back
	}
	signal := audio.NoSignal
	if p.signals != nil {
		signal = p.signals.Detect(f)
	}
	clean := p.frame[:copy(p.frame, f)]
	if p.cleans && p.floor.noisy(energy(f)) {
		if p.denoiser == nil {
			p.denoiser = audio.NewDenoiser(r.rate)
		}
		p.denoiser.Clean(clean)
	}
	r.step(turn.Event{Kind: turn.Voice, Speech: speech, Voiced: voiced})
	if p.open {
		r.ear.Write(clean)
	} else {
		p.remember(clean)
	}
	if signal == audio.Beep {
		r.step(turn.Event{Kind: turn.Beep})
	}
}

// echoShare is how much of what the far end hears may come back from its line: 20 dB less. What is fainter, while the assistant speaks or just
// after it, is no customer. Their quiet voice is louder than that; an echo that is louder needs an echo canceller.
const echoShare = 0.01

// echoFade is how much of it is left after 20 ms: 12 dB in the 300 ms that an echo may take.
const echoFade = 0.83

func energy(f []int16) float64 {
	sum := int64(0)
	for _, v := range f {
		sum += int64(v) * int64(v)
	}
	return float64(sum) / float64(max(len(f), 1))
}

// floor says whether there is noise on the line, by the faintest frame of the last seconds: on most lines there is none to be taken out, and
// looking for it in every frame would cost more than everything else that is done with them.
type floor struct {
	low, next float64 // the least energy of the last second, and of this one
	n         int
	on        bool
}

const (
	noiseOn  = 3400 // energy per sample: -55 dBFS
	noiseOff = 1070 // -60 dBFS
)

func (f *floor) noisy(e float64) bool {
	if f.n == 0 || e < f.next {
		f.next = e
	}
	least := min(f.low, f.next)
	if f.n++; f.n == 50 {
		f.low, f.n = f.next, 0
	}
	f.on = least >= noiseOn || f.on && least >= noiseOff
	return f.on
}

// remember keeps a frame for an ear that may open soon.
func (p *peer) remember(f []int16) {
	i := (p.first + p.count) % len(p.before)
	if p.count == len(p.before) {
		p.first = (p.first + 1) % len(p.before)
	} else {
		p.count++
	}
	p.before[i] = append(p.before[i][:0], f...)
}

// openEar begins an utterance with what was heard a little before.
func (p *peer) openEar() {
	p.open = true
	for ; p.count > 0; p.count-- {
		p.r.ear.Write(p.before[p.first])
		p.first = (p.first + 1) % len(p.before)
	}
}

func (p *peer) closeEar() {
	p.open = false
	p.r.ear.End()
}

// Tick implements audio.Peer.
func (p *peer) Tick(in, out audio.Frame) bool {
	defer p.guard()
	r := p.r
	sound := r.tick(out)
	p.spoken *= echoFade
	if sound {
		p.spoken = max(p.spoken, energy(out))
	}
	if p.place != nil {
		p.at = p.place.Mix(out, p.at, p.gain)
		sound = true
	}
	if r.recording != nil {
		r.recording.put(in, out)
	}
	return sound
}

// tick pulls what is heard next, and moves the machine's time on.
func (r *run) tick(out audio.Frame) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tickedNow()
	sound, first, ended := r.out.pull(out)
	if a := r.reply; a != nil {
		if first != nil {
			r.sounded(a, first)
		}
		for range ended {
			r.step(turn.Event{Kind: turn.Played, Reply: a.id})
		}
		if s := a.speech; s != nil && s.full && r.out.buffered() < s.limit/2 {
			s.full = false
			s.wake()
		}
	}
	r.step(turn.Event{Kind: turn.Tick})
	return sound
}

// sounded notes the first sound of a part, and tells the machine of the first of the reply.
func (r *run) sounded(a *answer, p *part) {
	now := r.now()
	if !a.sounded {
		a.sounded, a.from = true, now
		r.step(turn.Event{Kind: turn.Sounded, Reply: a.id})
		r.book.settle()
	}
	if !p.aside && a.anchor >= 0 && a.marks.FirstPacketMS == 0 {
		a.marks.FirstPacketMS = since(now, a.anchor)
	}
}

// since is a mark of the waterfall: at least 1, as 0 means that there was none.
func since(now, anchor time.Duration) int64 { return max((now - anchor).Milliseconds(), 1) }

// Digit implements audio.Peer.
func (p *peer) Digit(key byte) {
	defer p.guard()
	p.r.post(turn.Event{Kind: turn.Key, Key: key})
}

// guard ends the call whose frame panicked.
func (p *peer) guard() {
	if v := recover(); v != nil {
		p.r.panicked(v)
	}
}

// places are the ambient sounds that were asked for. They never change, and serve all calls.
var places struct {
	sync.Mutex
	made map[placeKey]*audio.Ambient
}

type placeKey struct {
	name string
	rate audio.Rate
}

func placeOf(name string, rate audio.Rate) *audio.Ambient {
	places.Lock()
	defer places.Unlock()
	key := placeKey{name, rate}
	if a := places.made[key]; a != nil {
		return a
	}
	a, err := audio.NewAmbient(name, rate, 1)
	if err != nil {
		slog.Warn("no such ambient sound", "name", name, "error", err)
		return nil
	}
	if places.made == nil {
		places.made = map[placeKey]*audio.Ambient{}
	}
	places.made[key] = a
	return a
}
