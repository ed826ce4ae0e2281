package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"parley/internal/rehearsal"
	"parley/internal/simulator/phone"
)

// benchRehearsal measures parley test: how exactly its telephones know when sound came and went, against a capture of the
// same packets with the kernel's times, and how many callers it has at once. Goals: 1 ms in the 99th percentile with 50
// callers; every test passes while the machine has enough for them. What is counted per core is everything: the callers,
// their voices, the server with its voices, and the measuring.
func benchRehearsal(b *bench) error {
	for _, n := range []int{1, 10, 50} {
		if err := b.instruments(n); err != nil {
			return fmt.Errorf("%d telephones: %w", n, err)
		}
	}
	for _, one := range []struct {
		recognition string
		callers     int
	}{{"told", 10}, {"told", 50}, {"told", 100}, {"told", 200}, {"real", 2}, {"real", 8}} {
		if err := b.rehearse(one.recognition, one.callers); err != nil {
			return fmt.Errorf("%d callers with %s ears: %w", one.callers, one.recognition, err)
		}
	}
	return nil
}

// instruments has telephones talk for a while, and compares what they noted with a capture.
func (b *bench) instruments(n int) error {
	speech, err := customer()
	if err != nil {
		return err
	}
	v := &vendor{hears: "A table for two, please.", hear: 20 * time.Millisecond, think: 20 * time.Millisecond,
		voiced: 20 * time.Millisecond}
	answer := shortReply
	v.reply.Store(&answer)
	if err := b.vendor(v); err != nil {
		return err
	}
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
	seen, err := newCapture()
	if err != nil {
		fmt.Printf("  %d telephones: their times can't be compared: %v\n", n, err)
		return nil
	}
	stop := make(chan struct{})
	seen.run(stop)
	err = set.ramp(n)
	until := time.Now().Add(10 * time.Second)
	if err == nil {
		err = set.all(func(c *caller) error { return c.turns(until) })
	}
	time.Sleep(300 * time.Millisecond) // the last packets
	close(stop)
	seen.close()
	if err != nil {
		return err
	}
	var heard, began, ended []time.Duration
	for _, c := range set.callers {
		for _, one := range c.Packets() {
			if t, ok := seen.arrived[uint64(one.SSRC)<<16|uint64(one.Seq)]; ok {
				heard = append(heard, one.At.Sub(t).Abs())
			}
		}
		for _, u := range c.said {
			first, last := seen.spoken(int(c.Addr().Port()), u.From().Add(-100*time.Millisecond), u.To().Add(100*time.Millisecond))
			if !first.IsZero() {
				began, ended = append(began, u.From().Sub(first).Abs()), append(ended, u.To().Sub(last).Abs())
			}
		}
	}
	if len(heard) == 0 || len(began) == 0 {
		return fmt.Errorf("the capture saw nothing of %d packets", len(set.callers[0].Packets()))
	}
	fmt.Printf("  %d telephones, off from the capture: p50, p99, most\n", n)
	for _, one := range []struct {
		what string
		all  []time.Duration
	}{{"packets heard", heard}, {"speech begun", began}, {"speech ended", ended}} {
		slices.Sort(one.all)
		fmt.Printf("    %-14s %6d  %v  %v  %v\n", one.what, len(one.all), quantile(one.all, 0.5), quantile(one.all, 0.99),
			one.all[len(one.all)-1])
	}
	return nil
}

// rehearsed is a test of two turns.
const rehearsed = `name: two questions
call: bakery
ears: %s
repeat: %d
steps:
  - hear: greeting within 1s
  - say: When are you open on Saturday?
  - expect: {reply_within: 1500ms}
  - say: "What is the price of... <pause 700ms> a croissant?"
  - expect: {reply_within: 1500ms, no_reply_during: pause}
`

// rehearse performs a test with so many callers at once.
func (b *bench) rehearse(recognition string, callers int) error {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	assistant, err := os.ReadFile("examples/tests/bakery.assistant.yaml")
	if err != nil {
		return err
	}
	two := fmt.Appendf(nil, rehearsed, recognition, 2*callers)
	for name, text := range map[string][]byte{"bakery.assistant.yaml": assistant, "two.yaml": two} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	results := filepath.Join(dir, "results.json")
	cmd := exec.Command(b.binary, "test", dir, "--parallel", fmt.Sprint(callers), "--json", results, "--out", filepath.Join(dir, "out"))
	began := time.Now()
	out, failed := cmd.CombinedOutput()
	took := time.Since(began)
	var got rehearsal.Report
	raw, err := os.ReadFile(results)
	if err == nil {
		err = json.Unmarshal(raw, &got)
	}
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", failed, err, out)
	}
	var talked, reply []time.Duration
	var sum time.Duration
	for _, c := range got.Cases {
		talked = append(talked, time.Duration(c.LastedMS)*time.Millisecond)
		sum += talked[len(talked)-1]
		for _, ms := range c.Figures.ReplyMS {
			reply = append(reply, time.Duration(ms)*time.Millisecond)
		}
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // the server's too: it was waited for
	slices.Sort(reply)
	if len(reply) == 0 || cpu == 0 {
		return fmt.Errorf("nothing was measured\n%s", out)
	}
	fmt.Printf("  %d callers at once, %s ears: %d of %d tests passed in %.1f s; %.1f ms of processor a call-second, so %.0f callers a core; "+
		"replies p50 %v, p99 %v\n",
		callers, recognition, got.Passed, len(got.Cases), took.Seconds(), 1000*cpu.Seconds()/sum.Seconds(), sum.Seconds()/cpu.Seconds(),
		quantile(reply, 0.5), quantile(reply, 0.99))
	return nil
}
