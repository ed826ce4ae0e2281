package console

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"parley/internal/ai"
	"parley/internal/keyring"
	"parley/internal/parley"
	"parley/internal/store"
)

// providers is the page of the vendors' keys.
type providers struct {
	own      []keyring.Vendor
	server   []keyring.Vendor // nil for who doesn't operate the server
	at       string           // the form that was sent: own/CODE or server/CODE
	wrong    string           // why it was refused
	baseURL  string           // what was sent of it
	builtIn  int              // the user's assistants that have the built-in responder although there is a model
	first    parley.Assistant // of those
	model    *parley.Model    // that they could have
	talkPath string           // where to talk to the first of those that think with it
}

func (c *Console) providerList(r *request) (*answer, error) {
	p, err := c.providers(r)
	return show("Providers", providersPage(p)), err
}

func (c *Console) providers(r *request) (*providers, error) {
	p := &providers{own: c.Keys.List(r.UserID())}
	if r.who.User.Operator {
		p.server = c.Keys.List(0)
	}
	list, err := c.onBuiltIn(r)
	if err != nil {
		return nil, err
	}
	if p.builtIn = len(list); p.builtIn > 0 {
		p.first = list[0]
	}
	if m := c.Catalog.For(r.UserID()).ModelsOf(parley.LLM); len(m) > 0 && m[0].Provider != ai.BuiltIn {
		p.model = &m[0]
	}
	if p.model != nil && p.builtIn == 0 {
		some, _, err := c.DB.AssistantPage(r.Context(), r.UserID(), store.AssistantFilter{}, store.Page{Number: 1, Size: 1})
		if err != nil {
			return nil, err
		}
		if len(some) > 0 {
			p.talkPath = assistantPath(some[0].ID, "/talk")
		}
	}
	return p, nil
}

// builtIn reports whether a user has nothing but the built-in responder to think with.
func (c *Console) builtIn(r *request) bool {
	list := c.Catalog.For(r.UserID()).ModelsOf(parley.LLM)
	return len(list) > 0 && list[0].Provider == ai.BuiltIn
}

// onBuiltIn are the user's assistants that answer with the built-in responder.
func (c *Console) onBuiltIn(r *request) ([]parley.Assistant, error) {
	list, err := c.DB.Assistants(r.Context(), r.UserID(), "")
	return slices.DeleteFunc(list, func(a parley.Assistant) bool { return !c.Assistants.BuiltIn(&a) }), err
}

func (c *Console) providerOwn(r *request) (*answer, error) {
	return c.providerChange(r, r.UserID(), "own")
}

func (c *Console) providerServer(r *request) (*answer, error) {
	if !r.who.User.Operator {
		return nil, parley.Errorf(parley.Forbidden, "Only an operator of this server may do this.")
	}
	return c.providerChange(r, 0, "server")
}

// providerChange saves, tests or removes a key, as the button that was pressed says.
func (c *Console) providerChange(r *request, userID int64, whose string) (*answer, error) {
	code := r.PathValue("code")
	k := ai.Key{Secret: r.PostFormValue("key"), BaseURL: r.PostFormValue("base_url")}
	var done string
	var err error
	switch r.PostFormValue("do") {
	case "remove":
		done, err = "removed", c.Keys.Remove(r.Context(), userID, code)
	case "test":
		done = "checked"
		_, err = c.Keys.Test(r.Context(), userID, code, ai.Key{})
	default:
		var v *keyring.Vendor
		if v, err = c.Keys.Set(r.Context(), userID, code, k); err == nil {
			if done = "connected"; v.Key.State != parley.KeyConnected {
				done = "entered"
			}
		}
	}
	if err == nil {
		return see("/providers", done), nil
	}
	var refused *parley.Error
	if !errors.As(err, &refused) || refused.Kind != parley.Invalid && refused.Kind != parley.Conflict {
		return nil, err
	}
	p, failed := c.providers(r)
	if failed != nil {
		return nil, failed
	}
	p.at, p.wrong, p.baseURL = whose+"/"+code, refused.Message, k.BaseURL
	if len(refused.Fields) > 0 {
		p.wrong = strings.Join(refused.Fields[0].Messages, " ")
	}
	return invalid("Providers", providersPage(p)), nil
}

// providerThink has all assistants that answer with the built-in responder think with the user's first model.
func (c *Console) providerThink(r *request) (*answer, error) {
	list, err := c.onBuiltIn(r)
	if err != nil {
		return nil, err
	}
	m := c.Catalog.For(r.UserID()).ModelsOf(parley.LLM)[0]
	for _, a := range list {
		body := treeOf(map[string]any{"llm_model_id": m.ID})
		if _, err := c.Assistants.Update(r.Context(), r.UserID(), a.ID, body); err != nil {
			return nil, err
		}
	}
	if len(list) > 0 { // where it can be tried
		return see(assistantPath(list[0].ID, "/talk"), "thinking"), nil
	}
	return see("/providers", "thinking"), nil
}

// using names the assistants that would use the connected model.
func (p *providers) using() string {
	if p.builtIn == 1 {
		return p.first.Name
	}
	return "all " + strconv.Itoa(p.builtIn)
}

// ownInUse reports whether the account has a key of its own, or one was just refused.
func (p *providers) ownInUse() bool {
	return strings.HasPrefix(p.at, "own/") ||
		slices.ContainsFunc(p.own, func(v keyring.Vendor) bool { return v.Source == keyring.Own })
}

// seldom are providers that few connect first.
var seldom = []string{"cartesia", "assemblyai", "xai"}

// split parts a list of providers into those that are shown and those that are folded: seldom ones that are not in use.
func (p *providers) split(list []keyring.Vendor, whose string) (shown, more []keyring.Vendor) {
	for _, v := range list {
		if v.Key == nil && slices.Contains(seldom, v.Code) && p.at != whose+"/"+v.Code {
			more = append(more, v)
		} else {
			shown = append(shown, v)
		}
	}
	return shown, more
}

// uses says what a vendor can do.
func uses(v keyring.Vendor) string {
	words := map[string]string{"thinking": "language models", "speaking": "voices", "listening": "transcription", "realtime": "realtime"}
	var list []string
	for _, use := range v.UsedFor {
		list = append(list, words[use])
	}
	text := strings.Join(list, ", ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// keyState is how a key is, in words, with the look of its tag.
func keyState(v keyring.Vendor) (text, look string) {
	switch {
	case v.Key == nil && v.Source == keyring.Server:
		return "Uses this server's key", "plain"
	case v.Key == nil && v.Source == keyring.None:
		return "Not connected", "plain"
	case v.Key == nil:
		return "Set", "plain"
	}
	switch v.Key.State {
	case parley.KeyConnected:
		return "Connected", "warm"
	case parley.KeyRefused:
		return "Key refused", "bad"
	case parley.KeyFailing:
		return "Not working", "bad"
	}
	return "Not tested", "plain"
}

func keyTag(v keyring.Vendor) string { _, look := keyState(v); return look }

func keyText(v keyring.Vendor) string { text, _ := keyState(v); return text }
