package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/assemblyai/assemblyaitest"
)

// A call that AssemblyAI transcribes: the caller is answered, interrupts a reply, and the call goes on when
// AssemblyAI's session has reached its time limit.
func TestAssemblyAITalk(t *testing.T) {
	share(t, call)
	a := assemblyaitest.New(t)
	l, v := speaking(t, "PARLEY_ASSEMBLYAI_API_KEY="+assemblyaitest.Key, "PARLEY_ASSEMBLYAI_BASE_URL="+a.URL)
	var recognizers []struct {
		ID   int64
		Name string
	}
	l.call(t, "GET", "/user/assistants/transcriber-providers?language_id=1", nil, &recognizers)
	i := slices.IndexFunc(recognizers, func(e struct {
		ID   int64
		Name string
	}) bool {
		return e.Name == "AssemblyAI"
	})
	if i < 0 {
		t.Fatalf("the transcribers are %+v", recognizers)
	}
	l.change(t, map[string]any{"initial_message": welcome, "post_call_evaluation": false, "record": false,
		"transcriber_provider_id": recognizers[i].ID})
	c := l.greeted(t, l.phone)
	a.Hears("What do you have?", "And what does it cost?")
	v.Script(aitest.Behaviour{Text: long}, aitest.Behaviour{Text: "Three dollars."})
	began := hears(t, c, asks(t, c).To())
	eventually(t, "a second of the reply", func() bool { return time.Since(began) > time.Second })
	asks(t, c)
	v.awaits(t, c, "Three dollars.")
	silent(t, c, 300*time.Millisecond)
	a.Kick(3008)
	eventually(t, "another session", func() bool { return len(a.Opened()) == 2 })
	a.Hears("I would like a table.")
	v.Script(aitest.Behaviour{Text: "For how many people?"})
	asks(t, c)
	v.awaits(t, c, "For how many people?")
	silent(t, c, 300*time.Millisecond)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	cut := ""
	for _, turn := range row.Turns {
		if turn.Interrupted {
			cut = turn.Text
		}
	}
	want := "AI: " + welcome + "\nCustomer: What do you have?\nAI: " + cut +
		"\nCustomer: And what does it cost?\nAI: Three dollars.\nCustomer: I would like a table.\nAI: For how many people?"
	if row.Transcript != want || len(cut) < 10 || !strings.HasPrefix(long, cut) {
		t.Errorf("transcript:\n%s\nwant:\n%s", row.Transcript, want)
	}
	var full struct {
		Uses []parley.VendorUse `json:"vendor_uses"`
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &full)
	if !slices.ContainsFunc(full.Uses, func(u parley.VendorUse) bool {
		return u.Part == "recognizer" && u.Vendor == "assemblyai" && u.SecondsHeard > 2
	}) {
		t.Errorf("it used %+v", full.Uses)
	}
	if n := len(v.Utterances()); n > 0 {
		t.Errorf("another provider was asked %d times", n)
	}
	if list := a.Complaints(); len(list) > 0 {
		t.Errorf("the server complained of %v", list)
	}
}
