package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
)

// A draft's file holds the fields in which it differs from the live assistant, with their defaults too.

// readDraft adds the draft of an assistant, where it has one.
func (s *Server) readDraft(ctx context.Context, a *Account, of *Thing) error {
	var answer struct {
		Data struct {
			Changed   []string
			Assistant map[string]any
		}
	}
	t := &Thing{Kind: kindOf(draftDir), Name: of.Name, Of: of, Path: draftDir + "/" + path.Base(of.Path)}
	err := s.ask(ctx, "GET", t.path(), nil, &answer)
	if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Status == http.StatusNotFound {
		return nil
	}
	if err != nil || len(answer.Data.Changed) == 0 {
		return err
	}
	row := maps.Clone(answer.Data.Assistant)
	if err := s.fill(a, t, row); err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, name := range answer.Data.Changed {
		changed[t.Kind.ownName(name)] = true
	}
	again, _ := (&resolver{Server: s, now: a}).resolve(t, t.Body, func(string, error) {})
	for _, r := range t.Kind.refs {
		if kindOf(r.of) == nil && changed[r.name] && jsonText(again[r.id]) != jsonText(row[r.id]) {
			changed[r.name] = false
			a.warnOnce("the draft of %s has a %s that does not go with its mode or language: it is not written", of.Path, r.name)
		}
	}
	if maps.DeleteFunc(t.Body, func(name string, _ any) bool { return !changed[name] }); len(t.Body) > 0 {
		a.Things = append(a.Things, t)
	}
	return nil
}

// settle leaves out of a draft's file what is in the assistant's too, and says whether anything is left.
func (t *Thing) settle() bool {
	if t.Of == nil {
		return true
	}
	around := t.around(t.Body)
	other := around["mode"] != t.Of.Body["mode"] || around["language"] != t.Of.Body["language"]
	maps.DeleteFunc(t.Body, func(name string, v any) bool {
		offered := slices.ContainsFunc(t.Kind.refs, func(r ref) bool { return r.name == name && kindOf(r.of) == nil })
		return same(v, t.Of.Body[name]) && !(offered && other) // the same name is another voice or model then
	})
	return len(t.Body) > 0
}

// around is the body of a thing, over that of the assistant that a draft is of.
func (t *Thing) around(body map[string]any) map[string]any {
	if !t.Kind.part || t.Of == nil {
		return body
	}
	all := maps.Clone(t.Of.Body)
	maps.Copy(all, body)
	return all
}

// makeDraft makes a draft, or makes it like the file: what the file lacks is as it is live.
func (a *applier) makeDraft(ctx context.Context, c *Change) error {
	var failed error
	body, _ := a.resolve(c.Thing, c.body, func(field string, err error) { failed = fmt.Errorf("%s: %w", field, err) })
	if failed != nil {
		return failed
	}
	at := fmt.Sprintf("/user/assistants/%d/draft", a.assistant(c))
	if c.Now != nil &&
		slices.ContainsFunc(slices.Collect(maps.Keys(c.Now.Body)), func(name string) bool { _, kept := c.body[name]; return !kept }) {
		if err := a.ask(ctx, "DELETE", at, nil, nil); err != nil {
			return err
		}
	}
	return a.ask(ctx, "PUT", at, body, nil)
}

// assistant is the id of the assistant that a test or a draft is of.
func (a *applier) assistant(c *Change) int64 {
	if now := a.p.matched[c.Thing.Of]; now != nil {
		return now.ID
	}
	return a.made[c.Thing.Of.Path]
}

// live is the secret at a place of the assistant that a draft is of, and how its file has it.
func (t *Thing) live() (values, hidden map[string]string) {
	values = map[string]string{}
	if !t.Kind.part || t.Of == nil {
		return values, nil
	}
	t.Of.Kind.eachSecret(t.Of.Body, func(place, text string) string {
		values[place] = text
		return text
	})
	return values, t.Of.secret
}

// asLive is shown in place of a field that a draft doesn't change.
var asLive = json.RawMessage(`"as live"`)

// shownOf is a field as a plan shows it.
func (k *Kind) shownOf(body map[string]any, name string) any {
	v, there := body[name]
	if k.part && !there {
		return asLive
	}
	return v
}

// differs says whether a field of two bodies does.
func (k *Kind) differs(x, y map[string]any, name string) bool {
	v, in := x[name]
	w, also := y[name]
	return !same(v, w) || k.part && in != also
}

// isAssistant says whether a file has the fields of an assistant.
func (k *Kind) isAssistant() bool { return k.Dir == assistantDir || k.part }
