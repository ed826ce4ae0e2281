package live

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

// asker notes what is told to the server.
type asker struct{ told []string }

func (a *asker) Take([]byte) error                                { return nil }
func (a *asker) Open(context.Context, string) (*wire.Conn, error) { return nil, wire.ErrClosed }

func (a *asker) Speech(begins bool) any {
	a.told = append(a.told, fmt.Sprintf("speech %t", begins))
	return nil
}

func (a *asker) Texts(list []*Text, asks bool) any {
	var texts []string
	for _, t := range list {
		texts = append(texts, string(t.Role)+": "+t.Text)
	}
	a.told = append(a.told, fmt.Sprintf("%s, asks %t", strings.Join(texts, "|"), asks))
	return nil
}

func (a *asker) Results(list []Result) any {
	for _, r := range list {
		a.told = append(a.told, fmt.Sprintf("result %s %v", r.Call.ID, r.Output))
	}
	return nil
}

// What a session tells the server, when.
func TestAskedTells(t *testing.T) {
	call := []Call{{ID: "1", Name: "price", Args: json.RawMessage(`{"of":"rye"}`)}}
	for _, o := range []struct {
		name string
		do   func(s *Asked)
		want []string
	}{
		{"it speaks first", func(s *Asked) { s.Respond(1, "", false) }, []string{"user: " + opening + ", asks true"}},
		{"the assistant has spoken", func(s *Asked) {
			s.Add(1, ai.Message{Role: ai.Assistant, Text: "Hello."})
			s.Respond(2, "", false)
		}, []string{"user: " + opening + "|assistant: Hello., asks false", "user: " + closing + ", asks true"}},
		{"the customer has spoken", func(s *Asked) {
			s.Write(make([]int16, 160))
			s.Write(make([]int16, 160))
			s.End()
			s.Respond(1, "Be brief.", false)
		}, []string{"speech true", "user: Be brief., asks false", "speech false"}},
		{"the customer speaks", func(s *Asked) {
			s.Write(make([]int16, 160))
			s.Respond(1, "", false)
		}, []string{"speech true", "user: " + opening + ", asks true"}},
		{"a text waits for a reply, and was not heard whole", func(s *Asked) {
			s.Respond(1, "", false)
			s.Add(2, ai.Message{Role: ai.Assistant, Text: "One moment please."})
			s.Cut(2, 0, "One moment")
			s.Spoken(make([]byte, 2))
			s.Made()
		}, []string{"user: " + opening + ", asks true", "assistant: One moment, asks false"}},
		{"a reply was not heard whole", func(s *Asked) {
			s.Respond(1, "", false)
			s.Cut(1, 0, "We open")
			s.Cut(1, 0, "We")
		}, []string{"user: " + opening + ", asks true", "user: [" + heardOnly("We open") + "], asks false"}},
		{"nobody was asked", func(s *Asked) {
			s.Respond(1, "", false)
			s.Respond(2, "", false)
			s.Cut(2, 0, "")
			s.Made()
		}, []string{"user: " + opening + ", asks true"}},
		{"a result, and how to go on", func(s *Asked) {
			s.Respond(1, "", false)
			s.Called(call)
			s.Result("1", "3 EUR")
			s.Respond(2, "Be brief.", false)
		}, []string{"user: " + opening + ", asks true", "result 1 map[note:Be brief. result:3 EUR]"}},
		{"a result that was given up", func(s *Asked) {
			s.Respond(1, "", false)
			s.Called(call)
			s.GaveUp([]string{"1"})
			s.Result("1", "3 EUR")
		}, []string{"user: " + opening + ", asks true",
			"user: [" + resultOf(ai.ToolCall{Name: "price", Arguments: `{"of":"rye"}`}, "3 EUR") + "], asks false"}},
	} {
		a := &asker{}
		s, err := NewAsked(t.Context(), a, ai.RealtimeSetup{Rate: audio.Narrow}, 24000)
		if err != nil {
			t.Fatal(err)
		}
		if o.do(s); !slices.Equal(a.told, o.want) {
			t.Errorf("%s:\n got %q\nwant %q", o.name, a.told, o.want)
		}
	}
}

// A piece of sound may end within a sample.
func TestSpokenInPieces(t *testing.T) {
	s, err := NewAsked(t.Context(), &asker{}, ai.RealtimeSetup{Rate: audio.Narrow}, int(audio.Narrow))
	if err != nil {
		t.Fatal(err)
	}
	s.Respond(1, "", false)
	for _, piece := range []string{"\x01", "\x02\x03", "\x04\x05\x06"} {
		s.Spoken([]byte(piece))
	}
	var pcm []int16
	for _, e := range s.events {
		pcm = append(pcm, e.PCM...)
	}
	if !slices.Equal(pcm, []int16{0x201, 0x403, 0x605}) {
		t.Errorf("%x", pcm)
	}
}
