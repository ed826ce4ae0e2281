package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/internal/assistant"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// publishing is the page on which a draft goes live.
type publishing struct {
	*edited
	changes []fieldChange
	refused string
	note    string          // for the list of versions, as it was written
	tests   int             // of the assistant
	run     *parley.TestRun // the newest against the draft as it is saved now; nil where there is none
	left    int             // tests that were not in it
}

// unproved is why the assistant's tests keep the draft from being published, "" where they don't.
func (p *publishing) unproved() string {
	if !p.live.RequireTests {
		return ""
	}
	return p.run.Unproved(p.left)
}

func (p *publishing) path(more string) string { return assistantPath(p.live.ID, more) }

func (c *Console) publishing(r *request) (*publishing, error) {
	of, err := c.edited(r)
	if err != nil || of.draft == nil {
		return &publishing{edited: of}, err
	}
	p := &publishing{edited: of}
	tests, err := c.DB.Tests(r.Context(), r.UserID(), of.live.ID)
	if err != nil {
		return nil, err
	}
	p.tests = len(tests)
	if p.run, p.left, err = c.DB.DraftTestRun(r.Context(), r.UserID(), of.live.ID, of.draft.UpdatedAt); err != nil {
		return nil, err
	}
	p.changes, err = c.fieldChanges(r, parley.Compare(of.live.Settings(), of.draft.Assistant.Settings()))
	return p, err
}

func (c *Console) publishPage(r *request) (*answer, error) {
	p, err := c.publishing(r)
	if err != nil {
		return nil, err
	}
	return show("Publish "+p.live.Name, publishPage(p)), nil
}

func (c *Console) publish(r *request) (*answer, error) {
	id, note := r.id("id"), strings.TrimSpace(r.PostFormValue("note"))
	_, err := c.Assistants.Publish(r.Context(), r.UserID(), id, assistant.Publishing{Note: note,
		Overwrite: r.PostFormValue("overwrite") == "1", SkipTests: r.PostFormValue("skip_tests") == "1"})
	if err == nil {
		return see(assistantPath(id, ""), "published"), nil
	}
	e := plain(r.Request, err)
	if e.Kind != parley.Conflict && e.Kind != parley.Invalid {
		return nil, err
	}
	p, err := c.publishing(r)
	if err != nil {
		return nil, err
	}
	p.refused, p.note = e.Message, note
	return &answer{status: http.StatusConflict, title: "Publish " + p.live.Name, body: publishPage(p)}, nil
}

func (c *Console) draftDiscard(r *request) (*answer, error) {
	if _, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	err := c.Assistants.Discard(r.Context(), r.UserID(), r.id("id"))
	if err != nil && !store.IsNotFound(err) { // it was discarded in another tab
		return nil, err
	}
	return see(assistantPath(r.id("id"), ""), "discarded"), nil
}

func (c *Console) versionList(r *request) (*answer, error) {
	a, err := c.Assistants.Get(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	q := listQuery{Page: 1}
	form.Query(r.URL.Query(), &q)
	list, total, err := c.DB.AssistantVersions(r.Context(), r.UserID(), a.ID,
		store.Page{Number: max(1, q.Page), Size: pageSize})
	if err != nil {
		return nil, err
	}
	at := func(n int) string {
		return address(assistantPath(a.ID, "/versions"), url.Values{}, n)
	}
	return show("Versions of "+a.Name, versionList(a, list, q.Page, total, at)), nil
}

// versionView is the page of one version, beside another one.
type versionView struct {
	*parley.Assistant
	version *parley.AssistantVersion
	other   int // the version that it is compared with
	newest  int
	changes []fieldChange
	others  []option
	refused string
}

func (c *Console) versionView(r *request) (*versionView, error) {
	a, err := c.Assistants.Get(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	v := &versionView{Assistant: a}
	if v.version, err = c.DB.AssistantVersion(r.Context(), r.UserID(), a.ID, int(r.id("version"))); err != nil {
		return nil, err
	}
	list, _, err := c.DB.AssistantVersions(r.Context(), r.UserID(), a.ID, store.Page{Number: 1, Size: 2 * parley.MaxVersions})
	if err != nil {
		return nil, err
	}
	v.newest = list[0].Version
	for _, o := range list {
		if o.Version != v.version.Version {
			v.others = append(v.others, option{value: strconv.Itoa(o.Version), label: v.nameOf(o.Version)})
		}
	}
	v.other, _ = strconv.Atoi(r.URL.Query().Get("to"))
	if v.other < 1 {
		v.other = v.newest
	}
	d, err := c.Assistants.Compare(r.Context(), r.UserID(), a.ID, v.version.Version, v.other)
	if err == nil {
		v.changes, err = c.fieldChanges(r, d.Changes)
	}
	return v, err
}

// nameOf is what a version is called in a list.
func (v *versionView) nameOf(n int) string {
	if n == v.newest {
		return "Version " + strconv.Itoa(n) + " (live)"
	}
	return "Version " + strconv.Itoa(n)
}

func (v *versionView) title() string { return "Version " + strconv.Itoa(v.version.Version) }

func (c *Console) versionShow(r *request) (*answer, error) {
	v, err := c.versionView(r)
	if err != nil {
		return nil, err
	}
	return show(v.title()+" of "+v.Name, versionShow(v)), nil
}

func (c *Console) versionRestore(r *request) (*answer, error) {
	_, err := c.Assistants.Restore(r.Context(), r.UserID(), r.id("id"), int(r.id("version")), "")
	if err == nil {
		return see(assistantPath(r.id("id"), ""), "restored"), nil
	}
	wrong, ok := fieldErrors(err)
	if !ok {
		return nil, err
	}
	v, err := c.versionView(r)
	if err != nil {
		return nil, err
	}
	v.refused = "It can't be restored as it is. " + sentences(wrong)
	return invalid(v.title(), versionShow(v)), nil
}

// sentences are failing fields in words.
func sentences(wrong parley.Fields) string {
	var list []string
	for _, w := range wrong {
		list = append(list, fieldLabel(w.Name)+": "+strings.Join(w.Messages, " "))
	}
	return strings.Join(list, " ")
}

// fieldChange is a field that differs, for people.
type fieldChange struct {
	label    string
	lines    []parley.DiffLine
	from, to string
}

// fieldLabels are names of fields that are not what the editor calls them.
var fieldLabels = map[string]string{"initial_message": "Greeting", "type": "Direction", "phone_number_id": "Phone number",
	"language_id": "Language", "secondary_language_ids": "Further languages", "timezone": "Time zone", "llm_model_id": "Language model",
	"llm_temperature":     "Temperature",
	"multimodal_model_id": "Multimodal model", "fallback_llm_model_ids": "Fallback language models",
	"fallback_multimodal_model_ids": "Fallback multimodal models", "fallback_voice_ids": "Fallback voices",
	"fallback_transcriber_provider_ids": "Fallback transcription providers", "synthesizer_provider_id": "Speech provider",
	"transcriber_provider_id": "Transcription provider", "tool_ids": "Mid-call tools", "tools": "Built-in tools",
	"variables": "Your variables", "post_call_schema": "Values to extract", "post_call_json_schema": "JSON Schema of the values to extract",
	"post_call_evaluation": "Evaluate conversations",
	"is_webhook_active":    "Send calls to a webhook", "webhook_url": "Webhook", "inbound_webhook_url": "Webhook before answering",
	"conversation_ended_webhook_url": "Webhook after chats", "widget_settings": "Widget", "filler_config": "Your own filler words",
	"record": "Record calls", "require_tests": "Tests before publishing", "wait_for_customer": "Let the customer speak first",
	"allow_interruptions": "May be interrupted",
	"knowledgebase_mode":  "How it reads the knowledgebase", "speech_speed": "Speed", "max_duration": "Maximum call length"}

// fieldLabel is what the editor calls a field, or about that.
func fieldLabel(name string) string {
	name, _, _ = strings.Cut(name, ".")
	if l := fieldLabels[name]; l != "" {
		return l
	}
	return assistant.Label(name)
}

// fieldList names fields in one line.
func fieldList(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fieldLabel(name)
	}
	return strings.Join(list, ", ")
}

// fieldChanges puts changes into words.
func (c *Console) fieldChanges(r *request, list []parley.FieldChange) (out []fieldChange, err error) {
	names, err := c.thingNames(r)
	if err != nil {
		return nil, err
	}
	for _, change := range list {
		out = append(out, fieldChange{label: fieldLabel(change.Field), lines: change.Lines,
			from: names.say(change.Field, change.From), to: names.say(change.Field, change.To)})
	}
	return out, nil
}

// thingNames finds what ids in an assistant's fields are called.
type thingNames struct {
	of map[string]func(id int64) string // by field
}

func (c *Console) thingNames(r *request) (*thingNames, error) {
	cat, err := c.Assistants.Choice(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	numbers, err := c.DB.Numbers(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	bases, err := c.DB.Knowledgebases(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	tools, err := c.DB.Tools(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	known := map[string]map[int64]string{"phone_number_id": {}, "knowledgebase_id": {}, "tool_ids": {}}
	for _, n := range numbers {
		known["phone_number_id"][n.ID] = parley.FormatPhone(n.PhoneNumber)
	}
	for _, k := range bases {
		known["knowledgebase_id"][k.ID] = k.Name
	}
	for _, t := range tools {
		known["tool_ids"][t.ID] = t.Name
	}
	model := func(id int64) string {
		if m := cat.Model(id); m != nil {
			return m.Name
		}
		return ""
	}
	voice := func(id int64) string {
		if v := cat.Voice(id); v != nil {
			return describeVoice(*v)
		}
		return ""
	}
	provider := func(find func(int64) *parley.Provider) func(int64) string {
		return func(id int64) string {
			if p := find(id); p != nil {
				return p.Name
			}
			return ""
		}
	}
	language := func(id int64) string {
		if l := cat.Language(id); l != nil {
			return l.Name
		}
		return ""
	}
	n := &thingNames{map[string]func(int64) string{"voice_id": voice, "fallback_voice_ids": voice, "llm_model_id": model,
		"multimodal_model_id": model, "fallback_llm_model_ids": model, "fallback_multimodal_model_ids": model,
		"transcriber_provider_id": provider(cat.Transcriber), "fallback_transcriber_provider_ids": provider(cat.Transcriber),
		"synthesizer_provider_id": provider(cat.Synthesizer),
		"language_id":             language, "secondary_language_ids": language}}
	for field, names := range known {
		n.of[field] = func(id int64) string { return names[id] }
	}
	return n, nil
}

// say is the value of a field for people.
func (n *thingNames) say(field string, raw json.RawMessage) string {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return map[bool]string{true: "on", false: "off"}[v]
	case string:
		if v == "" {
			return "empty"
		}
		return v
	case json.Number:
		return n.named(field, v)
	case []any:
		return n.list(field, v)
	}
	return indented(string(raw))
}

// named is what an id is called; another number is what it is.
func (n *thingNames) named(field string, v json.Number) string {
	if find := n.of[field]; find != nil {
		id, _ := v.Int64()
		if name := find(id); name != "" {
			return name
		}
		return v.String() + " (gone)"
	}
	return v.String()
}

// list is a list of texts or ids, one a line; of objects, as JSON.
func (n *thingNames) list(field string, list []any) string {
	if len(list) == 0 {
		return "none"
	}
	lines := make([]string, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case string:
			lines[i] = v
		case json.Number:
			lines[i] = n.named(field, v)
		default:
			raw, _ := json.MarshalIndent(v, "", "  ")
			lines[i] = string(raw)
		}
	}
	return strings.Join(lines, "\n")
}
