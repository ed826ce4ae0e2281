package console

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/internal/assistant"
	"parley/internal/catalog"
	"parley/internal/endpoint"
	"parley/internal/parley"
	"parley/internal/store"
)

// editor is what the page of one assistant shows.
type editor struct {
	*fields
	id       int64
	uuid     string
	name     string      // as it is stored
	seen     parley.Time // when what is edited was last changed
	overtook bool        // it was changed by somebody else meanwhile
	draft    *parley.AssistantDraft
	calls    bool // it may call people, as it is stored
	active   bool // as it is stored
	// the number whose calls it does not answer because it is inactive, "" when there is none
	unanswered string
	recorded   *parley.VoicemailRecording // what is played on voicemails in place of its words; nil: nothing
	warnings   []string                   // what was saved and can't work on this server
	talk       *beginning                 // of a test chat with it, as it is stored
	base       string                     // this server's address

	modes, languages, voices, llms, multimodals, synthesizers, transcribers, numbers []option
	bases                                                                            []option // knowledgebases
	tools                                                                            []parley.Tool
	// assistants to hand over to
	others []option
}

func (e *editor) path(more string) string { return assistantPath(e.id, more) }

// snippet is the line that puts the widget on a website.
func (e *editor) snippet() string {
	return `<script src="` + e.base + `/embed.js" data-assistant-id="` + e.uuid + `" async></script>`
}

// edited is an assistant that is edited: as it is live, and its draft.
type edited struct {
	live  *parley.Assistant
	draft *parley.AssistantDraft // nil where there is none
}

func (c *Console) edited(r *request) (*edited, error) {
	live, err := c.Assistants.Get(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	if role := r.who.Role(); !role.Includes(parley.RoleEditor) { // what is live, without its secrets
		return &edited{live.For(role), nil}, nil
	}
	draft, err := c.Assistants.Draft(r.Context(), r.UserID(), live.ID)
	if store.IsNotFound(err) {
		return &edited{live, nil}, nil
	}
	return &edited{live, draft}, err
}

// shown is the assistant with its draft.
func (e *edited) shown() *parley.Assistant {
	if e.draft != nil {
		return e.draft.Assistant
	}
	return e.live
}

// seen is when what is edited was last changed.
func (e *edited) seen() parley.Time {
	if e.draft != nil {
		return max(e.draft.UpdatedAt, e.live.UpdatedAt)
	}
	return e.live.UpdatedAt
}

func (c *Console) assistantEdit(r *request) (*answer, error) {
	of, err := c.edited(r)
	if err != nil {
		return nil, err
	}
	var wrong parley.Fields
	if of.draft != nil {
		wrong = of.draft.Wrong()
	}
	tree := treeOf(of.shown())
	if of.shown().PostCallShown {
		delete(tree, "post_call_json_schema") // the list has its values
	}
	e, err := c.editor(r, of, tree, wrong)
	if err != nil {
		return nil, err
	}
	e.kept = true
	return show(of.live.Name, assistantEditor(e)), nil
}

// assistantSave saves the draft, and goes on as the button says: to the editor, or to what is to be published.
func (c *Console) assistantSave(r *request) (*answer, error) {
	of, err := c.edited(r)
	if err != nil {
		return nil, err
	}
	tree := r.tree(reflect.TypeFor[parley.Assistant]())
	if seen := r.PostFormValue("seen"); seen != "" && seen != strconv.FormatInt(int64(of.seen()), 10) {
		e, err := c.editor(r, of, tree, nil)
		if err != nil {
			return nil, err
		}
		e.overtook = true
		a := show(of.live.Name, assistantEditor(e))
		a.status = http.StatusConflict
		return a, nil
	}
	draft, err := c.Assistants.SaveDraft(r.Context(), r.UserID(), of.live.ID, tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil && r.PostFormValue("then") == "publish":
		return see(assistantPath(of.live.ID, "/publish")), nil
	case err == nil && len(draft.Changed) == 0:
		return see(assistantPath(of.live.ID, ""), "same"), nil
	case err == nil:
		return see(assistantPath(of.live.ID, ""), "drafted"), nil
	case !ok:
		return nil, err
	}
	e, err := c.editor(r, of, tree, wrong)
	if err != nil {
		return nil, err
	}
	return invalid(of.live.Name, assistantEditor(e)), nil
}

// assistantChoices shows the form as it is, unsaved, with the voices and models that suit its language and mode.
func (c *Console) assistantChoices(r *request) (*answer, error) {
	of, err := c.edited(r)
	if err != nil {
		return nil, err
	}
	e, err := c.editor(r, of, r.tree(reflect.TypeFor[parley.Assistant]()), nil)
	if err != nil {
		return nil, err
	}
	return show(of.live.Name, assistantEditor(e)), nil
}

// editor readies the form of an assistant, with everything that there is to choose from.
func (c *Console) editor(r *request, of *edited, tree map[string]any, wrong parley.Fields) (*editor, error) {
	a := of.live
	if list, ok := tree["tools"].([]any); ok { // what answers show of the mid-call tools is edited as tool_ids
		tree["tools"] = slices.DeleteFunc(list, func(v any) bool {
			t, _ := v.(map[string]any)
			return t["type"] == parley.MidCall
		})
	}
	e := &editor{fields: fieldsOf[parley.Assistant](tree, wrong), id: a.ID, uuid: a.UUID, name: a.Name,
		seen: of.seen(), draft: of.draft, talk: c.begin(of.shown()), calls: callsPeople(a),
		active: a.Status == "active", base: c.Front.Base(r.Request), warnings: c.Assistants.Warnings(of.shown())}
	mode := e.text("mode")
	language, _ := strconv.ParseInt(e.text("language_id"), 10, 64)
	cat, err := c.Assistants.Choice(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	model, _ := strconv.ParseInt(e.text("multimodal_model_id"), 10, 64)
	e.modes, e.limits = modes(cat.Catalog), assistant.Limits(mode, assistant.Decides(cat.Catalog, mode, model))
	for _, l := range cat.Languages() {
		o := option{value: strconv.FormatInt(l.ID, 10), label: l.Name}
		if len(cat.Voices(mode, l.ID)) == 0 {
			o.off = "no voice on this server"
		}
		e.languages = append(e.languages, o)
	}
	e.voices = voiceOptions(cat, e.fields, mode, language)
	e.llms = modelOptions(cat, e.text("llm_model_id"), parley.LLM)
	e.multimodals = modelOptions(cat, e.text("multimodal_model_id"), parley.ModelKind(mode))
	e.synthesizers = providerOptions("Same as the voice", cat.Synthesizers(language), cat.Synthesizer,
		e.text("synthesizer_provider_id"))
	e.transcribers = providerOptions("Automatic", cat.Transcribers(language),
		cat.Transcriber, e.text("transcriber_provider_id"))
	if e.recorded, err = c.recordedMessage(r, a.ID); err != nil {
		return nil, err
	}
	return e, c.ownChoices(r, a, e)
}

// modes are the ways in which an assistant can talk; those without a model on this server can't be chosen.
func modes(c *catalog.Catalog) []option {
	list := enum("pipeline=Pipeline", "multimodal=Multimodal", "dualplex=Dualplex")
	for i := range list {
		if kind := parley.ModelKind(list[i].value); kind != "pipeline" && len(c.ModelsOf(kind)) == 0 {
			list[i].off = "no such model on this server"
		}
	}
	return list
}

// unless are choices after others, and can't be chosen for a reason unless they are possible.
func unless(possible bool, reason string, list []option, before ...option) []option {
	for i := range list {
		if !possible {
			list[i].off = reason
		}
	}
	return append(before, list...)
}

// ownChoices are those that the user made: numbers, tools, other assistants.
func (c *Console) ownChoices(r *request, a *parley.Assistant, e *editor) error {
	numbers, err := c.DB.Numbers(r.Context(), r.UserID())
	if err != nil {
		return err
	}
	e.numbers = []option{{value: "", label: "None"}}
	for _, n := range numbers {
		e.numbers = append(e.numbers, option{value: strconv.FormatInt(n.ID, 10), label: n.PhoneNumber + " (" +
			typeName(n.Type) + ")"})
		if p := a.PhoneNumberID; p != nil && *p == n.ID && a.Type == "inbound" && !e.active {
			e.unanswered = parley.FormatPhone(n.PhoneNumber)
		}
	}
	bases, err := c.DB.Knowledgebases(r.Context(), r.UserID())
	if err != nil {
		return err
	}
	e.bases = []option{{value: "", label: "None"}}
	for _, k := range bases {
		e.bases = append(e.bases, option{value: strconv.FormatInt(k.ID, 10), label: k.Name + " (" +
			count(k.Documents, "document", "documents") + ")"})
	}
	if e.tools, err = c.DB.Tools(r.Context(), r.UserID()); err != nil {
		return err
	}
	// the chosen ones first, in their order: so saving keeps it
	slices.SortStableFunc(e.tools, func(a, b parley.Tool) int {
		return cmp.Compare(e.place("tool_ids", a.ID), e.place("tool_ids", b.ID))
	})
	e.others = []option{{value: "", label: "Choose an assistant"}}
	some, err := c.DB.AssistantChoices(r.Context(), r.UserID(), maxOthers)
	for _, o := range some {
		if o.ID != a.ID {
			e.others = append(e.others, option{value: strconv.FormatInt(o.ID, 10), label: o.Name})
		}
	}
	for _, at := range e.transfers() { // one beyond them, chosen by the API
		id := e.text(at + ".assistant_id")
		if !slices.ContainsFunc(e.others, func(o option) bool { return o.value == id }) {
			e.others = append(e.others, option{value: id, label: "Assistant " + id})
		}
	}
	return err
}

// maxOthers bounds the list of assistants to hand over to: a page of many thousands helps nobody.
const maxOthers = 200

// voiceOptions are the voices of a language and mode by provider. The one that is chosen stays in the list when it is
// configured no more.
func voiceOptions(c *assistant.Choice, f *fields, mode string, language int64) (list []option) {
	now, there := f.text("voice_id"), false
	model, _ := strconv.ParseInt(f.text("multimodal_model_id"), 10, 64)
	chosen := c.Model(model)
	for _, v := range c.Voices(mode, language) {
		if v.Inside != "" && chosen != nil && v.Inside != chosen.Provider { // of another vendor's models
			continue
		}
		o := option{value: strconv.FormatInt(v.ID, 10), label: describeVoice(v), group: "Inside the model"}
		if v.SynthesizerProviderID != nil {
			p := c.Synthesizer(*v.SynthesizerProviderID)
			o.group = cmp.Or(ownGroup(p.Code), p.Name)
		}
		there = there || o.value == now
		list = append(list, o)
	}
	id, _ := strconv.ParseInt(now, 10, 64)
	if v := c.Voice(id); v != nil && !there && v.LanguageID == language {
		list = append(list, option{value: now, label: describeVoice(*v),
			group: "Not available on this server or in this mode"})
	}
	if len(list) == 0 {
		list = []option{{value: "", label: "No voice speaks this language in this mode"}}
	}
	return list
}

func describeVoice(v parley.Voice) string {
	about := []string{v.Gender}
	for _, s := range []*string{v.Accent, v.Age} {
		if s != nil {
			about = append(about, *s)
		}
	}
	return fmt.Sprintf("%s (%s)", v.Name, strings.Join(about, ", "))
}

// endpointGroup is the group of the account's endpoints in a list of choices.
const endpointGroup = "Your endpoints"

// ownGroup is the group of a provider in a list of choices, "" for none.
func ownGroup(provider string) string {
	if vendor, _, _ := strings.Cut(provider, "/"); vendor == endpoint.Code {
		return endpointGroup
	}
	return ""
}

func modelOptions(c *assistant.Choice, now string, kind parley.ModelKind) []option {
	list, there := []option{{value: "", label: "None"}}, now == ""
	if kind != "" && kind != "pipeline" {
		for _, m := range c.ModelsOf(kind) {
			o := option{value: strconv.FormatInt(m.ID, 10), label: m.Name, group: ownGroup(m.Provider)}
			there = there || o.value == now
			list = append(list, o)
		}
	}
	id, _ := strconv.ParseInt(now, 10, 64)
	if m := c.Model(id); m != nil && !there {
		list = append(list, option{value: now, label: m.Name + " (not available here)"})
	}
	return list
}

func providerOptions(none string, providers []parley.Provider, find func(int64) *parley.Provider, now string) []option {
	list, there := []option{{value: "", label: none}}, now == ""
	for _, p := range providers {
		o := option{value: strconv.FormatInt(p.ID, 10), label: p.Name, group: ownGroup(p.Code)}
		there = there || o.value == now
		list = append(list, o)
	}
	id, _ := strconv.ParseInt(now, 10, 64)
	if p := find(id); p != nil && !there {
		list = append(list, option{value: now, label: p.Name + " (not available here)"})
	}
	return list
}

// fallbacks are the choices of a box in a list of what takes over: the same as for what it is for, or nothing.
func fallbacks(options []option, now string) []option {
	list := []option{{value: "", label: "None"}}
	there := now == ""
	for _, o := range options {
		if o.value != "" && o.group != endpointGroup { // an endpoint takes over from nothing
			there = there || o.value == now
			list = append(list, o)
		}
	}
	if !there {
		list = append(list, option{value: now, label: "Not available here (" + now + ")"})
	}
	return list
}

// nth says which of a list a box is.
func nth(i int) string { return []string{"first", "second", "third"}[i] }

// toolRow is a built-in tool among the tools: its name in the form, and whether it is there.
type toolRow struct {
	kind, at string
	on       bool
}

// toolRows are the built-in tools of a type that an assistant has: several transfers may have been made by the API. One
// that it has not has a place after all others.
func (e *editor) toolRows(kind string) (list []toolRow) {
	rows := e.rows("tools")
	for _, row := range rows {
		if e.text(row+".type") == kind {
			list = append(list, toolRow{kind, row, true})
		}
	}
	if list == nil {
		list = []toolRow{{kind, "tools." + strconv.Itoa(len(rows)+slices.Index(parley.BuiltinTools, kind)), false}}
	}
	return list
}

// transfers are the rows of the assistants that this one hands over to.
func (e *editor) transfers() (rows []string) {
	for _, row := range e.rows("tools") {
		if e.text(row+".type") == "assistant_transfer" {
			rows = append(rows, row)
		}
	}
	return rows
}

// variable is a {{name}} of the prompt.
type variable struct {
	name string
	from string // "yours", "built in", or "" where nothing gives it a value
}

// variables are those that the prompt and the initial message use.
func (e *editor) variables() (list []variable) {
	own, _ := e.get("variables").(map[string]any)
	for _, name := range parley.VariableNames(e.text("system_prompt"), e.text("initial_message")) {
		v := variable{name: name}
		if _, ok := own[v.name]; ok {
			v.from = "yours"
		} else if slices.Contains(parley.BuiltinVariables, v.name) {
			v.from = "built in"
		}
		list = append(list, v)
	}
	return list
}

func enum(values ...string) (list []option) {
	for _, v := range values {
		value, label, _ := strings.Cut(v, "=")
		list = append(list, option{value: value, label: label})
	}
	return list
}

func builtinList() string { return strings.Join(parley.BuiltinVariables, " ") }

// bounds say between which numbers a field may be.
func (f *fields) bounds(name string) string {
	r := f.rule(name)
	if r.min == "" || r.max == "" {
		return ""
	}
	return r.min + " to " + r.max
}
