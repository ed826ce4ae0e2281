package ai_test

import (
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
)

// acme retires models.
func acme(s any) *ai.Vendor {
	return &ai.Vendor{Code: "acme", Name: "Acme", Settings: s, Retired: func() ai.Retirements {
		return ai.Retirements{
			{Model: "think-1", Day: "2027-01-20", Instead: "think-2"},
			{Model: "think-1-2024-05-13", Day: "2026-10-23", Instead: "think-2"},
			{Model: "hear-1", Day: "2027-01-20", Instead: "hear-2"},
			{Model: "talk-1", Day: "2027-01-20"},
		}
	}}
}

type acmeSettings struct {
	Chat []string `name:"acme-model"`
	Live []string `name:"acme-realtime-model"`
	TTS  string   `name:"acme-tts-model"`
	STT  string   `name:"acme-stt-model"`
	Key  string   `name:"acme-api-key"`
}

func day(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
}

// A retirement is told from 60 days before its day on, which begins in UTC. Snapshots go with their model, unless they
// have a day of their own.
func TestRetires(t *testing.T) {
	v := acme(nil)
	for _, c := range []struct {
		model, now string
		near, gone bool
	}{
		{"think-1", "2026-11-20 23:59:59", false, false},
		{"think-1", "2026-11-21 00:00:00", true, false},
		{"think-1", "2027-01-19 23:59:59", true, false},
		{"think-1", "2027-01-20 00:00:00", true, true},
		{"think-1-2025-08-07", "2027-01-20 00:00:00", true, true},
		{"think-1-20250807", "2027-01-19 23:59:59", true, false},
		{"think-1-2024-05-13", "2026-10-23 00:00:00", true, true},
	} {
		if r := v.Retires(c.model); r == nil || r.Near(day(c.now)) != c.near || r.Gone(day(c.now)) != c.gone {
			t.Errorf("%+v: got %+v", c, r)
		}
	}
	for _, model := range []string{"think-2", "think", "think-1-mini", "", "x-think-1"} {
		if r := v.Retires(model); r != nil {
			t.Errorf("%q: got %+v", model, r)
		}
	}
	list := []string{"think-2", "think-1"}
	if got := v.Retired().Living(list, day("2027-01-19 12:00:00")); len(got) != 2 {
		t.Errorf("the day before: %q", got)
	}
	if got := v.Retired().Living(list, day("2027-01-20 12:00:00")); len(got) != 1 || got[0] != "think-2" {
		t.Errorf("on the day: %q", got)
	}
}

// What settings name is told with the setting that is to be changed.
func TestRetiring(t *testing.T) {
	before, after := day("2026-12-01 00:00:00"), day("2027-02-01 00:00:00")
	for _, c := range []struct {
		set  acmeSettings
		now  time.Time
		want []parley.Finding
	}{
		{acmeSettings{Chat: []string{"think-1"}}, before, []parley.Finding{{State: "note", What: "acme", Part: "model",
			Text: "think-1 is retired by Acme on 20 January 2027: set PARLEY_ACME_MODEL to think-2"}}},
		{acmeSettings{Chat: []string{"think-1", "think-2"}}, after, []parley.Finding{{State: "FAIL", What: "acme", Part: "model",
			Text: "think-1 was retired by Acme on 20 January 2027: write think-2 in its place in PARLEY_ACME_MODEL"}}},
		{acmeSettings{Live: []string{"hear-1"}, TTS: "talk-1", STT: "ear-1"}, before, []parley.Finding{
			{State: "note", What: "acme", Part: "model",
				Text: "hear-1 is retired by Acme on 20 January 2027: set PARLEY_ACME_REALTIME_MODEL to hear-2"},
			{State: "note", What: "acme", Part: "voice",
				Text: "talk-1 is retired by Acme on 20 January 2027, which has no other for PARLEY_ACME_TTS_MODEL: use another provider"}}},
		{acmeSettings{Chat: []string{"think-1"}}, day("2026-11-20 00:00:00"), nil},
		{acmeSettings{Chat: []string{"think-2"}, Key: "think-1"}, after, nil},
	} {
		got := acme(&acmeSettings{}).Retiring(acme(&c.set), c.now)
		if len(got) != len(c.want) {
			t.Errorf("%+v: got %+v", c.set, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("got  %+v\nwant %+v", got[i], c.want[i])
			}
		}
	}
}

// An owner is told which model is not there, since when, and which setting names it.
func TestGoneModel(t *testing.T) {
	v := acme(&acmeSettings{Chat: []string{"mine"}, Live: []string{"hear-1"}, TTS: "talk-1"})
	now := day("2027-02-01 00:00:00")
	for _, c := range []struct {
		part  ai.Part
		hears bool
		model string
		want  string
	}{
		{ai.TheModel, false, "mine", "Acme says that it has no model mine. Choose another model for the assistant, " +
			"or ask this server's operator to change PARLEY_ACME_MODEL."},
		{ai.TheModel, true, "hear-1", "The model hear-1 was retired by Acme on 20 January 2027. " +
			"Choose another model for the assistant, or ask this server's operator to change PARLEY_ACME_REALTIME_MODEL to hear-2."},
		{ai.TheVoice, false, "talk-1", "The speech model talk-1 was retired by Acme on 20 January 2027. " +
			"Choose a voice of another provider, or ask this server's operator to change PARLEY_ACME_TTS_MODEL."},
		{ai.TheRecognizer, false, "", "Acme says that it has no transcription model. " +
			"Choose another transcriber, or ask this server's operator to change PARLEY_ACME_STT_MODEL."},
	} {
		if got := v.GoneModel(c.part, c.hears, c.model, now); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if got := (&ai.Vendor{Name: "Acme"}).GoneModel(ai.TheModel, false, "x",
		now); got != "Acme says that it has no model x. Choose another model for the assistant." {
		t.Errorf("without settings: %s", got)
	}
}
