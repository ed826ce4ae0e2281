package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
)

// switched returns a call's record of vendor failovers, without their times.
func (l *line) switched(t *testing.T, id int64) (list []parley.VendorSwitch) {
	t.Helper()
	var c struct {
		List []parley.VendorSwitch `json:"vendor_switches"`
	}
	l.call(t, "GET", "/user/calls/"+itoa(id), nil, &c)
	for i := range c.List {
		c.List[i].AtMS = 0
	}
	return c.List
}

// The speech vendor dies in the middle of a sentence: the next one speaks the rest, and the record says so.
func TestTalkVoiceDies(t *testing.T) {
	share(t, call)
	need(t, "flite")
	l, v := bakeryLine(t, nil, "PARLEY_FALLBACK_VOICES=flite")
	c := l.greeted(t, l.phone)
	const first, second = "We are in the old town beside the bridge.", "Come and see us."
	v.hears("Where are you?")
	v.Script(aitest.Behaviour{Text: first + " " + second})
	v.UsuallySpeech(aitest.Behaviour{Fault: aitest.Reset, After: 5}) // after half a second
	asks(t, c)
	v.awaits(t, c, first)
	silent(t, c, 1500*time.Millisecond)
	if d := v.length(c, first); d < 400*time.Millisecond || d > 600*time.Millisecond {
		t.Errorf("its own voice said %v", d)
	}
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if want := "Customer: Where are you?\nAI: " + first + " " + second; !strings.Contains(row.Transcript, want) {
		t.Errorf("transcript:\n%s", row.Transcript)
	}
	list := l.switched(t, row.ID)
	if len(list) != 1 || list[0].Part != "voice" || !strings.HasPrefix(list[0].From, "openai/") ||
		!strings.HasPrefix(list[0].To, "flite/") || list[0].Reason != "interrupted" {
		t.Errorf("switches %+v", list)
	}
}

// The vendor used for everything goes down in the middle of a call: others hear, think and speak.
func TestTalkVendorDies(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "pocketsphinx_batch")
	l, v := bakeryLine(t, nil, "PARLEY_FALLBACK_VOICES=flite", "PARLEY_FALLBACK_TRANSCRIBERS=pocketsphinx",
		"PARLEY_FALLBACK_MODELS=local/local")
	c := l.greeted(t, l.phone)
	down := aitest.Behaviour{Status: http.StatusServiceUnavailable}
	v.Usually(down)
	v.UsuallySpeech(down)
	v.UsuallyTranscripts(down)
	said := c.Say(speech(t, "When are you open on Saturday?"))
	<-said.Done()
	replied := hears(t, c, said.To())
	t.Logf("the reply came %v after the last word", replied.Sub(said.To()).Round(time.Millisecond))
	silent(t, c, time.Second)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if heard := strings.ToLower(strings.Join(row.said("customer"), " ")); !strings.Contains(heard, "open") {
		t.Errorf("%q was understood", heard)
	}
	if len(row.said("assistant")) < 2 {
		t.Errorf("transcript:\n%s", row.Transcript)
	}
	list := l.switched(t, row.ID)
	slices.SortFunc(list, func(a, b parley.VendorSwitch) int { return strings.Compare(a.Part, b.Part) })
	if len(list) != 3 || list[0].To != "local/local" || list[1].To != "pocketsphinx" ||
		!strings.HasPrefix(list[2].To, "flite/") {
		t.Errorf("switches %+v", list)
	}
}
