package voice

import (
	"container/list"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
)

// Cache keeps the audio of fixed sentences (greetings, fillers) for all sessions. It is safe for concurrent use; its
// zero value is ready.
type Cache struct {
	// Size is how many octets of audio it keeps; 0 means DefaultCacheSize. The least recently used audio goes first.
	Size int

	mu      sync.Mutex
	sounds  map[soundKey]*list.Element // of *sound
	order   list.List                  // the one that was used last is in front
	size    int
	flights map[soundKey]*flight
}

// DefaultCacheSize is the size of a Cache that sets none.
const DefaultCacheSize = 64 << 20

// soundKey holds everything that determines how a sentence sounds.
type soundKey struct {
	vendor ai.Synthesizer
	speech ai.Speech
	text   string
}

// sound is a sentence's audio. It is shared, so nobody may write to it.
type sound struct {
	key soundKey
	pcm []int16
	times
}

// flight is a sound that is being made.
type flight struct {
	done chan struct{}
	made bool // it did not fail
}

// keyOf returns the key that a sound is stored under. It is false where the vendor can't be told apart from others.
func keyOf(vendor ai.Synthesizer, as ai.Speech, text string) (soundKey, bool) {
	if vendor == nil || !reflect.ValueOf(vendor).Comparable() {
		return soundKey{}, false
	}
	return soundKey{vendor, as, text}, true
}

// find returns a cached sound.
func (c *Cache) find(key soundKey) *sound {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.sounds[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*sound)
}

// steady is a voice with several vendors behind it. It reports whether it sounds the way it usually does.
type steady interface {
	Steady(ctx context.Context) bool
}

// keep adds a sound and evicts others to make room. Audio that another voice spoke in the vendor's place is not kept.
func (c *Cache) keep(ctx context.Context, key soundKey, pcm []int16, t times) {
	if v, ok := key.vendor.(steady); ok && !v.Steady(ctx) {
		return
	}
	limit := c.Size
	if limit == 0 {
		limit = DefaultCacheSize
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(pcm) == 0 || 2*len(pcm) > limit/4 || c.sounds[key] != nil {
		return
	}
	if c.sounds == nil {
		c.sounds = map[soundKey]*list.Element{}
	}
	c.sounds[key] = c.order.PushFront(&sound{key, pcm, t})
	c.size += 2 * len(pcm)
	for c.size > limit {
		last := c.order.Remove(c.order.Back()).(*sound)
		delete(c.sounds, last.key)
		c.size -= 2 * len(last.pcm)
	}
}

// load makes a missing sound, once however many ask for it, and returns when it is there.
func (c *Cache) load(ctx context.Context, key soundKey) error {
	for {
		if c.find(key) != nil {
			return nil
		}
		c.mu.Lock()
		f := c.flights[key]
		mine := f == nil
		if mine {
			f = &flight{done: make(chan struct{})}
			if c.flights == nil {
				c.flights = map[soundKey]*flight{}
			}
			c.flights[key] = f
		}
		c.mu.Unlock()
		if mine {
			return c.fly(ctx, key, f)
		}
		select {
		case <-f.done:
			if f.made {
				return nil
			}
			// Whoever was making it gave up or failed: now it is up to us.
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Cache) fly(ctx context.Context, key soundKey, f *flight) (err error) {
	var pcm []int16
	var t times
	defer func() {
		if f.made = err == nil; f.made {
			t.lead = leadingSilence(pcm[:min(int(leadTrim*time.Duration(key.speech.Rate)/time.Second), len(pcm))])
			c.keep(ctx, key, slices.Clone(pcm[t.lead:]), t)
		}
		c.mu.Lock()
		delete(c.flights, key)
		c.mu.Unlock()
		close(f.done)
	}()
	err = errNoSound // of a panic
	texts := make(chan string, 1)
	texts <- key.text
	close(texts)
	err = key.vendor.Speak(ctx, key.speech, texts, func(piece ai.Sound) error {
		pcm = append(pcm, piece.PCM...)
		t.add(key.text, piece.Words)
		return nil
	})
	return ai.TheVoice.Of(err)
}
