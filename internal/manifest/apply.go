package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// resolver puts ids in place of names.
type resolver struct {
	*Server
	now  *Account
	made map[string]int64 // by the paths of things that were made
}

// id is the id of what a text names; 0 of what is yet to be made.
func (r *resolver) id(f ref, text string, body map[string]any) (int64, error) {
	if kindOf(f.of) == nil {
		mode, _ := body["mode"].(string)
		var language int64
		if f.of == voices {
			name, _ := body["language"].(string)
			var err error
			if language, err = r.offer.id(languages, name, 0, ""); err != nil {
				return 0, nil // that is told of the language
			}
		}
		return r.offer.id(f.of, text, language, mode)
	}
	if path, ok := strings.CutPrefix(text, newRef); ok {
		return r.made[path], nil
	}
	if t := find(text, r.now.of(f.of)); t != nil {
		return t.ID, nil
	}
	return 0, fmt.Errorf("the account has no %s %q", kindOf(f.of).Word, text)
}

// resolve is a body as the API takes it. left says that what names a thing that is yet to be made was left out.
func (r *resolver) resolve(t *Thing, body map[string]any, fail func(field string, err error)) (out map[string]any, left bool) {
	k, around := t.Kind, t.around(body)
	out = copied(body).(map[string]any)
	for _, f := range k.refs {
		for i, at := range places(out, f.in) {
			v, there := at[f.name]
			delete(at, f.name)
			field := f.name
			if f.in != "" {
				field = f.in + "." + strconv.Itoa(i) + "." + f.name
			}
			id := func(v any) any {
				text, ok := v.(string)
				if !ok {
					return v // it is an id, or nothing
				}
				n, err := r.id(f, text, around)
				if err != nil {
					fail(field, err)
				}
				return number(n)
			}
			switch v := v.(type) {
			case []any:
				ids := make([]any, len(v))
				for j := range v {
					ids[j] = id(v[j])
				}
				at[f.id] = ids
			default:
				if there {
					at[f.id] = id(v)
				}
			}
		}
	}
	if list, ok := out["tools"].([]any); ok { // an assistant that another one hands over to is yet to be made
		kept := []any{}
		for _, v := range list {
			if one, _ := v.(map[string]any); one["assistant_id"] == number(0) {
				left = true
			} else {
				kept = append(kept, v)
			}
		}
		out["tools"] = kept
	}
	for _, name := range k.usual {
		if k.usually(name, out[name]) {
			delete(out, name)
		}
	}
	return out, left
}

// resolvable says what of a change names nothing that the server has.
func (s *Server) resolvable(p *Plan, c *Change) (wrong []*Mistake) {
	if c.body == nil || c.Op != Create && c.Op != Update {
		return nil
	}
	r := &resolver{s, p.now, map[string]int64{}}
	r.resolve(c.Thing, c.body, func(field string, err error) {
		wrong = append(wrong, &Mistake{c.Thing.Path, c.Thing.line(field), err.Error()})
	})
	return wrong
}

// Apply makes the changes of a plan. say tells of each; what was made before an error stays, and a new plan goes on from
// there.
func (s *Server) Apply(ctx context.Context, p *Plan, say func(c *Change)) error {
	a := &applier{resolver{s, p.now, map[string]int64{}}, p, nil}
	if err := a.release(ctx); err != nil {
		return err
	}
	for _, drafts := range []bool{false, true} { // they differ from the assistants as these are in the end
		for _, c := range p.Changes {
			if c.Op != Create && c.Op != Update || c.Thing.Kind.part != drafts {
				continue
			}
			if err := a.make(ctx, c); err != nil {
				return a.told(c.Thing, err)
			}
			say(c)
		}
		if err := a.finish(ctx); err != nil {
			return err
		}
	}
	for _, c := range p.Changes {
		if c.Op != Delete {
			continue
		}
		if err := a.delete(ctx, c.Now); err != nil {
			return fmt.Errorf("delete the %s %q: %w", c.Now.Kind.Word, c.Now.Name, err)
		}
		say(c)
	}
	return nil
}

type applier struct {
	resolver
	p     *Plan
	later []*Change // whose tools name assistants that were not there yet
}

// told is an error with the place in the file that it is about.
func (a *applier) told(t *Thing, err error) error {
	refusal, ok := err.(*Refusal)
	if !ok {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	for name := range refusal.Fields {
		if line := t.line(t.Kind.ownName(name)); line > 0 {
			return &Mistake{t.Path, line, refusal.Error()}
		}
	}
	return &Mistake{t.Path, 0, refusal.Error()}
}

// release takes numbers from assistants whose numbers other assistants get.
func (a *applier) release(ctx context.Context) error {
	wanted := map[any]bool{}
	for _, c := range a.p.Changes {
		if c.Thing != nil && c.Thing.Kind.Dir == assistantDir && c.body["phone_number"] != nil {
			wanted[c.body["phone_number"]] = true
		}
	}
	for _, c := range a.p.Changes {
		if c.Now == nil || c.Now.Kind.Dir != assistantDir || c.Op != Update && c.Op != Delete {
			continue
		}
		has := c.Now.Body["phone_number"]
		if has == nil || !wanted[has] || c.body["phone_number"] == has {
			continue
		}
		if err := a.ask(ctx, "PUT", c.Now.path(), map[string]any{"phone_number_id": nil}, nil); err != nil {
			return fmt.Errorf("take the number %v from the assistant %q: %w", has, c.Now.Name, err)
		}
	}
	return nil
}

// path is where the API has a thing.
func (t *Thing) path() string {
	switch t.Kind.Dir {
	case testDir:
		return fmt.Sprintf("/user/assistants/%d/tests/%d", t.Of.ID, t.ID)
	case numberDir:
		return fmt.Sprintf("/user/phone-numbers/%d", t.ID)
	case draftDir:
		return fmt.Sprintf("/user/assistants/%d/draft", t.Of.ID)
	}
	return fmt.Sprintf("%s/%d", t.Kind.path, t.ID)
}

// make makes or changes a thing.
func (a *applier) make(ctx context.Context, c *Change) error {
	t := c.Thing
	switch t.Kind.Dir {
	case accountDir:
		return a.ask(ctx, "PUT", "/user/webhook-endpoint", map[string]any{"url": c.body["webhook_url"]}, nil)
	case testDir:
		return a.makeTest(ctx, c)
	case numberDir:
		return a.setNumber(ctx, c)
	case draftDir:
		return a.makeDraft(ctx, c)
	}
	var failed error
	body, left := a.resolve(t, c.body, func(field string, err error) { failed = fmt.Errorf("%s: %w", field, err) })
	if failed != nil {
		return failed
	}
	if left {
		a.later = append(a.later, c)
	}
	switch t.Kind.Dir {
	case knowledgeDir:
		delete(body, "documents")
	case filterDir:
		query := url.Values{}
		filter, _ := body["filter"].(map[string]any)
		for name, v := range filter {
			query.Set(name, fmt.Sprint(v))
		}
		delete(body, "filter")
		body["query"] = query.Encode()
	}
	var kept struct {
		Data struct {
			ID            int64
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	id := int64(0)
	if c.Now == nil {
		if err := a.ask(ctx, "POST", t.Kind.path, body, &kept); err != nil {
			return err
		}
		id = kept.Data.ID
		a.made[t.Path] = id
	} else {
		id = c.Now.ID
		change := c.changed(body)
		if change["preset"] != nil && t.Kind.Dir == trunkDir { // it would fill in what is not said
			said := maps.Clone(body)
			delete(said, trunkPassword)
			maps.Copy(said, change)
			change = said
		}
		if len(change) > 0 {
			if err := a.ask(ctx, "PUT", c.Now.path(), change, &kept); err != nil {
				return err
			}
		}
	}
	if t.Kind.Dir == trunkDir {
		return a.renumber(ctx, t, kept.Data.PhoneNumberID)
	}
	for _, d := range c.docs {
		if err := a.document(ctx, t, id, d); err != nil {
			return fmt.Errorf("the document %q: %w", d.name, err)
		}
	}
	return nil
}

// changed are the fields of a body that are to change.
func (c *Change) changed(body map[string]any) map[string]any {
	out := map[string]any{}
	for _, f := range c.Fields {
		name := f.Name
		for _, r := range c.Thing.Kind.refs {
			if r.in == "" && r.name == name {
				name = r.id
			}
		}
		if name == "filter" {
			name = "query"
		}
		if v, ok := body[name]; ok {
			out[name] = v
		}
	}
	return out
}

// finish gives assistants the tools that hand over to those that were made after them.
func (a *applier) finish(ctx context.Context) error {
	for _, c := range a.later {
		id := a.made[c.Thing.Path]
		if c.Now != nil {
			id = c.Now.ID
		}
		body, _ := a.resolve(c.Thing, c.body, func(string, error) {})
		if err := a.ask(ctx, "PUT", fmt.Sprintf("%s/%d", c.Thing.Kind.path, id), map[string]any{"tools": body["tools"]}, nil); err != nil {
			return a.told(c.Thing, err)
		}
	}
	a.later = nil
	return nil
}

func (a *applier) makeTest(ctx context.Context, c *Change) error {
	script := map[string]any{"script": c.Thing.Script}
	if c.Now != nil {
		return a.ask(ctx, "PUT", c.Now.path(), script, nil)
	}
	return a.ask(ctx, "POST", fmt.Sprintf("/user/assistants/%d/tests", a.assistant(c)), script, nil)
}

func (a *applier) setNumber(ctx context.Context, c *Change) error {
	var failed error
	if c.Now == nil {
		if c, failed = a.madeNumber(c); failed != nil {
			return failed
		}
	}
	body, _ := a.resolve(c.Thing, c.body, func(field string, err error) { failed = fmt.Errorf("%s: %w", field, err) })
	if failed != nil {
		return failed
	}
	for _, f := range c.Fields {
		var err error
		at := fmt.Sprintf("/user/phone-numbers/routes/%d", c.Now.ID)
		switch {
		case f.Name == "nickname":
			err = a.ask(ctx, "PUT", c.Now.path(), map[string]any{"nickname": body["nickname"]}, nil)
		case f.Name == "route" && body["route"] == nil:
			err = a.ask(ctx, "DELETE", at, nil, nil)
		case f.Name == "route":
			route := body["route"].(map[string]any)
			if route["timezone"] == "" {
				delete(route, "timezone")
			}
			err = a.ask(ctx, "PUT", at, route, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// document makes, changes or deletes a document.
func (a *applier) document(ctx context.Context, t *Thing, knowledgebase int64, d docChange) error {
	at := fmt.Sprintf("/user/knowledgebases/%d/documents", knowledgebase)
	one := fmt.Sprintf("%s/%d", at, d.id)
	switch d.Op {
	case Delete:
		return a.ask(ctx, "DELETE", one, nil, nil)
	case Update:
		return a.ask(ctx, "PUT", one, map[string]any{"description": d.doc["description"]}, nil)
	case Create:
		if d.doc["type"] == string(parley.Website) {
			body := map[string]any{"name": d.name, "description": d.doc["description"], "type": d.doc["type"]}
			if d.doc["url"] != "" {
				body["url"], body["relative_links_limit"] = d.doc["url"], d.doc["relative_links_limit"]
			}
			if list, _ := d.doc["links"].([]any); len(list) > 0 {
				links := []any{}
				for _, l := range list {
					links = append(links, map[string]any{"link": l})
				}
				body["links"] = links
			}
			return a.ask(ctx, "POST", at, body, nil)
		}
		name, _ := d.doc["file"].(string)
		fields := map[string]string{"name": d.name, "type": fmt.Sprint(d.doc["type"])}
		if text, ok := d.doc["description"].(string); ok {
			fields["description"] = text
		}
		var made struct{ Data json.RawMessage }
		return a.upload(ctx, at, fields, name, t.Files[t.Kind.Dir+"/"+name], &made)
	}
	return nil
}

func (a *applier) delete(ctx context.Context, t *Thing) error {
	return a.ask(ctx, "DELETE", t.path(), nil, nil)
}
