package voice

import (
	"sync/atomic"
	"time"

	"parley/internal/audio"
	"parley/internal/turn"
)

// peer is what the leg calls, frame by frame: the audio path of a session. Nothing here waits for the owner, or
// allocates, except for the first frames and the first noise. The owner's decisions arrive as atomic values and through
// the playout.
type peer struct {
	r        *run
	detector Detector
	echo     *audio.Echo
	denoiser *audio.Denoiser // nil while there was no noise
	floor    floor
	front    audio.Foreground
	signals  *audio.SignalDetector // nil when nobody wants to know
	made     int                   // frames
	lost     int                   // frames that found no room, as the owner was late
	voiced   int                   // frames of speech without a break
	quiet    int                   // frames since speech
	given    int                   // frames that the reply has given way for, up to maxGiven
	gives    bool                  // it does

	heard  [audio.MaxFrame]int16 // the present frame, without its echo
	spoken float64               // how loud the far end has been spoken to lately, as energy per sample
	scene  *scene                // the present one
	at     int                   // in its ambient sound

	tune   int                    // in the hold music
	nodded int                    // of the word of listening
	open   atomic.Bool            // the recognizer hears
	reply  atomic.Bool            // there is a reply: it is thought, or heard
	away   atomic.Bool            // nobody listens here any more
	music  atomic.Pointer[music]  // the customer waits
	word   atomic.Pointer[sound]  // of listening, while it is said
	bridge atomic.Pointer[bridge] // others are in the call
	plain  atomic.Bool            // tones matter no more
	next   atomic.Pointer[scene]  // of who speaks and listens from here on
}

// scene holds the settings of a persona that the audio path uses.
type scene struct {
	cleans bool // noise is to be taken out, where there is any
	single bool // other voices than the customer's don't count
	place  *audio.Ambient
	gain   float64
}

// frame is 20 ms of the far end's audio on its way to the owner.
type frame struct {
	at             time.Duration
	speech, voiced bool
	far            bool    // it is somebody's in the background
	sure           bool    // nor was it a click or a cough
	silences       bool    // and it likely has words
	words          float32 // of its sound, over a reply
	sound          float32 // the same, at any time
	cadence        float32 // of the voice before it
	signal         audio.Signal
	pcm            []int16
}

// sureFrames of speech without a break, 60 ms, are the least that silences a reply. The clicks of a keyboard are shorter.
const sureFrames = 3

// maxFrames is how many may be on their way or remembered. When the owner is later than that, the recognizer misses what
// comes.
const maxFrames = 64

func (p *peer) init(r *run) {
	p.r = r
	p.echo = audio.NewEcho(r.rate)
	if r.Detect != nil {
		p.detector = r.Detect(r.rate)
	} else {
		p.detector = audio.NewVAD(r.rate)
	}
	if r.Outbound {
		p.signals = audio.NewSignalDetector(r.rate)
	}
	p.settle(r.Persona)
}

// settle prepares the scene for a persona that listens and speaks from here on.
func (p *peer) settle(who Persona) {
	a := who.Assistant
	s := &scene{cleans: a.EnableNoiseCancellation, single: a.BackgroundSpeechCancellation, gain: 2 * a.AmbientSoundVolume.Float()}
	if a.AmbientSound != "" && a.AmbientSound != "off" && s.gain > 0 {
		s.place = placeOf(a.AmbientSound, p.r.rate)
	}
	p.next.Store(s)
}

// enter switches to the scene that the owner has set.
func (p *peer) enter() {
	s := p.next.Load()
	if s == p.scene {
		return
	}
	p.scene = s
	if !s.cleans {
		p.denoiser = nil
	}
	p.at = int(time.Now().UnixNano()/1e6) % (int(p.r.rate) * 16)
}

// Hear implements audio.Peer.
func (p *peer) Hear(pcm audio.Frame) {
	defer p.r.escaped()
	if p.away.Load() {
		return
	}
	p.enter()
	pcm = p.heard[:copy(p.heard[:], pcm)]
	alone, doubt := p.echo.Clean(pcm)
	speech, voiced := p.detector.Detect(pcm)
	if alone || !p.open.Load() && energy(pcm) < p.spoken*echoShare {
		voiced = false // our own voice, coming back
	}
	if p.voiced++; !speech || !voiced {
		p.voiced = 0
	}
	signal := audio.NoSignal
	if p.signals != nil {
		if signal = p.signals.Detect(pcm); p.plain.Load() {
			p.signals = nil
		}
	}
	noisy := p.scene.cleans && p.floor.noisy(energy(pcm))
	f := p.blank()
	if f == nil {
		p.lost++
		return
	}
	f.at, f.speech, f.voiced, f.signal = p.r.clock.now(), speech, voiced, signal
	f.words, f.sound = 0, 0
	if speech && !alone && !doubt { // our own voice, coming back, has words too
		if f.sound = p.detector.Words(); p.reply.Load() {
			f.words = f.sound
		}
	}
	f.cadence, f.far = p.detector.Cadence(), false
	if p.scene.single {
		var other bool
		if other, f.far = p.front.Hear(energy(pcm), speech, voiced, !p.reply.Load()); other { // as if it were silence
			f.speech, f.voiced, f.words, f.sound = false, false, 0, 0
		}
	}
	certain := f.voiced && p.voiced >= sureFrames && !doubt && p.detector.Sure()
	f.sure = certain && turn.StepsBack(f.words)
	f.silences = f.sure && turn.Silences(f.words, time.Duration(p.voiced)*audio.FrameTime)
	p.give(f.sure, f.voiced)
	f.pcm = append(f.pcm[:0], pcm...)
	if noisy {
		if p.denoiser == nil {
			p.denoiser = audio.NewDenoiser(p.r.rate)
		}
		p.denoiser.Clean(f.pcm)
	}
	if f.silences {
		p.r.out.flinch()
	}
	p.r.frames <- f // there is room: there are no more frames than places
}

// give has the reply step back for what is certainly speech. It is silenced, or not, by what that is.
func (p *peer) give(way, voiced bool) {
	if voiced {
		p.quiet = 0
	}
	if way && !p.gives && p.given < maxGiven {
		p.gives = true
		p.r.out.giveWay(true)
	}
}

// giveTime has a reply come back when who spoke over it is quiet, or sends nothing any more, and when it has given way for too long.
func (p *peer) giveTime() {
	if p.gives {
		p.given++
	}
	quiet := p.quiet >= quietFrames
	if p.gives && (quiet || p.given >= maxGiven) {
		p.gives = false
		p.r.out.giveWay(false)
	}
	if p.quiet++; quiet {
		p.given = 0
	}
}

const (
	quietFrames = 10  // without speech, 200 ms, end what was said
	maxGiven    = 150 // frames, 3 s: over a television the assistant talks as loud as ever
)

// blank is an unused frame; nil when all are in use.
func (p *peer) blank() *frame {
	select {
	case f := <-p.r.free:
		return f
	default:
	}
	if p.made == maxFrames {
		return nil
	}
	p.made++
	return &frame{pcm: make([]int16, 0, p.r.rate.FrameSize())}
}

// echoShare is how much of what the far end hears may come back from its line: 20 dB less. Anything fainter, while the
// assistant speaks or just after, is not the customer. Even a quiet customer is louder than that; a louder echo is taken
// out before.
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

// floor tells whether there is noise on the line, by the faintest frame of the last seconds. Most lines have none to
// remove, and looking for it in every frame would cost more than everything else done with them.
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

// Tick implements audio.Peer.
func (p *peer) Tick(in, out audio.Frame) bool {
	defer p.r.escaped()
	r := p.r
	p.enter()
	p.giveTime()
	r.clock.tick()
	sound := r.out.pull(out, r.clock.now())
	if w := p.word.Load(); w != nil {
		sound = p.nod(w, out, sound)
	}
	p.spoken *= echoFade
	if sound {
		p.spoken = max(p.spoken, energy(out))
	}
	if p.scene.place != nil {
		p.at = p.scene.place.Mix(out, p.at, p.scene.gain)
		sound = true
	}
	if m := p.music.Load(); m != nil {
		p.tune = m.Mix(out, p.tune, m.gain)
		sound = true
	}
	if b := p.bridge.Load(); b != nil {
		sound = b.exchange(in, out, sound)
	}
	if !sound {
		clear(out)
	}
	p.echo.Sent(out)
	if r.recording != nil {
		r.recording.Put(in, out)
	}
	r.ticked.Store(true)
	r.inbox.ring()
	return sound
}

// nod plays a word of listening. A reply that begins meanwhile takes its place.
func (p *peer) nod(word *sound, out audio.Frame, replies bool) (sounds bool) {
	n := 0
	if !replies {
		n = copy(out, word.pcm[p.nodded:])
		clear(out[n:])
	}
	if p.nodded += n; replies || p.nodded == len(word.pcm) {
		p.nodded = 0
		p.word.Store(nil)
	}
	return replies || n > 0
}

// Digit implements audio.Peer.
func (p *peer) Digit(key byte) {
	defer p.r.escaped()
	if b := p.bridge.Load(); b != nil {
		for _, l := range b.keys {
			_ = l.Dial(string(rune(key))) // a line that takes no keys gets none
		}
	}
	p.r.happens(turn.Event{Kind: turn.Key, Key: key})
}
