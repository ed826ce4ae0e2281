package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/testenv"
)

// hearing is a recognizer that is closed at the end of the test, with all its processes.
func hearing(t testing.TB, c SphinxConfig) *Sphinx {
	t.Helper()
	needFlite(t)
	s := NewSphinx(c)
	testenv.Nil(t, s.Find())
	t.Cleanup(func() {
		s.Close()
		if n := s.nursery; n != nil {
			until(t, "the recognizer's processes to be gone",
				func() bool { return len(processes(t, group, n.cmd.Process.Pid)) == 0 })
		}
	})
	return s
}

// phone is a voice as it sounds over a telephone.
func phone(t testing.TB, text, voice string, rate audio.Rate) []int16 {
	pcm := said(t, Flite{}, ai.Speech{Voice: voice, Rate: rate}, text)
	pcm = append(append(make([]int16, rate/5), pcm...), make([]int16, rate/5)...)
	if rate == audio.Narrow {
		pcm = audio.DecodeULaw(pcm[:0], audio.EncodeULaw(nil, pcm))
	}
	return pcm
}

func TestSphinxConforms(t *testing.T) {
	s := hearing(t, SphinxConfig{})
	aitest.ConformRecognizer(t, s, aitest.Heard{
		Language: "en", Texts: []string{"Yes please.", "Good morning.", "What time do you close on Saturday?"},
		Sound: func(t *testing.T, text string, rate audio.Rate) []int16 { return phone(t, text, "rms", rate) },
		Same:  func(got, want string) bool { return wordErrors(got, want) == 0 },
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != 0 || len(s.idle) != 0 {
		t.Errorf("%d decoders live, %d wait, and no ear", s.live, len(s.idle))
	}
}

// wordErrors is how many words are wrong, missing or extra.
func wordErrors(got, want string) int {
	plain := func(s string) []string {
		return strings.Fields(strings.ToLower(strings.NewReplacer(".", "", ",", "", "?", "").Replace(s)))
	}
	a, b := plain(want), plain(got)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, v := range b {
			change := diagonal
			if v != w {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// utterance gives a recognizer a sound at once, and returns its final transcript and how many transcripts came before.
func utterance(t testing.TB, e ai.Recognition, pcm []int16) (last ai.Transcript, partials int) {
	t.Helper()
	e.Write(pcm)
	e.End()
	return await(t, e)
}

func await(t testing.TB, e ai.Recognition) (last ai.Transcript, partials int) {
	t.Helper()
	guard := time.NewTimer(30 * time.Second)
	defer guard.Stop()
	for {
		select {
		case got, open := <-e.Transcripts():
			if !open {
				t.Fatal("the ear has closed")
			}
			if got.Final {
				return got, partials
			}
			partials++
		case <-guard.C:
			t.Fatal("no transcript within 30 s")
		}
	}
}

func open(t testing.TB, s *Sphinx, rate audio.Rate) ai.Recognition {
	t.Helper()
	e, err := s.Listen(t.Context(), ai.Hearing{Language: "en", Rate: rate, Keywords: []string{"bakery"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// Of what the clearest voices say over a telephone, at most one word in five is misunderstood, and transcripts come
// before the end.
func TestSphinxUnderstands(t *testing.T) {
	s := hearing(t, SphinxConfig{})
	wrong, words, partials := 0, 0, 0
	for voice, texts := range map[string][]string{
		"rms": {"Please tell me when the bakery opens in the morning.",
			"I want to cancel my appointment for tomorrow."},
		"kal16": {"I am calling about my order from last week.", "My name is John Miller and I live in Boston."},
	} {
		e := open(t, s, audio.Narrow)
		for _, text := range texts {
			got, n := utterance(t, e, phone(t, text, voice, audio.Narrow))
			if got.Err != nil {
				t.Errorf("%s: %v", text, got.Err)
			}
			t.Logf("%s: %q is heard as %q, after %d partial transcripts", voice, text, got.Text, n)
			wrong, words, partials = wrong+wordErrors(got.Text, text), words+len(strings.Fields(text)), partials+n
		}
	}
	t.Logf("word error rate %.1f %%", 100*float64(wrong)/float64(words))
	if wrong*5 > words || partials < 20 {
		t.Errorf("%d of %d words are wrong, %d partial transcripts", wrong, words, partials)
	}
}

// A decoder that dies loses one utterance; so does the process that decoders are forked from.
func TestSphinxCrash(t *testing.T) {
	s := hearing(t, SphinxConfig{})
	e := open(t, s, audio.Narrow)
	sound := phone(t, "Yes please.", "rms", audio.Narrow)
	if got, _ := utterance(t, e, sound); got.Text != "yes please" {
		t.Fatalf("got %+v", got)
	}
	for i, kill := range []func(){
		func() { s.kill(s.nursery)(s.nursery.number) },
		func() { _ = syscall.Kill(s.nursery.cmd.Process.Pid, syscall.SIGKILL); <-s.nursery.gone },
	} {
		kill()
		if got, _ := utterance(t, e, sound); i == 0 && ai.KindOf(got.Err) != ai.Interrupted || got.Utterance != 1+2*i {
			t.Errorf("crash %d: %+v", i, got)
		}
		if got, _ := utterance(t, e, sound); got.Text != "yes please" || got.Err != nil {
			t.Errorf("after crash %d: %+v", i, got)
		}
	}
}

// A decoder that hangs is abandoned and killed.
func TestSphinxHangs(t *testing.T) {
	s := hearing(t, SphinxConfig{})
	s.limits.decode = 3 * time.Second
	e := open(t, s, audio.Narrow)
	sound := phone(t, "Yes please.", "rms", audio.Narrow)
	if got, _ := utterance(t, e, sound); got.Text != "yes please" {
		t.Fatalf("got %+v", got)
	}
	var decoder int
	for _, pid := range processes(t, parent, s.nursery.cmd.Process.Pid) {
		decoder = pid
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if decoder == 0 {
		t.Fatal("there is no decoder")
	}
	if got, _ := utterance(t, e, sound); ai.KindOf(got.Err) != ai.Stalled {
		t.Errorf("got %+v", got)
	}
	until(t, "the decoder to be gone", func() bool { return dead(decoder) })
	if got, _ := utterance(t, e, sound); got.Text != "yes please" || got.Err != nil {
		t.Errorf("afterwards %+v", got)
	}
}

// The fields of /proc/PID/stat after the name: state, parent, process group.
const (
	parent = 1
	group  = 2
)

// processes are the live processes with a parent or in a group.
func processes(t testing.TB, field, is int) (list []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		raw, _ := os.ReadFile(path) // it may have ended meanwhile
		_, rest, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(rest); len(f) > field && f[0] != "Z" && f[field] == strconv.Itoa(is) {
			pid, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path, "/proc/"), "/stat"))
			list = append(list, pid)
		}
	}
	return list
}

// When there are fewer decoders than recognizers, a recognizer that is not hearing anything gives its decoder away. When all are
// busy, the utterance's error says so.
func TestSphinxBusy(t *testing.T) {
	s := hearing(t, SphinxConfig{Decoders: 1})
	s.limits.wait = 200 * time.Millisecond
	a, b := open(t, s, audio.Narrow), open(t, s, audio.Narrow)
	sound := phone(t, "Yes please.", "rms", audio.Narrow)
	for _, e := range []ai.Recognition{a, b, a} {
		if got, _ := utterance(t, e, sound); got.Text != "yes please" {
			t.Errorf("in turns: %+v", got)
		}
	}
	a.Write(sound) // it goes on speaking
	until(t, "the decoder to be busy", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.idle) == 0 })
	if got, _ := utterance(t, b, sound); ai.KindOf(got.Err) != ai.Overloaded ||
		!strings.Contains(got.Err.Error(), "busy") {
		t.Errorf("beside another: %+v", got)
	}
	a.End()
	if got, _ := await(t, a); got.Text != "yes please" {
		t.Errorf("the other: %+v", got)
	}
	if got, _ := utterance(t, b, sound); got.Text != "yes please" {
		t.Errorf("afterwards: %+v", got)
	}
	if s.live != 1 {
		t.Errorf("%d decoders live", s.live)
	}
}

// Sound that doesn't fit while the decoder is behind is lost, and the end of the utterance reports that.
func TestSphinxBehind(t *testing.T) {
	s := hearing(t, SphinxConfig{})
	e := open(t, s, audio.Narrow)
	got, _ := utterance(t, e, make([]int16, 11*8000))
	failed, _ := errors.AsType[*ai.Error](got.Err)
	if ai.KindOf(got.Err) != ai.Overloaded || !strings.Contains(failed.Explain(), "This server's own recognizer") ||
		strings.Contains(failed.Explain(), "provider") {
		t.Errorf("got %+v", got)
	}
	if got, _ := utterance(t, e, phone(t, "Yes please.", "rms", audio.Narrow)); got.Text != "yes please" ||
		got.Err != nil {
		t.Errorf("afterwards %+v", got)
	}
}

func TestSphinxMissing(t *testing.T) {
	s := hearing(t, SphinxConfig{})
	for _, h := range []ai.Hearing{{Language: "de", Rate: audio.Narrow}, {Language: "en", Rate: 24000}} {
		if _, err := s.Listen(t.Context(), h); ai.KindOf(err) != ai.Config {
			t.Errorf("%+v: %v", h, err)
		}
	}
	script := func(text string) string { return fake(t, text).Path }
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "en-us.lm.bin"), []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		c    SphinxConfig
		kind ai.Kind
		says string
	}{
		"no model": {SphinxConfig{Model: "/nowhere"}, ai.Config,
			"apt-get install pocketsphinx pocketsphinx-en-us"},
		"no Python": {SphinxConfig{Python: "/nowhere/python3"}, ai.Config, "apt-get install python3"},
		"no library": {SphinxConfig{Python: script("echo no library, said Python >&2; exit 1")}, ai.Config,
			"no library, said Python"},
		"a broken model": {SphinxConfig{Model: empty}, ai.Config, "can't be loaded"},
		"a slow start":   {SphinxConfig{Python: script("sleep 1000")}, ai.Stalled, "not loaded within"},
	} {
		s := configured(t, c.c)
		s.limits.load = 3 * time.Second
		if err := s.Check(t.Context()); ai.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		e, err := s.Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
		if err == nil { // each utterance reports what Listen can't see
			got, _ := utterance(t, e, make([]int16, 8000))
			err = got.Err
			e.Close()
		}
		if ai.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("as installed: %v", err)
	}
	s.Close()
	if err := s.Check(t.Context()); err == nil {
		t.Error("a closed one works")
	}
}

func configured(t *testing.T, c SphinxConfig) *Sphinx {
	s := NewSphinx(c)
	t.Cleanup(s.Close)
	return s
}

// Writing neither allocates nor waits, even when nothing decodes.
func TestSphinxWrite(t *testing.T) {
	e := newSphinxRecognition(NewSphinx(SphinxConfig{}), ai.Hearing{Language: "en", Rate: audio.Narrow})
	frame := make([]int16, 160)
	if n := testing.AllocsPerRun(2000, func() { e.Write(frame) }); n != 0 { // 40 s, four times as much as fits
		t.Errorf("%.1f allocations for a frame", n)
	}
}

// BenchmarkSphinx measures what share of the speaking time a decoder needs, and how long a customer waits at the end.
func BenchmarkSphinx(b *testing.B) {
	s := hearing(b, SphinxConfig{})
	e := open(b, s, audio.Narrow)
	pcm := phone(b, "I want to cancel my appointment for tomorrow.", "rms", audio.Narrow)
	utterance(b, e, pcm)
	for b.Loop() {
		utterance(b, e, pcm)
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/(float64(len(pcm))/8000), "of-real-time")
}
