// Package simulator is people on the telephone who are none. Dial calls the far end of a server without a trunk:
// somebody who answers, a busy line, a voicemail, in this process. The package phone below it is a telephone over a
// real network, for tests of the program and for parley test.
package simulator

import (
	"context"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
)

// Options say who is called, and how the far end speaks.
type Options struct {
	// To is the number that is dialled. Its last four digits say who is there: 0003 is busy, 0004 never answers, 0005
	// is a voicemail, and at all others a person answers.
	To string
	// Synthesizer speaks for the far end, in English. Without one, or when it fails, the far end makes a sound that
	// is like speech and has no words: enough for a call that can be listened to, and interrupted.
	Synthesizer ai.Synthesizer
	Voice       string // the vendor's own name of the voice
	// Lines keeps what the synthesizer said for later calls; nil has it speak anew for this one.
	Lines *Lines
}

const (
	ringAfter   = 300 * time.Millisecond
	answerAfter = 1500 * time.Millisecond
	renderTime  = 10 * time.Second // a slow synthesizer delays the answer, up to here
	rate        = audio.Wide
	language    = "en"
)

// Dial calls the far end and returns when it has answered; ringing, where not nil, is told when it rings. The error
// is why nobody answered: a parley.EndedReason, or what ctx ended with. Nothing is running when it returns; the leg's
// Run does everything else.
func Dial(ctx context.Context, o Options, ringing func()) (audio.Leg, error) {
	answered := time.Now().Add(answerAfter)
	if err := sleep(ctx, ringAfter); err != nil {
		return nil, err
	}
	l := &leg{}
	switch last := o.To[max(len(o.To)-4, 0):]; last {
	case "0003":
		return nil, parley.LineBusy
	case "0004":
		if ringing != nil {
			ringing()
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "0005":
		l.texts, l.live = []string{greeting}, (*line).mailbox
	default:
		l.texts, l.live = talk, (*line).person
	}
	if ringing != nil {
		ringing()
	}
	l.render(ctx, o)
	if err := sleep(ctx, time.Until(answered)); err != nil {
		return nil, err
	}
	return l, nil
}

// sleep waits, for less than d where ctx ends, whose cause it returns then.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// render has all that will be said ready before the answer: a person does not have to think what "hello" sounds like.
func (l *leg) render(ctx context.Context, o Options) {
	ctx, cancel := context.WithTimeout(ctx, renderTime)
	defer cancel()
	for _, text := range l.texts {
		pcm := o.Lines.get(text, o.Voice)
		if pcm == nil && o.Synthesizer != nil {
			if pcm = speak(ctx, o, text); pcm != nil {
				o.Lines.put(text, o.Voice, pcm)
			}
		}
		if pcm == nil {
			pcm = murmur(text)
		}
		l.sounds = append(l.sounds, pcm)
	}
}

// longest bounds a line: a vendor that never stops talking must not fill the memory.
const longest = 20 * int(rate)

// speak is nil when the synthesizer failed: a far end that exists to try things with speaks without words then.
func speak(ctx context.Context, o Options, text string) []int16 {
	var pcm []int16
	err := ai.Say(ctx, o.Synthesizer, ai.Speech{Voice: o.Voice, Language: language, Rate: rate}, text,
		func(part []int16) error {
			pcm = append(pcm, part[:min(len(part), longest-len(pcm))]...)
			return nil
		})
	if err != nil || len(pcm) == 0 {
		return nil
	}
	return pcm
}

// Lines keeps the sound of what far ends say, as one synthesizer says it: there are few sentences, and a campaign
// calls many people. It is safe for concurrent use; its zero value is ready, and nil keeps nothing.
type Lines struct {
	mu  sync.Mutex
	pcm map[string][]int16
}

func (l *Lines) get(text, voice string) []int16 {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pcm[voice+"\n"+text]
}

func (l *Lines) put(text, voice string, pcm []int16) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pcm == nil {
		l.pcm = map[string][]int16{}
	}
	l.pcm[voice+"\n"+text] = pcm
}

// transfer says whether a number takes on a call that is sent there: the same numbers as in Dial do not.
func transfer(to string) error {
	switch {
	case strings.HasSuffix(to, "0003"):
		return parley.LineBusy
	case strings.HasSuffix(to, "0004"):
		return parley.NoAnswer
	}
	return nil
}
