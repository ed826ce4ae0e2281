package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/catalog"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/simulator/phone"
	"parley/internal/store"
	"parley/internal/testenv"
)

// benchVoice measures calls: telephones of this process speak with the program over real RTP on loopback, with a
// vendor of known delays behind it. The floor is a Go process that sends the same packets back. Goals, G.711 on two
// cores: a turn adds p50 25 ms and p99 80 ms to the endpointing silence and the vendor's delays; an interruption
// silences within 150 ms (p95), without a packet of the old reply after it; INVITE to 200 within 20 ms and ACK to the
// first packet of a cached greeting within 40; CPU at most 3 times the floor's, and below 2.5 ms a call-second; 300
// KB of memory a call.
//
// The telephones and the vendor share the machine with the program: at 200 calls a part of what is measured is theirs.
func benchVoice(b *bench) error {
	v, speech, err := b.talk()
	if err != nil {
		return err
	}
	fmt.Printf("  the vendor takes %v to hear, %v to think, %v to the first sound; the customer's sentence lasts %.1f s\n", v.hear, v.think,
		v.voiced, float64(len(speech))/8000)
	for _, n := range []int{1, 50, 200} {
		if err := b.calls(n, v, speech); err != nil {
			return fmt.Errorf("%d calls: %w", n, err)
		}
	}
	if err := b.passing(v, speech); err != nil {
		return err
	}
	return secure()
}

// passing makes a thousand short calls, 25 at once and at most 20 a second (one trunk may begin 25), and tells what they
// leave behind.
func (b *bench) passing(v *vendor, speech []int16) error {
	const calls, together, perSecond = 1000, 25, 20
	p, at, assistant, err := b.telephone(v)
	if err != nil {
		return err
	}
	defer p.end()
	set := &telephones{at: at, assistant: assistant, speech: speech}
	if set.phone, err = phone.Listen(); err != nil {
		return err
	}
	set.phone.Options = phone.Options{Types: []int{0}, Forget: true}
	defer set.phone.Close()
	var goroutines, kilobytes [2]int
	look := func(i int) error {
		if err := set.warm(); err != nil {
			return err
		}
		// ends are written; SIP remembers a call for 32 s
		time.Sleep([2]time.Duration{2 * time.Second, 35 * time.Second}[i])
		if goroutines[i], err = p.goroutines(); err != nil {
			return err
		}
		kilobytes[i], err = memory(p.pid)
		return err
	}
	if err := look(0); err != nil {
		return err
	}
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, together)
	pace := time.NewTicker(time.Second / perSecond)
	defer pace.Stop()
	for i := range together {
		wg.Go(func() {
			for range calls / together {
				<-pace.C
				c, err := set.call()
				if err == nil {
					err = c.Hangup()
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	if err := first(errs); err != nil {
		return err
	}
	took := time.Since(began)
	if err := look(1); err != nil {
		return err
	}
	fmt.Printf("  %d calls one after the other, %d at once: %.0f calls/s; goroutines %d before and %d after, memory %d MB and %d MB\n",
		calls, together, calls/took.Seconds(), goroutines[0], goroutines[1], kilobytes[0]>>10, kilobytes[1]>>10)
	return nil
}

// goroutines is how many the program has.
func (p *program) goroutines() (n int, err error) {
	res, err := http.Get("http://" + p.addr + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\ngo_goroutines ")
	_, err = fmt.Sscan(rest, &n)
	return n, err
}

const (
	endpoint  = 600 * time.Millisecond // of silence ends a turn, at the default sensitivity
	idleTime  = 5 * time.Second        // how long the program without a call is
	turnTime  = 40 * time.Second       // how long turns are
	bargeTime = 30 * time.Second       // how long interruptions are

	shortReply = "Of course, for two."
	longReply  = "Of course, a table for two, and since it is a warm evening you may choose between the garden and the room upstairs"
)

// customer is what a customer says, 8 kHz, from the first sound to the last.
func customer() ([]int16, error) {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "speech.wav")
	if out, err := exec.Command("flite", "-voice", "rms", "-t", "I want a table for two", "-o",
		file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("flite speaks for the customers (scripts/setup run installs it): %w %s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w, err := audio.NewWAVReader(f)
	if err != nil {
		return nil, err
	}
	raw := make([]int16, 10*w.Rate)
	n, err := w.Read(raw)
	if err != nil {
		return nil, err
	}
	r, err := audio.NewResampler(w.Rate, 8000)
	if err != nil {
		return nil, err
	}
	pcm := r.Resample(nil, raw[:n])
	loud := func(frame []int16) bool { return audio.Level(frame) > -40 }
	for len(pcm) > 160 && !loud(pcm[:160]) {
		pcm = pcm[160:]
	}
	for len(pcm) > 160 && !loud(pcm[len(pcm)-160:]) {
		pcm = pcm[:len(pcm)-160]
	}
	return pcm, nil
}

// talk is a vendor of known delays, and what a customer says to it.
func (b *bench) talk() (v *vendor, speech []int16, err error) {
	v = &vendor{hears: "A table for two, please.", hear: 100 * time.Millisecond, think: 100 * time.Millisecond,
		voiced: 100 * time.Millisecond}
	if err := b.vendor(v); err != nil {
		return nil, nil, err
	}
	speech, err = customer()
	return v, speech, err
}

// cost is what a program takes for the turns of calls.
type cost struct {
	used  time.Duration // processor of the program, for each second of a call
	idle  time.Duration // processor of the program without a call, a second
	ours  time.Duration // processor of telephones and vendor, a second
	share float64       // of the time, that customers speak
	size  float64       // bytes, a call
}

// turns lets n calls take turns for turnTime, on a program of their own, and leaves them on the line.
func (b *bench) turns(n int, v *vendor, speech []int16, env ...string) (p *program, set *telephones, l cost, err error) {
	p, at, assistant, err := b.telephone(v, env...)
	if err != nil {
		return nil, nil, l, err
	}
	set = &telephones{at: at, assistant: assistant, speech: speech}
	if set.phone, err = phone.Listen(); err != nil {
		return nil, nil, l, err
	}
	set.phone.Options = phone.Options{Types: []int{0}, Forget: true}
	b.undo = append(b.undo, func() { set.phone.Close() })
	short := shortReply
	v.reply.Store(&short)
	if err := set.warm(); err != nil {
		return nil, nil, l, err
	}
	before, err := memory(p.pid)
	if err != nil {
		return nil, nil, l, err
	}
	idle := cpuTime(p.pid)
	time.Sleep(idleTime)
	l.idle = time.Duration(float64(cpuTime(p.pid)-idle) / idleTime.Seconds())
	if err := set.ramp(n); err != nil {
		return nil, nil, l, err
	}
	cpu, ours, began := cpuTime(p.pid), cpuTime(os.Getpid()), time.Now()
	if err := set.all(func(c *caller) error { return c.turns(began.Add(turnTime)) }); err != nil {
		return nil, nil, l, err
	}
	took := time.Since(began).Seconds()
	l.used = time.Duration((float64(cpuTime(p.pid)-cpu)/took - float64(l.idle)) / float64(n))
	l.ours = time.Duration(float64(cpuTime(os.Getpid())-ours) / took)
	for _, c := range set.callers {
		l.share += c.spoke.Seconds() / took / float64(n)
	}
	after, err := memory(p.pid)
	l.size = float64(after-before) / float64(n)
	return p, set, l, err
}

// calls measures n calls at once.
func (b *bench) calls(n int, v *vendor, speech []int16) error {
	floor, trip, err := echoFloor(n, 10*time.Second)
	if err != nil {
		return err
	}
	p, set, l, err := b.turns(n, v, speech)
	if err != nil {
		return err
	}
	defer p.end()
	defer set.phone.Close()
	long := longReply
	v.reply.Store(&long)
	ends := time.Now().Add(bargeTime)
	if err := set.all(func(c *caller) error { return c.interruptions(ends) }); err != nil {
		return err
	}
	set.all(func(c *caller) error { return c.Hangup() })
	steps, err := p.waterfalls(n + 1)
	if err != nil {
		return err
	}
	adds := set.collect(func(c *caller) []time.Duration { return c.took })
	for i := range adds {
		adds[i] -= endpoint + v.think + v.voiced
	}
	barge := set.collect(func(c *caller) []time.Duration { return c.silenced })
	answers := set.collect(func(c *caller) []time.Duration { return []time.Duration{c.Answered.Sub(c.Invited)} })
	greetings := set.collect(func(c *caller) []time.Duration { return []time.Duration{c.greeted} })
	late, missed := 0, 0
	for _, c := range set.callers {
		late, missed = late+c.late, missed+c.missed
	}
	size := "" // of one call, against what the heap does by itself, there is nothing to be seen
	if n > 1 {
		size = fmt.Sprintf("   %.0f KB a call", l.size)
	}
	fmt.Printf("  %3d calls: %.1f of the floor's CPU: %v a call-second (floor %v; customers speak %.0f %% of the time)%s"+
		"   idle %v, telephones and vendor %v a second\n", n, float64(l.used)/float64(floor),
		l.used.Round(10*time.Microsecond), floor.Round(10*time.Microsecond), 100*l.share, size,
		l.idle.Round(time.Millisecond), l.ours.Round(time.Millisecond))
	show := func(what string, d []time.Duration, more string) {
		fmt.Printf("             %-28s p50 %v, p95 %v, p99 %v (%d)%s\n", what,
			quantile(d, .5).Round(100*time.Microsecond), quantile(d, .95).Round(100*time.Microsecond),
			quantile(d, .99).Round(100*time.Microsecond), len(d), more)
	}
	show("a turn adds", adds, fmt.Sprintf("   an echoed packet takes p50 %v, p99 %v",
		trip.p50.Round(10*time.Microsecond), trip.p99.Round(10*time.Microsecond)))
	show("speech to silence", barge, fmt.Sprintf("   %d not silenced, %d packets of an old reply later", missed, late))
	fmt.Printf("             as the calls tell it         endpoint %d, transcript %d, first token %d, sentence %d, audio %d, "+
		"packet %d ms after the last word (p50)\n",
		steps[0], steps[1], steps[2], steps[3], steps[4], steps[5])
	show("INVITE to 200", answers, "")
	show("ACK to the greeting", greetings, "")
	return nil
}

// waterfalls are the medians of the steps that the program has stored with each reply of its last n calls that was
// not interrupted.
func (p *program) waterfalls(n int) (steps [6]int64, err error) {
	var all [6][]int64
	for page := 1; page <= (n+99)/100; page++ {
		req, err := http.NewRequest("GET", fmt.Sprintf("http://%s/api/user/calls?per_page=100&page=%d", p.addr,
			page), nil)
		if err != nil {
			return steps, err
		}
		req.Header.Set("Authorization", "Bearer "+p.token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return steps, err
		}
		var list struct {
			Data []struct{ Turns []parley.CallTurn }
		}
		err = json.NewDecoder(res.Body).Decode(&list)
		res.Body.Close()
		if err != nil {
			return steps, err
		}
		for _, c := range list.Data {
			for _, t := range c.Turns {
				if l := t.Latency; l != nil && !t.Interrupted && t.Text == shortReply {
					for i, ms := range []int64{l.EndpointMS, l.TranscriptMS, l.FirstTokenMS, l.FirstSentenceMS,
						l.FirstAudioMS, l.FirstPacketMS} {
						all[i] = append(all[i], ms)
					}
				}
			}
		}
	}
	for i, list := range all {
		slices.Sort(list)
		if len(list) > 0 {
			steps[i] = list[len(list)/2]
		}
	}
	return steps, nil
}

// telephone runs the program with a telephone line and an assistant that thinks, hears and speaks by the vendor.
func (b *bench) telephone(v *vendor, env ...string) (p *program, at netip.AddrPort, assistant int64, err error) {
	cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "bench", TTSModel: "bench",
		STTModel: "bench"})))
	port, release, err := testenv.Reserve(1)
	if err != nil {
		return nil, at, 0, err
	}
	b.undo = append(b.undo, release)
	at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
	p, err = b.serve(func(ctx context.Context, db *store.DB, u *parley.User, _ string) error {
		a := &parley.Assistant{}
		form.Defaults(a)
		a.Name, a.Type, a.Mode, a.Status, a.Timezone, a.LanguageID = "Bench", "inbound", "pipeline", "active", "UTC", 1
		a.VoiceID = cat.Voices("pipeline", 1)[0].ID
		a.SystemPrompt, a.InitialMessage, a.MaxDuration = "Take the order.", "Good evening, how can I help you?", 3600
		a.PostCallEvaluation, a.PostCallSchema = false, nil
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, u.ID, a) })
		assistant = a.ID
		return err
	}, append([]string{"PARLEY_OPENAI_BASE_URL=" + v.url, "PARLEY_OPENAI_CHAT_MODEL=bench",
		"PARLEY_OPENAI_TTS_MODEL=bench", "PARLEY_OPENAI_STT_MODEL=bench", "PARLEY_SIP_LISTEN=" + at.String(),
		"PARLEY_RTP_PORTS=20000-21999", "PARLEY_DRAIN=1s"}, env...)...)
	return p, at, assistant, err
}
