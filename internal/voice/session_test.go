package voice_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
	"parley/internal/voice/voicetest"
)

func assistant() *parley.Assistant {
	return &parley.Assistant{
		ID: 1, Name: "Test", AllowInterruptions: true, InterruptSensitivity: 0.5, EndpointType: "vad",
		EndpointSensitivity: 0.5,
		SpeechSpeed:         100, VoiceStability: 70, VoiceSimilarity: 50, AmbientSoundVolume: 50, AmbientSound: "off",
		MaxDuration: 600, MaxSilenceDuration: 40, ReengagementInterval: 30, EndCallOnVoicemail: true,
	}
}

func persona(model ai.Model, synthesizer ai.Synthesizer, recognizer ai.Recognizer) voice.Persona {
	return voice.Persona{
		Assistant: assistant(), Synthesizer: synthesizer, Recognizer: recognizer, Voice: "test", Language: "en",
		Think: func(history []ai.Message, sink agent.Sink) *agent.Turn {
			return &agent.Turn{Model: model, History: history, Sink: sink}
		},
	}
}

// deaf is a Recognizer that understands nothing and does nothing.
type deaf struct{ all bool }

func (d deaf) Listen(ctx context.Context, _ ai.Hearing) (ai.Recognition, error) {
	return &deafRecognition{all: d.all, out: make(chan ai.Transcript)}, nil
}

type deafRecognition struct {
	all  bool
	out  chan ai.Transcript
	once sync.Once
}

func (*deafRecognition) Write([]int16)                       {}
func (*deafRecognition) End()                                {}
func (e *deafRecognition) Continuous() bool                  { return e.all }
func (e *deafRecognition) Transcripts() <-chan ai.Transcript { return e.out }
func (e *deafRecognition) Close()                            { e.once.Do(func() { close(e.out) }) }

// driven is a leg that is driven by a function.
type driven struct {
	rate audio.Rate
	run  func(ctx context.Context, p audio.Peer) error
}

func (d *driven) Rate() audio.Rate                            { return d.rate }
func (d *driven) Run(ctx context.Context, p audio.Peer) error { return d.run(ctx, p) }
func (d *driven) Dial(string) error                           { return nil }
func (*driven) Hangup()                                       {}

// speechLike is n frames of a sound that a voice detector takes for speech: harmonics of a moving pitch, in syllables.
func speechLike(rate audio.Rate, n int) [][]int16 {
	frames := make([][]int16, n)
	phase := 0.0
	for i := range frames {
		frames[i] = make([]int16, rate.FrameSize())
		for j := range frames[i] {
			t := float64(i*len(frames[i])+j) / float64(rate)
			phase += 2 * math.Pi * (140 + 30*math.Sin(2*math.Pi*1.3*t)) / float64(rate)
			syllable := 0.25 + 0.75*math.Pow(math.Sin(math.Pi*4*t), 2)
			v := 0.0
			for h := 1; h < 16; h++ {
				v += math.Sin(phase*float64(h)) / float64(h) * (1 + 2*math.Exp(-math.Pow(float64(h)*140-700, 2)/90000))
			}
			frames[i][j] = int16(3000 * syllable * v)
		}
	}
	return frames
}

// framed is a sound in frames.
func framed(pcm []int16, rate audio.Rate) (frames [][]int16) {
	for n := rate.FrameSize(); len(pcm) >= n; pcm = pcm[n:] {
		frames = append(frames, pcm[:n])
	}
	return frames
}

// Hear and Tick allocate nothing, nor does the owner for them: in silence, while the customer speaks, while the
// assistant speaks, and while both do.
func TestFramesAllocateNothing(t *testing.T) {
	for _, outbound := range []bool{false, true} {
		for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
			p := persona(&aitest.Fake{}, &aitest.Synthesizer{}, deaf{all: outbound})
			p.Initial = strings.Repeat("This is a greeting that is long enough to speak over. ", 20)
			p.Assistant.EnableNoiseCancellation = true
			p.Assistant.AmbientSound = "office"
			s := voice.Session{Persona: p, Outbound: outbound, Record: &memory{}}
			if err := s.Prepare(t.Context(), rate); err != nil {
				t.Fatal(err)
			}
			in, out := make([]int16, rate.FrameSize()), make([]int16, rate.FrameSize())
			said := speechLike(rate, 100)
			leg := &driven{rate: rate, run: func(_ context.Context, peer audio.Peer) error {
				measure := func(what string, frame func(i int) []int16) {
					for i := range 30 { // settle
						peer.Hear(frame(i))
						peer.Tick(in, out)
						voice.Settle(peer)
					}
					i := 0
					if n := testing.AllocsPerRun(50, func() {
						peer.Hear(frame(i))
						peer.Tick(in, out)
						voice.Settle(peer)
						i++
					}); n > 0 {
						t.Errorf("%d Hz, outbound %v, %s: %v allocations per frame", rate, outbound, what, n)
					}
				}
				measure("the assistant speaks", func(int) []int16 { return in })
				measure("both speak", func(i int) []int16 { return said[i] })
				return parley.CustomerHangup
			}}
			if r := s.Run(t.Context(), leg); r.Reason != parley.CustomerHangup || r.Err != nil {
				t.Error(r.Reason, r.Err)
			}
			s = voice.Session{Persona: persona(&aitest.Fake{}, &aitest.Synthesizer{}, deaf{}), Outbound: outbound}
			leg.run = func(_ context.Context, peer audio.Peer) error {
				for _, o := range []struct {
					what  string
					frame func(int) []int16
				}{{"silence", func(int) []int16 { return in }},
					{"the customer speaks", func(i int) []int16 { return said[i] }}} {
					i := 0
					for range 30 {
						peer.Hear(o.frame(i))
						voice.Settle(peer)
						i++
					}
					i = 0
					if n := testing.AllocsPerRun(50, func() {
						peer.Hear(o.frame(i))
						peer.Tick(in, out)
						voice.Settle(peer)
						i++
					}); n > 0 {
						t.Errorf("%d Hz, outbound %v, %s: %v allocations per frame", rate, outbound, o.what, n)
					}
				}
				return parley.CustomerHangup
			}
			s.Run(t.Context(), leg)
		}
	}
}

// memory is a file in memory.
type memory struct {
	b  []byte
	at int64
}

func (m *memory) Write(p []byte) (int, error) {
	if need := m.at + int64(len(p)); need > int64(len(m.b)) {
		m.b = append(m.b, make([]byte, need-int64(len(m.b)))...)
	}
	copy(m.b[m.at:], p)
	m.at += int64(len(p))
	return len(p), nil
}

func (m *memory) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		m.at = off
	case io.SeekEnd:
		m.at = int64(len(m.b)) + off
	default:
		m.at += off
	}
	return m.at, nil
}

// When a real detector finds the customer's speech, it is answered, at both rates, with and without noise cancellation.
func TestRealDetector(t *testing.T) {
	pcm := leveled(say(t, "slt", "I would really love a room in January and are you still going to allow our animal"), -20)
	pcm = slices.Concat(pcm[wide/5:], pcm, pcm, pcm)
	spoken := map[audio.Rate][][]int16{audio.Wide: framed(pcm, audio.Wide), audio.Narrow: framed(narrowed(t, pcm), audio.Narrow)}
	pcm = leveled(say(t, "rms", "Nice to meet you, how are you today? We have a few rooms left."), -20)
	replies := map[audio.Rate][][]int16{audio.Wide: framed(pcm, audio.Wide), audio.Narrow: framed(narrowed(t, pcm), audio.Narrow)}
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		for _, clean := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				synthesizer, recognizer, model := ai.Streamed(talker(slices.Concat(replies[rate]...))), &aitest.Recognizer{}, &aitest.Fake{}
				recognizer.Say("good evening", "how are you")
				model.Script(aitest.Step{Text: "Good evening to you."}, aitest.Step{Text: "Fine."})
				s := voice.Session{Persona: persona(model, synthesizer, recognizer)}
				s.Persona.Assistant.EnableNoiseCancellation = clean
				var first, silent time.Duration
				leg := &driven{rate: rate, run: func(ctx context.Context, p audio.Peer) error {
					speech, quiet, out := spoken[rate], make([]int16, rate.FrameSize()),
						make([]int16, rate.FrameSize())
					tick := time.NewTicker(20 * time.Millisecond)
					defer tick.Stop()
					for i := range 450 {
						<-tick.C
						at := time.Duration(i) * 20 * time.Millisecond
						in := quiet
						// 1.0 to 2.2 s, and again during the reply, which begins at 2.8 s
						if i >= 50 && i < 110 || i >= 160 && i < 220 {
							in = speech[i%110-50]
						}
						p.Hear(in)
						if sound := p.Tick(in, out); sound && first == 0 {
							first = at
						} else if !sound && first > 0 && silent == 0 {
							silent = at
						}
					}
					return parley.CustomerHangup
				}}
				r := s.Run(t.Context(), leg)
				if want := 2200*time.Millisecond + 600*time.Millisecond; first < want-80*time.Millisecond ||
					first > want+80*time.Millisecond {
					t.Errorf("%d Hz, cleaned %v: the reply began at %v, want about %v", rate, clean, first, want)
				}
				if onset := 3200 * time.Millisecond; silent < onset || silent > onset+160*time.Millisecond {
					t.Errorf("%d Hz, cleaned %v: the customer spoke at %v, and the assistant was silent at %v",
						rate, clean, onset, silent)
				}
				if got := parley.CallTranscript(r.Turns); !strings.HasPrefix(got,
					"Customer: good evening\nAI: Good") ||
					!strings.HasSuffix(got, "\nCustomer: how are you\nAI: Fine.") {
					t.Errorf("%d Hz, cleaned %v: %s", rate, clean, got)
				}
				if len(recognizer.Heard()) != 1 || recognizer.Live() != 0 {
					t.Errorf("%d recognitions, %d open", len(recognizer.Heard()), recognizer.Live())
				}
			})
		}
	}
}

// The recording has the customer on the left and the assistant on the right, for the length of the call.
func TestRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synthesizer := &aitest.Synthesizer{}
		file := &memory{}
		s := voice.Session{Persona: persona(&aitest.Fake{}, synthesizer, deaf{}), Record: file}
		s.Persona.Initial = "Hello there, customer."
		leg := &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
			in, out := make([]int16, 160), make([]int16, 160)
			for i := range in {
				in[i] = -123
			}
			for range 100 {
				time.Sleep(20 * time.Millisecond)
				p.Tick(in, out)
			}
			return parley.CustomerHangup
		}}
		if r := s.Run(t.Context(), leg); r.Err != nil {
			t.Fatal(r.Err)
		}
		w, err := audio.NewWAVReader(bytes.NewReader(file.b))
		if err != nil || w.Rate != 8000 || w.Channels != 2 {
			t.Fatalf("%+v, %v", w, err)
		}
		pcm := make([]int16, 2*160*200)
		n, _ := w.Read(pcm)
		if n != 2*160*100 {
			t.Fatalf("%d samples, want %d", n, 2*160*100)
		}
		var right []int16
		for i := 0; i < n; i += 2 {
			if pcm[i] != -123 {
				t.Fatalf("the customer's sample %d is %d", i/2, pcm[i])
			}
			right = append(right, pcm[i+1])
		}
		if got := synthesizer.Find(right[160*20:160*30], audio.Narrow); got != "Hello there, customer." {
			t.Errorf("on the right: %q", got)
		}
		if binary.LittleEndian.Uint32(file.b[4:]) != uint32(len(file.b)-8) {
			t.Error("the header doesn't know the file's size")
		}
	})
}

// The ambient sound plays all the time, under speech too, at its own volume.
func TestAmbientSound(t *testing.T) {
	level := func(place string, volume parley.Decimal) float64 {
		var all []int16
		synctest.Test(t, func(t *testing.T) {
			s := voice.Session{Persona: persona(&aitest.Fake{}, &aitest.Synthesizer{}, deaf{})}
			s.Persona.Assistant.AmbientSound, s.Persona.Assistant.AmbientSoundVolume = place, volume
			leg := &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
				in, out := make([]int16, 160), make([]int16, 160)
				for range 200 {
					time.Sleep(20 * time.Millisecond)
					clear(out)
					if p.Tick(in, out) != (place != "off" && volume > 0) {
						t.Error("is there a sound or not?")
					}
					all = append(all, out...)
				}
				return parley.CustomerHangup
			}}
			s.Run(t.Context(), leg)
		})
		return audio.Level(all)
	}
	half, full := level("office", 50), level("office", 100)
	if half < -48 || half > -32 || math.Abs(full-half-6) > 2.5 {
		t.Errorf("at half volume %.1f dBFS, at full %.1f", half, full)
	}
	if off, none := level("off", 50), level("cafe", 0); off != -100 || none != -100 {
		t.Errorf("off: %.1f, without volume: %.1f", off, none)
	}
}

// If a call is answered before the greeting is complete, it is heard as it is made, even when the call that had it made
// is over; the vendor gets one request.
func TestGreetingUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synthesizer, cache := &aitest.Synthesizer{}, &voice.Cache{}
		synthesizer.Usually(aitest.Saying{Delay: 500 * time.Millisecond, Pace: aitest.PieceTime / 2})
		session := func() *voice.Session {
			s := &voice.Session{Persona: persona(&aitest.Fake{}, synthesizer, deaf{}), Cache: cache}
			s.Persona.Initial = "Hello there, this is the bakery."
			return s
		}
		s := session()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := session().Prepare(ctx, audio.Narrow); !errors.Is(err, context.Canceled) {
				t.Errorf("who gave up was told %v", err)
			}
		})
		time.Sleep(time.Second)
		synctest.Wait()
		heard := time.Duration(0)
		r := s.Run(t.Context(), &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
			out := make([]int16, 160)
			for i := range 200 {
				time.Sleep(audio.FrameTime)
				synctest.Wait()
				if p.Tick(nil, out) {
					heard += audio.FrameTime
				} else if i < 10 {
					t.Errorf("packet %d is silent", i)
				}
				if i == 10 {
					cancel()
				}
			}
			return parley.CustomerHangup
		}})
		wg.Wait()
		want := aitest.SpeechTime(s.Persona.Initial, 1)
		if heard < want-40*time.Millisecond || heard > want+40*time.Millisecond || r.Err != nil {
			t.Errorf("heard %v of %v: %v", heard, want, r.Err)
		}
		if n := len(synthesizer.Said()); n != 1 {
			t.Errorf("the vendor was asked %d times", n)
		}
	})
}

// A greeting that was prepared is heard with the first packet, however slow the voice is; the vendor gets one request
// for many calls.
func TestPreparedGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synthesizer, cache := &aitest.Synthesizer{}, &voice.Cache{}
		synthesizer.Usually(aitest.Saying{Delay: 3 * time.Second})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				s := voice.Session{Persona: persona(&aitest.Fake{}, synthesizer, deaf{}), Cache: cache}
				s.Persona.Initial = "Hello there."
				if err := s.Prepare(t.Context(), audio.Narrow); err != nil {
					t.Error(err)
				}
				leg := &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
					if out := make([]int16, 160); !p.Tick(nil, out) {
						t.Error("the first packet is silent")
					}
					return parley.CustomerHangup
				}}
				s.Run(t.Context(), leg)
			})
		}
		wg.Wait()
		if n := len(synthesizer.Said()); n != 1 {
			t.Errorf("the vendor was asked %d times", n)
		}
	})
}

// When something breaks inside a session, only this call ends, with provider_failure, whatever it was doing.
func TestPanics(t *testing.T) {
	usual := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(usual)
	for _, where := range []string{"think", "speak", "detect", "leg", "tell"} {
		synctest.Test(t, func(t *testing.T) {
			boom := func(here string) {
				if here == where {
					panic("boom")
				}
			}
			p := persona(&aitest.Fake{}, ai.Streamed(synthesizerFunc(func() { boom("speak") })), deaf{})
			p.Initial = "Hello."
			s := voice.Session{Persona: p}
			s.Tell = func(voice.Event) { boom("tell") }
			s.Detect = func(audio.Rate) voice.Detector { return detectFunc(func() { boom("detect") }) }
			leg := voicetest.NewLeg(&voicetest.Voice{})
			var run audio.Leg = &driven{rate: audio.Narrow, run: func(ctx context.Context, p audio.Peer) error {
				boom("leg")
				return leg.Run(ctx, p)
			}}
			if where == "think" {
				s.Persona.Think = func([]ai.Message, agent.Sink) *agent.Turn { panic("boom") }
				s.Persona.Initial = ""
				s.Persona.Assistant.MaxSilenceDuration = 1
				s.Persona.Reengagement = "Ask."
			}
			r := s.Run(t.Context(), run)
			if r.Reason != parley.ProviderFailure || r.Err == nil || !strings.Contains(r.Err.Error(), "boom") {
				t.Errorf("%s: %s, %v", where, r.Reason, r.Err)
			}
		})
	}
}

type detectFunc func()

func (f detectFunc) Detect(audio.Frame) (bool, bool) { f(); return false, false }

func (f detectFunc) Sure() bool { return false }

func (f detectFunc) Words() float32   { return 0 }
func (f detectFunc) Cadence() float32 { return 0 }

// synthesizerFunc is a synthesizer that calls a function before it says something very short.
type synthesizerFunc func()

func (f synthesizerFunc) Say(_ context.Context, _ ai.Speech, _ string, yield func([]int16) error) error {
	f()
	return yield([]int16{1000, 1000})
}

// Why a call ends: the cause of its context, the error that the leg returned, or the session's own end reason.
func TestReasons(t *testing.T) {
	fault := errors.New("no route to host")
	for _, c := range []struct {
		name  string
		cause error // of the context
		leg   error // what the leg returns; nil: it waits for the context
		want  parley.EndedReason
	}{
		{"api", parley.APIHangup, nil, parley.APIHangup},
		{"shutdown", context.Canceled, nil, parley.Shutdown},
		{"media", nil, parley.MediaTimeout, parley.MediaTimeout},
		{"leg fails", nil, fault, parley.MediaTimeout},
		{"gone", nil, io.EOF, parley.MediaTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s := voice.Session{Persona: persona(&aitest.Fake{}, &aitest.Synthesizer{}, deaf{})}
			leg := &driven{rate: audio.Narrow, run: func(ctx context.Context, p audio.Peer) error {
				if c.leg != nil {
					return c.leg
				}
				cancel(c.cause)
				<-ctx.Done()
				return context.Cause(ctx)
			}}
			r := s.Run(ctx, leg)
			if r.Reason != c.want || c.leg == fault && !errors.Is(r.Err, fault) {
				t.Errorf("%s: %s, %v", c.name, r.Reason, r.Err)
			}
		})
	}
	// A leg without a clock ends all the same.
	synctest.Test(t, func(t *testing.T) {
		s := voice.Session{Persona: persona(&aitest.Fake{}, &aitest.Synthesizer{}, deaf{})}
		began := time.Now()
		r := s.Run(t.Context(), &driven{rate: audio.Narrow, run: func(ctx context.Context, p audio.Peer) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		if took := time.Since(began); r.Reason != parley.MaxDuration || took != 601*time.Second {
			t.Errorf("%s after %v", r.Reason, took)
		}
	})
	// An incomplete persona must not make it panic.
	if r := (&voice.Session{}).Run(t.Context(), &driven{rate: audio.Narrow}); r.Reason != parley.ProviderFailure ||
		r.Err == nil {
		t.Error(r)
	}
}

// The requests to the vendors follow the assistant's fields.
func TestVendorSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synthesizer, recognizer := &aitest.Synthesizer{}, &aitest.Recognizer{}
		p := persona(&aitest.Fake{}, synthesizer, recognizer)
		p.Initial, p.Voice, p.Language = "Hallo.", "anna", "de"
		p.Assistant.SpeechSpeed, p.Assistant.VoiceStability, p.Assistant.VoiceSimilarity = 120, 30, 90
		p.Assistant.Keywords = []string{"Nguyen"}
		s := voice.Session{Persona: p}
		s.Run(t.Context(), &driven{rate: audio.Wide, run: func(_ context.Context, p audio.Peer) error {
			time.Sleep(time.Second)
			return parley.CustomerHangup
		}})
		want := aitest.Spoken{Text: "Hallo.", Speech: ai.Speech{Voice: "anna", Language: "de", Rate: audio.Wide,
			Speed: 1.2, Stability: 0.3, Similarity: 0.9}}
		if said := synthesizer.Said(); len(said) != 1 || said[0] != want {
			t.Errorf("spoken: %+v", said)
		}
		if h := recognizer.Heard(); len(h) != 1 || h[0].Language != "de" || h[0].Rate != audio.Wide ||
			len(h[0].Keywords) != 1 || h[0].Keywords[0] != "Nguyen" {
			t.Errorf("heard: %+v", h)
		}
	})
}

// What the assistant says comes back from the line, half as loud or much weaker, and doesn't interrupt it. A customer who
// is half as loud as the assistant, and says something else, does.
func TestEcho(t *testing.T) {
	for _, c := range []struct {
		name   string
		gain   float64
		speaks bool
	}{{"faint echo", 0.05, false}, {"loud echo", 0.5, false}, {"customer", 0.5, true}} {
		synctest.Test(t, func(t *testing.T) {
			own := speechLike(audio.Narrow, 200)
			s := voice.Session{Persona: persona(&aitest.Fake{}, ai.Streamed(spokenBy(own)), deaf{})}
			s.Persona.Initial = "Hello."
			silent := false
			leg := &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
				back := make([][]int16, 5) // 100 ms
				for i := range 200 {
					time.Sleep(20 * time.Millisecond)
					in := make([]int16, 160)
					if c.speaks { // backwards, what the assistant says is something else
						back[i%5] = slices.Clone(own[len(own)-1-i])
						slices.Reverse(back[i%5])
					}
					audio.Mix(in, back[i%5], c.gain)
					p.Hear(in)
					back[i%5] = make([]int16, 160)
					if !p.Tick(in, back[i%5]) {
						silent = true
					}
				}
				return parley.CustomerHangup
			}}
			s.Run(t.Context(), leg)
			if silent != c.speaks {
				t.Errorf("%s: the assistant fell silent: %v", c.name, silent)
			}
		})
	}
}

// spokenBy is a synthesizer that says everything with the same frames.
type spokenBy [][]int16

func (v spokenBy) Say(_ context.Context, _ ai.Speech, _ string, yield func([]int16) error) error {
	for _, f := range v {
		if err := yield(f); err != nil {
			return err
		}
	}
	return nil
}

// A Cache keeps what was used last, and no more than its limit; a failed sound is made again for the next caller.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synthesizer, cache := &aitest.Synthesizer{}, &voice.Cache{Size: 100_000}
		prepare := func(text string) error {
			s := voice.Session{Persona: persona(&aitest.Fake{}, synthesizer, deaf{}), Cache: cache}
			s.Persona.Initial = text
			return s.Prepare(t.Context(), audio.Narrow)
		}
		asked := func(text string) (n int) {
			for _, s := range synthesizer.Said() {
				if s.Text == text {
					n++
				}
			}
			return n
		}
		for _, text := range []string{"first one.", "first one.", "second one.", "first one."} { // 8 KB each
			if err := prepare(text); err != nil {
				t.Fatal(err)
			}
		}
		if asked("first one.") != 1 || asked("second one.") != 1 {
			t.Error("asked again for what is there")
		}
		for i := range 11 { // more than fit
			if err := prepare(strings.Repeat("x", i+8)); err != nil {
				t.Fatal(err)
			}
			if err := prepare("first one."); err != nil { // always in use
				t.Fatal(err)
			}
		}
		if err := prepare("second one."); err != nil {
			t.Fatal(err)
		}
		if asked("first one.") != 1 || asked("second one.") != 2 {
			t.Errorf("asked %d times for what is in use, %d times for what was not", asked("first one."),
				asked("second one."))
		}

		synthesizer.On("broken.", aitest.Saying{Delay: time.Second, Err: aitest.ErrVoice})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := prepare("broken."); !errors.Is(err, aitest.ErrVoice) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		synthesizer.On("broken.", aitest.Saying{})
		if err := prepare("broken."); err != nil {
			t.Error(err)
		}
	})
}

// Nobody waits through the silence at the beginning of a synthesizer's sound, whether it was made before the call or
// now.
func TestLeadingSilence(t *testing.T) {
	for _, prepared := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			quiet := make([][]int16, 10)
			for i := range quiet {
				quiet[i] = make([]int16, 160)
			}
			s := voice.Session{Persona: persona(&aitest.Fake{},
				ai.Streamed(spokenBy(append(quiet, speechLike(audio.Narrow, 20)...))), deaf{})}
			s.Persona.Initial = "Hello."
			if prepared {
				if err := s.Prepare(t.Context(), audio.Narrow); err != nil {
					t.Fatal(err)
				}
			}
			s.Run(t.Context(), &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
				time.Sleep(20 * time.Millisecond)
				out := make([]int16, 160)
				if p.Tick(nil, out); audio.Level(out) < -50 {
					t.Errorf("prepared %v: the first packet is silent: %.1f dBFS", prepared, audio.Level(out))
				}
				return parley.CustomerHangup
			}})
		})
	}
}
