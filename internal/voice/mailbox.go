package voice

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
)

// Mailbox takes a caller's message: they hear a greeting and a tone, and what they say then is recorded and
// transcribed. Silence, a key or the longest time ends it.
type Mailbox struct {
	Language   string
	Keywords   []string
	Recognizer ai.Recognizer // nil: the message is recorded alone
	Text       string        // the greeting
	Greeting   []int16       // its sound
	Longest    time.Duration // of the message
	Silence    time.Duration // that ends it
	Record     io.WriteSeeker
	Tell       func(Event)
}

const (
	tonePause = 300 * time.Millisecond // between the greeting and the tone
	toneTime  = 400 * time.Millisecond
	toneHertz = 1000
	toneLevel = 6000
	// a pause of so long ends an utterance of a message, and so does its length: a recognizer hears no longer ones
	messagePause = time.Second
	maxSaying    = 40 * time.Second
	// so long the last words of a message are waited for when the caller has hung up
	lastWords = 10 * time.Second
)

// Run takes the message and blocks until the caller has left it. The reason is Voicemail where we have hung up.
func (b *Mailbox) Run(ctx context.Context, leg audio.Leg) (res Result) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rate := leg.Rate()
	var wg sync.WaitGroup
	m := &message{Mailbox: b, rate: rate, vad: audio.NewVAD(rate), over: func() { cancel(parley.Voicemail) }}
	m.play = append(m.play, b.Greeting...)
	m.tone = len(m.play)
	m.play = appendTone(m.play, rate)
	m.before = make([]int16, 0, samples(rate, preroll))
	fail := func(err error) { res.Err = errors.Join(res.Err, err) }
	if b.Record != nil {
		rec, err := NewRecording(b.Record, rate)
		if err != nil {
			fail(err)
		}
		m.recording = rec
	}
	listening, deaf := context.WithCancel(context.WithoutCancel(ctx)) // the last words are known after the call
	defer deaf()
	if b.Recognizer != nil {
		recognition, err := b.Recognizer.Listen(listening, ai.Hearing{Language: b.Language, Rate: rate, Keywords: b.Keywords})
		if err != nil {
			fail(ai.TheRecognizer.Of(err))
		} else {
			m.recognition = recognition
			crash.Go(&wg, m.follow, m.crashed)
		}
	}
	err := crash.Run(func() error { return leg.Run(ctx, m) })
	if crash.Is(err) {
		fail(err)
	}
	res.Over = parley.Now()
	if m.recording != nil {
		fail(m.recording.Close())
	}
	if m.recognition != nil {
		m.endSaying()
		m.await(lastWords)
		m.recognition.Close()
	}
	wg.Wait()
	fail(m.failed)
	res.Turns, res.Reason = m.turns(), mailboxReason(ctx, err)
	return res
}

// mailboxReason says why a message is over.
func mailboxReason(ctx context.Context, err error) parley.EndedReason {
	if reason, ok := errors.AsType[parley.EndedReason](context.Cause(ctx)); ok {
		return reason
	}
	if reason, ok := errors.AsType[parley.EndedReason](err); ok {
		return reason
	}
	switch {
	case ctx.Err() != nil:
		return parley.Shutdown
	case err == nil:
		return parley.CustomerHangup
	}
	return parley.MediaTimeout
}

func samples(r audio.Rate, d time.Duration) int { return int(d * time.Duration(r) / time.Second) }

// appendTone adds a pause and the tone after which one speaks.
func appendTone(pcm []int16, rate audio.Rate) []int16 {
	pcm = append(pcm, make([]int16, samples(rate, tonePause))...)
	n := samples(rate, toneTime)
	for i := range n {
		edge := min(float64(min(i, n-i))/float64(rate)/0.01, 1) // it doesn't click
		pcm = append(pcm, int16(edge*toneLevel*math.Sin(2*math.Pi*toneHertz*float64(i)/float64(rate))))
	}
	return pcm
}

// message is one that is being left: the leg's peer. The leg calls it, and nobody else touches what it has, but for
// what the mutex guards.
type message struct {
	*Mailbox
	rate      audio.Rate
	vad       *audio.VAD
	recording *Recording
	over      func()

	play     []int16 // the greeting, and the tone
	tone, at int     // where the tone begins; what was played
	heard    bool    // all of the greeting was
	time     time.Duration
	since    time.Duration // when the tone was over; 0: it is not
	spoke    time.Duration // when the caller last did

	recognition ai.Recognition // nil: there is none
	before      []int16
	saying      bool // an utterance is under way
	began       time.Duration

	mu      sync.Mutex
	sayings []saying // the utterances that were begun
	known   int      // of these: their texts are final
	gone    bool     // the recognizer is
	failed  error
	changed chan struct{}
}

// saying is an utterance of a message.
type saying struct {
	at       time.Duration
	text     string
	language string
}

// Hear implements audio.Peer.
func (*message) Hear(audio.Frame) {}

// Digit implements audio.Peer: # goes on to the tone, and ends the message after it.
func (m *message) Digit(key byte) {
	switch {
	case key != '#':
	case m.since > 0:
		m.over()
	case m.at < m.tone:
		m.at = m.tone
	}
}

// Tick implements audio.Peer.
func (m *message) Tick(in, out audio.Frame) bool {
	m.time += audio.FrameTime
	n := copy(out, m.play[m.at:])
	clear(out[n:])
	before := m.at
	m.at += n
	m.heard = m.heard || before < m.tone && m.at >= m.tone
	if m.recording != nil {
		m.recording.Put(in, out)
	}
	if m.at < len(m.play) {
		return true
	}
	if m.since == 0 {
		m.since, m.spoke = m.time, m.time
	}
	m.listen(in)
	if m.time-m.since >= m.Longest || m.time-m.spoke >= m.Silence {
		m.over()
	}
	return n > 0
}

// listen takes what the caller says after the tone.
func (m *message) listen(in audio.Frame) {
	speech, voiced := m.vad.Detect(in)
	if speech && voiced {
		if m.spoke = m.time; !m.saying {
			m.beginSaying()
		}
	}
	if m.recognition == nil {
		return
	}
	if m.saying || m.recognition.Continuous() {
		m.recognition.Write(in)
	}
	if !m.saying {
		if len(m.before)+len(in) > cap(m.before) {
			m.before = m.before[:copy(m.before, m.before[min(len(in), len(m.before)):])]
		}
		m.before = append(m.before, in...)
	} else if m.time-m.spoke >= messagePause || m.time-m.began >= maxSaying {
		m.endSaying()
	}
}

func (m *message) beginSaying() {
	m.saying, m.began = true, m.time
	if m.recognition == nil {
		return
	}
	m.mu.Lock()
	m.sayings = append(m.sayings, saying{at: m.time - audio.FrameTime})
	m.mu.Unlock()
	if !m.recognition.Continuous() {
		m.recognition.Write(m.before)
	}
	m.before = m.before[:0]
}

func (m *message) endSaying() {
	if m.saying && m.recognition != nil {
		m.recognition.End()
	}
	m.saying = false
}

// follow takes what the recognizer understands until it closes.
func (m *message) follow() {
	for t := range m.recognition.Transcripts() {
		m.understood(t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = true
	m.tellChange()
}

// crashed notes that what was said is not followed any more.
func (m *message) crashed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed, m.gone = errors.Join(m.failed, err), true
	m.tellChange()
}

func (m *message) understood(t ai.Transcript) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := strings.Join(strings.Fields(spoken(t, m.Language)), " ")
	if t.Utterance >= len(m.sayings) || t.Utterance < 0 || text == "" && !t.Final {
		return
	}
	s := &m.sayings[t.Utterance]
	if t.Err != nil {
		m.failed = errors.Join(m.failed, t.Err)
	} else {
		s.text, s.language = text, cmp.Or(t.Language, m.Language)
	}
	switch {
	case t.Final:
		m.known = max(m.known, t.Utterance+1)
		if m.Tell != nil && s.text != "" {
			m.Tell(Event{Kind: TurnEnded, Turn: s.turn()})
		}
		m.tellChange()
	case m.Tell != nil:
		m.Tell(Event{Kind: PartialHeard, Text: s.text})
	}
}

func (s *saying) turn() parley.CallTurn {
	return parley.CallTurn{Speaker: parley.SpeakerCustomer, Text: s.text, StartedAtMS: s.at.Milliseconds(), Language: s.language}
}

// tellChange wakes who waits for the last words; the mutex is held.
func (m *message) tellChange() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// await waits until all that was said has its text, or for so long.
func (m *message) await(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		m.mu.Lock()
		if m.gone || m.known >= len(m.sayings) {
			m.mu.Unlock()
			return
		}
		m.changed = make(chan struct{})
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			return
		}
	}
}

// turns is the transcript: the greeting, if it was heard to its end, and the message.
func (m *message) turns() []parley.CallTurn {
	list := []parley.CallTurn{}
	if m.heard && m.Text != "" {
		list = append(list, parley.CallTurn{Speaker: parley.SpeakerAssistant, Text: m.Text, Language: m.Language})
	}
	for i := range m.sayings {
		if m.sayings[i].text != "" {
			list = append(list, m.sayings[i].turn())
		}
	}
	return list
}
