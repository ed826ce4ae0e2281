package voicetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// CharTime is how long a Voice takes per character.
const CharTime = 60 * time.Millisecond

// Voice is a synthesizer that says every text as a constant of its own, so that a script knows from each frame what is
// heard.
type Voice struct {
	Delay time.Duration // before the first piece of a sentence
	Pace  time.Duration // before each further piece, of 100 ms
	Fails int           // so many times, Speak fails
	Hangs int           // then, so many times, it says nothing until it is told to stop
	Break string        // a text that breaks off in the middle

	mu    sync.Mutex
	texts []string
}

const (
	firstValue = 1000
	mark       = 100 // the sample of a frame that holds its number
)

func (v *Voice) text(sample int16) (text string, frames int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := (int(sample) - firstValue) / 8
	if sample < firstValue || i >= len(v.texts) || int(sample) != firstValue+8*i {
		return "", 0
	}
	return v.texts[i], framesOf(v.texts[i])
}

func framesOf(text string) int {
	return len([]rune(text)) * int(CharTime/audio.FrameTime)
}

func (v *Voice) value(text string) int16 {
	for i, t := range v.texts {
		if t == text {
			return int16(firstValue + 8*i)
		}
	}
	v.texts = append(v.texts, text)
	return int16(firstValue + 8*(len(v.texts)-1))
}

// Say implements ai.Plain.
func (v *Voice) Say(ctx context.Context, as ai.Speech, text string, yield func([]int16) error) error {
	if as.Voice != "test" { // another language's: it is heard which one spoke
		text = as.Language + ": " + text
	}
	v.mu.Lock()
	value := v.value(text)
	delay, pace, breaks := v.Delay, v.Pace, v.Break
	fails, hangs := v.Fails > 0, v.Hangs > 0
	if fails {
		v.Fails--
	} else if hangs {
		v.Hangs--
	}
	v.mu.Unlock()
	if err := sleep(ctx, delay); err != nil {
		return err
	}
	switch {
	case fails:
		return &ai.Error{Kind: ai.Unreachable, Err: errors.New("no voice")}
	case hangs:
		<-ctx.Done()
		return context.Cause(ctx)
	}
	n := framesOf(text) * as.Rate.FrameSize()
	piece := make([]int16, 5*as.Rate.FrameSize())
	for i := range piece {
		piece[i] = value
	}
	for at := 0; at < n; at += len(piece) {
		for i := range 5 { // each frame says which of the sentence's it is, where fading leaves it alone
			piece[i*as.Rate.FrameSize()+mark] = int16(at/as.Rate.FrameSize() + i)
		}
		if at > 0 {
			if err := sleep(ctx, pace); err != nil {
				return err
			}
		}
		if text == breaks && at >= n/2 {
			return &ai.Error{Kind: ai.Interrupted, Err: errors.New("the voice broke")}
		}
		if err := yield(piece[:min(len(piece), n-at)]); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// Brain is a Model that follows a script to the letter: a request for which nothing is scripted fails.
type Brain struct {
	mu       sync.Mutex
	script   []Thought
	Requests []ai.Request
	Extra    int // requests for which nothing was written
}

// Thought is what a Brain answers.
type Thought struct {
	Text  string
	Calls []ai.ToolCall
	After time.Duration // before the first word
	Each  time.Duration // before each further one
	Err   error         // after the text
	Hang  bool          // after the text, nothing until it is told to stop
}

// Script appends to the answers it will give.
func (b *Brain) Script(t ...Thought) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.script = append(b.script, t...)
}

// Left is how much of the script is left.
func (b *Brain) Left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.script)
}

// Asked lists the requests so far.
func (b *Brain) Asked() []ai.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]ai.Request(nil), b.Requests...)
}

// Generate implements ai.Model.
func (b *Brain) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	b.mu.Lock()
	b.Requests = append(b.Requests, req)
	asked := len(b.Requests)
	if len(b.script) == 0 {
		b.Extra++
		b.mu.Unlock()
		return ai.Reply{}, &ai.Error{Kind: ai.Config, Err: errors.New("the script has no answer")}
	}
	t := b.script[0]
	b.script = b.script[1:]
	b.mu.Unlock()

	var reply ai.Reply
	if err := sleep(ctx, t.After); err != nil {
		return reply, err
	}
	for i, word := range strings.SplitAfter(t.Text, " ") {
		if i > 0 {
			if err := sleep(ctx, t.Each); err != nil {
				return reply, err
			}
		}
		if word == "" {
			continue
		}
		reply.Text += word
		if err := yield(ai.Delta{Text: word}); err != nil {
			return reply, err
		}
	}
	if t.Hang {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return reply, context.Cause(ctx)
	}
	if t.Err != nil {
		return reply, t.Err
	}
	for i, c := range t.Calls {
		c.ID = fmt.Sprint("call", asked, i)
		reply.Calls = append(reply.Calls, c)
		if err := yield(ai.Delta{Call: &c}); err != nil {
			return reply, err
		}
	}
	reply.Finish = ai.Stop
	if len(t.Calls) > 0 {
		reply.Finish = ai.ToolCalls
	}
	return reply, nil
}

// Listener is a Recognizer that understands the frames of a Leg's customer: a word is understood once its middle was
// heard.
type Listener struct {
	Delay      time.Duration // from the end of an utterance to its text
	NoPartials bool
	Fails      int // so many utterances are lost
	Refuses    int // so many times, Listen fails
	Drops      int // so many recognizers close by themselves when they hear something

	// Eager and End are how much silence makes a recognizer that finds turns report that one may be over, and that it is.
	// With 0 the recognizer is given only utterances, and finds no turns.
	Eager, End time.Duration

	mu    sync.Mutex
	lines []string        // by number, from 1
	in    []string        // the language of each; "": the recognizer doesn't tell
	none  map[int]float64 // of some, how likely nobody spoke
	Heard []ai.Hearing
}

// line returns the frames of an utterance. An empty text is a noise.
func (l *Listener) line(text, language string, d time.Duration) [][]int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.in = append(l.lines, text), append(l.in, language)
	frames := make([][]int16, max(int(d/audio.FrameTime), 1))
	for i := range frames {
		frames[i] = make([]int16, Rate.FrameSize())
		for j := range frames[i] {
			frames[i][j] = 8000 + int16((i*i*7919+i*j*j*104729)%4000) // no tone
		}
		frames[i][0], frames[i][1], frames[i][2] = int16(len(l.lines)), int16(i), int16(len(frames))
		frames[i][3], frames[i][4] = 0, 0
	}
	return frames
}

func (l *Listener) words(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 1 || n > len(l.lines) {
		return nil
	}
	return strings.Fields(l.lines[n-1])
}

// language is the one that an utterance is in.
func (l *Listener) language(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 1 || n > len(l.in) {
		return ""
	}
	return l.in[n-1]
}

// doubt has the recognizer say of the newest utterance how likely nobody spoke.
func (l *Listener) doubt(noSpeech float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.none == nil {
		l.none = map[int]float64{}
	}
	l.none[len(l.lines)] = noSpeech
}

// manner returns how soon it tells what it heard, whether it does so before the end, and how it tells turns.
func (l *Listener) manner() (delay time.Duration, partials bool, eager, end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Delay, !l.NoPartials, l.Eager, l.End
}

func (l *Listener) noSpeech(n int) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.none[n]
}

// Listen implements ai.Recognizer.
func (l *Listener) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Heard = append(l.Heard, h)
	if l.Refuses > 0 {
		l.Refuses--
		return nil, &ai.Error{Kind: ai.Unreachable, Err: errors.New("no ear")}
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &recognition{l: l, ctx: ctx, cancel: cancel, out: make(chan ai.Transcript), wake: make(chan struct{}, 1),
		done: make(chan struct{})}
	go e.run()
	return e, nil
}

type recognition struct {
	l      *Listener
	ctx    context.Context
	cancel context.CancelFunc
	out    chan ai.Transcript
	wake   chan struct{}
	done   chan struct{}

	n        int
	text     []string
	language string
	noSpeech float64

	turn  ai.Turn
	spoke int           // the utterance of the latest sound
	quiet time.Duration // since then

	mu    sync.Mutex
	queue []telling
}

type telling struct {
	ai.Transcript
	at   time.Time
	drop bool
}

func (e *recognition) Write(pcm []int16) {
	if len(pcm) < 3 || pcm[0] == 0 {
		e.silence()
		return
	}
	e.quiet, e.spoke = 0, e.n
	switch e.turn {
	case "", ai.TurnEnded:
		e.finds(ai.TurnStarted)
	case ai.TurnEager:
		e.finds(ai.TurnResumed)
	}
	words := e.l.words(int(pcm[0]))
	_, partials, _, _ := e.l.manner()
	e.language, e.noSpeech = e.l.language(int(pcm[0])), e.l.noSpeech(int(pcm[0]))
	at, of := int(pcm[1]), int(pcm[2])
	for i, w := range words {
		if middle := (2*i + 1) * of / (2 * len(words)); middle == at {
			e.text = append(e.text, w)
			if partials {
				e.tell(telling{Transcript: ai.Transcript{Utterance: e.n, Text: strings.Join(e.text, " ")},
					at: time.Now()})
			}
		}
	}
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	if e.l.Drops > 0 {
		e.l.Drops--
		e.tell(telling{drop: true})
	}
}

func (e *recognition) End() {
	delay, _, _, _ := e.l.manner()
	t := telling{Transcript: ai.Transcript{Utterance: e.n, Text: strings.Join(e.text, " "), Language: e.language, NoSpeech: e.noSpeech,
		Final: true},
		at: time.Now().Add(delay)}
	e.l.mu.Lock()
	if e.l.Fails > 0 {
		e.l.Fails--
		t.Text, t.Err = "", &ai.Error{Kind: ai.Interrupted, Err: errors.New("the utterance was lost")}
	}
	e.l.mu.Unlock()
	e.n, e.text = e.n+1, nil
	e.tell(t)
}

// Continuous implements ai.Recognition.
func (e *recognition) Continuous() bool {
	_, _, _, end := e.l.manner()
	return end > 0
}

// silence is 20 ms of it.
func (e *recognition) silence() {
	e.quiet += audio.FrameTime
	_, _, eager, end := e.l.manner()
	switch {
	case e.turn == "" || e.turn == ai.TurnEnded:
	case e.quiet >= end:
		e.finds(ai.TurnEnded)
	case e.quiet >= eager && e.turn != ai.TurnEager:
		e.finds(ai.TurnEager)
	}
}

func (e *recognition) finds(t ai.Turn) {
	delay, _, _, end := e.l.manner()
	if end == 0 { // it tells no turns
		return
	}
	e.turn = t
	said := ai.Transcript{Utterance: e.spoke, Turn: t}
	if e.spoke == e.n {
		said.Text, said.Language = strings.Join(e.text, " "), e.language
	}
	e.tell(telling{Transcript: said, at: time.Now().Add(delay)})
}

func (e *recognition) tell(t telling) {
	e.mu.Lock()
	e.queue = append(e.queue, t)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *recognition) Transcripts() <-chan ai.Transcript { return e.out }

func (e *recognition) Close() {
	e.cancel()
	<-e.done
}

func (e *recognition) run() {
	defer close(e.done)
	defer close(e.out)
	for {
		e.mu.Lock()
		var t telling
		some := len(e.queue) > 0
		if some {
			t, e.queue = e.queue[0], e.queue[1:]
		}
		e.mu.Unlock()
		if !some {
			select {
			case <-e.wake:
				continue
			case <-e.ctx.Done():
				return
			}
		}
		if t.drop || sleep(e.ctx, time.Until(t.at)) != nil {
			return
		}
		select {
		case e.out <- t.Transcript:
		case <-e.ctx.Done():
			return
		}
	}
}

// Detector finds the customer's speech in a Leg's frames the way a real one does: two frames late, and for 240 ms after
// it ends.
type Detector struct {
	run, rest      int
	words, cadence float32
}

// Detect implements voice.Detector.
func (d *Detector) Detect(f audio.Frame) (speech, voiced bool) {
	voiced = len(f) > 0 && f[0] != 0
	if voiced {
		d.run, d.words, d.cadence = d.run+1, float32(f[3]), 0
		if f[4] >= -10 && f[4] <= 10 { // else it is no speech
			d.cadence = float32(f[4]) / 10
		}
		if d.run > 2 || d.rest > 0 {
			d.rest = 12
		}
	} else {
		d.run = 0
		d.rest = max(d.rest-1, 0)
	}
	return d.rest > 0, voiced
}

// Sure implements voice.Detector.
func (d *Detector) Sure() bool { return true }

// Words implements voice.Detector.
func (d *Detector) Words() float32 { return d.words }

// Cadence implements voice.Detector.
func (d *Detector) Cadence() float32 { return d.cadence }
