package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/simulator/phone"
)

// Many callers at once interrupt replies at random moments, in each mode. The transcript and the model's history have
// as much of each reply as the far end heard, give or take a word.
func TestInterruptions(t *testing.T) {
	share(t, call)
	const callers, times = 10, 4 // of each mode
	l, v := speaking(t, "PARLEY_OPENAI_REALTIME_MODEL="+aitest.RealtimeModel,
		"PARLEY_OPENAI_REALTIME_STT_MODEL="+aitest.TranscriptionModel, rich(t, 3*callers))
	v.Transcribe = func(aitest.Utterance) string { return "Stop, only bread please." }
	v.Usually(aitest.Behaviour{Text: long})
	v.UsuallyRealtime(aitest.Behaviour{Text: long})
	var a map[string]any
	l.call(t, "GET", "/user/assistant/"+itoa(l.Assistant), nil, &a)
	sound := speech(t, asking)
	var all []*interrupter
	var talking sync.WaitGroup
	for m, mode := range []string{"pipeline", "multimodal", "dualplex"} {
		for k, field := range modeFields(t, l, mode, map[string]any{"initial_message": "Hello.", "post_call_schema": []any{}}) {
			a[k] = field
		}
		for i := range callers {
			c := &interrupter{mode: mode, name: fmt.Sprintf("%s %d", mode, i), sound: sound,
				random: rand.New(rand.NewPCG(uint64(m), uint64(i)))}
			all = append(all, c)
			a["name"], a["system_prompt"] = c.name, "You are "+c.name+"."
			var made struct {
				Data   struct{ ID int64 }
				Errors map[string][]string
			}
			if status := l.call(t, "POST", "/user/assistant", a, &made); status != http.StatusCreated {
				t.Fatalf("%s: the assistant is answered %d %v", c.name, status, made.Errors)
			}
			p := handset(t, phone.Options{})
			talking.Go(func() {
				c.err = c.talk(t.Context(), func(ctx context.Context) (*phone.Call, error) {
					return p.Call(ctx, "visitor", itoa(made.Data.ID), l.sip)
				}, times)
			})
		}
	}
	talking.Wait()
	eventually(t, "the end of all calls", func() bool { return l.total(t, "/user/calls?status=completed") == len(all) })
	var page struct {
		Data []struct {
			ID            int64
			AssistantName string `json:"assistant_name"`
		}
	}
	l.call(t, "GET", "/user/calls?per_page=100", nil, &page)
	ids := map[string]int64{}
	for _, row := range page.Data {
		ids[row.AssistantName] = row.ID
	}
	n := 0
	for _, c := range all {
		if c.err != nil {
			t.Errorf("%s: %v", c.name, c.err)
			continue
		}
		row := l.talk(t, ids[c.name])
		var told []string
		for _, turn := range row.Turns {
			if turn.Speaker == "assistant" && strings.HasPrefix(turn.Text, "We have") {
				told = append(told, turn.Text)
			}
		}
		held := c.holds(v)
		heard := v.replies(c.call)
		if len(heard) < times || len(told) < times || len(held) < times {
			t.Errorf("%s: %d replies were heard, %d are in the transcript, the model holds %d", c.name, len(heard),
				len(told), len(held))
			continue
		}
		for i, d := range heard[:times] { // the last one was cut off by the end of the call
			n++
			least, most := wordsIn(long, d-40*time.Millisecond)-1, wordsIn(long, d+40*time.Millisecond)+1
			for who, text := range map[string]string{"the transcript has": told[i], "the model holds": held[i]} {
				if k := len(strings.Fields(text)); k < least || k > most || !strings.HasPrefix(long, text) {
					t.Errorf("%s: reply %d was heard for %v, which is %d to %d words; %s %q", c.name, i, d, least+1, most-1,
						who, text)
				}
			}
		}
	}
	t.Logf("%d interruptions were compared", n)
	if list := v.Complaints(); len(list) > 0 {
		t.Errorf("the server complained of %v", list)
	}
}

// interrupter is a caller who interrupts every reply.
type interrupter struct {
	mode, name string
	sound      []int16
	random     *rand.Rand
	call       *phone.Call
	err        error
}

func (c *interrupter) talk(ctx context.Context, ring func(context.Context) (*phone.Call, error), times int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if c.call, err = ring(ctx); err != nil {
		return err
	}
	if err := c.await(ctx, c.call.Answered); err != nil {
		return fmt.Errorf("the greeting: %w", err)
	}
	c.pause(ctx, 700*time.Millisecond) // it lasts 300
	for i := range times + 1 {
		u := c.call.Say(c.sound)
		select {
		case <-u.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.await(ctx, u.To()); err != nil {
			return fmt.Errorf("reply %d: %w", i, err)
		}
		c.pause(ctx, 500*time.Millisecond+time.Duration(c.random.IntN(1500))*time.Millisecond)
	}
	return c.call.Hangup()
}

// await waits for sound after a moment.
func (c *interrupter) await(ctx context.Context, after time.Time) error {
	for {
		packets := c.call.Packets()
		if slices.ContainsFunc(packets, func(p phone.Packet) bool { return p.Loud() && p.At.After(after) }) {
			return nil
		}
		if c.call.Ended() != "" {
			return fmt.Errorf("the call ended by %s", c.call.Ended())
		}
		if c.pause(ctx, 40*time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (c *interrupter) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// holds returns what the model knows that it said to the caller.
func (c *interrupter) holds(v *vendor) (texts []string) {
	if c.mode == "pipeline" {
		for _, q := range slices.Backward(v.Requests()) {
			if strings.Contains(q.System, "You are "+c.name+".") {
				for _, m := range q.Messages {
					if m.Role == ai.Assistant && strings.HasPrefix(m.Text, "We have") {
						texts = append(texts, m.Text)
					}
				}
				return texts
			}
		}
		return nil
	}
	for _, conv := range v.Conversations() {
		if system, _ := conv.Terms["instructions"].(string); strings.Contains(system, "You are "+c.name+".") {
			for _, i := range conv.Items {
				if i.Role == "assistant" && strings.HasPrefix(i.Text, "We have") {
					texts = append(texts, i.Text)
				}
			}
		}
	}
	return texts
}

// replies returns how long each reply was heard, where each reply is one long text.
func (v *vendor) replies(c *phone.Call) (list []time.Duration) {
	fresh := true
	for _, p := range v.on(c) {
		switch {
		case p.text == "":
			fresh = fresh || p.long > 300*time.Millisecond
		case !strings.Contains(long, p.text):
			fresh = true
		case fresh:
			list, fresh = append(list, p.long), false
		default:
			list[len(list)-1] += p.long
		}
	}
	return list
}

// wordsIn counts the complete words in the first part of a text, of duration d.
func wordsIn(text string, d time.Duration) (n int) {
	at := 0
	for _, w := range strings.Fields(text) {
		if at += len(w); aitest.SpeechTime(strings.Repeat("x", at), 1) <= d {
			n++
		}
		at++
	}
	return n
}
