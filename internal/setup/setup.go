// Package setup says whether an account, and the server for its operator, has what assistants need: a model, voices,
// a recognizer, a telephone, an address, a carrier, workers. Each part is well or not, with the reason and how to mend it.
//
// Providers are asked with the keys that count now, as parley doctor asks them.
package setup

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/crash"
	"parley/internal/keyring"
	"parley/internal/parley"
)

// Part is one thing that assistants need.
type Part struct {
	Code      string      `json:"code" enum:"model,voices,ears,assistants,telephone,address,carrier,jobs,mail,sign_in"`
	Name      string      `json:"name"`
	State     string      `json:"state" enum:"ok,note,fail" doc:"note: it works, but there is something to know."`
	Text      string      `json:"text" doc:"What was found, or what is wrong and how to fix it."`
	Path      string      `json:"path" doc:"The console's page where it is fixed; empty if there is none."`
	CheckedAt parley.Time `json:"checked_at"`
}

// The states of parts.
const (
	OK   = "ok"
	Note = "note"
	Fail = "fail"
)

// Check looks at a part of the server. The worst of its findings counts.
type Check struct {
	Code, Name string
	Ask        func(ctx context.Context) []parley.Finding
}

// Setup looks at the parts. It is safe for concurrent use.
type Setup struct {
	Keys       *keyring.Ring
	Assistants *assistant.Studio
	Server     []Check // what is shown to those who manage the operator's account, and to nobody else

	mu   sync.Mutex
	kept map[seen]*report
}

// report is what was found for a user.
type report struct {
	revision keyring.Revision
	asked    time.Time
	done     chan struct{} // closed when list is there
	list     []Part
}

const (
	keptFor   = time.Minute // providers are asked again after that
	checkTime = 25 * time.Second
)

// seen is who is told of a report: those who manage an account, or its other people.
type seen struct {
	user              int64
	operator, manages bool
}

// Of lists the parts of a user's setup, and of the server's for those who manage the operator's account. What is wrong with keys is
// told to those who may change them. What was found less than a minute ago is told again, unless keys have changed since.
func (s *Setup) Of(ctx context.Context, u *parley.User, manages bool) ([]Part, error) {
	as := seen{u.ID, u.Operator, manages}
	revision := s.Keys.Revision(u.ID)
	s.mu.Lock()
	r := s.kept[as]
	if r == nil || r.revision != revision || time.Since(r.asked) > keptFor {
		r = &report{revision: revision, asked: time.Now(), done: make(chan struct{})}
		for other, old := range s.kept {
			if time.Since(old.asked) > keptFor {
				delete(s.kept, other)
			}
		}
		if s.kept == nil {
			s.kept = map[seen]*report{}
		}
		s.kept[as] = r
		s.mu.Unlock()
		// Others may wait for it too: it goes on without the one who asked first.
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
		defer cancel()
		defer close(r.done)
		r.list = s.look(free, u, manages)
		return r.list, context.Cause(ctx)
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.list, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// look looks at everything at once.
func (s *Setup) look(ctx context.Context, u *parley.User, manages bool) []Part {
	checks := s.Server
	if !u.Operator || !manages {
		checks = nil
	}
	server := make([]Part, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		crash.Go(&wg, func() { server[i] = worst(c, c.Ask(ctx)) }, func(err error) {
			slog.Error("a look at the server panicked", "part", c.Code, "error", err)
			server[i] = Part{Code: c.Code, Name: c.Name, State: Fail, Text: "It could not be looked at: the server's log says why."}
		})
	}
	list := append(s.vendors(ctx, u, manages), s.assistants(ctx, u.ID))
	wg.Wait()
	list = append(list, server...)
	for i := range list {
		list[i].CheckedAt = parley.Now()
	}
	return list
}

// worst is a part of the server by its findings.
func worst(c Check, found []parley.Finding) Part {
	p := Part{Code: c.Code, Name: c.Name, State: OK}
	rank := []string{OK, Note, Fail}
	for _, f := range found {
		state := strings.ToLower(f.State)
		if p.Text == "" || slices.Index(rank, state) > slices.Index(rank, p.State) {
			p.State, p.Text = state, sentence(f.Text)
		}
	}
	return p
}

// sentence begins and ends as one.
func sentence(text string) string {
	if text == "" || strings.HasPrefix(text, "http") || strings.HasPrefix(text, "PARLEY_") {
		return text
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// assistants says whether all of a user's assistants can be used with what there is.
func (s *Setup) assistants(ctx context.Context, userID int64) Part {
	p := Part{Code: "assistants", Name: "Assistants", State: OK, Path: "/assistants"}
	all, err := s.Assistants.All(ctx, userID, "")
	if err != nil {
		p.State, p.Text = Fail, "They can't be read now. The log says why."
		return p
	}
	var broken, aging, basic []string
	thinks := slices.ContainsFunc(s.Assistants.Catalog.For(userID).ModelsOf(parley.LLM),
		func(m parley.Model) bool { return m.Provider != ai.BuiltIn })
	now, older := time.Now(), ""
	for i := range all {
		if list := s.Assistants.Missing(&all[i]); len(list) > 0 {
			if broken = append(broken, all[i].Name+": "+list[0]); len(broken) == 1 {
				p.Path = assistantPath(all[i].ID)
			}
			continue
		}
		if thinks && s.Assistants.BuiltIn(&all[i]) {
			basic = append(basic, all[i].Name)
		}
		switch list, gone := s.Assistants.Retiring(&all[i], now); {
		case gone:
			if broken = append(broken, all[i].Name+": "+list[0]); len(broken) == 1 {
				p.Path = assistantPath(all[i].ID)
			}
		case len(list) > 0:
			if aging = append(aging, all[i].Name+": "+list[0]); len(aging) == 1 {
				older = assistantPath(all[i].ID)
			}
		}
	}
	switch {
	case len(broken) > 0:
		p.State, p.Text = Fail, count(len(broken), len(all))+" "+broken[0]
	case len(aging) > 0:
		p.State, p.Path = Note, older
		if p.Text = aging[0]; len(aging) > 1 {
			p.Text = fmt.Sprintf("The models of %d assistants are retired soon. %s", len(aging), aging[0])
		}
	case len(basic) > 0:
		p.State, p.Path = Note, "/providers"
		p.Text = basic[0] + " still uses the built-in responder, although a language model is connected."
		if len(basic) > 1 {
			p.Text = fmt.Sprintf("%d assistants still use the built-in responder, although a language model is connected.", len(basic))
		}
	case len(all) == 0:
		p.State, p.Text = Note, "There is none yet."
	default:
		p.Text = "All assistants have what they need."
	}
	return p
}

// vendors says whether something thinks, speaks and listens for a user, and whether all that should does. What is wrong
// with the server's own keys and settings is told to its operator alone.
func (s *Setup) vendors(ctx context.Context, u *parley.User, manages bool) []Part {
	cat := s.Assistants.Catalog.For(u.ID)
	model, voices, recognizers := wanted{part: ai.TheModel}, wanted{part: ai.TheVoice}, wanted{part: ai.TheRecognizer}
	for _, v := range s.Keys.Check(ctx, u.ID) {
		operator, why := u.Operator && manages, ""
		switch {
		case v.Source == keyring.Own && !manages:
			why = "the account's administrators are told why"
		case v.Source != keyring.Own && !operator:
			why = "the server's operator is told why"
		}
		for i := range v.Findings {
			v.Findings[i].Text = cmp.Or(why, v.Findings[i].Text)
		}
		if v.Models != nil && len(v.Models()) > 0 {
			model.add(v, v.Name)
		}
		if operator {
			for _, w := range []*wanted{&model, &voices, &recognizers} {
				w.retires(v.Retiring)
			}
		}
		for _, p := range cat.Synthesizers(0) {
			if slices.ContainsFunc(v.Speakers, func(s ai.Speaker) bool { return s.ID == p.ID }) {
				voices.add(v, p.Name)
			}
		}
		for _, p := range cat.Transcribers(0) {
			if slices.ContainsFunc(v.Listeners, func(l ai.Listener) bool { return l.ID == p.ID }) {
				recognizers.add(v, p.Name)
			}
		}
	}
	return []Part{
		model.told(Part{Code: "model", Name: "Language model", Path: "/providers"}, Fail,
			"No language model is connected: the built-in responder only looks up sentences of the prompt and the documents. "+
				"Paste a provider's key."),
		voices.told(Part{Code: "voices", Name: "Voices", Path: "/providers"}, Note,
			"Only the built-in voices speak, and they sound mechanical. Paste the key of a provider that speaks."),
		recognizers.told(Part{Code: "ears", Name: "Speech recognition", Path: "/providers"}, Note,
			"Only the built-in recognizer listens, to English alone. Paste the key of a provider that listens."),
	}
}
