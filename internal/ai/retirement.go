package ai

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/internal/parley"
)

// Retirement is what a vendor has announced about a model: from a day on it answers no more.
type Retirement struct {
	Model   string // without the date of a snapshot, unless that has a day of its own
	Day     string // the first on which requests to it fail, as 2027-01-20
	Instead string // the vendor's model for the same work; "" if there is none that can be used here
}

// Retirements are those of one vendor.
type Retirements []Retirement

// RetirementNotice is how long before its day a retirement is told.
const RetirementNotice = 60 * 24 * time.Hour

// snapshot is the date at the end of a model's name.
var snapshot = regexp.MustCompile(`-(\d{4}-\d\d-\d\d|\d{8})$`)

// Of is what was announced about a model, nil if it is nothing.
func (list Retirements) Of(model string) *Retirement {
	for _, name := range []string{model, snapshot.ReplaceAllString(model, "")} {
		if i := slices.IndexFunc(list, func(r Retirement) bool { return r.Model == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// Living are those of some models that are not retired yet.
func (list Retirements) Living(models []string, now time.Time) (live []string) {
	for _, m := range models {
		if r := list.Of(m); r == nil || !r.Gone(now) {
			live = append(live, m)
		}
	}
	return live
}

// Retires is what the vendor has announced about a model, nil if it is nothing.
func (v *Vendor) Retires(model string) *Retirement {
	if v.Retired == nil {
		return nil
	}
	return v.Retired().Of(model)
}

// day is when the model is gone: the first moment in UTC.
func (r *Retirement) day() time.Time {
	t, _ := time.Parse(time.DateOnly, r.Day) // a test reads all of them
	return t
}

// Gone reports whether the day has come.
func (r *Retirement) Gone(now time.Time) bool { return !now.Before(r.day()) }

// Near reports whether it is time to tell people.
func (r *Retirement) Near(now time.Time) bool { return !now.Before(r.day().Add(-RetirementNotice)) }

// Said tells when a vendor retires the model, as "gpt-realtime is retired by OpenAI on 20 January 2027".
func (r *Retirement) Said(vendor, model string, now time.Time) string {
	is := "is"
	if r.Gone(now) {
		is = "was"
	}
	return fmt.Sprintf("%s %s retired by %s on %s", model, is, vendor, r.day().Format("2 January 2006"))
}

// Named is a model that a setting names.
type Named struct {
	Setting string // as PARLEY_OPENAI_TTS_MODEL
	Part    Part
	Hears   bool // the models hear and speak
	Models  []string
}

// Named lists the settings that name models. Their names end with -model, and say what the model does.
func (v *Vendor) Named() (list []Named) {
	s := reflect.ValueOf(v.Settings)
	if s.Kind() != reflect.Pointer || s.Elem().Kind() != reflect.Struct {
		return nil
	}
	s = s.Elem()
	for i := range s.NumField() {
		name := s.Type().Field(i).Tag.Get("name")
		if !strings.HasSuffix(name, "-model") {
			continue
		}
		n := Named{Setting: "PARLEY_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")), Part: TheModel}
		switch {
		case strings.Contains(name, "-tts-"):
			n.Part = TheVoice
		case strings.Contains(name, "-stt-"):
			n.Part = TheRecognizer
		case strings.Contains(name, "-embedding-"):
			n.Part = TheEmbedder
		case strings.Contains(name, "-realtime-"), strings.Contains(name, "-live-"):
			n.Hears = true
		}
		switch value := s.Field(i).Interface().(type) {
		case string:
			n.Models = []string{value}
		case []string:
			n.Models = value
		}
		list = append(list, n)
	}
	return list
}

// Retiring says which models that settings name are retired, or are going to be soon, and what to set instead. declared
// is the vendor as the settings have it: v itself may have models that come with an entered key.
func (v *Vendor) Retiring(declared *Vendor, now time.Time) (list []parley.Finding) {
	for _, n := range declared.Named() {
		for _, m := range n.Models {
			r := v.Retires(m)
			if r == nil || !r.Near(now) {
				continue
			}
			f := parley.Finding{State: parley.DoctorNote, What: v.Code, Part: string(n.Part), Text: r.Said(v.Name, m, now)}
			if r.Gone(now) {
				f.State = parley.DoctorFail
			}
			switch {
			case r.Instead == "":
				f.Text += fmt.Sprintf(", which has no other for %s: use another provider", n.Setting)
			case len(n.Models) > 1:
				f.Text += fmt.Sprintf(": write %s in its place in %s", r.Instead, n.Setting)
			default:
				f.Text += fmt.Sprintf(": set %s to %s", n.Setting, r.Instead)
			}
			list = append(list, f)
		}
	}
	return list
}

// GoneModel tells an assistant's owner that a vendor doesn't have the model of a part, or no longer, and which setting
// names it.
func (v *Vendor) GoneModel(part Part, hears bool, model string, now time.Time) string {
	what, choose := "model", "another model for the assistant"
	switch part {
	case TheVoice:
		what, choose = "speech model", "a voice of another provider"
	case TheRecognizer:
		what, choose = "transcription model", "another transcriber"
	}
	named := v.setting(part, hears, model)
	if model == "" && named != nil && len(named.Models) > 0 {
		model = named.Models[0]
	}
	said, r := v.Name+" says that it has no "+what, v.Retires(model)
	switch {
	case r != nil && r.Gone(now):
		said = r.Said(v.Name, "The "+what+" "+model, now)
	case model != "":
		said += " " + model
	}
	said += ". Choose " + choose
	if named != nil {
		said += ", or ask this server's operator to change " + named.Setting
		if r != nil && r.Instead != "" {
			said += " to " + r.Instead
		}
	}
	return said + "."
}

// setting is the one that names a model of a part, or could.
func (v *Vendor) setting(part Part, hears bool, model string) *Named {
	all := v.Named()
	of := func(n Named) bool { return n.Part == part && n.Hears == hears }
	i := slices.IndexFunc(all, func(n Named) bool { return of(n) && slices.Contains(n.Models, model) })
	if i < 0 {
		i = slices.IndexFunc(all, of)
	}
	if i < 0 {
		return nil
	}
	return &all[i]
}
