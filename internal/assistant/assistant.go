// Package assistant manages assistants: it creates, changes and completes them by the product's rules, in one place for
// the API, the console and the command line, and prepares them to talk.
package assistant

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/internal/catalog"
	"parley/internal/endpoint"
	"parley/internal/form"
	"parley/internal/knowledge"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/schema"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/tool"
)

// Studio creates and changes assistants, and prepares them.
type Studio struct {
	DB        *store.DB
	Catalog   *catalog.Catalog
	Providers *provider.Set
	Tools     *tool.Runner
	Knowledge *knowledge.Library
	Fallback  Fallback
	Endpoints *endpoint.Book // of accounts' own; nil: there are none
	Stages    *stage.Stages  // of tests; nil: there are none
}

// Create makes an assistant from the fields of a request body. The error names every field that fails.
func (d *Studio) Create(ctx context.Context, userID int64, body map[string]any) (*parley.Assistant, error) {
	return d.create(ctx, userID, &parley.Assistant{}, body)
}

// create is Create of an assistant whose endpoints have beneath them what another has.
func (d *Studio) create(ctx context.Context, userID int64, like *parley.Assistant, body map[string]any) (*parley.Assistant, error) {
	a := &parley.Assistant{LLMModelID: like.LLMModelID, VoiceID: like.VoiceID, TranscriberProviderID: like.TranscriberProviderID}
	form.Defaults(a)
	fields := bind(body, a, true)
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := d.check(ctx, tx.Query, userID, nil, a, slices.Clone(fields)); err != nil {
			return err
		}
		return tx.CreateAssistant(ctx, userID, a)
	})
	if err != nil {
		return nil, err
	}
	if len(a.ToolIDs) > 0 {
		return d.Get(ctx, userID, a.ID)
	}
	d.Complete(a)
	return a, nil
}

// Update changes the fields that body names; the whole assistant must be valid afterwards. A body that changes
// nothing writes nothing.
func (d *Studio) Update(ctx context.Context, userID, id int64, body map[string]any) (*parley.Assistant, error) {
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return d.change(ctx, tx, userID, id, body)
	})
	if err != nil {
		return nil, err
	}
	return d.Get(ctx, userID, id)
}

// change is Update in a transaction.
func (d *Studio) change(ctx context.Context, tx *store.Tx, userID, id int64, body map[string]any) error {
	old, err := tx.AssistantForUpdate(ctx, userID, id)
	if err != nil {
		return err
	}
	a := *old
	a.Tools = slices.Clone(old.Tools)
	fields := bind(body, &a, false)
	a.Adapt(old, func(id int64) bool { return d.Catalog.For(userID).TranscriberConfigured(id, a.LanguageID) })
	if err := d.check(ctx, tx.Query, userID, old, &a, fields); err != nil {
		return err
	}
	if !same(old.FolderID, a.FolderID) && (old.FolderID != nil || a.FolderID != nil) || !slices.Equal(old.LabelIDs, a.LabelIDs) {
		if err := tx.FileAssistant(ctx, userID, &a); err != nil {
			return err
		}
	}
	before := *old
	if before.FolderID, before.LabelIDs = a.FolderID, a.LabelIDs; reflect.DeepEqual(&before, &a) {
		return nil
	}
	return tx.SaveAssistant(ctx, userID, old, &a)
}

// Get returns one of the user's assistants, completed.
func (d *Studio) Get(ctx context.Context, userID, id int64) (*parley.Assistant, error) {
	a, err := d.DB.Assistant(ctx, userID, id)
	if err == nil {
		d.Complete(a)
	}
	return a, err
}

// Page returns a page of the user's assistants, completed.
func (d *Studio) Page(ctx context.Context, userID int64, f store.AssistantFilter, p store.Page) ([]parley.Assistant, int, error) {
	list, total, err := d.DB.AssistantPage(ctx, userID, f, p)
	for i := range list {
		d.Complete(&list[i])
	}
	return list, total, err
}

// All returns all of the user's assistants, completed; only those of one type unless kind is "".
func (d *Studio) All(ctx context.Context, userID int64, kind string) ([]parley.Assistant, error) {
	list, err := d.DB.Assistants(ctx, userID, kind)
	for i := range list {
		d.Complete(&list[i])
	}
	return list, err
}

// After returns the user's assistants, of one type unless kind is "", that follow an id, oldest first and at most n,
// completed.
func (d *Studio) After(ctx context.Context, userID int64, kind string, id int64, n int) ([]parley.Assistant, error) {
	list, err := d.DB.AssistantsAfter(ctx, userID, kind, id, n)
	for i := range list {
		d.Complete(&list[i])
	}
	return list, err
}

// Delete hides an assistant.
func (d *Studio) Delete(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistant(ctx, userID, id) })
}

// RestorePrompt makes an older prompt the current one, as a new version.
func (d *Studio) RestorePrompt(ctx context.Context, userID, id int64, version int) (*parley.Assistant, error) {
	v, err := d.DB.PromptVersion(ctx, userID, id, version)
	if err != nil {
		return nil, err
	}
	return d.Update(ctx, userID, id, map[string]any{"system_prompt": v.SystemPrompt,
		"initial_message": v.InitialMessage})
}

// Complete adds what a response shows in addition to the row: the language's code, the values to extract as a JSON Schema, and the
// mid-call tools among the tools.
func (d *Studio) Complete(a *parley.Assistant) {
	a.InstanceID = 1
	if len(a.PostCallJSONSchema) == 0 {
		a.PostCallJSONSchema, a.PostCallShown = schema.ItemForms.Shown(forms(a)), true
	}
	if l := d.Catalog.Language(a.LanguageID); l != nil {
		a.Language = l.ISO2
	}
	for _, t := range a.MidCallTools {
		timeout := int64(t.Timeout)
		a.Tools = append(a.Tools, parley.AssistantTool{Type: parley.MidCall, ID: &t.ID, Name: t.Name,
			Description: t.Description,
			Endpoint:    t.Endpoint, Method: t.Method, Timeout: &timeout, Headers: t.Headers, Schema: t.Schema})
	}
}

// bind reads a body into an assistant. Entries of type mid_call, which responses show among the tools, stand for
// tool_ids if the body has none.
func bind(body map[string]any, a *parley.Assistant, create bool) parley.Fields {
	was := *a
	*a = *a.Chosen()
	fields := form.Bind(body, a, create)
	a.Settle(&was)
	settle(body, forms(&was), a, &fields)
	if _, sent := body["tools"]; !sent || fields.Has("tools") {
		return fields
	}
	var ids []int64
	for i, t := range a.Tools {
		switch {
		case t.Type != parley.MidCall:
		case t.ID == nil:
			fields.Add("tools."+strconv.Itoa(i)+".id", "is required.")
		case !slices.Contains(ids, *t.ID):
			ids = append(ids, *t.ID)
		}
	}
	if _, sent := body["tool_ids"]; !sent && ids != nil {
		a.ToolIDs = ids
	}
	return fields
}

// settle decides which form of what is found out counts.
func settle(body map[string]any, old schema.Both[parley.ExtractedItem], a *parley.Assistant, fields *parley.Fields) {
	const field = "post_call_json_schema"
	if fields.Has(field) {
		return
	}
	_, short := body["post_call_schema"]
	now, err := schema.ItemForms.Settle(old, forms(a), short, body[field] != nil)
	if err != nil {
		fields.Add(field, "%s.", err)
		return
	}
	a.PostCallSchema, a.PostCallJSONSchema = now.Short, now.Own
}

func forms(a *parley.Assistant) schema.Both[parley.ExtractedItem] {
	return schema.Both[parley.ExtractedItem]{Short: a.PostCallSchema, Own: a.PostCallJSONSchema}
}

// Asked are the names of what is to be found out from a conversation with an assistant.
func Asked(a *parley.Assistant) []string { return schema.Names(schema.ItemForms.Shown(forms(a))) }

// check validates a whole assistant and keeps only the built-in tools in its tools. A voice or model that the server no
// longer offers, or a deleted assistant, may stay if old already has it.
func (d *Studio) check(ctx context.Context, q store.Query, userID int64, old, a *parley.Assistant,
	fields parley.Fields) error {
	facts, err := q.AssistantFacts(ctx, userID, a)
	if err != nil {
		return err
	}
	if old == nil {
		old = &parley.Assistant{}
	}
	d.beneath(userID, a, facts.Endpoints)
	facts.Kept = map[string]bool{}
	for field, id := range a.EndpointIDs() {
		facts.Kept[field] = same(id, old.EndpointIDs()[field]) &&
			(field != "voice_id" || a.VoiceEndpointPlace == old.VoiceEndpointPlace && a.LanguageID == old.LanguageID)
	}
	c := d.Catalog.For(userID)
	facts.Language, facts.Languages = c.Language(a.LanguageID), map[int64]bool{}
	for _, id := range a.SecondaryLanguageIDs {
		facts.Languages[id] = c.Language(id) != nil
	}
	if c.VoiceConfigured(a.VoiceID) || a.VoiceID == old.VoiceID {
		facts.Voice = c.Voice(a.VoiceID)
	}
	facts.LLM = model(c, a.LLMModelID, old.LLMModelID, parley.LLM)
	facts.Multimodal = model(c, a.MultimodalModelID, old.MultimodalModelID, parley.Multimodal, parley.Dualplex)
	if p := a.TranscriberProviderID; p != nil && (c.TranscriberConfigured(*p, a.LanguageID) ||
		same(p, old.TranscriberProviderID) && a.LanguageID == old.LanguageID) {
		facts.Transcriber = c.Transcriber(*p)
	}
	facts.Fallback = fallbackFacts(c, old, a)
	for _, t := range old.Tools { // what is named already may stay, even if it was deleted
		if id := t.AssistantID; id != nil {
			facts.Assistants = allowed(facts.Assistants, *id)
		}
		if id := t.OutboundPhoneID; id != nil {
			facts.Numbers = allowed(facts.Numbers, *id)
		}
	}
	a.Check(facts, &fields)
	slices.Sort(a.LabelIDs)
	a.Tools = slices.DeleteFunc(a.Tools, func(t parley.AssistantTool) bool { return t.Type == parley.MidCall })
	return fields.Err()
}

func allowed(ids map[int64]bool, id int64) map[int64]bool {
	if ids == nil {
		ids = map[int64]bool{}
	}
	ids[id] = true
	return ids
}

func model(c *catalog.Catalog, id, old *int64, kinds ...parley.ModelKind) *parley.Model {
	if id == nil || !c.ModelConfigured(*id) && !same(id, old) {
		return nil
	}
	if m := c.Model(*id); m != nil && slices.Contains(kinds, m.Kind) {
		return m
	}
	return nil
}

func same(a, b *int64) bool { return a != nil && b != nil && *a == *b }

// alike is same, and also of two that are not there.
func alike(a, b *int64) bool { return a == nil && b == nil || same(a, b) }

// CheckStage refuses what a test says of an assistant that has no such thing: answers of tools and values of variables. plays
// is the assistant as it plays in the test.
func (d *Studio) CheckStage(live, plays *parley.Assistant, set *stage.Set) error {
	var wrong parley.Fields
	var tools, variables []string
	for _, a := range []*parley.Assistant{live, plays} {
		for _, name := range ToolNames(a) {
			if !slices.Contains(tools, name) {
				tools = append(tools, name)
			}
		}
		variables = append(append(variables, parley.VariableNames(a.Texts()...)...), slices.Collect(maps.Keys(a.Variables))...)
	}
	variables = append(variables, parley.BuiltinVariables...)
	for _, name := range slices.Sorted(maps.Keys(set.Mocks)) {
		if !slices.Contains(tools, name) {
			wrong.AddText("tools", fmt.Sprintf("The assistant has no tool %s to answer for: %s.", name, has(tools)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set.Variables)) {
		if !slices.Contains(variables, name) {
			wrong.AddText("variables", fmt.Sprintf("The assistant uses no variable %s: %s.", name,
				has(parley.VariableNames(plays.Texts()...))))
		}
	}
	return wrong.Err()
}

// has says what there is instead.
func has(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}

// CheckDraft refuses changes that an assistant can't have.
func (d *Studio) CheckDraft(a *parley.Assistant, draft *parley.Draft) error {
	var wrong parley.Fields
	switch {
	case draft.Empty() || draft.LLMModelID == nil:
	case a.LLMModelID == nil:
		wrong.AddText("draft.llm_model_id", "This assistant uses a realtime model: a text model can't replace it.")
	case same(draft.LLMModelID, a.Chosen().LLMModelID):
	case model(d.Catalog.For(a.UserID), draft.LLMModelID, nil, parley.LLM) == nil:
		wrong.Add("draft.llm_model_id", "is not a model that you can use.")
	}
	return wrong.Err()
}
