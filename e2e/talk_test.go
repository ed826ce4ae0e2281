package e2e

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
)

const (
	welcome = "Hello, this is the bakery."
	// long is a reply that lasts six seconds.
	long = "We have bread and rolls and cakes and pies and tarts and buns, and everything is baked in this house every single morning at four"
)

// bakeryLine is a line with a vendor, whose assistant greets with welcome.
func bakeryLine(t *testing.T, fields map[string]any, env ...string) (*line, *vendor) {
	t.Helper()
	l, v := speaking(t, env...)
	all := map[string]any{"initial_message": welcome, "post_call_evaluation": false, "record": false}
	for k, f := range fields {
		all[k] = f
	}
	l.change(t, all)
	return l, v
}

// greeted makes a call and waits until its greeting was heard to its end.
func (l *line) greeted(t *testing.T, p *phone.Phone) *phone.Call {
	t.Helper()
	c := l.ring(t, p)
	hears(t, c, c.Answered)
	silent(t, c, 400*time.Millisecond)
	return c
}

// asking is what callers say to a scripted recognizer: the script decides which words it hears.
const asking = "A table for two."

// asks says a sentence of one second, and returns after its last word.
func asks(t *testing.T, c *phone.Call) *phone.Utterance {
	t.Helper()
	u := c.Say(speech(t, asking))
	select {
	case <-u.Done():
	case <-c.Done():
		t.Fatalf("the call ended by %s in the middle of a sentence", c.Ended())
	}
	return u
}

// A conversation with a vendor: speech is recognized, the model thinks, a tool is used, the reply is spoken. Events
// report it live, and the row has it afterwards, with the waterfall of each turn.
func TestTalk(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
	slow := make(chan struct{})
	shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-slow
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"free":true}`))
	}))
	var tool struct{ Data struct{ ID int64 } }
	l.call(t, "POST", "/user/tools", map[string]any{"name": "table_free",
		"description": "Looks whether a table is free", "method": "GET", "endpoint": shop}, &tool)
	l.change(t, map[string]any{"tool_ids": []int64{tool.Data.ID}})
	c := l.greeted(t, l.phone)
	live := l.listen(t, l.talks(t)[0].ID)
	v.hears("I would like a table.", "For two.")
	v.Script(aitest.Behaviour{Text: "For how many people?"},
		aitest.Behaviour{Text: "Let me see.", Calls: []ai.ToolCall{{ID: "call_1", Name: "table_free",
			Arguments: "{}"}}},
		aitest.Behaviour{Text: "Your table is ready."})
	said := asks(t, c)
	first := hears(t, c, said.To())
	v.awaits(t, c, "For how many people?")
	silent(t, c, 300*time.Millisecond)
	asks(t, c)
	v.awaits(t, c, "Let me see.")
	close(slow)
	v.awaits(t, c, "Your table is ready.")
	silent(t, c, 500*time.Millisecond)
	for _, text := range []string{welcome, "For how many people?", "Let me see.", "Your table is ready."} {
		if got, want := v.length(c, text), aitest.SpeechTime(text, 1); got < want-80*time.Millisecond ||
			got > want+80*time.Millisecond {
			t.Errorf("%q was heard for %v, it lasts %v", text, got, want)
		}
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	const want = "AI: " + welcome + "\nCustomer: I would like a table.\nAI: For how many people?\nCustomer: For two.\nAI: Let me see. " +
		"Your table is ready."
	if row.Transcript != want {
		t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
	}
	if len(row.Turns) < 3 || row.Turns[2].Latency == nil {
		t.Fatalf("no waterfall: %+v", row.Turns)
	}
	w := row.Turns[2].Latency
	t.Logf("the first reply: %+v; at the wire %v", *w, first.Sub(said.To()).Round(time.Millisecond))
	steps := []int64{w.EndpointMS, w.FirstTokenMS, w.FirstSentenceMS, w.FirstAudioMS, w.FirstPacketMS}
	if !slices.IsSorted(steps[1:]) || w.EndpointMS < 500 || w.EndpointMS > 900 || w.TranscriptMS <= 0 ||
		w.FirstPacketMS < w.EndpointMS {
		t.Errorf("the waterfall is %+v", *w)
	}
	if wire := first.Sub(said.To()).Milliseconds(); wire < w.FirstPacketMS-100 || wire > w.FirstPacketMS+100 {
		t.Errorf("the first packet came %d ms after the last word, the waterfall says %d", wire, w.FirstPacketMS)
	}
	for _, event := range []string{"event: turn", "event: tool", "event: end"} {
		hear(t, live, event)
	}
}

// Speech during a reply silences it at once and for good; the transcript has what was heard.
func TestTalkInterrupted(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
	c := l.greeted(t, l.phone)
	v.hears("What do you have?", "And what does it cost?")
	v.Script(aitest.Behaviour{Text: long}, aitest.Behaviour{Text: "Three dollars."})
	said := asks(t, c)
	began := hears(t, c, said.To())
	eventually(t, "a second of the reply", func() bool { return time.Since(began) > time.Second })
	into := asks(t, c)
	v.awaits(t, c, "Three dollars.")
	silent(t, c, 500*time.Millisecond)
	var last time.Time
	for _, p := range c.Packets() {
		if p.Loud() && p.At.Before(into.To()) {
			last = p.At
		}
	}
	t.Logf("silent %v after the first sound of the interruption", last.Sub(into.From()).Round(time.Millisecond))
	if took := last.Sub(into.From()); took > 400*time.Millisecond {
		t.Errorf("it went on for %v", took)
	}
	pieces := slices.DeleteFunc(v.on(c), func(p piece) bool { return p.text == "" })
	if n := len(pieces); n < 3 || !strings.HasPrefix(long, pieces[1].text) || pieces[n-1].text != "Three dollars." {
		t.Errorf("heard %v", pieces)
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if len(row.Turns) != 5 || !row.Turns[2].Interrupted || row.Turns[4].Interrupted {
		t.Fatalf("turns %+v", row.Turns)
	}
	heard, share := row.Turns[2].Text, float64(v.length(c, long))/float64(aitest.SpeechTime(long, 1))
	if words := float64(len(heard)) / float64(len(long)); !strings.HasPrefix(long, heard) || words < share-0.1 ||
		words > share+0.1 {
		t.Errorf("%.0f %% of the reply sounded; it stands as %q", 100*share, heard)
	}
	told := slices.IndexFunc(v.Requests(), func(r aitest.Request) bool {
		return slices.ContainsFunc(r.Messages, func(m ai.Message) bool {
			return m.Role == ai.Assistant &&
				strings.HasPrefix(m.Text, heard)
		})
	})
	if told < 0 {
		t.Errorf("the model was never told that it said %q: %+v", heard, v.Requests())
	}
}

// A cough during a reply pauses it, and it goes on where it stopped.
func TestTalkFalseStart(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
	c := l.greeted(t, l.phone)
	v.hears("What do you have?", "")
	v.Script(aitest.Behaviour{Text: long})
	began := hears(t, c, asks(t, c).To())
	eventually(t, "a second of the reply", func() bool { return time.Since(began) > time.Second })
	cough := speech(t, asking)[:1600] // 200 ms of it
	<-c.Say(cough).Done()
	silent(t, c, 1500*time.Millisecond)
	t.Logf("heard %v", v.on(c))
	// a frame that lies across a seam can't be attributed to either side
	if got, want := v.length(c, long), aitest.SpeechTime(long, 1); got < want-240*time.Millisecond ||
		got > want+100*time.Millisecond {
		t.Errorf("%v of %v of the reply sounded", got, want)
	}
	paused := false
	for i, p := range v.on(c) {
		paused = paused || p.text == "" && i > 2 && strings.Contains(long, v.on(c)[i-1].text) &&
			p.long < time.Second && i < len(v.on(c))-1
	}
	if !paused {
		t.Error("it did not pause")
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	if len(row.Turns) != 3 || row.Turns[2].Interrupted || row.Turns[2].Text != long {
		t.Errorf("turns %+v", row.Turns)
	}
}

// The model transfers the caller by REFER.
func TestTalkTransfer(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, map[string]any{"tools": []any{map[string]any{"type": "call_transfer",
		"phone_number": "+4930901829", "description": "to the kitchen"}}})
	c := l.greeted(t, l.phone)
	v.hears("The kitchen, please.")
	v.Script(aitest.Behaviour{Text: "One moment.", Calls: []ai.ToolCall{{ID: "call_1", Name: "call_transfer",
		Arguments: `{"reason":"the kitchen"}`}}})
	asks(t, c)
	gone(t, c)
	if to := c.Referred(); !strings.Contains(to, "4930901829") {
		t.Errorf("sent to %q", to)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.Transferred)
	if v.length(c, "One moment.") == 0 {
		t.Errorf("heard %v", v.on(c))
	}
}

// The model hangs up, after its last words.
func TestTalkEnds(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, map[string]any{"tools": []any{map[string]any{"type": "end_call"}}})
	c := l.greeted(t, l.phone)
	v.hears("That is all.")
	v.Script(aitest.Behaviour{Text: "Goodbye, and thank you.",
		Calls: []ai.ToolCall{{ID: "call_1", Name: "end_call", Arguments: `{"reason":"done"}`}}})
	asks(t, c)
	gone(t, c)
	if got, want := v.length(c, "Goodbye, and thank you."),
		aitest.SpeechTime("Goodbye, and thank you.", 1); got < want-80*time.Millisecond {
		t.Errorf("the goodbye was cut off after %v of %v", got, want)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.AssistantHangup)
}

// A caller on hold hears and sends nothing, and the call goes on afterwards.
func TestTalkHold(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
	c := l.greeted(t, l.phone)
	ctx, cancel := timeout(t, patience)
	defer cancel()
	if err := c.Hold(ctx); err != nil {
		t.Fatal(err)
	}
	held := time.Now()
	eventually(t, "two seconds of hold", func() bool { return time.Since(held) > 2*time.Second })
	during := 0
	for _, p := range c.Packets() {
		if p.At.After(held.Add(100 * time.Millisecond)) {
			during++
		}
	}
	if during > 0 {
		t.Errorf("%d packets came during the hold", during)
	}
	if err := c.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	v.hears("I am back.")
	v.Script(aitest.Behaviour{Text: "Welcome back."})
	asks(t, c)
	v.awaits(t, c, "Welcome back.")
	silent(t, c, 300*time.Millisecond)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
	packets := c.Packets()
	for i := 1; i < len(packets); i++ {
		if packets[i].Seq != packets[i-1].Seq+1 || packets[i].SSRC != packets[0].SSRC {
			t.Fatalf("packet %d has number %d, the one before it %d", i, packets[i].Seq, packets[i-1].Seq)
		}
	}
}

// A keypad menu, with each way to send keys.
func TestTalkKeys(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]phone.Options{"events": {}, "events with loss": {Loss: 0.05},
		"tones": {NoEvents: true}, "INFO": {}} {
		t.Run(name, func(t *testing.T) {
			share(t, call)
			l, v := bakeryLine(t, map[string]any{"tools": []any{map[string]any{"type": "collect_keypad",
				"timeout": 3, "stop_key": "#"}}})
			c := l.greeted(t, handset(t, o))
			v.hears("I have an account.")
			v.Script(aitest.Behaviour{Text: "Your number, please.",
				Calls: []ai.ToolCall{{ID: "call_1", Name: "collect_keypad", Arguments: "{}"}}},
				aitest.Behaviour{Text: "Thank you."})
			asks(t, c)
			v.awaits(t, c, "Your number, please.")
			silent(t, c, 300*time.Millisecond)
			if name == "INFO" {
				ctx, cancel := timeout(t, patience)
				defer cancel()
				for _, key := range []byte("1223#") {
					if err := c.Info(ctx, key); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				c.Press("1223#")
			}
			v.awaits(t, c, "Thank you.")
			q := v.Requests()
			if last := q[len(q)-1].Messages; last[len(last)-1].Text != `{"digits":"1223","ended_by":"key"}` {
				t.Errorf("the model was told %+v", last[len(last)-1])
			}
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
		})
	}
}

// One packet in twenty is lost on its way to us: the conversation goes on, and nothing is late.
func TestTalkLoss(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, map[string]any{"record": true})
	c := l.greeted(t, handset(t, phone.Options{Loss: 0.05}))
	v.hears("I would like a table.", "For two.")
	v.Script(aitest.Behaviour{Text: "For how many people?"}, aitest.Behaviour{Text: "Your table is ready."})
	asks(t, c)
	v.awaits(t, c, "For how many people?")
	silent(t, c, 300*time.Millisecond)
	asks(t, c)
	v.awaits(t, c, "Your table is ready.")
	silent(t, c, 500*time.Millisecond)
	talked := time.Since(c.Answered)
	// Packet loss is reported to the sender.
	if reports := c.Reports(); len(reports) == 0 {
		t.Errorf("nothing was reported in %v", talked)
	} else if r := reports[len(reports)-1]; r.Lost == 0 || r.Lost > c.Sent()/5 || r.Sent == 0 ||
		r.Sent > len(c.Packets()) {
		t.Errorf("told of %d packets sent and %d lost; %d came and %d were sent", r.Sent, r.Lost, len(c.Packets()),
			c.Sent())
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	left, _, rate := l.recording(t, row)
	recorded := time.Duration(len(left)) * time.Second / time.Duration(rate)
	if recorded < talked-500*time.Millisecond || recorded > talked+500*time.Millisecond {
		t.Errorf("%v of talk are %v of recording", talked, recorded)
	}
	// Lost sound is concealed with what came before it: at most 60 ms within a word are silent.
	n := rate / 50
	gap, longest, loud := 0, 0, false
	for ; len(left) >= n; left = left[n:] {
		if slices.ContainsFunc(left[:n], func(s int16) bool { return s != 0 }) && audio.Level(left[:n]) > -60 {
			if loud && gap > longest && gap < 25 {
				longest = gap
			}
			gap, loud = 0, true
		} else {
			gap++
		}
	}
	t.Logf("the longest gap within speech: %d ms", 20*longest)
}

// A caller hangs up in every state, and each call is over at once and leaves nothing behind.
func TestTalkLeaves(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
	gate := make(chan struct{})
	tool := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}))
	var made struct{ Data struct{ ID int64 } }
	l.call(t, "POST", "/user/tools", map[string]any{"name": "wait", "description": "Takes its time",
		"method": "GET", "endpoint": tool, "timeout": 30}, &made)
	l.change(t, map[string]any{"tool_ids": []int64{made.Data.ID}})
	defer close(gate)
	c := l.greeted(t, l.phone) // after one conversation, everything that stays for good is there
	v.hears("Well?")
	v.Script(aitest.Behaviour{Text: long})
	asks(t, c)
	v.awaits(t, c, long)
	if err := c.Hangup(); err != nil {
		t.Fatal(err)
	}
	l.over(t)
	http.DefaultClient.CloseIdleConnections()
	before := l.gauge(t, "go_goroutines")
	for name, until := range map[string]func(t *testing.T, c *phone.Call){
		"at once":         func(*testing.T, *phone.Call) {},
		"in the greeting": func(t *testing.T, c *phone.Call) { hears(t, c, c.Answered) },
		"listening": func(t *testing.T, c *phone.Call) {
			hears(t, c, c.Answered)
			silent(t, c,
				300*time.Millisecond)
		},
		"in a sentence": func(t *testing.T, c *phone.Call) {
			hears(t, c, c.Answered)
			silent(t, c, 300*time.Millisecond)
			u := c.Say(speech(t, asking))
			eventually(t, "half a second of it", func() bool {
				return !u.From().IsZero() &&
					time.Since(u.From()) > 500*time.Millisecond
			})
		},
		"while it thinks": func(t *testing.T, c *phone.Call) {
			hears(t, c, c.Answered)
			silent(t, c, 300*time.Millisecond)
			v.hears("Well?")
			v.Script(aitest.Behaviour{Text: "One two.", Gate: gate})
			n := v.Count()
			asks(t, c)
			eventually(t, "the model to be asked", func() bool { return v.Count() > n })
		},
		"while a tool runs": func(t *testing.T, c *phone.Call) {
			hears(t, c, c.Answered)
			silent(t, c, 300*time.Millisecond)
			v.hears("Well?")
			v.Script(aitest.Behaviour{Text: "One moment.",
				Calls: []ai.ToolCall{{ID: "call_1", Name: "wait", Arguments: "{}"}}})
			asks(t, c)
			v.awaits(t, c, "One moment.")
		},
		"in a reply": func(t *testing.T, c *phone.Call) {
			hears(t, c, c.Answered)
			silent(t, c, 300*time.Millisecond)
			v.hears("Well?")
			v.Script(aitest.Behaviour{Text: long})
			asks(t, c)
			v.awaits(t, c, long)
		},
		"on hold": func(t *testing.T, c *phone.Call) {
			hears(t, c, c.Answered)
			ctx, cancel := timeout(t, patience)
			defer cancel()
			if err := c.Hold(ctx); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := l.ring(t, handset(t, phone.Options{}))
			until(t, c)
			left := time.Now()
			if err := c.Hangup(); err != nil {
				t.Error(err)
			}
			l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
			if took := time.Since(left); took > 2*time.Second {
				t.Errorf("the call's end took %v", took)
			}
		})
	}
	t.Run("while it rings", func(t *testing.T) {
		quiet := make(chan struct{})
		l.call(t, "POST", "/user/assistants/enable-inbound-webhook",
			map[string]any{"assistant_id": l.Assistant,
				"webhook_url": serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-quiet:
					case <-r.Context().Done():
					}
				}))}, nil)
		defer close(quiet)
		ctx, cancel := timeout(t, time.Second)
		defer cancel()
		if c, err := handset(t, phone.Options{}).Call(ctx, "visitor", itoa(l.Assistant), l.sip); err == nil {
			c.Hangup()
			t.Fatal("it answered before the webhook did")
		}
		l.over(t).expect(t, parley.CallCanceled, parley.Canceled)
	})
	http.DefaultClient.CloseIdleConnections()
	now := 0
	defer func() { t.Logf("%d goroutines before, %d after", before, now) }()
	// connections to the vendor and to tools stay for a while
	eventually(t, "the goroutines as before", func() bool { now = l.gauge(t, "go_goroutines"); return now <= before+6 })
	eventually(t, "free ports", func() bool { return l.portsFree(t) })
}

// A vendor that hangs leaves nobody in silence: the assistant says that something is wrong, and when that does not
// help the call ends.
func TestTalkVendorHangs(t *testing.T) {
	t.Parallel()
	const stall = "PARLEY_OPENAI_STALL=1s"
	t.Run("thinking", func(t *testing.T) {
		share(t, call)
		l, v := bakeryLine(t, nil, stall)
		c := l.greeted(t, l.phone)
		v.hears("Well?", "Well?")
		v.Script(aitest.Behaviour{Fault: aitest.Stall}, aitest.Behaviour{Fault: aitest.Stall})
		said := asks(t, c)
		at := hears(t, c, said.To())
		t.Logf("something is said after %v", at.Sub(said.To()).Round(time.Millisecond))
		silent(t, c, 400*time.Millisecond)
		asks(t, c)
		gone(t, c)
		l.over(t).expect(t, parley.CallFailed, parley.ProviderFailure)
	})
	t.Run("hearing", func(t *testing.T) {
		share(t, call)
		l, v := bakeryLine(t, nil, stall)
		c := l.greeted(t, l.phone)
		v.ScriptTranscripts(aitest.Behaviour{Text: "Lost.", Fault: aitest.Stall}, aitest.Behaviour{Text: "Hello?"})
		v.Script(aitest.Behaviour{Text: "I am here."})
		said := asks(t, c)
		at := hears(t, c, said.To())
		t.Logf("something is said after %v", at.Sub(said.To()).Round(time.Millisecond))
		silent(t, c, 400*time.Millisecond)
		asks(t, c)
		v.awaits(t, c, "I am here.")
		if err := c.Hangup(); err != nil {
			t.Error(err)
		}
		l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
	})
	t.Run("speaking", func(t *testing.T) {
		share(t, call)
		l, v := bakeryLine(t, nil, stall)
		v.Voice.On("Mute.", aitest.Saying{Hang: true})
		c := l.greeted(t, l.phone)
		v.hears("Well?")
		v.Script(aitest.Behaviour{Text: "Mute."})
		asks(t, c)
		gone(t, c)
		l.over(t).expect(t, parley.CallFailed, parley.ProviderFailure)
	})
}

// An external detector is asked whether the customer has finished, with the question that they answer.
func TestTalkDetector(t *testing.T) {
	share(t, call)
	asked := make(chan string, 100)
	at := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked <- r.Header.Get("Authorization") + " " + string(body)
		w.Write([]byte(`{"over":0.97}`))
	}))
	l, v := bakeryLine(t, map[string]any{"endpoint_type": "ai"}, "PARLEY_TURN_DETECTOR_URL="+at,
		"PARLEY_TURN_DETECTOR_KEY=k3y-of-the-detector")
	c := l.greeted(t, l.phone)
	v.hears("a table")
	v.Script(aitest.Behaviour{Text: "For how many people?"})
	asks(t, c)
	v.awaits(t, c, "For how many people?")
	want := `Bearer k3y-of-the-detector {"language":"en","text":"a table","question":"` + welcome + `"}`
	for found := false; !found; {
		select {
		case got := <-asked: // about "a" first, perhaps
			found = got == want
		default:
			t.Fatalf("the detector was not asked %s", want)
		}
	}
	res, err := http.Get(l.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if metrics, err := io.ReadAll(res.Body); err != nil ||
		!strings.Contains(string(metrics), `parley_turn_detector_total{outcome="answered"}`) {
		t.Errorf("/metrics has nothing of the detector: %v", err)
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	l.over(t).expect(t, parley.CallCompleted, parley.CustomerHangup)
}
