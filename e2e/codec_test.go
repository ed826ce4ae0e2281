package e2e

import (
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
)

// A call changes from wideband to narrowband and back: the customer is understood all along, and the recording goes on in
// the rate that it began with.
func TestPhoneChangesCodec(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "pocketsphinx_batch")
	l := telephone(t)
	l.change(t, map[string]any{"initial_message": "Hello, this is the bakery.", "record": true})
	l.phone.Options.Types = []int{9}
	c := l.ring(t, l.phone)
	hears(t, c, c.Answered)
	const question = "When are you open on Saturday?"
	narrow := speech(t, question)
	r, err := audio.NewResampler(int(audio.Narrow), int(audio.Wide))
	if err != nil {
		t.Fatal(err)
	}
	sounds := map[audio.Rate][]int16{audio.Narrow: narrow, audio.Wide: r.Resample(nil, narrow)}
	for i, types := range [][]int{nil, {0}, {9}} {
		silent(t, c, 800*time.Millisecond)
		if types != nil {
			ctx, cancel := timeout(t, patience)
			if err := c.Change(ctx, types...); err != nil {
				t.Fatal(err)
			}
			cancel()
		}
		if want := []audio.Rate{audio.Wide, audio.Narrow, audio.Wide}[i]; c.Rate() != want {
			t.Fatalf("%d: the sound has %d Hz, want %d", i, c.Rate(), want)
		}
		said := c.Say(sounds[c.Rate()])
		<-said.Done()
		hears(t, c, said.To()) // a reply, in the new codec
	}
	silent(t, c, time.Second)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	t.Logf("transcript:\n%s", row.Transcript)
	turns := row.said("customer")
	if len(turns) != 3 {
		t.Errorf("%d turns of the customer's: %q", len(turns), turns)
	}
	for i, said := range turns {
		if !strings.Contains(strings.ToLower(said), "open") {
			t.Errorf("%d: of %q %q was understood", i, question, said)
		}
	}
	customer, _, rate := l.recording(t, row)
	if seconds := int64(len(customer) / rate); rate != int(audio.Wide) || seconds < row.Duration-2 || seconds > row.Duration+1 {
		t.Errorf("a call of %d s has a recording of %d s at %d Hz", row.Duration, seconds, rate)
	}
	if n := utterances(customer, rate); n != 3 {
		t.Errorf("the customer speaks %d times in the recording", n)
	}
}

// utterances counts the parts of a sound that lie a second of silence apart.
func utterances(pcm []int16, rate int) (n int) {
	frame, quiet := rate/50, 50
	for len(pcm) >= frame {
		if audio.Level(pcm[:frame]) > -45 {
			if quiet >= 50 {
				n++
			}
			quiet = 0
		} else {
			quiet++
		}
		pcm = pcm[frame:]
	}
	return n
}
