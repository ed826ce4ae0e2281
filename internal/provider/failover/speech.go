package failover

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"parley/internal/ai"
	"parley/internal/crash"
)

// VoiceBudget is how long a voice may take until its first audio, if no setting says otherwise. In the middle of its
// speech it may be silent for twice as long, as some audio is buffered.
const VoiceBudget = time.Second

// Most is the maximum length of a list of voices.
const Most = 5

// Speaker is a synthesizer's voice.
type Speaker struct {
	Synthesizer ai.Synthesizer
	Voice       string // the vendor's own name of it
}

// Synthesizer combines a list of voices into one. Lists of the same voices are equal: a cache keys audio by them.
type Synthesizer struct {
	links  [Most]Link[Speaker]
	n      int
	budget time.Duration
}

// NewSynthesizer makes a list of at least one voice; those beyond Most are left out. The budget lasts until the first
// audio; 0 means VoiceBudget.
func NewSynthesizer(budget time.Duration, links ...Link[Speaker]) Synthesizer {
	s := Synthesizer{budget: budget}
	s.n = copy(s.links[:], links)
	return s
}

// Speak implements ai.Synthesizer. Where a voice breaks the next one goes on with the words that have not been said,
// as far as that is known, and with all that follows; it stays the call's voice (ai.Tally). The voice that as names is
// the first one's.
func (s Synthesizer) Speak(ctx context.Context, as ai.Speech, texts <-chan string,
	yield func(ai.Sound) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	links := s.links[:s.n]
	r := &speech{
		queue:  line(ai.TheVoice, links, ai.TallyOf(ctx).Acting(ai.TheVoice, links[0].Name)),
		budget: budgetOr(s.budget, VoiceBudget), as: as, yield: yield, ctx: ctx, script: newScript(),
		news: make(chan sound), ends: make(chan *utterance, s.n+1),
	}
	defer r.settle()
	defer cancel(nil) // before that
	crash.Go(&r.wg, func() { r.script.fill(ctx, texts) }, cancel)
	return r.run()
}

// Steady reports whether speech now comes from the first voice, which has not failed recently: audio that is cached
// should be in the voice that was asked for.
func (s Synthesizer) Steady(ctx context.Context) bool {
	first := &s.links[0]
	return ai.TallyOf(ctx).Acting(ai.TheVoice, first.Name) == first.Name && first.Circuit.Steady()
}

// Reads implements ai.Reader: each of the voices may be the one that speaks.
func (s Synthesizer) Reads() bool {
	for i := range s.n {
		if !ai.Reads(s.links[i].Do.Synthesizer) {
			return false
		}
	}
	return true
}

// speech is one reply that is spoken, by however many.
type speech struct {
	*queue[Speaker]
	budget time.Duration
	as     ai.Speech
	yield  func(ai.Sound) error
	ctx    context.Context
	script *script

	news  chan sound
	ends  chan *utterance
	under []*utterance // that have not ended
	wg    sync.WaitGroup
	timer *time.Timer
	owed  bool // there is a text of which sound is waited for

	speaks *utterance // who goes on alone; nil while there is a race
	failed error      // of the first that failed

	// Of the present text, the first whose sound is not whole.
	text  int
	given time.Duration // of its sound
	words []ai.Word     // as they were told
	pace  pace
}

// utterance is what one voice says of the reply.
type utterance struct {
	link   *Link[Speaker]
	pass   *pass
	cancel context.CancelCauseFunc
	taken  chan error
	err    error

	text   int           // where it began
	from   int           // so many octets of that text had been said
	offset time.Duration // with so much sound
}

type sound struct {
	of *utterance
	ai.Sound
}

func (r *speech) run() error {
	r.timer = time.NewTimer(time.Hour)
	defer r.timer.Stop()
	for {
		select {
		case <-r.script.bell:
			if over := r.read(); over {
				return nil
			}
		case n := <-r.news:
			err := r.take(n)
			n.of.taken <- err
			if err != nil && n.of == r.speaks {
				return err
			}
		case u := <-r.ends:
			if over, err := r.ended(u); over {
				return err
			}
		case <-r.timer.C:
			r.tooLate()
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// read looks what there is to be said; it says whether there is nothing and will be nothing.
func (r *speech) read() (over bool) {
	_, there, over := r.script.at(r.text)
	if there && !r.owed {
		r.owed = true
		if len(r.under) == 0 {
			r.ask()
		}
		r.wait()
	}
	return over && len(r.under) == 0
}

// wait gives the current voice time.
func (r *speech) wait() {
	if !r.owed {
		r.timer.Stop()
		return
	}
	if r.speaks == nil {
		r.timer.Reset(r.budget)
	} else {
		r.timer.Reset(2 * r.budget)
	}
}

// ask has the next voice say what has not been said; false when there is none.
func (r *speech) ask() bool {
	link, pass := r.pop()
	if link == nil {
		return false
	}
	ctx, cancel := context.WithCancelCause(r.ahead(r.ctx))
	u := &utterance{link: link, pass: pass, cancel: cancel, taken: make(chan error, 1), text: r.text, offset: r.given}
	if text, _, _ := r.script.at(r.text); r.given > 0 {
		u.from = r.pace.said(text, r.given, r.words)
	}
	r.under = append(r.under, u)
	r.wait()
	as, texts := r.as, make(chan string)
	as.Voice = link.Do.Voice
	crash.Go(&r.wg, func() { r.script.feed(ctx, u.text, u.from, texts) }, cancel)
	r.wg.Go(func() {
		defer cancel(nil)
		u.err = crash.Run(func() error {
			return link.Do.Synthesizer.Speak(ctx, as, texts, func(s ai.Sound) error {
				select {
				case r.news <- sound{u, s}:
					return <-u.taken
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		})
		r.ends <- u
	})
	return true
}

// tooLate gives a voice that has sent nothing for too long a rival; the first to send something goes on.
func (r *speech) tooLate() {
	r.why = ai.Stalled
	for _, u := range r.under {
		u.pass.failed(late())
	}
	r.speaks = nil
	r.ask()
}

// take passes on what a voice sent, if it is its turn.
func (r *speech) take(n sound) error {
	u := n.of
	if r.speaks == nil && u.text+n.Text == r.text {
		r.speaks = u
		for _, o := range r.under {
			if o != u {
				o.pass.void()
				o.cancel(errOver)
			}
		}
		r.acts(r.ctx, u.link.Name)
	}
	if r.speaks != u {
		return errOver
	}
	s := n.Sound
	if s.Text += u.text; s.Text == u.text && u.offset > 0 {
		s.Words = slices.Clone(s.Words)
		for i := range s.Words {
			s.Words[i].Until += u.from
			s.Words[i].At += u.offset
		}
	}
	r.given += time.Duration(len(s.PCM)) * time.Second / time.Duration(r.as.Rate)
	r.words = append(r.words, s.Words...)
	err := r.yield(s)
	if s.Last {
		text, _, _ := r.script.at(r.text)
		r.pace.learn(text, r.given)
		r.text, r.given, r.words = r.text+1, 0, nil
		_, r.owed, _ = r.script.at(r.text)
	}
	r.wait()
	return err
}

// errShort is what failed in a voice that ended before all was said.
var errShort = errors.New("the voice ended before its text")

// ended takes the end of what a voice said; the reply is over when over is true.
func (r *speech) ended(u *utterance) (over bool, err error) {
	r.under = slices.DeleteFunc(r.under, func(o *utterance) bool { return o == u })
	if r.ctx.Err() != nil {
		r.leave(u)
		return true, context.Cause(r.ctx)
	}
	if r.speaks != nil && r.speaks != u {
		return false, nil // it lost the race
	}
	if u.err == nil {
		if _, _, all := r.script.at(r.text); all {
			u.pass.well()
			return true, nil
		}
		u.err = &ai.Error{Kind: ai.Malformed, Err: errShort}
	}
	u.pass.failed(u.err)
	r.speaks = nil
	r.failed = cmp.Or(r.failed, u.err)
	r.why = ai.KindOf(u.err)
	if !further(u.err) {
		return true, u.err
	}
	if !r.ask() && len(r.under) == 0 {
		return true, r.failed
	}
	return false, nil
}

// settle returns when nothing is left running.
func (r *speech) settle() {
	r.wg.Wait()
	for _, u := range r.under {
		r.leave(u)
	}
}

// leave releases a voice that nobody waits for any more: if it has spoken it did well.
func (r *speech) leave(u *utterance) {
	if u == r.speaks {
		u.pass.well()
	}
	u.pass.void()
}

// pace is how fast the reply's voice speaks.
type pace struct {
	letters int
	took    time.Duration
}

const (
	usualPace = 15 // letters a second, of most voices in most languages
	ownPace   = 2 * time.Second
)

// learn takes a text that was said whole.
func (p *pace) learn(text string, took time.Duration) {
	p.letters += len([]rune(text))
	p.took += took
}

// said is how many octets of a text have been said in so much of its sound: by the times of its words, where they are
// known, else as fast as the reply's sentences so far, else as voices do. A word that has begun, or may not have been
// said, counts as not said: a word is rather heard twice than not at all.
func (p *pace) said(text string, given time.Duration, words []ai.Word) int {
	until := 0
	if len(words) > 0 {
		for _, w := range words {
			if w.At <= given && w.Until <= len(text) {
				until = w.Until
			}
		}
	} else {
		rate := float64(usualPace)
		if p.took >= ownPace {
			rate = float64(p.letters) / p.took.Seconds()
		}
		until = wordAt(text, int(given.Seconds()*rate))
	}
	rest := strings.TrimLeftFunc(text[until:], unicode.IsSpace)
	return len(text) - len(rest)
}

// wordAt is where the word begins that letter n of a text is in; behind the end that is the last word.
func wordAt(text string, n int) (begins int) {
	inside, count := false, 0
	for i, r := range text {
		if word := !unicode.IsSpace(r); word != inside || spaceless(r) {
			if inside = word; word {
				begins = i
			}
		}
		if count++; count > n {
			break
		}
	}
	return begins
}
