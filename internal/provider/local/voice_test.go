package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/testenv"
)

func needFlite(t testing.TB) { _, err := Flite{}.Find(); testenv.Nil(t, err) }

func TestFliteConforms(t *testing.T) {
	needFlite(t)
	for _, voice := range []string{"rms", "kal"} { // of 16 and 8 kHz
		t.Run(voice, func(t *testing.T) {
			aitest.ConformSynthesizer(t, ai.Streamed(Flite{}), ai.Speech{Voice: voice, Language: "en"})
		})
	}
}

func TestESpeakConforms(t *testing.T) {
	_, err := ESpeak{}.Find()
	testenv.Nil(t, err)
	for voice, language := range map[string]string{"en-us+f3": "en", "de": "de"} {
		t.Run(voice, func(t *testing.T) {
			aitest.ConformSynthesizer(t, ai.Streamed(ESpeak{}), ai.Speech{Voice: voice, Language: language})
		})
	}
}

// Each voice in the catalogue speaks, without the silence that Flite puts at the beginning of everything.
func TestVoices(t *testing.T) {
	needFlite(t)
	var sounds []string
	for voice := range fliteVoices {
		pcm := said(t, Flite{}, ai.Speech{Voice: voice, Rate: audio.Narrow}, "Hello there")
		at := slices.IndexFunc(pcm, func(s int16) bool { return s > quiet || s < -quiet })
		if at < 0 || at > 8000*int(leadTime)/int(time.Second) {
			t.Errorf("%s begins with %d silent samples", voice, at)
		}
		sounds = append(sounds, fmt.Sprint(pcm))
	}
	slices.Sort(sounds)
	if n := len(slices.Compact(sounds)); n != len(fliteVoices) {
		t.Errorf("%d voices sound as %d", len(fliteVoices), n)
	}
	for _, voice := range []string{"", "nobody", "-lv", "/tmp/x.flitevox"} {
		if err := (Flite{}).Say(t.Context(), ai.Speech{Voice: voice, Rate: 8000}, "x",
			nil); ai.KindOf(err) != ai.Config {
			t.Errorf("flite %q: %v", voice, err)
		}
	}
	for _, voice := range []string{"", "-x", "../../x", "xx-nobody", "en us"} {
		if err := (ESpeak{}).Say(t.Context(), ai.Speech{Voice: voice, Rate: 8000}, "x",
			nil); ai.KindOf(err) != ai.Config {
			t.Errorf("espeak %q: %v", voice, err)
		}
	}
}

func said(t testing.TB, s ai.Plain, as ai.Speech, text string) (pcm []int16) {
	t.Helper()
	if err := s.Say(t.Context(), as, text, func(p []int16) error { pcm = append(pcm, p...); return nil }); err != nil {
		t.Fatalf("say %q: %v", text, err)
	}
	return pcm
}

func TestASCII(t *testing.T) {
	for text, want := range map[string]string{
		"plain, text!": "plain, text!", "it’s “fine” — yes…": `it's "fine" , yes...`,
		"Zoë Łódź Straße Ærø": "Zoe Lodz Strasse Aero",
		"4 €, £5":             "4 euros , pounds 5", "你好": "", "ﬁne ½": "fine one half",
	} {
		if got := ascii(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Hums are hummed. Both programs spell words without a vowel: "mm-hm" takes them a second and more then.
func TestHums(t *testing.T) {
	for text, want := range map[string]string{
		"mm-hm": "um-hum", "Mm-hm, okay.": "um-hum, okay.", "mhm": "um-hum", "Mmhmm!": "um-hum!", "hm-hm": "um-hum", "mm hmm": "um hum",
		"Hmm, let me see...": "hum, let me see...", "hm": "hum", "(mmm)": "(um)", "mh": "um", "I am": "I am", "m": "m", "hh": "hh", "ham": "ham",
		"it is 20 mm wide": "it is 20 mm wide", "5mm, or 2.5mm": "5mm, or 2.5mm", "HM Revenue": "HM Revenue", "HMM": "HMM", "3": "3", "": "",
	} {
		if got := fliteHums.in(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	needFlite(t)
	hum := func(s ai.Plain, voice string) {
		short := len(said(t, s, ai.Speech{Voice: voice, Rate: audio.Narrow}, "Mm-hm."))
		spelled := len(said(t, s, ai.Speech{Voice: voice, Rate: audio.Narrow}, "M, M, H, M."))
		if short < 8000/5 || 5*short > 4*spelled {
			t.Errorf("%s hums for %d samples, and spells for %d", voice, short, spelled)
		}
	}
	for voice := range fliteVoices {
		hum(Flite{}, voice)
	}
	for _, voice := range []string{"en-us+f3", "de", "fr-fr", "ja", "pl", "hi", "ru"} {
		hum(ESpeak{}, voice)
	}
}

// fake is a program in place of Flite: a shell script.
func fake(t *testing.T, script string) Flite {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Flite{Path: path, Stall: 2 * time.Second}
}

// quoted is the argument that makes printf print these octets.
func quoted(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		fmt.Fprintf(&s, `\%03o`, c)
	}
	return s.String()
}

var rms = ai.Speech{Voice: "rms", Rate: audio.Narrow}

// What a program does wrong gets an error of the right kind.
func TestBrokenPrograms(t *testing.T) {
	loud := bytes.Repeat([]byte{0, 32, 0, 224}, 2000) // half a second
	head := func(rate, channels int, size int64) string {
		return "printf '" + quoted(audio.AppendWAVHeader(nil, rate, channels, size)) + "'; "
	}
	sound := "printf '" + quoted(loud) + "'; "
	for _, c := range []struct {
		name, script string
		kind         ai.Kind
		heard        bool
		says         string
	}{
		{"speaks", head(8000, 1, 8000) + sound, "", true, ""},
		{"says no size", head(8000, 1, 0) + sound, "", true, ""},
		{"prints nothing", "exit 0", ai.Malformed, false, "nothing"},
		{"prints no WAV", "echo hello hello hello", ai.Malformed, false, "no WAV"},
		{"prints half a header", "printf 'RIFF....WAVEfmt '", ai.Malformed, false, ""},
		{"speaks at an odd rate", head(11025, 1, 8000) + sound, ai.Malformed, false, "11025"},
		{"speaks in stereo", head(8000, 2, 8000) + sound, ai.Malformed, false, "channels"},
		{"ends in the middle", head(8000, 1, 16000) + sound, ai.Interrupted, true, "broke off"},
		{"fails in the middle", head(8000, 1, 0) + sound + "echo oh no >&2; exit 7", ai.Interrupted, true, "oh no"},
		{"dies in the middle", head(8000, 1, 0) + sound + "kill -9 $$", ai.Interrupted, true, "killed"},
		{"fails", "echo no such voice >&2; exit 3", ai.Config, false, "no such voice"},
		{"dies", "kill -9 $$", ai.Unreachable, false, "killed"},
		{"hangs", "sleep 1000", ai.Stalled, false, ""},
		{"hangs in the middle", head(8000, 1, 0) + sound + "sleep 1000", ai.Stalled, true, ""},
		{"never ends", head(8000, 1, 0) + "exec cat /dev/zero", ai.Malformed, false, "10m"},
		{"closes its output and hangs", head(8000, 1, 8000) + sound + "exec >&- ; sleep 1000", ai.Interrupted, true,
			""},
	} {
		n := 0
		err := fake(t, c.script).Say(t.Context(), rms, "hello", func(p []int16) error { n += len(p); return nil })
		if ai.KindOf(err) != c.kind || (n > 0) != c.heard || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d samples, %v", c.name, n, err)
		}
	}
	gone := Flite{Path: filepath.Join(t.TempDir(), "gone")}
	if err := gone.Say(t.Context(), rms, "hello", nil); ai.KindOf(err) != ai.Config ||
		!strings.Contains(err.Error(), "apt-get install flite") {
		t.Errorf("not installed: %v", err)
	}
	if err := (Flite{}).Say(t.Context(), rms, strings.Repeat("a", maxText+1), nil); ai.KindOf(err) != ai.TooLong {
		t.Errorf("too long: %v", err)
	}
}

// When Speak returns, all processes that the program has started are gone. A program never sees the server's settings.
func TestProgramsEnd(t *testing.T) {
	t.Setenv("PARLEY_SECRET_KEY", "s3cret")
	dir := t.TempDir()
	f := fake(t, `env > `+dir+`/env; trap '' TERM INT HUP; sleep 1000 & echo $! > `+dir+`/child.new; mv `+dir+
		`/child.new `+dir+`/child; wait`)
	f.Stall = time.Minute
	cause := errors.New("hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	spoken := make(chan error, 1)
	go func() { spoken <- f.Say(ctx, rms, "hello", nil) }()
	var child int
	until(t, "the program to start another", func() bool {
		raw, err := os.ReadFile(dir + "/child")
		child, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return err == nil
	})
	cancel(cause)
	if err := <-spoken; err != cause { //nolint:errorlint // the very error
		t.Errorf("got %v", err)
	}
	until(t, "the program's child to be gone", func() bool { return dead(child) })
	if env, err := os.ReadFile(dir + "/env"); err != nil || bytes.Contains(env, []byte("s3cret")) ||
		!bytes.Contains(env, []byte("PATH=")) {
		t.Errorf("its environment: %s, %v", env, err)
	}
}

// dead says whether a process is gone, or is a zombie that waits for its parent.
func dead(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(raw, []byte(") "))
	return bytes.HasPrefix(state, []byte("Z"))
}

// until waits for a condition, for at most ten seconds.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s", what)
		}
	}
}

// The text of a call can't be an option or reach a shell: it arrives unchanged, as one argument.
func FuzzText(f *testing.F) {
	for _, text := range []string{"hello", "-o /tmp/x", "--help", "$(id)", "a\nb", "\x00", "it’s", "\xff", "' \" `"} {
		f.Add(text)
	}
	dir := f.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > " + dir + "/args\nprintf '" +
		quoted(audio.AppendWAVHeader(nil, 8000, 1, 0)) + "\\001\\001'\n"
	if err := os.WriteFile(dir+"/fake", []byte(script), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = os.Remove(dir + "/args")
		if err := (Flite{Path: dir + "/fake"}).Say(t.Context(), rms, text,
			func([]int16) error { return nil }); err != nil && ai.KindOf(err) != ai.TooLong {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(dir + "/args")
		if errors.Is(err, os.ErrNotExist) {
			return // nothing to say
		}
		lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
		if want := []string{"6", "-voice", "rms", "-o", "/dev/stdout", "-t"}; len(lines) != 7 ||
			!slices.Equal(lines[:6], want) || !hasWord(lines[6]) {
			t.Errorf("%q is run as %q", text, lines)
		}
	})
}

// BenchmarkFirstSample measures how long a customer waits for the first sound.
func BenchmarkFirstSample(b *testing.B) {
	needFlite(b)
	for name, c := range map[string]struct {
		s     ai.Plain
		voice string
	}{"flite rms": {Flite{}, "rms"}, "flite kal16": {Flite{}, "kal16"}, "espeak-ng en-us": {ESpeak{}, "en-us"}} {
		for _, text := range []string{"Yes.", "Thank you for calling the bakery, how can I help you today?"} {
			b.Run(fmt.Sprintf("%s/%d", name, len(text)), func(b *testing.B) {
				for b.Loop() {
					_ = c.s.Say(b.Context(), ai.Speech{Voice: c.voice, Rate: audio.Narrow}, text,
						func([]int16) error { return errors.New("enough") })
				}
			})
		}
	}
}
