package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/internal/ai"
	"parley/internal/keyring"
	"parley/internal/parley"
)

// wanted gathers the providers of a part.
type wanted struct {
	part    ai.Part
	names   []string // those that are connected
	builtIn bool     // the built-in one is there
	broken  []string // why some don't work
	notes   []string // what there is to know about those that do
}

// retires notes which models of the part are retired, or are going to be.
func (w *wanted) retires(list []parley.Finding) {
	for _, f := range list {
		switch {
		case f.Part != string(w.part):
		case f.State == parley.DoctorFail:
			w.broken = append(w.broken, f.Text+".") // a name of a model begins it
		default:
			w.notes = append(w.notes, f.Text+".")
		}
	}
}

// add notes that a provider does the part.
func (w *wanted) add(v keyring.Checked, name string) {
	var why []string
	for _, f := range v.Findings {
		if f.State == parley.DoctorFail && (f.Part == "" || f.Part == string(w.part)) {
			why = append(why, f.Text)
		}
	}
	switch {
	case len(why) > 0:
		if said := fmt.Sprintf("%s does not work: %s.", name, strings.TrimSuffix(why[0], ".")); !slices.Contains(w.broken, said) {
			w.broken = append(w.broken, said)
		}
	case v.Code == ai.BuiltIn:
		w.builtIn = true
	case !slices.Contains(w.names, name):
		w.names = append(w.names, name)
	}
}

// told is the part by what was gathered. Without a provider it has a state and a text.
func (w *wanted) told(p Part, without, text string) Part {
	switch {
	case len(w.broken) > 0:
		p.State, p.Text = Fail, strings.Join(w.broken, " ")
	case len(w.names) > 0:
		p.State, p.Text = OK, "Connected: "+strings.Join(w.names, ", ")+"."
		if len(w.notes) > 0 {
			p.State, p.Text = Note, p.Text+" "+strings.Join(w.notes, " ")
		}
	case w.builtIn || w.part == ai.TheModel:
		p.State, p.Text = without, text
	case w.part == ai.TheVoice:
		p.State, p.Text = Fail, "Nothing can speak. Paste the key of a provider that speaks, or install flite or espeak-ng on the server."
	default:
		p.State, p.Text = Fail, "Nothing can listen. Paste the key of a provider that listens, or install pocketsphinx on the server."
	}
	return p
}

func assistantPath(id int64) string { return "/assistants/" + strconv.FormatInt(id, 10) }

// count says how many of all can't be used.
func count(broken, all int) string {
	if all == 1 {
		return "It can't be used."
	}
	return fmt.Sprintf("%d of %d can't be used.", broken, all)
}
