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
	vendor any // the synthesizer, or what is the same for all that sound like it
	speech ai.Speech
	text   string
}

// sound is a sentence's audio. It is shared, so nobody may write to it.
type sound struct {
	key soundKey
	pcm []int16
	times
}

// flight is a sound that is being made. It is also a Synthesizer of that one text, for those who don't wait for all of it.
type flight struct {
	done chan struct{}
	made bool // it did not fail

	mu     sync.Mutex
	pieces []ai.Sound
	news   chan struct{} // closed when there is another
	users  int           // who want it; when nobody does any more, it is given up
	cancel context.CancelCauseFunc
}

// flying is a sound that is being made, nil if it isn't.
func (c *Cache) flying(key soundKey) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flights[key]
}

// add keeps a piece for those who listen.
func (f *flight) add(piece ai.Sound) {
	piece.PCM, piece.Words = slices.Clone(piece.PCM), slices.Clone(piece.Words)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pieces = append(f.pieces, piece)
	close(f.news)
	f.news = make(chan struct{})
}

// use notes that so many more want it.
func (f *flight) use(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users += n; f.users == 0 {
		f.cancel(nil)
	}
}

// Speak implements ai.Synthesizer.
func (f *flight) Speak(ctx context.Context, _ ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	f.use(1)
	defer f.use(-1)
	select {
	case <-texts:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for i := 0; ; {
		f.mu.Lock()
		pieces, news := f.pieces[i:], f.news
		f.mu.Unlock()
		for _, piece := range pieces {
			i++
			if err := yield(piece); err != nil || piece.Last {
				return err
			}
		}
		select {
		case <-news:
		case <-f.done:
			f.mu.Lock()
			more := i < len(f.pieces)
			f.mu.Unlock()
			if !more {
				return &ai.Error{Part: ai.TheVoice, Kind: ai.Interrupted, Err: errUnfinished}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keyOf returns the key that a sound is stored under. It is false where the vendor can't be told apart from others.
func keyOf(vendor ai.Synthesizer, as ai.Speech, text string) (soundKey, bool) {
	same := any(vendor)
	if v, ok := vendor.(interface{ Same() any }); ok {
		same = v.Same()
	}
	if same == nil || !reflect.ValueOf(same).Comparable() {
		return soundKey{}, false
	}
	return soundKey{same, as, text}, true
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
func (c *Cache) keep(ctx context.Context, vendor ai.Synthesizer, key soundKey, pcm []int16, t times) {
	if v, ok := vendor.(steady); ok && !v.Steady(ctx) {
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
func (c *Cache) load(ctx context.Context, vendor ai.Synthesizer, key soundKey) error {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	for {
		if c.find(key) != nil {
			return nil
		}
		c.mu.Lock()
		f := c.flights[key]
		mine := f == nil
		if mine {
			f = &flight{done: make(chan struct{}), news: make(chan struct{}), users: 1, cancel: cancel}
			if c.flights == nil {
				c.flights = map[soundKey]*flight{}
			}
			c.flights[key] = f
		}
		c.mu.Unlock()
		if mine {
			defer context.AfterFunc(ctx, func() { f.use(-1) })()
			if err := c.fly(own, vendor, key, f); ctx.Err() == nil {
				return err
			}
			return context.Cause(ctx)
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

func (c *Cache) fly(ctx context.Context, vendor ai.Synthesizer, key soundKey, f *flight) (err error) {
	var pcm []int16
	var t times
	defer func() {
		if f.made = err == nil; f.made {
			t.lead = leadingSilence(pcm[:min(int(leadTrim*time.Duration(key.speech.Rate)/time.Second), len(pcm))])
			c.keep(ctx, vendor, key, slices.Clone(pcm[t.lead:]), t)
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
	err = vendor.Speak(ctx, key.speech, texts, func(piece ai.Sound) error {
		f.add(piece)
		pcm = append(pcm, piece.PCM...)
		t.add(key.text, piece.Words)
		return nil
	})
	return ai.TheVoice.Of(err)
}
