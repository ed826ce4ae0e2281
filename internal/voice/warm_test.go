package voice_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/voice"
)

// handset is a telephone on fake time that sends a tone and keeps what it hears. As a Line, its peer can be changed.
type handset struct {
	rate  audio.Rate
	hz    float64
	talks func() bool // whether it sends its tone now; nil: always

	mu      sync.Mutex
	heard   []int16
	pressed string
	peer    audio.Peer
	closed  int

	once sync.Once
	done chan struct{}
}

func newHandset(rate audio.Rate, hz float64) *handset {
	return &handset{rate: rate, hz: hz, done: make(chan struct{})}
}

func (h *handset) Rate() audio.Rate      { return h.rate }
func (h *handset) Hangup()               { h.once.Do(func() { close(h.done) }) }
func (h *handset) Done() <-chan struct{} { return h.done }

func (h *handset) Dial(digits string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pressed += digits
	return nil
}

func (h *handset) Connect(p audio.Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peer = p
}

func (h *handset) Close() {
	h.mu.Lock()
	h.closed++
	h.mu.Unlock()
	h.Hangup()
}

// Run implements audio.Leg.
func (h *handset) Run(ctx context.Context, p audio.Peer) error {
	if p != nil {
		h.Connect(p)
	}
	tick := time.NewTicker(audio.FrameTime)
	defer tick.Stop()
	in, out := make([]int16, h.rate.FrameSize()), make([]int16, h.rate.FrameSize())
	for n := 0; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.done:
			return parley.CustomerHangup
		}
		talks := h.talks == nil || h.talks()
		clear(in)
		for i := range in {
			if !talks {
				break
			}
			in[i] = int16(2000 * math.Sin(2*math.Pi*h.hz*float64(n)/float64(h.rate)))
			n++
		}
		h.mu.Lock()
		peer := h.peer
		h.mu.Unlock()
		if peer == nil {
			continue
		}
		peer.Hear(in)
		if !peer.Tick(in, out) {
			clear(out)
		}
		h.mu.Lock()
		h.heard = append(h.heard, out...)
		h.mu.Unlock()
	}
}

// loud is how loud a tone is in a piece of audio: 1 for a handset's full tone alone.
func loud(pcm []int16, hz float64, rate audio.Rate) float64 {
	var re, im float64
	for i, x := range pcm {
		sin, cos := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		re, im = re+float64(x)*cos, im+float64(x)*sin
	}
	return math.Hypot(re, im) * 2 / 2000 / float64(len(pcm))
}

// story is what a handset heard, in the order in which things began: texts, the names of others' tones, and "music"
// each time that it begins.
func story(h *handset, synthesizer *aitest.Synthesizer, others map[string]float64) (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	size, tunes := int(h.rate)/5, 0
	for at := 0; at+size <= len(h.heard); at += size {
		pcm := h.heard[at : at+size]
		var now []string
		for name, hz := range others {
			if loud(pcm, hz, h.rate) > 0.6 {
				now = append(now, name)
			}
		}
		switch text := synthesizer.Find(pcm, h.rate); {
		case text != "":
			now = append(now, text)
		case len(now) == 0 && audio.Level(pcm) > -60:
			if tunes++; tunes > 2 { // fewer are the seam of two texts
				now = append(now, "music")
			}
		}
		if len(now) > 0 {
			tunes = 0
		}
		for _, what := range now {
			if !slices.Contains(list, what) || what == "music" && list[len(list)-1] != what {
				list = append(list, what)
			}
		}
	}
	return list
}

// quietly is a Detector that finds nothing: a handset's tone is not speech.
type quietly struct{}

func (quietly) Detect(audio.Frame) (bool, bool) { return false, false }

func (quietly) Sure() bool { return false }

func (quietly) Words() float32   { return 0 }
func (quietly) Cadence() float32 { return 0 }

// warm is a session whose model transfers the customer after a second of silence.
func warm(tool parley.AssistantTool, synthesizer *aitest.Synthesizer) (*voice.Session, *aitest.Fake) {
	model := &aitest.Fake{}
	model.Script(aitest.Step{Text: "One moment.", Calls: []ai.ToolCall{{ID: "1", Name: tool.Type, Arguments: "{}"}}},
		aitest.Step{Text: "What else can I do?"})
	p := persona(model, synthesizer, deaf{})
	p.Assistant.Tools = []parley.AssistantTool{tool}
	p.Assistant.MaxSilenceDuration, p.Assistant.ReengagementInterval = 1, 5
	p.Reengagement = "Go on."
	return &voice.Session{Persona: p, Detect: func(audio.Rate) voice.Detector { return quietly{} }}, model
}

const customerHz, targetHz = 3350, 3450

var supervisor = parley.AssistantTool{Type: "warm_call_transfer", SupervisorPhone: "+4930901820",
	HoldMessage: "Please hold.", ConnectedMessage: "Here you are."}

// The customer hears the message and music, then the person who was called, and the assistant is gone. Both hear the
// last message, keys reach the other side, and the recording has all of it.
func TestWarmTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synthesizer, file := &aitest.Synthesizer{}, &memory{}
		s, _ := warm(supervisor, synthesizer)
		s.Record = file
		customer, target := newHandset(audio.Narrow, customerHz), newHandset(audio.Wide, targetHz)
		var far sync.WaitGroup
		defer far.Wait()
		s.Warm = func(ctx context.Context, n voice.Announcement) (voice.Line, error) {
			if n.Tool.SupervisorPhone != supervisor.SupervisorPhone || *n.Tool.HoldMusicVolume != 80 ||
				n.Persona.Assistant == nil {
				t.Errorf("%+v", n)
			}
			time.Sleep(4 * time.Second)
			far.Go(func() { target.Run(context.Background(), nil) })
			return target, nil
		}
		go func() {
			time.Sleep(14 * time.Second)
			customer.mu.Lock()
			here := customer.peer
			customer.mu.Unlock()
			target.mu.Lock()
			there := target.peer
			target.mu.Unlock()
			if there == nil {
				t.Error("nobody was joined")
				customer.Hangup()
				return
			}
			here.Digit('5')
			there.Digit('7')
			time.Sleep(26 * time.Second) // longer than any silence that an assistant allows
			target.Hangup()
		}()
		r := s.Run(t.Context(), customer)
		if r.Reason != parley.Transferred || r.Err != nil {
			t.Errorf("it ends with %q: %v; %+v %+v", r.Reason, r.Err, r.Turns, r.Calls)
		}
		want := []string{"One moment.", "Please hold.", "music", "target", "Here you are."}
		got := story(customer, synthesizer, map[string]float64{"target": targetHz})
		if !slices.Equal(got, want) {
			t.Errorf("the customer hears %q", got)
		}
		got = story(target, synthesizer, map[string]float64{"customer": customerHz})
		if want := []string{"customer", "Here you are."}; !slices.Equal(got, want) {
			t.Errorf("the target hears %q", got)
		}
		if customer.pressed != "7" || target.pressed != "5" {
			t.Errorf("keys: %q and %q", customer.pressed, target.pressed)
		}
		if target.closed != 1 {
			t.Errorf("the target's line is closed %d times", target.closed)
		}
		last := r.Turns[len(r.Turns)-1]
		if last.Interrupted || !strings.HasSuffix(last.Text, "Here you are.") {
			t.Errorf("%+v", last)
		}
		left, right := stereo(t, file)
		end := len(right) - 2*8000
		if loud(right[end:end+8000], targetHz, audio.Narrow) < 0.6 || loud(left[end:end+8000], customerHz, audio.Narrow) < 0.6 {
			t.Error("the recording lacks somebody")
		}
	})
}

// stereo is both sides of a recording.
func stereo(t *testing.T, file *memory) (left, right []int16) {
	t.Helper()
	w, err := audio.NewWAVReader(bytes.NewReader(file.b))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]int16, 3200)
	for {
		n, err := w.Read(buf)
		for i := 0; i+1 < n; i += 2 {
			left, right = append(left, buf[i]), append(right, buf[i+1])
		}
		if errors.Is(err, io.EOF) || n == 0 {
			return left, right
		}
	}
}

// A failed transfer returns to the customer with a text, whatever the model does then.
func TestWarmTransferFails(t *testing.T) {
	sorry := lang.Of("en").Phrases.NotConnected
	for reason, told := range map[parley.EndedReason]string{parley.LineBusy: "the line is busy",
		parley.NoAnswer: "nobody answered", parley.Voicemail: "a voicemail answered",
		parley.Rejected: "the call was declined", parley.Unreachable: "could not be reached",
		parley.CustomerHangup: "hung up before"} {
		synctest.Test(t, func(t *testing.T) {
			synthesizer := &aitest.Synthesizer{}
			tool, music := supervisor, reason == parley.NoAnswer
			if !music {
				tool.HoldMusic = "none"
			}
			s, model := warm(tool, synthesizer)
			s.Warm = func(ctx context.Context, _ voice.Announcement) (voice.Line, error) {
				time.Sleep(2 * time.Second)
				return nil, reason
			}
			customer := newHandset(audio.Narrow, customerHz)
			time.AfterFunc(14*time.Second, customer.Hangup)
			r := s.Run(t.Context(), customer)
			if r.Reason != parley.CustomerHangup {
				t.Errorf("%s: %s", reason, r.Reason)
			}
			want := []string{"One moment.", "Please hold.", sorry, "What else can I do?"}
			if music { // until there is something to say, and not under it or after it
				want = slices.Insert(want, 2, "music")
			}
			if got := story(customer, synthesizer, nil); !slices.Equal(got[:min(len(want), len(got))], want) ||
				music && len(got) > len(want) && slices.Contains(got[len(want):], "music") {
				t.Errorf("%s: the customer hears %q", reason, got)
			}
			asked := model.Requests()
			if last := asked[1].Messages; !strings.Contains(last[len(last)-1].Text, told) {
				t.Errorf("%s: the model is told %q", reason, last[len(last)-1].Text)
			}
		})
	}
}

// While somebody is called without being told about the customer, the customer hears music, and then the sound from the
// far end. Whether anybody answers or not, that ends afterwards.
func TestTransferEarlySound(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			synthesizer := &aitest.Synthesizer{}
			s, _ := warm(parley.AssistantTool{Type: "call_transfer", PhoneNumber: "204", WarmTransfer: new(bool)}, synthesizer)
			customer, target := newHandset(audio.Narrow, customerHz), newHandset(audio.Wide, targetHz)
			s.Transfer = func(context.Context, string) error { return parley.ErrNoRefer }
			var far sync.WaitGroup
			s.Reach = func(ctx context.Context, _ string, early func(audio.Rate) audio.Peer) (voice.Line, error) {
				began := time.Now()
				ringback := newHandset(audio.Wide, 1000)
				ringback.talks = func() bool { return time.Since(began) > time.Second }
				ringing, stop := context.WithTimeout(ctx, 3*time.Second)
				defer stop()
				ringback.Run(ringing, early(audio.Wide))
				if slices.ContainsFunc(ringback.heard, func(v int16) bool { return v != 0 }) {
					t.Error("the far end hears the customer before it has answered")
				}
				if !answers {
					return nil, parley.NoAnswer
				}
				far.Go(func() { target.Run(context.Background(), nil) })
				return target, nil
			}
			time.AfterFunc(20*time.Second, customer.Hangup)
			s.Run(t.Context(), customer)
			far.Wait()
			want := []string{"One moment.", "music", "ringback", "target"}
			if !answers {
				want[3] = "What else can I do?"
			}
			got := story(customer, synthesizer, map[string]float64{"target": targetHz, "ringback": 1000})
			if len(got) < 4 || !slices.Equal(got[:3], want[:3]) || !slices.Contains(got[3:], want[3]) {
				t.Errorf("the customer hears %q, want %q", got, want)
			}
			if !alone(customer.heard, 1000, customer.rate) {
				t.Error("there is music under the ringback")
			}
		})
	}
}

// alone reports whether somewhere a handset's tone is all that is heard.
func alone(pcm []int16, hz float64, rate audio.Rate) bool {
	for size := int(rate) / 5; len(pcm) > size; pcm = pcm[size:] {
		tone, all := loud(pcm[:size], hz, rate)*2000, 0.0
		for _, v := range pcm[:size] {
			all += float64(v) * float64(v) / float64(size)
		}
		if tone > 1000 && tone*tone/2 > 0.97*all {
			return true
		}
	}
	return false
}

// Whoever hangs up, and whenever, nobody is left on a line, and a customer who stays is spoken to.
func TestWarmTransferSeeds(t *testing.T) {
	sorry := lang.Of("en").Phrases.NotConnected
	reasons := []parley.EndedReason{parley.LineBusy, parley.NoAnswer, parley.Voicemail, parley.Rejected}
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 15))
			upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
			synthesizer := &aitest.Synthesizer{}
			tool := supervisor
			kind := random.IntN(3)
			if kind > 0 {
				tool = parley.AssistantTool{Type: "call_transfer", PhoneNumber: "204", WarmTransfer: new(bool)}
				*tool.WarmTransfer = kind == 1
			}
			s, _ := warm(tool, synthesizer)
			customer, target := newHandset(audio.Narrow, 0), newHandset(audio.Narrow, targetHz)
			takes, stays, leaves := upTo(3*time.Second), upTo(4*time.Second), upTo(9*time.Second)
			accepts, fate := random.IntN(2) == 0, reasons[random.IntN(len(reasons))]
			var far sync.WaitGroup
			given := false
			s.Warm = func(ctx context.Context, _ voice.Announcement) (voice.Line, error) {
				select {
				case <-time.After(takes):
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
				if !accepts {
					return nil, fate
				}
				given = true
				far.Go(func() { target.Run(context.Background(), nil) })
				time.AfterFunc(stays, target.Hangup)
				return target, nil
			}
			s.Transfer = func(context.Context, string) error { return parley.ErrNoRefer }
			s.Reach = func(ctx context.Context, _ string, _ func(audio.Rate) audio.Peer) (voice.Line, error) {
				return s.Warm(ctx, voice.Announcement{})
			}
			began := time.Now()
			time.AfterFunc(leaves, customer.Hangup)
			r := s.Run(t.Context(), customer)
			far.Wait() // this hangs if a target is left on the line
			text := parley.CallTranscript(r.Turns)
			switch {
			case r.Err != nil && accepts:
				t.Errorf("seed %d: %v", seed, r.Err)
			case given && target.closed != 1:
				t.Errorf("seed %d: the target's line is closed %d times", seed, target.closed)
			case given && r.Reason != parley.Transferred && r.Reason != parley.CustomerHangup,
				!given && r.Reason != parley.CustomerHangup:
				t.Errorf("seed %d: it ends with %q", seed, r.Reason)
			case time.Since(began) > leaves+time.Second:
				t.Errorf("seed %d: the call goes on for %v", seed, time.Since(began))
			case !accepts && kind == 2 && leaves > takes+5*time.Second && !strings.Contains(text, "What else"),
				!accepts && kind < 2 && leaves > takes+5*time.Second && !strings.Contains(text, sorry[:20]):
				t.Errorf("seed %d: the customer is told nothing: %s", seed, text)
			}
		})
	}
}

// Joined legs allocate nothing per packet.
func TestJoinedAllocatesNothing(t *testing.T) {
	synthesizer := &aitest.Synthesizer{}
	s, _ := warm(supervisor, synthesizer)
	s.Persona.Assistant.MaxSilenceDuration = 1
	line := newHandset(audio.Wide, targetHz)
	s.Warm = func(context.Context, voice.Announcement) (voice.Line, error) { return line, nil }
	leg := &driven{rate: audio.Narrow, run: func(_ context.Context, peer audio.Peer) error {
		in, out := make([]int16, 160), make([]int16, 160)
		there, back := make([]int16, 320), make([]int16, 320)
		joined := func() audio.Peer { line.mu.Lock(); defer line.mu.Unlock(); return line.peer }
		for joined() == nil {
			time.Sleep(time.Millisecond)
			peer.Hear(in)
			peer.Tick(in, out)
			voice.Settle(peer)
		}
		other := joined()
		both := func() {
			peer.Hear(in)
			peer.Tick(in, out)
			other.Hear(there)
			other.Tick(there, back)
			voice.Settle(peer)
		}
		for range 400 { // the last words are said
			both()
		}
		if n := testing.AllocsPerRun(100, both); n > 0 {
			t.Errorf("%v allocations per frame of two joined legs", n)
		}
		return parley.CustomerHangup
	}}
	if r := s.Run(t.Context(), leg); r.Reason != parley.Transferred {
		t.Error(r.Reason, r.Err)
	}
}
