// Package lang holds what we know of languages: the words that turn-taking relies on, fixed sentences, and how a text
// becomes sentences that can be spoken. Whatever differs between languages is data, one file each in data; the rest is
// pure functions. A language without a file, or without a part of it, falls back: on the sounds of listening alone, on
// English phrases and signs, on one filler; nothing but such sounds tells its listeners from those who interrupt at
// length, and a few words those who interrupt briefly.
// Whether a sentence is complete is judged by a model that has learned all languages of the catalog (Over).
package lang

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"
)

// Language is what is known of one. It is shared, and never written.
type Language struct {
	Words      Words     `json:"words"`
	Phrases    Phrases   `json:"phrases"`
	Fillers    []string  `json:"fillers"` // said when a reply is slow, by an assistant that has none of its own
	Signs      Signs     `json:"signs"`
	OrdinalDot bool      `json:"ordinal_dot"` // "3." is the third
	Answering  Answering `json:"answering"`
	Consent    Consent   `json:"consent"`
	Dictation  Dictation `json:"dictation"`
	Say        Say       `json:"say"`

	Phantoms Phantoms `json:"phantoms"`

	Interrupting Set `json:"interrupting"` // said, however briefly, by who wants the other to stop
	Frequent     Set `json:"frequent"`     // by which texts are known, where Words.Dangling doesn't list them

	English bool `json:"-"` // its phrases are English, for want of its own where it isn't
}

// Words are the little that turn-taking knows of a language, all in lower case.
type Words struct {
	Listening Set `json:"listening"` // said by who listens and wants the other to go on
	Greetings Set `json:"greetings"`
	Farewells Set `json:"farewells"`
	Answers   Set `json:"answers"`  // a whole turn by themselves
	Closings  Set `json:"closings"` // tell that there is no more to say
	Dangling  Set `json:"dangling"` // nobody ends with these
	Numbers   Set `json:"numbers"`
	Hollow    Set `json:"hollow"` // mean nothing alone: what a recognizer makes of noise and of mumbling

	Positive  Set `json:"positive"` // for the choice of a filler
	Negative  Set `json:"negative"`
	Questions Set `json:"questions"`
}

// Phrases are what is said when the model has nothing to say.
type Phrases struct {
	StillThere string `json:"still_there"` // the customer is silent
	Moment     string `json:"moment"`      // a tool is running
	StillOn    string `json:"still_on"`    // it is still running
	Apology    string `json:"apology"`     // the customer was not understood
	Failure    string `json:"failure"`     // the model failed
	Listening  string `json:"listening"`   // in the pauses of a long story: it neither agrees nor answers

	NotConnected string `json:"not_connected"` // a transfer came to nothing: to the customer
	Announced    string `json:"announced"`     // who is to take the customer over is told so
	Consent      string `json:"consent"`       // and how to say yes or no

	LeaveMessage string `json:"leave_message"` // a voicemail's greeting
	InLine       string `json:"in_line"`       // a caller who waits is told their place: {n}
}

// Consent is how people say yes and no in a word or two.
type Consent struct {
	Yes []string `json:"yes"`
	No  []string `json:"no"`
}

// Signs are the names of an address's signs.
type Signs struct {
	Dot   string `json:"dot"`
	At    string `json:"at"`
	Slash string `json:"slash"`
	Dash  string `json:"dash"`
	Plus  string `json:"plus"`

	Underscore string `json:"underscore"`
}

// Answering is how answering machines are told from people who take a call.
type Answering struct {
	Machine []string `json:"machine"` // said by answering machines, and not by people who take a call
	// machines begin with these; people say them too, but not before they know who called
	Opening []string           `json:"opening"`
	Either  []string           `json:"either"`  // of both: said by people who answer for somebody else, too
	Person  []string           `json:"person"`  // said by people: they ask back, offer something, or speak of somebody else
	Weights map[string]float64 `json:"weights"` // what single words tell: positive for a machine, negative for a person

	Shared   []string `json:"shared"`   // of Machine: screeners say these too
	Screener []string `json:"screener"` // asks who is calling, and why, before it puts anybody through
	Naming   []string `json:"naming"`   // of what a screener asks; weaker
	Menu     []string `json:"menu"`
	Hold     []string `json:"hold"`  // asks to wait
	Press    []string `json:"press"` // comes before a key, in a menu
	Offer    []string `json:"offer"` // comes before what a key is for
	Operator []string `json:"operator"`
}

// Set is words or phrases; in a file, a list.
type Set map[string]bool

// UnmarshalJSON implements json.Unmarshaler. Entries that are there twice, empty, or not in lower case are refused as
// slips.
func (s *Set) UnmarshalJSON(raw []byte) error {
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*s = make(Set, len(list))
	for _, w := range list {
		if w == "" || strings.TrimSpace(w) != w || strings.ToLower(w) != w || (*s)[w] {
			return fmt.Errorf("%q is empty, there twice, or not in lower case", w)
		}
		(*s)[w] = true
	}
	return nil
}

// common is what all languages share: data/common.json.
type common struct {
	Sounds        Set      `json:"sounds"`        // of listening
	Hesitations   Set      `json:"hesitations"`   // more is to come
	Abbreviations Set      `json:"abbreviations"` // their full stop ends no sentence
	Fillers       []string `json:"fillers"`       // where a language has none
}

//go:embed data/*.json
var data embed.FS

// books are all languages by their code (ISO 639-1), "" for those without a file.
type books struct {
	common
	languages map[string]*Language
}

// known are the embedded files. The tests read them too, and find what is wrong with them.
var known = sync.OnceValue(func() *books {
	files, err := fs.Sub(data, "data")
	if err != nil {
		panic(err)
	}
	b, err := load(files)
	if err != nil {
		panic(err)
	}
	return b
})

// Of is what is known of a language; never nil.
func Of(code string) *Language {
	b := known()
	if l := b.languages[code]; l != nil {
		return l
	}
	return b.languages[""]
}

// load reads common.json and a file for each language.
func load(files fs.FS) (*books, error) {
	b := &books{languages: map[string]*Language{"": {}}}
	if err := read(files, "common.json", &b.common); err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == "common.json" {
			continue
		}
		l := &Language{}
		if err := read(files, name, l); err != nil {
			return nil, err
		}
		b.languages[strings.TrimSuffix(path.Base(name), ".json")] = l
	}
	english := b.languages["en"]
	if english == nil {
		return nil, errors.New("en.json is missing: others fall back on it")
	}
	for _, l := range b.languages {
		l.complete(&b.common, english)
	}
	return b, nil
}

// read takes one file. It refuses keys that it doesn't know, and what follows the object.
func read(files fs.FS, name string, into any) error {
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: there is something after the object", name)
	}
	return nil
}

// complete adds what all languages share, and what this one falls back on.
func (l *Language) complete(c *common, english *Language) {
	l.Words.Listening = union(c.Sounds, l.Words.Listening)
	l.Words.Dangling = union(c.Hesitations, l.Words.Dangling)
	if l.Phrases == (Phrases{}) {
		l.Phrases = english.Phrases
	}
	l.English = l.Phrases == english.Phrases
	if len(l.Consent.Yes) == 0 {
		l.Consent = english.Consent
	}
	if l.Signs == (Signs{}) {
		l.Signs = english.Signs
	}
	if len(l.Fillers) == 0 {
		l.Fillers = c.Fillers
	}
	l.Dictation.index()
	l.Say.index()
}

func union(a, b Set) Set {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}
