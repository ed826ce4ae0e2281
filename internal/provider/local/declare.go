package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
)

// Programs are the programs that speak and listen without a vendor. The zero values find what Debian's packages
// install.
type Programs struct {
	Flite  Flite
	ESpeak ESpeak
	Sphinx SphinxConfig
}

// Declare declares what is always available: the responder, which is not a language model, and the speech programs,
// which are listed wherever we run. The doctor reports whether they are installed.
func Declare(p Programs) *ai.Vendor {
	always := func() bool { return true }
	return &ai.Vendor{
		Code: ai.BuiltIn,
		Models: func() []parley.Model {
			return []parley.Model{{Kind: parley.LLM, Code: ai.BuiltIn, Name: "Built-in (no language model)"}}
		},
		Speakers: []ai.Speaker{
			{Provider: parley.Provider{ID: 1, Code: FliteCode, Name: "Local (Flite)"}, Rank: 50, Voices: flite,
				Configured: always, Install: "apt-get install flite"},
			{Provider: parley.Provider{ID: 2, Code: ESpeakCode, Name: "Local (eSpeak NG)"}, Rank: 60,
				Voices: espeak, Named: named, Configured: always, Install: "apt-get install espeak-ng"},
		},
		Listeners: []ai.Listener{
			{Provider: parley.Provider{ID: 3, Code: SphinxCode, Name: "Local (PocketSphinx)"}, Rank: 50,
				Languages: "en", Configured: always,
				Foreign: "PocketSphinx, the transcriber, understands English only. Choose another transcriber, or another language."},
		},
		Open:  p.open,
		Check: p.check,
	}
}

// languages are those of eSpeak NG 1.51 that we know.
const languages = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he ar fa hi ur ta zh ja ko th vi " +
	"id ms et lv lt ca is"

// flite are Flite's voices, the best understood on a telephone first. Numbers from 1.
var flite = []ai.Voice{
	{Number: 1, Languages: "en", Code: "rms", Name: "Richard", Gender: "male", Accent: "American"},
	{Number: 2, Languages: "en", Code: "slt", Name: "Stella", Gender: "female", Accent: "American"},
	{Number: 3, Languages: "en", Code: "awb", Name: "Alan", Gender: "male", Accent: "Scottish"},
	{Number: 4, Languages: "en", Code: "kal16", Name: "Kevin", Gender: "male", Accent: "American"},
	{Number: 5, Languages: "en", Code: "kal", Name: "Kevin (8 kHz)", Gender: "male", Accent: "American"},
}

// espeak are eSpeak NG's voices; * stands for its name of the language. Numbers from 101.
var espeak = []ai.Voice{
	{Number: 101, Languages: languages, Code: "*", Name: "eSpeak (male)", Gender: "male"},
	{Number: 102, Languages: languages, Code: "*+f3", Name: "eSpeak (female)", Gender: "female"},
}

// espeakNames are eSpeak NG's names of languages where they are not the ISO 639-1 code.
var espeakNames = map[string]string{"en": "en-us", "fr": "fr-fr", "no": "nb", "pt": "pt-br", "zh": "cmn"}

func named(code, iso string) string {
	name := espeakNames[iso]
	if name == "" {
		name = iso
	}
	return strings.Replace(code, "*", name, 1)
}

func (p Programs) open() (*ai.Opened, error) {
	sphinx := NewSphinx(p.Sphinx)
	return &ai.Opened{
		Model: func(code string) ai.Model {
			if code != ai.BuiltIn {
				return nil
			}
			return Model{}
		},
		Synthesizer: func(code string) (ai.Synthesizer, error) {
			if code == FliteCode {
				return installed(p.Flite)
			}
			return installed(p.ESpeak)
		},
		Recognizer: func(string) (ai.Recognizer, error) {
			if err := sphinx.Find(); err != nil {
				return nil, err
			}
			return sphinx, nil
		},
		Close: sphinx.Close,
	}, nil
}

// check has the programs speak and listen.
func (p Programs) check(ctx context.Context) []parley.Finding {
	return []parley.Finding{
		speaks(ctx, "flite", "rms", p.Flite, p.Flite.Find),
		speaks(ctx, "espeak-ng", "en-us", p.ESpeak, p.ESpeak.Find),
		p.listens(ctx),
	}
}

// installed is a program that speaks, where it is there.
func installed(p interface {
	ai.Plain
	Find() (string, error)
}) (ai.Synthesizer, error) {
	if _, err := p.Find(); err != nil {
		return nil, err
	}
	return ai.Streamed(p), nil
}

func speaks(ctx context.Context, name, voice string, s ai.Plain, find func() (string, error)) parley.Finding {
	path, err := find()
	if err != nil {
		return parley.Finding{State: parley.DoctorNote, What: name, Part: string(ai.TheVoice),
			Text: "not installed: its voices are silent. apt-get install " + name}
	}
	began, first := time.Now(), time.Duration(0)
	err = s.Say(ctx, ai.Speech{Voice: voice, Language: "en", Rate: audio.Narrow}, "Hello there.",
		func([]int16) error {
			if first == 0 {
				first = time.Since(began)
			}
			return nil
		})
	if err != nil {
		return parley.Finding{State: parley.DoctorFail, What: name, Part: string(ai.TheVoice), Text: ai.TheVoice.Of(err).Error()}
	}
	return parley.Finding{State: parley.DoctorOK, What: name, Part: string(ai.TheVoice), Text: fmt.Sprintf("%s speaks after %d ms", path,
		first.Milliseconds())}
}

func (p Programs) listens(ctx context.Context) parley.Finding {
	found := func(state, format string, a ...any) parley.Finding {
		return parley.Finding{State: state, What: "pocketsphinx", Part: string(ai.TheRecognizer), Text: fmt.Sprintf(format, a...)}
	}
	sphinx := NewSphinx(p.Sphinx)
	defer sphinx.Close()
	if err := sphinx.Find(); err != nil {
		return found("note", "not there: nobody listens without a provider. %v", errors.Unwrap(err))
	}
	if err := sphinx.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return found("FAIL", "not loaded in time: the machine is very busy. Run parley doctor again when it is not (%v)", err)
		}
		return found("FAIL", "%v (it needs the packages pocketsphinx, pocketsphinx-en-us and python3)", cmp.Or(errors.Unwrap(err), err))
	}
	return found("ok", "understands English, some %d at once on %d cores", DecodersPerCore*runtime.NumCPU(),
		runtime.NumCPU())
}
