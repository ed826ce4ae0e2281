package console

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"parley/internal/form"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/preset"
)

func (c *Console) trunkList(r *request) (*answer, error) {
	list, err := c.DB.Trunks(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	for i := range list {
		c.Calls.Registered(&list[i])
	}
	answers, err := c.answers(r)
	return show("SIP trunks", trunkList(list, answers, c.base(r), c.Calls.Unable(""))), err
}

// trunkForm is the page of one trunk. Its password stays on the server.
type trunkForm struct {
	*fields
	id       int64 // 0: it is new
	name     string
	password bool // it has one
	warnings []string
	checked  string // what came of asking the trunk, "" when it was not asked
	well     bool   // it answered, and we are registered where we want to be
	found    []parley.TrunkFinding

	unable  string // what this server can't do with any trunk
	overTLS string // what it can't do with those over TLS
	dial    string // whom to ring for a test
	refused string // why that was not done
	tried   *parley.TestCall
	turned  []parley.TrunkRefusal // calls that were refused of late
}

// transportHelp says what can't be done over TLS, where anything can be done at all.
func (t *trunkForm) transportHelp() string {
	if t.unable != "" || t.overTLS == "" {
		return ""
	}
	return "TLS: " + t.overTLS
}

// talks says whether the provider wants something that most do not, or a setting of how it is talked to is wrong.
func (t *trunkForm) talks() bool {
	var usual parley.TrunkManners
	form.Defaults(&usual)
	for name, v := range treeOf(&usual) {
		if t.wrong(name) != "" || t.text(name) != textOf(v) {
			return true
		}
	}
	return t.wrong("nickname") != "" || t.wrong("country_code") != ""
}

func (t *trunkForm) path(more string) string {
	if t.id == 0 {
		return "/trunks/new"
	}
	return "/trunks/" + strconv.FormatInt(t.id, 10) + more
}

func (c *Console) trunkNew(r *request) (*answer, error) {
	t := &parley.TrunkInput{}
	form.Defaults(t)
	return show("New SIP trunk", trunkEditor(c.newTrunk(offered(r, treeOf(t), &t.Trunk), nil))), nil
}

// offered is a trunk's form with the settings of the preset that was chosen, not yet saved.
func offered(r *request, tree map[string]any, t *parley.Trunk) map[string]any {
	if q := r.URL.Query(); q.Has("preset") {
		chosen := q.Get("preset")
		maps.Copy(tree, preset.Offer(map[string]any{"preset": chosen}, t))
	}
	return tree
}

// preset is what is known of whose trunk it is, nil for nothing.
func (t *trunkForm) preset() *preset.Preset { return preset.Of(t.text("preset")) }

// presets are the carriers and systems to choose from.
func presets() []option {
	list := enum("=Another, or none of them")
	for _, p := range preset.All() {
		list = append(list,
			option{value: p.ID, label: p.Name, group: map[string]string{"carrier": "Carriers", "system": "Telephone systems"}[p.Kind]})
	}
	return list
}

// ownedAlready puts the refusal of a number that is on this server already beside its field.
func ownedAlready(err error) error {
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != parley.Conflict {
		return err
	}
	var f parley.Fields
	f.AddText("phone_number", e.Message)
	return f.Err()
}

// layTree lays a form over a trunk.
func layTree(tree map[string]any, whole bool) number.Lay {
	return func(t *parley.TrunkInput) (parley.Fields, bool) {
		_, sent := tree["sip_password"]
		return form.Bind(tree, t, whole), sent
	}
}

// forgetful is what was sent of a form without the password: a page never holds it.
func forgetful(tree map[string]any) map[string]any {
	delete(tree, "sip_password")
	return tree
}

func (c *Console) trunkCreate(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[parley.TrunkInput]())
	t := &parley.TrunkInput{}
	form.Defaults(t)
	err := ownedAlready(c.Numbers.CreateTrunk(r.Context(), r.UserID(), t, layTree(tree, true)))
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see("/trunks/"+strconv.FormatInt(t.ID, 10), "created"), nil
	case !ok:
		return nil, err
	}
	return invalid("New SIP trunk", trunkEditor(c.newTrunk(forgetful(tree), wrong))), nil
}

func (c *Console) newTrunk(tree map[string]any, wrong parley.Fields) *trunkForm {
	return &trunkForm{fields: fieldsOf[parley.TrunkInput](tree, wrong), unable: c.Calls.Unable(""),
		overTLS: c.Calls.Unable("tls")}
}

func (c *Console) editTrunk(t *parley.Trunk, tree map[string]any, wrong parley.Fields) *trunkForm {
	f := c.newTrunk(tree, wrong)
	f.id, f.name, f.password = t.ID, t.Name, len(t.Sealed) > 0
	return f
}

func (c *Console) trunkEdit(r *request) (*answer, error) {
	t, err := c.DB.Trunk(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := c.editTrunk(t, offered(r, treeOf(t.For(r.who.Role())), t), nil)
	if f.warnings, err = c.Numbers.Warn(r.Context(), t); err == nil && r.who.Role().Includes(parley.RoleEditor) {
		f.turned, err = c.DB.TrunkRefusals(r.Context(), r.UserID(), t.ID)
	}
	return show(t.Name, trunkEditor(f)), err
}

func (c *Console) trunkSave(r *request) (*answer, error) {
	tree := r.tree(reflect.TypeFor[parley.TrunkInput]())
	if tree["sip_password"] == "" && r.PostFormValue("forget_password") != "1" { // an empty box keeps it
		delete(tree, "sip_password")
	}
	old, err := c.DB.Trunk(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	_, err = c.Numbers.ChangeTrunk(r.Context(), r.UserID(), old.ID, layTree(tree, false))
	err = ownedAlready(err)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see("/trunks/"+r.PathValue("id"), "saved"), nil
	case !ok:
		return nil, err
	}
	return invalid(old.Name, trunkEditor(c.editTrunk(old, forgetful(tree), wrong))), nil
}

// trunkCheck says whether a trunk answers, as the API does.
func (c *Console) trunkCheck(r *request) (*answer, error) {
	t, err := c.DB.Trunk(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := c.editTrunk(t, treeOf(t), nil)
	health, wrong, err := c.Calls.CheckTrunk(r.Context(), t)
	if err != nil {
		return nil, err
	}
	f.found = health.Findings
	f.well = wrong == nil && (!t.Register || health.Registered)
	switch {
	case wrong != nil:
		f.checked = firstUpper(wrong.Error())
	case health.OptionsMS == 0:
		f.checked = "The trunk was not asked: OPTIONS are turned off."
	case t.Register && !health.Registered:
		f.checked = fmt.Sprintf("The trunk answers (%d ms), but we are not registered with it: look at the user name and the password.",
			health.OptionsMS)
	case t.Register:
		f.checked = fmt.Sprintf("The trunk answers (%d ms), and we are registered with it.", health.OptionsMS)
	default:
		f.checked = fmt.Sprintf("The trunk answers (%d ms).", health.OptionsMS)
	}
	return show(t.Name, trunkEditor(f)), nil
}

// trunkTry makes a test call over a trunk, as the API does.
func (c *Console) trunkTry(r *request) (*answer, error) {
	t, err := c.DB.Trunk(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f := c.editTrunk(t, treeOf(t), nil)
	f.dial = strings.TrimSpace(r.PostFormValue("phone_number"))
	to, _, ok := parley.ReadTransferTarget(f.dial, r.who.User.Country)
	if !ok {
		_, err := parley.ReadPhone(f.dial, r.who.User.Country)
		f.refused = strings.TrimSpace("The test call needs a number in international format, such as +14155552671, or an extension. " +
			parley.PhoneHelp(err))
		return invalid(t.Name, trunkEditor(f)), nil
	}
	if f.tried, err = c.Calls.Try(r.Context(), r.UserID(), t.ID, to); err != nil {
		if f.refused = callRefusal(err); f.refused == "" {
			return nil, err
		}
		return invalid(t.Name, trunkEditor(f)), nil
	}
	return show(t.Name, trunkEditor(f)), nil
}

// triedText is how a test call ended, in a few words.
func triedText(t *parley.TestCall) string {
	if t.AnsweredMS == nil {
		return "The test call was not answered"
	}
	return "The test call was answered"
}

// refusedIn are the statuses with which calls that come in are refused, in words.
var refusedIn = map[int]string{400: "Not readable", 401: "Password missing", 403: "Wrong password", 404: "No such number",
	415: "Not readable",
	416: "No telephone's address", 420: "Unknown extension", 480: "Nobody answers", 488: "No common sound", 503: "Too many calls",
	505: "Not SIP 2.0"}

// topics are what findings are about, in words.
var topics = map[string]string{"dns": "Address", "options": "Answer", "tls": "Certificate", "registration": "Registration", "nat": "NAT",
	"codecs": "Codecs", "encryption": "Encryption", "call": "Call", "sound": "Sound", "preset": "Setting"}

func (c *Console) trunkDelete(r *request) (*answer, error) {
	if err := c.Numbers.DeleteTrunk(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/trunks", "deleted"), nil
}
