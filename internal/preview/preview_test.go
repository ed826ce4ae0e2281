package preview

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
)

// memory is a blob store in memory.
type memory struct {
	blob.Store
	mu sync.Mutex
	m  map[string]string
}

type object struct{ *strings.Reader }

func (object) Close() error { return nil }

func (s *memory) Open(ctx context.Context, name string) (blob.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return object{strings.NewReader(text)}, nil
}

func (s *memory) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[name] = string(b)
	return int64(len(b)), err
}

func withModel(name string) *catalog.Catalog {
	return catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", TTSModel: name,
		RealtimeModel: []string{"rt"}})))
}

func samples(voice ai.Synthesizer, err error) *Samples {
	return &Samples{Catalog: withModel("tts"), Blobs: &memory{m: map[string]string{}},
		Synthesizer: func(string) (ai.Synthesizer, error) { return voice, err }}
}

// Every language has its own sentence, and every voice a preview that plays and says it.
func TestPreviews(t *testing.T) {
	voice := &aitest.Synthesizer{}
	d := samples(voice, nil)
	seen := map[string]string{}
	for _, l := range d.Catalog.Languages() {
		if s := sentences[l.ISO2]; s == "" || seen[s] != "" {
			t.Errorf("%s has the sentence %q, as %s", l.ISO2, s, seen[s])
		}
		seen[sentences[l.ISO2]] = l.ISO2
	}
	for _, v := range d.Catalog.Voices("", 0) {
		if v.PreviewURL == "" {
			t.Errorf("voice %d has no preview", v.ID)
		}
		if v.LanguageID != 4 && v.LanguageID != 31 {
			continue
		}
		o, err := d.Open(t.Context(), v.ID)
		if err != nil {
			t.Fatalf("voice %d: %v", v.ID, err)
		}
		wav, err := audio.NewWAVReader(o)
		if err != nil || wav.Rate != 16000 || wav.Channels != 1 {
			t.Fatalf("voice %d: %v", v.ID, err)
		}
		pcm := make([]int16, 20*16000)
		n, err := wav.Read(pcm)
		if err != nil || voice.Find(pcm[:n], audio.Wide) != sentences[d.Catalog.Language(v.LanguageID).ISO2] {
			t.Errorf("voice %d: %v, %d samples of %q", v.ID, err, n, voice.Find(pcm[:n], audio.Wide))
		}
	}
	for _, id := range []int64{0, -1, 999, 1 << 50} {
		if _, err := d.Open(t.Context(), id); !is(err, parley.NotFound) {
			t.Errorf("voice %d: %v", id, err)
		}
	}
}

func is(err error, kind parley.Kind) bool {
	e, ok := errors.AsType[*parley.Error](err)
	return ok && e.Kind == kind
}

const rms = 1001 // Flite's rms in English

// However many requests come at once, a voice is synthesized once, even if the first requester leaves.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		voice := &aitest.Synthesizer{}
		gate := make(chan struct{})
		voice.Usually(aitest.Saying{Gate: gate})
		d := samples(voice, nil)
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		ask := func(ctx context.Context) {
			wg.Go(func() {
				if o, err := d.Open(ctx, rms); err == nil {
					o.Close()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		ask(first)
		synctest.Wait()
		for range 20 {
			ask(t.Context())
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(gate)
		wg.Wait()
		ask(t.Context())
		wg.Wait()
		if n := len(voice.Said()); n != 1 {
			t.Errorf("said %d times", n)
		}
		// Another model sounds different; Flite is the same.
		d.Catalog = withModel("other")
		for _, id := range []int64{rms, 201001, rms, 201001} {
			if _, err := d.Open(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if n := len(voice.Said()); n != 2 {
			t.Errorf("said %d times", n)
		}
	})
}

// A failure is reported with what can be done about it, without details that only the log may have, and is not retried
// at once.
func TestFailures(t *testing.T) {
	secret := errors.New("status 401: key sk-s3cret is wrong")
	for _, c := range []struct {
		err  error
		id   int64
		kind parley.Kind
		says string
	}{
		{&ai.Error{Kind: ai.Config, Err: secret}, rms, parley.Unavailable, "apt-get install flite"},
		{&ai.Error{Kind: ai.Config, Err: secret}, 101004, parley.Unavailable, "apt-get install espeak-ng"},
		{&ai.Error{Kind: ai.Config, Err: secret}, 201001, parley.Unavailable, "parley doctor"},
		{&ai.Error{Kind: ai.Overloaded, Err: secret}, 201001, parley.Upstream, "in a moment"},
		{&ai.Error{Kind: ai.Stalled, Err: secret}, rms, parley.Upstream, "in a moment"},
	} {
		for _, where := range []string{"opening", "speaking"} {
			synctest.Test(t, func(t *testing.T) {
				voice := &aitest.Synthesizer{}
				voice.Usually(aitest.Saying{Err: c.err})
				d := samples(voice, nil)
				if where == "opening" {
					d = samples(nil, c.err)
				}
				_, err := d.Open(t.Context(), c.id)
				if !is(err, c.kind) || !strings.Contains(err.Error(), c.says) ||
					strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%s: %v", where, err)
				}
				if _, again := d.Open(t.Context(), c.id); again != err { //nolint:errorlint // the same one
					t.Errorf("at once: %v", again)
				}
				voice.Usually(aitest.Saying{})
				d.Synthesizer = func(string) (ai.Synthesizer, error) { return voice, nil }
				time.Sleep(failTime + time.Second)
				if _, err := d.Open(t.Context(), c.id); err != nil {
					t.Errorf("later: %v", err)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		voice := &aitest.Synthesizer{}
		voice.Usually(aitest.Saying{Hang: true})
		began := time.Now()
		if _, err := samples(voice, nil).Open(t.Context(), rms); !is(err, parley.Upstream) ||
			time.Since(began) != speakTime {
			t.Errorf("hangs: %v after %v", err, time.Since(began))
		}
	})
}
