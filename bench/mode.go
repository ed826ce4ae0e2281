package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/provider/deepgram/deepgramtest"
	"parley/internal/simulator/phone"
)

// benchVendor measures what Parley adds to its vendors' time: to a turn in each mode, at 1, 10 and 50 calls; to the
// stand-in's own time where a vendor is late or fails; and what it gains where a recognizer says early that a turn may be
// over. Goals: in pipeline and dualplex a turn adds p50 25 ms and p99 80 ms; what a realtime model says leaves within 5
// ms beyond the 20 ms grain of packets, and its calls take 1 % of a core each; the first sound after a failover comes
// within the budget and 100 ms.
func benchVendor(b *bench) error {
	speech, err := customer()
	if err != nil {
		return err
	}
	for _, n := range []int{1, 10, 50} {
		floor, trip, err := echoFloor(n, 5*time.Second)
		if err != nil {
			return err
		}
		fmt.Printf("  %d calls; the floor, which sends every packet back, takes %v of CPU a call-second, and an echoed packet p50 %v, p99 %v\n",
			n, floor.Round(10*time.Microsecond), trip.p50.Round(10*time.Microsecond), trip.p99.Round(10*time.Microsecond))
		for _, mode := range []string{"pipeline", "dualplex", "multimodal"} {
			if err := b.turnsIn(mode, n, floor, speech); err != nil {
				return fmt.Errorf("%d calls in %s: %w", n, mode, err)
			}
		}
	}
	if err := b.standIns(speech); err != nil {
		return err
	}
	return b.eager(speech)
}

const modeTime = 15 * time.Second // how long turns in a mode are

// line is a program whose assistant has been told its mode, and telephones that call it.
type line struct {
	*program
	*telephones
	v *vendor
}

// line runs one whose greeting is cached.
func (b *bench) line(v *vendor, mode string, speech []int16, env ...string) (*line, error) {
	if err := b.vendor(v); err != nil {
		return nil, err
	}
	text := shortReply
	v.reply.Store(&text)
	p, at, assistant, err := b.telephone(v, env...)
	if err != nil {
		return nil, err
	}
	l := &line{p, &telephones{at: at, assistant: assistant, speech: speech}, v}
	if err = l.in(mode); err != nil {
		p.end()
		return nil, err
	}
	if l.phone, err = phone.Listen(); err != nil {
		p.end()
		return nil, err
	}
	l.phone.Options = phone.Options{Types: []int{0}}
	if err = l.warm(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *line) close() {
	l.phone.Close()
	l.end()
}

// in has the assistant hold its calls in a mode.
func (l *line) in(mode string) error {
	if mode == "pipeline" {
		return nil
	}
	var models, voices []struct{ ID int64 }
	if err := l.askFor("GET", "/user/assistants/models?type="+mode, nil, &models); err != nil {
		return err
	}
	if err := l.askFor("GET", "/user/assistants/voices?language_id=1&mode="+mode, nil, &voices); err != nil {
		return err
	}
	if len(models) == 0 || len(voices) == 0 {
		return fmt.Errorf("%d models and %d voices in %s mode", len(models), len(voices), mode)
	}
	_, err := l.ask("PUT", fmt.Sprintf("/user/assistant/%d", l.assistant),
		map[string]any{"mode": mode, "multimodal_model_id": models[0].ID, "voice_id": voices[0].ID})
	return err
}

// turnsIn measures turns of n calls at once in a mode.
func (b *bench) turnsIn(mode string, n int, floor time.Duration, speech []int16) error {
	v := &vendor{hears: "A table for two, please.", hear: 100 * time.Millisecond, think: 100 * time.Millisecond,
		voiced: 100 * time.Millisecond}
	l, err := b.line(v, mode, speech, "PARLEY_OPENAI_REALTIME_MODEL=bench")
	if err != nil {
		return err
	}
	defer l.close()
	idle := cpuTime(l.pid)
	time.Sleep(idleTime)
	idle = time.Duration(float64(cpuTime(l.pid)-idle) / idleTime.Seconds())
	if err := l.ramp(n); err != nil {
		return err
	}
	cpu, began := cpuTime(l.pid), time.Now()
	if err := l.all(func(c *caller) error { return c.turns(began.Add(modeTime)) }); err != nil {
		return err
	}
	used := (float64(cpuTime(l.pid)-cpu)/time.Since(began).Seconds() - float64(idle)) / float64(n)
	l.all(func(c *caller) error { return c.Hangup() })
	theirs := endpoint + v.think
	if mode != "multimodal" {
		theirs += v.voiced
	}
	adds := l.collect(func(c *caller) []time.Duration { return c.took })
	for i := range adds {
		adds[i] -= theirs
	}
	goal := "goal 25 and 80"
	if mode == "multimodal" {
		goal = "the grain of packets included"
	}
	fmt.Printf("    %-10s a turn adds p50 %v, p99 %v (%d; %s); %.2f %% of a core a call, %.1f floors\n", mode,
		quantile(adds, .5).Round(100*time.Microsecond), quantile(adds, .99).Round(100*time.Microsecond), len(adds), goal,
		used/1e7, used/float64(floor))
	if mode == "multimodal" {
		l.relay()
	}
	return nil
}

// relay tells how long sound takes from the realtime model to the telephone. It can leave with the next packet at the
// earliest, so what is beyond that packet is what is lost on the way: 20 ms or nothing, and on average the way's length.
func (l *line) relay() {
	var all, beyond []time.Duration
	for _, c := range l.callers {
		t := l.v.of(c.tone(), int(c.Rate()))
		packets := c.Packets()
		for _, at := range c.replied {
			i := slices.IndexFunc(t.replied, func(sent time.Time) bool { return sent.After(at) }) - 1
			if i < -1 {
				i = len(t.replied) - 1
			}
			if i < 0 {
				continue // another session's
			}
			sent := t.replied[i]
			next := slices.IndexFunc(packets, func(p phone.Packet) bool { return !p.At.Before(sent) })
			all, beyond = append(all, at.Sub(sent)), append(beyond, at.Sub(packets[next].At))
		}
	}
	sum := time.Duration(0)
	for _, d := range beyond {
		sum += d
	}
	slices.Sort(all)
	fmt.Printf("               the model's sound is on the line after p50 %v, p99 %v (%d); "+
		"beyond the packet that was next %v on average (goal 5)\n",
		quantile(all, .5).Round(100*time.Microsecond), quantile(all, .99).Round(100*time.Microsecond), len(all),
		(sum / time.Duration(max(len(beyond), 1))).Round(10*time.Microsecond))
}

// tone is a piece of the last reply that a caller heard.
func (c *caller) tone() []int16 {
	pcm, n := c.Sound(), int(c.Rate())/5
	for at := len(pcm) - n; at > 0; at -= n {
		if level := pcm[at : at+n]; slices.Max(level) > 1000 && slices.Max(level[:n/4]) > 1000 {
			return level
		}
	}
	return nil
}

// standIns measures the first sound of a reply for which another vendor has to stand in.
func (b *bench) standIns(speech []int16) error {
	const calls, budget, own = 10, 500 * time.Millisecond, 100 * time.Millisecond
	const said = "A table for two, please."
	d := b.deepgram(said)
	d.Voice.Usually(aitest.Saying{Delay: own})
	fmt.Printf("  the first sound after a failover, %d calls at once: budget %v, the stand-in's own time taken off (goal: 100 ms beyond)\n",
		calls, budget)
	for _, f := range []struct {
		what   string
		theirs time.Duration // what the vendors take, budget included
		fail   func(v *vendor)
		env    []string
	}{
		{"a model that is late", endpoint + budget + own, func(v *vendor) { v.think = 20 * time.Second },
			[]string{"PARLEY_FALLBACK_MODELS=local/local", "PARLEY_FALLBACK_MODEL_AFTER=" + budget.String()}},
		{"a model that refuses", endpoint + own, func(v *vendor) { v.refuses.Store(true) },
			[]string{"PARLEY_FALLBACK_MODELS=local/local", "PARLEY_FALLBACK_MODEL_AFTER=" + budget.String()}},
		{"a voice that is late", endpoint + own + budget + own, func(v *vendor) { v.voiced = 20 * time.Second },
			[]string{"PARLEY_FALLBACK_VOICES=deepgram", "PARLEY_FALLBACK_VOICE_AFTER=" + budget.String(),
				"PARLEY_DEEPGRAM_API_KEY=" + deepgramtest.Key, "PARLEY_DEEPGRAM_BASE_URL=" + d.URL}},
	} {
		v := &vendor{hears: said, hear: own, think: own, voiced: own}
		l, err := b.line(v, "pipeline", speech, append(f.env, "PARLEY_LOG_LEVEL=error")...)
		if err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
		if err := l.ramp(calls); err != nil {
			l.close()
			return fmt.Errorf("%s: %w", f.what, err)
		}
		f.fail(v)
		if err := l.all((*caller).turn); err != nil {
			l.close()
			return fmt.Errorf("%s: %w", f.what, err)
		}
		l.close()
		took := l.collect(func(c *caller) []time.Duration { return c.took })
		for i := range took {
			took[i] -= f.theirs
		}
		fmt.Printf("    %-22s p50 %v, p99 %v (%d)\n", f.what, quantile(took, .5).Round(100*time.Microsecond),
			quantile(took, .99).Round(100*time.Microsecond), len(took))
	}
	return nil
}

// eager measures a recognizer that says early that a turn may be over. Every third sentence has a pause in it which is long
// enough for that, and not the end.
func (b *bench) eager(speech []int16) error {
	const calls, pause = 10, 380 * time.Millisecond
	v := &vendor{hears: "A table for two, please.", hear: 100 * time.Millisecond, think: 100 * time.Millisecond,
		voiced: 100 * time.Millisecond}
	d := b.deepgram(v.hears)
	l, err := b.line(v, "pipeline", speech, "PARLEY_DEEPGRAM_API_KEY="+deepgramtest.Key,
		"PARLEY_DEEPGRAM_BASE_URL="+d.URL, "PARLEY_DEEPGRAM_STT_MODEL=flux-general-en")
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.ramp(calls); err != nil {
		return err
	}
	half := len(speech) / 2
	parted := slices.Concat(speech[:half], make([]int16, int(pause*8000/time.Second)), speech[half:])
	asked, began := v.asked.Load(), time.Now()
	var mu sync.Mutex
	turns := 0
	err = l.all(func(c *caller) error {
		for n := 0; time.Since(began) < modeTime; n++ {
			if c.speech = speech; n%3 == 2 {
				c.speech = parted
			}
			if err := c.turn(); err != nil {
				return err
			}
			mu.Lock()
			turns++
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return err
	}
	begun := int(v.asked.Load() - asked)
	took := l.collect(func(c *caller) []time.Duration { return c.took })
	fmt.Printf("  an ear that finds turns, %d calls, a third of the sentences parted by %v: %d replies were begun and %d used (%.0f %%); "+
		"the first sound after the last word p50 %v, p99 %v, where waiting for %v and the vendors takes %v\n",
		calls, pause, begun, turns, 100*float64(turns)/float64(max(begun, 1)), quantile(took, .5).Round(time.Millisecond),
		quantile(took, .99).Round(time.Millisecond), endpoint, endpoint+v.think+v.voiced)
	return nil
}

// deepgram is a server that speaks Deepgram's protocol, until the group's end. It always hears the same.
func (b *bench) deepgram(hears string) *deepgramtest.Server {
	d := deepgramtest.NewServer(&during{b: b})
	d.Hears(slices.Repeat([]string{hears}, 1000)...)
	return d
}

// during makes a group's run what a server for tests ends with.
type during struct {
	testing.TB
	b *bench
}

// Cleanup implements testing.TB.
func (d *during) Cleanup(f func()) { d.b.undo = append(d.b.undo, f) }

// Helper implements testing.TB.
func (d *during) Helper() {}

// Fatal implements testing.TB.
func (d *during) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}
