package aitest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
)

// Recognizer is an ai.Recognizer that understands what its script says. An utterance takes the next step of the script
// with its first loud audio; a silent one takes none and means "". When the script has run out, Hear decides. The zero
// value is ready.
type Recognizer struct {
	// Hear returns the text of an unscripted utterance from all of its audio; nil means "".
	Hear func(pcm []int16, h ai.Hearing) string
	// Turns makes recognizers that are given all audio and find turns in it: a turn starts with loud audio, may be over after
	// EagerTime of silence, and is over after EndTime.
	Turns bool
	// Err fails Listen.
	Err error

	mu     sync.Mutex
	script []Understanding
	heard  []ai.Hearing
	live   int
}

// Understanding is how a Recognizer understands one utterance.
type Understanding struct {
	Text string // of the final transcript
	// Partials come in order, each after PartialTime more of loud audio; nil means word by word, an empty list none.
	Partials []string
	Delay    time.Duration // from End to the final transcript
	Gate     <-chan struct{}
	Err      error // the utterance is lost, an *ai.Error
	Hang     bool  // no final transcript, until the recognizer closes
}

// PartialTime is how much loud audio a Recognizer takes per partial transcript.
const PartialTime = 200 * time.Millisecond

// EagerTime and EndTime are how much silence in the audio makes a recognizer that finds turns report it.
const (
	EagerTime = 100 * time.Millisecond
	EndTime   = 400 * time.Millisecond
)

// loud is the mean amplitude from which a piece of audio is not silence.
const loud = 300

// Script appends to what it will understand.
func (r *Recognizer) Script(u ...Understanding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = append(r.script, u...)
}

// Say appends texts to what it will understand, an utterance each.
func (r *Recognizer) Say(texts ...string) {
	for _, text := range texts {
		r.Script(Understanding{Text: text})
	}
}

// Heard lists the arguments of Listen, in order.
func (r *Recognizer) Heard() []ai.Hearing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heard)
}

// Live is how many recognizers are open.
func (r *Recognizer) Live() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// Left is how many steps of the script are left.
func (r *Recognizer) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.script)
}

func (r *Recognizer) next() (Understanding, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.script) == 0 {
		return Understanding{Partials: []string{}}, false
	}
	u := r.script[0]
	r.script = r.script[1:]
	if u.Partials == nil {
		words := strings.Fields(u.Text)
		for i := range words {
			u.Partials = append(u.Partials, strings.Join(words[:i+1], " "))
		}
	}
	return u, true
}

// Listen implements ai.Recognizer.
func (r *Recognizer) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, h)
	if r.Err != nil {
		return nil, r.Err
	}
	r.live++
	ctx, cancel := context.WithCancel(ctx)
	e := &recognition{r: r, h: h, ctx: ctx, cancel: cancel, out: make(chan ai.Transcript), wake: make(chan struct{}, 1),
		done: make(chan struct{})}
	go e.run()
	return e, nil
}

// recognition is an open Recognizer. Its goroutine sends the transcripts; Write and End only queue what to send.
type recognition struct {
	r      *Recognizer
	h      ai.Hearing
	ctx    context.Context
	cancel context.CancelFunc
	out    chan ai.Transcript
	wake   chan struct{}
	done   chan struct{}

	// used by the goroutine that writes
	number   int
	begun    bool // something loud was written
	scripted bool
	u        Understanding
	loud     time.Duration
	told     int // partials
	pcm      []int16

	turn  ai.Turn       // what was told last
	last  int           // the utterance of the latest loud sound
	quiet time.Duration // since then

	mu    sync.Mutex
	queue []telling
}

type telling struct {
	ai.Transcript
	delay time.Duration
	gate  <-chan struct{}
	hang  bool
}

// Write implements ai.Recognition.
func (e *recognition) Write(pcm []int16) {
	sum := 0
	for _, v := range pcm {
		sum += max(int(v), -int(v))
	}
	quiet := sum < loud*len(pcm) || len(pcm) == 0
	if e.r.Hear != nil && !(quiet && e.r.Turns) { // who is given everything tells speech from silence
		e.pcm = append(e.pcm, pcm...)
	}
	if quiet {
		e.silence(time.Duration(len(pcm)) * time.Second / time.Duration(e.h.Rate))
		return
	}
	if !e.begun {
		e.begun = true
		e.u, e.scripted = e.r.next()
	}
	e.quiet, e.last = 0, e.number
	switch e.turn {
	case "", ai.TurnEnded:
		e.tellTurn(ai.TurnStarted, "")
	case ai.TurnEager:
		e.tellTurn(ai.TurnResumed, "")
	}
	e.loud += time.Duration(len(pcm)) * time.Second / time.Duration(e.h.Rate)
	for e.told < len(e.u.Partials) && e.loud >= PartialTime*time.Duration(e.told+1) {
		e.tell(telling{Transcript: ai.Transcript{Utterance: e.number, Text: e.u.Partials[e.told]}})
		e.told++
	}
}

// silence lets a turn come to its end.
func (e *recognition) silence(d time.Duration) {
	e.quiet += d
	text := ""
	if e.last == e.number { // else its final transcript has said it
		text = e.u.Text
	}
	switch {
	case e.turn == "" || e.turn == ai.TurnEnded:
	case e.quiet >= EndTime:
		e.tellTurn(ai.TurnEnded, text)
	case e.quiet >= EagerTime && e.turn != ai.TurnEager:
		e.tellTurn(ai.TurnEager, text)
	}
}

func (e *recognition) tellTurn(t ai.Turn, text string) {
	if e.r.Turns {
		e.turn = t
		e.tell(telling{Transcript: ai.Transcript{Utterance: e.last, Text: text, Turn: t}})
	}
}

// Continuous implements ai.Recognition.
func (e *recognition) Continuous() bool { return e.r.Turns }

// End implements ai.Recognition.
func (e *recognition) End() {
	t := telling{Transcript: ai.Transcript{Utterance: e.number, Text: e.u.Text, Final: true, Err: e.u.Err},
		delay: e.u.Delay, gate: e.u.Gate, hang: e.u.Hang}
	if !e.scripted && e.r.Hear != nil {
		t.Text = e.r.Hear(e.pcm, e.h)
	}
	if t.Err != nil {
		t.Text = ""
	}
	e.tell(t)
	e.number++
	e.begun, e.scripted, e.u, e.loud, e.told, e.pcm = false, false, Understanding{}, 0, 0, nil
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

// Transcripts implements ai.Recognition.
func (e *recognition) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Recognition.
func (e *recognition) Close() {
	e.cancel()
	<-e.done
}

func (e *recognition) run() {
	defer close(e.done)
	defer close(e.out)
	defer func() {
		e.r.mu.Lock()
		e.r.live--
		e.r.mu.Unlock()
	}()
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
		if t.hang {
			<-e.ctx.Done()
		}
		if wait(e.ctx, t.delay, t.gate, 1) != nil {
			return
		}
		select {
		case e.out <- t.Transcript:
		case <-e.ctx.Done():
			return
		}
	}
}
