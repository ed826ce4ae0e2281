package audio

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// ground is a call as Foreground sees it: who speaks how loud, and when the assistant waits.
type ground struct {
	Foreground
	waits bool
}

// says has somebody speak, so loud in dB, and returns how much of that was not the customer's, and how much of that is far.
func (g *ground) says(db float64, d time.Duration) (other, far time.Duration) {
	for ; d > 0; d -= FrameTime {
		o, f := g.Hear(math.Pow(10, db/10), true, true, g.waits)
		if o {
			other += FrameTime
		}
		if f {
			far += FrameTime
		}
	}
	return other, far
}

// rests has nobody speak for a second. Before the last 740 ms, the detector holds what was said.
func (g *ground) rests() {
	for i := range 50 {
		g.Hear(1, i < 13, false, g.waits)
	}
}

// turn has somebody speak while the assistant waits, and the assistant reply: it goes on replying.
func (g *ground) turn(db float64, d time.Duration) time.Duration {
	g.waits = true
	g.rests()
	other, _ := g.says(db, d)
	g.rests()
	g.waits = false
	g.rests()
	return other
}

// Different people speak: who is heard, and who is not.
func TestForeground(t *testing.T) {
	const customer, second, word = 60., time.Second, 400 * time.Millisecond
	begun := func() *ground {
		g := &ground{}
		g.turn(customer, 2*second)
		return g
	}
	over := func(turns ...float64) func() time.Duration { // whoever speaks last does so over a reply
		return func() time.Duration {
			g, last := &ground{}, len(turns)-1
			for _, db := range turns[:last] {
				g.turn(db, second)
			}
			other, _ := g.says(turns[last], second)
			return other
		}
	}
	for _, o := range []struct {
		name  string
		other time.Duration
		run   func() time.Duration
	}{
		{"nobody has spoken yet", 0, over(customer - 20)},
		{"somebody has spoken over the first reply", 0, over(customer-20, customer-25)},
		{"the customer", 0, over(customer, customer)},
		{"the customer in a soft voice", 0, over(customer, customer-10.5)},
		{"a television", second, over(customer, customer-11.5)},
		{"the customer after a shout", 0, over(customer, customer+12, customer)},
		{"who is fainter, and still fainter", 0, over(customer, customer-10, customer-14)},
		{"a television when the customer has come nearer", second, over(customer-8, customer, customer, customer-14)},
		{"a television that was taken for the customer, after three turns of theirs", second, over(customer-20, customer, customer, customer, customer-16)},
		{"a sound that is too short to know how loud somebody is", 0, func() time.Duration {
			g := &ground{}
			g.turn(customer, 200*time.Millisecond)
			other, _ := g.says(customer-20, second)
			return other
		}},
		{"the customer's first words, of which the first is the loudest", second - 400*time.Millisecond, func() time.Duration {
			g := &ground{waits: true}
			g.says(customer, second)
			other, _ := g.says(customer-15, second)
			return other
		}},
		{"the customer, louder over a reply than they ever were, and then as before", 0, func() time.Duration {
			g := begun()
			g.says(customer+24, second)
			g.rests()
			other, _ := g.says(customer, second)
			return other
		}},
		{"the end of a word", 0, func() time.Duration {
			g := begun()
			g.says(customer, word)
			other, _ := g.says(customer-25, 400*time.Millisecond)
			return other
		}},
		{"a faint beginning, until it is loud", 200 * time.Millisecond, func() time.Duration {
			g := begun()
			other, far := g.says(customer-20, 200*time.Millisecond)
			later, _ := g.says(customer, word)
			return other + later + far // it must not be far
		}},
		{"somebody far, for two seconds while the assistant waits", 2 * second, func() time.Duration {
			g := begun()
			return g.turn(customer-20, 3*second)
		}},
		{"and from then on", 0, func() time.Duration {
			g := begun()
			g.turn(customer-20, 3*second)
			other, _ := g.says(customer-24, second)
			return other
		}},
		{"somebody far who says a word in a turn", word, func() time.Duration { return begun().turn(customer-20, word) }},
		{"and one in the next", 0, func() time.Duration {
			g := begun()
			g.turn(customer-20, word)
			return g.turn(customer-20, word)
		}},
		{"a television that is heard before and after the customer in each turn", 10 * second, func() (all time.Duration) {
			g := begun()
			for range 10 {
				g.waits = true
				other, _ := g.says(customer-20, second)
				all += other
				g.says(customer, second)
				g.says(customer-20, second)
				g.waits = false
				g.rests()
			}
			return all
		}},
		{"who gets fainter as they speak", 0, func() time.Duration {
			g := begun()
			g.waits = true
			g.says(customer-9, word)
			other, _ := g.says(customer-18, second)
			return other
		}},
		{"a television that goes on from one turn to the next", 4 * second, func() time.Duration {
			g := begun()
			g.waits = true
			g.says(customer, second)
			g.says(customer-12, word)
			g.waits = false
			one, _ := g.says(customer-12, second)
			g.waits = true
			two, _ := g.says(customer-12, second)
			g.says(customer, second)
			g.waits = false
			g.rests()
			three, _ := g.says(customer-12, 2*second)
			return one + two + three
		}},
		{"a television that speaks over one reply after the other", 10 * second, func() (all time.Duration) {
			g := begun()
			for range 10 {
				other, _ := g.says(customer-20, second)
				all += other
				g.turn(customer, second)
			}
			return all
		}},
	} {
		if other := o.run(); other != o.other {
			t.Errorf("%s: %v of others, not %v", o.name, other, o.other)
		}
	}
}

// A voice in the background is far after 240 ms of it, as the customer's sentences begin faintly.
func TestForegroundFar(t *testing.T) {
	g := &ground{}
	g.turn(60, time.Second)
	for range 2 {
		if other, far := g.says(40, time.Second); other != time.Second || far != 760*time.Millisecond {
			t.Errorf("%v of others, %v far", other, far)
		}
		g.rests()
	}
}

// Sentences, as loud as before, 6 dB fainter, and 20: what is left of them, and that they are the customer's within the 200 ms
// in which a sentence begins faintly.
func TestForegroundSpeech(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		for _, name := range []string{"slt", "awb", "rms", "kal"} {
			pcm, n := speech(t, name, rate), rate.FrameSize()
			v, g := NewVAD(rate), &Foreground{}
			hear := func(pcm []int16, waits bool) (others, before, all int) { // voiced frames
				for before = -1; len(pcm) >= n; pcm = pcm[n:] {
					speech, voiced := v.Detect(pcm[:n])
					other, _ := g.Hear(math.Pow(10, Level(pcm[:n])/10), speech, voiced, waits)
					if !voiced {
						continue
					}
					if all++; other {
						others++
					} else if before < 0 {
						before = others
					}
				}
				return others, before, all
			}
			hear(pcm, true)
			for _, o := range []struct{ less, least, most float64 }{{0, 0, 0.05}, {6, 0, 0.13}, {20, 1, 1}} {
				again := slices.Clone(pcm)
				Fade(again, Gain(-o.less), Gain(-o.less))
				hear(make([]int16, 50*n), false)
				others, before, all := hear(again, false)
				if share := float64(others) / float64(all); share < o.least || share > o.most || before > 10 {
					t.Errorf("%s at %d Hz, %.0f dB fainter: %d of %d frames are somebody else's, %d of them at the beginning", name, rate, o.less, others, all, before)
				}
			}
		}
	}
}

// What Foreground makes of readers who are held out, when they speak again for three seconds, over a reply or in a turn of theirs, and
// of other readers. Sounds are as loud as their speech is in the mean.
func TestForegroundReal(t *testing.T) {
	var list []recording
	for _, r := range recordings(t, "held", "speech") {
		if strings.Contains(r.who, "librispeech") {
			r.pcm = resampled(t, r.pcm, 16000, 8000)
			list = append(list, r)
		}
	}
	// again says whether a sound was the customer's at some time, and how many of its voiced frames no recognizer would hear, of all.
	again := func(first, then recording, less float64, waits bool) (own bool, unheard, all int) {
		v, g, n := NewVAD(Narrow), &Foreground{}, Narrow.FrameSize()
		pcm := slices.Clone(then.pcm[:min(len(then.pcm), 3*8000)])
		k := Gain(-less) * activeLevel(first.pcm, Narrow) / activeLevel(pcm, Narrow)
		Fade(pcm, k, k)
		reaching, last := 0, -100 // voiced frames that are to reach the recognizer, if the customer speaks within 300 ms; their last frame
		for i, pcm := range [][]int16{first.pcm, make([]int16, 8000), pcm} {
			for at := 0; at+n <= len(pcm); at += n {
				frame := pcm[at : at+n]
				speech, voiced := v.Detect(frame)
				other, _ := g.Hear(math.Pow(10, Level(frame)/10), speech, voiced, i == 0 || i == 2 && waits)
				if i < 2 || !voiced {
					continue
				}
				switch all++; {
				case !other:
					own, last = true, at/n
					unheard -= min(reaching, 15)
					reaching = 0
				case at/n-last > 10:
					unheard++
					reaching++
				}
			}
		}
		return own, unheard, all
	}
	for _, waits := range []bool{false, true} {
		for _, less := range []float64{-5, 0, 3, 6, 9} {
			missed, n, unheard, all := 0, 0, 0, 0
			for i, r := range list {
				for _, then := range list[i+1 : min(i+4, len(list))] {
					if then.who != r.who {
						continue
					}
					own, u, a := again(r, then, less, waits)
					if n++; !own {
						missed++
					}
					unheard, all = unheard+u, all+a
				}
			}
			t.Logf("quality: foreground, real people again, in their turn: %t, %.0f dB fainter: %d of %d are not taken for the customer; of their voiced frames, no ear hears %.1f %%",
				waits, less, missed, n, 100*float64(unheard)/float64(all))
		}
	}
	for _, less := range []float64{12, 15, 18, 21, 25} {
		taken, n := 0, 0
		for i, r := range list {
			if other := list[(i+len(list)/2)%len(list)]; other.who != r.who {
				own, _, _ := again(r, other, less, false)
				if n++; own {
					taken++
				}
			}
		}
		t.Logf("quality: foreground, other real people, %.0f dB fainter: %d of %d are taken for the customer at some time", less, taken, n)
	}
}

// It costs no memory.
func TestForegroundAllocates(t *testing.T) {
	var g Foreground
	i := 0
	quiet(t, "Foreground", func() {
		g.Hear(float64(i*7919%100_000), i%40 < 30, i%3 > 0, i%100 > 50)
		i++
	})
}
