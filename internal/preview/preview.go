// Package preview lets people hear voices before they choose one: a sentence in the voice's language, synthesized once
// and kept in blob storage.
package preview

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/catalog"
	"parley/internal/parley"
)

const (
	rate      = audio.Wide
	speakTime = 30 * time.Second // for a preview to be said
	maxSound  = 30 * time.Second // of one
	// atOnce is how many are synthesized at a time: anybody may ask, and calls come first.
	atOnce = 2
	// failTime is how long a voice that failed isn't tried again: anybody may ask, and asking may cost.
	failTime = 10 * time.Second
)

// Samples gives previews. It is safe for concurrent use.
type Samples struct {
	Catalog *catalog.Catalog
	Blobs   blob.Store
	// Synthesizer is the provider with a code; its error says why there is none.
	Synthesizer func(code string) (ai.Synthesizer, error)

	mu     sync.Mutex
	making map[int64]*making
	slots  chan struct{}
}

// making is a preview that is being synthesized, or failed a moment ago.
type making struct {
	done chan struct{}
	err  error
	at   time.Time // when it failed
}

// Open opens the preview of a voice, a WAV file. The error is one that may be shown, unless the storage failed.
func (d *Samples) Open(ctx context.Context, voiceID int64) (blob.Object, error) {
	c := d.Catalog.For(0)
	v := c.Voice(voiceID)
	if v == nil {
		return nil, parley.Errorf(parley.NotFound, "Voice not found")
	}
	speaker := c.Heard(voiceID)
	if speaker == nil {
		return nil, parley.Errorf(parley.NotFound, "Voice not found")
	}
	language := c.Language(v.LanguageID).ISO2
	as, text := ai.Speech{Voice: v.Code, Language: language, Rate: rate, Speed: 1, Stability: 0.7, Similarity: 0.5},
		sentences[language]
	name := nameOf(speaker, as, text)
	o, err := d.Blobs.Open(ctx, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	if err := d.make(ctx, voiceID, speaker, name, as, text); err != nil {
		return nil, err
	}
	return d.Blobs.Open(ctx, name)
}

// nameOf is the name of a preview's blob: whatever it depends on is in it.
func nameOf(speaker *ai.Speaker, as ai.Speech, text string) string {
	model := ""
	if speaker.Model != nil {
		model = speaker.Model()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d", speaker.Code, model, as.Voice, text,
		as.Rate))
	return "previews/" + hex.EncodeToString(sum[:16]) + ".wav"
}

// make synthesizes a preview. If it is already being made, the caller waits for it.
func (d *Samples) make(ctx context.Context, id int64, speaker *ai.Speaker, name string, as ai.Speech, text string) error {
	d.mu.Lock()
	if d.making == nil {
		d.making, d.slots = map[int64]*making{}, make(chan struct{}, atOnce)
	}
	m := d.making[id]
	if m == nil || m.err != nil && time.Since(m.at) > failTime {
		m = &making{done: make(chan struct{})}
		d.making[id] = m
		d.mu.Unlock()
		// Others may wait for it too: it goes on when the first who asked has left.
		aside, cancel := context.WithTimeout(context.WithoutCancel(ctx), speakTime)
		defer cancel()
		err := d.speak(aside, speaker, name, as, text)
		d.mu.Lock()
		if m.err, m.at = err, time.Now(); err == nil {
			delete(d.making, id)
		}
		d.mu.Unlock()
		close(m.done)
		return err
	}
	d.mu.Unlock()
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *Samples) speak(ctx context.Context, speaker *ai.Speaker, name string, as ai.Speech, text string) error {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return parley.Errorf(parley.Unavailable, "Too many previews are being generated. Try again in a moment.")
	}
	var pcm []byte
	s, err := d.Synthesizer(speaker.Code)
	if err == nil {
		err = ai.Say(ctx, s, as, text, func(piece []int16) error {
			for _, v := range piece {
				pcm = binary.LittleEndian.AppendUint16(pcm, uint16(v))
			}
			if len(pcm) > int(maxSound/time.Second)*2*int(rate) {
				return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("more than %v of sound for a sentence", maxSound)}
			}
			return nil
		})
	}
	if err == nil && len(pcm) == 0 {
		err = &ai.Error{Kind: ai.Malformed, Err: errors.New("no sound")}
	}
	if err = ai.TheVoice.Of(err); err != nil {
		slog.WarnContext(ctx, "a voice's preview can't be made", "provider", speaker.Code, "voice", as.Voice,
			"error", err)
		return shown(speaker, err)
	}
	file := append(audio.AppendWAVHeader(make([]byte, 0, 44+len(pcm)), int(rate), 1, int64(len(pcm))), pcm...)
	_, err = d.Blobs.Put(ctx, name, bytes.NewReader(file))
	return err
}

// shown is what anybody may read of a failure; the log has the rest.
func shown(speaker *ai.Speaker, err error) error {
	switch {
	case ai.KindOf(err) != ai.Config:
		return parley.Errorf(parley.Upstream, "The voice could not be synthesized. Try again in a moment.")
	case speaker.Install != "":
		return parley.Errorf(parley.Unavailable, "This server can't speak with this voice yet. Its operator can install it: %s", speaker.Install)
	}
	return parley.Errorf(parley.Unavailable, "This server can't speak with this voice: its provider is not configured, "+
		"or refuses the request. 'parley doctor' tells its operator why.")
}
