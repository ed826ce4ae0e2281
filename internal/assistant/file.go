package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// File is an assistant as a file: its own fields, without ids, which would mean nothing on another server.
// Things that it refers to are named.
type File struct {
	Format          string         `json:"format" required:"true" maxLength:"64" doc:"parley-assistant-1"`
	LLMModel        string         `json:"llm_model,omitempty" maxLength:"255"`
	MultimodalModel string         `json:"multimodal_model,omitempty" maxLength:"255"`
	Knowledgebase   string         `json:"knowledgebase,omitempty" maxLength:"255"`
	MidCallTools    []string       `json:"mid_call_tools,omitempty" maxItems:"100" maxLength:"255"`
	Assistant       map[string]any `json:"assistant" required:"true"`
}

const fileFormat = "parley-assistant-1"

// notInFiles are fields that stay behind: they belong to a server, or send what callers say to somebody's address.
var notInFiles = []string{"id", "uuid", "user_id", "phone_number_id", "engine_id", "synthesizer_id",
	"transcriber_id", "instance_id", "status", "language", "prompt_version",
	"llm_model_id", "multimodal_model_id", "fallback_llm_model_ids", "fallback_multimodal_model_ids",
	"fallback_voice_ids", "fallback_transcriber_provider_ids", "knowledgebase_id", "tool_ids", "is_webhook_active", "webhook_url",
	"inbound_webhook_url",
	"conversation_ended_webhook_url", "flows_platform_id", "deleted_at", "created_at", "updated_at"}

// transferredTo is the key by which a file names the assistant that a tool hands over to.
const transferredTo = "assistant"

// Export is one of the user's assistants as a file, without secrets.
func (d *Studio) Export(ctx context.Context, userID, id int64) (*File, error) {
	a, err := d.DB.Assistant(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	a.LLMEndpointID, a.VoiceEndpointID, a.TranscriberEndpointID = nil, nil, nil // what takes over from them is in the file
	f := &File{Format: fileFormat, Assistant: bodyOf(a.Settings())}
	hideSecrets(a, f.Assistant)
	for _, name := range notInFiles {
		delete(f.Assistant, name)
	}
	f.LLMModel, f.MultimodalModel = d.modelCode(userID, a.LLMModelID), d.modelCode(userID, a.MultimodalModelID)
	for _, t := range a.MidCallTools {
		f.MidCallTools = append(f.MidCallTools, t.Name)
	}
	if a.KnowledgebaseID != nil {
		k, err := d.DB.Knowledgebase(ctx, userID, *a.KnowledgebaseID)
		if err != nil {
			return nil, err
		}
		f.Knowledgebase = k.Name
	}
	if err := d.nameTransfers(ctx, userID, f.Assistant); err != nil {
		return nil, err
	}
	return f, nil
}

// hideSecrets empties the variables that the headers of an assistant's tools use: keys and passwords stand there.
func hideSecrets(a *parley.Assistant, tree map[string]any) {
	vars, _ := tree["variables"].(map[string]any)
	for _, t := range a.MidCallTools {
		for _, h := range t.Headers {
			for _, name := range parley.VariableNames(h.Value) {
				if _, there := vars[name]; there {
					vars[name] = ""
				}
			}
		}
	}
}

func (d *Studio) modelCode(userID int64, id *int64) string {
	if id == nil {
		return ""
	}
	if m := d.Catalog.For(userID).Model(*id); m != nil {
		return m.Code
	}
	return ""
}

// toolsOf are the tools in an assistant's tree.
func toolsOf(tree map[string]any, keep func(tool map[string]any) bool) {
	list, ok := tree["tools"].([]any)
	if !ok {
		return // whatever else it is, the rules refuse it
	}
	tree["tools"] = slices.DeleteFunc(list, func(v any) bool {
		t, ok := v.(map[string]any)
		return ok && !keep(t)
	})
}

// nameTransfers puts names in place of the assistants that tools hand over to.
func (d *Studio) nameTransfers(ctx context.Context, userID int64, tree map[string]any) error {
	all, err := d.DB.Assistants(ctx, userID, "")
	toolsOf(tree, func(t map[string]any) bool {
		for _, a := range all {
			if id, _ := t["assistant_id"].(json.Number); id.String() == strconv.FormatInt(a.ID, 10) {
				t[transferredTo] = a.Name
			}
		}
		delete(t, "assistant_id")
		return t["type"] != "assistant_transfer" || t[transferredTo] != nil // one that was deleted
	})
	return err
}

// imported makes a body of a file, for this server, and remembers what does not go in.
type imported struct {
	*Studio
	ctx   context.Context
	user  int64
	file  *File
	offer *Choice
	body  map[string]any
	left  []string
}

func (m *imported) leave(format string, args ...any) {
	m.left = append(m.left, fmt.Sprintf(format, args...))
}

// Import makes an assistant of a file: inactive, without a phone number and webhooks. left says what could not be taken
// over, and what stands in its place.
func (d *Studio) Import(ctx context.Context, userID int64, f *File) (a *parley.Assistant, left []string, err error) {
	m := &imported{Studio: d, ctx: ctx, user: userID, file: f, left: []string{}}
	a, err = m.make()
	return a, m.left, err
}

func (m *imported) make() (a *parley.Assistant, err error) {
	if err := m.read(); err != nil {
		return nil, err
	}
	if m.offer, err = m.Choice(m.ctx, m.user); err != nil {
		return nil, err
	}
	m.choose()
	if err := m.resolve(); err != nil {
		return nil, err
	}
	a, err = m.Create(m.ctx, m.user, m.body)
	wrong, failed := problems(err)
	if len(wrong) == 0 {
		return a, failed
	}
	for _, w := range wrong { // once more, without what this server refuses
		name, _, _ := strings.Cut(w.Name, ".")
		if _, there := m.body[name]; there {
			delete(m.body, name)
			m.leave("%s: %s", Label(name), strings.Join(w.Messages, " "))
		}
	}
	if a, again := m.Create(m.ctx, m.user, m.body); again == nil {
		return a, nil
	}
	return nil, err
}

// read takes over the fields that are known here.
func (m *imported) read() error {
	if m.file.Format != fileFormat || m.file.Assistant == nil {
		return parley.Errorf(parley.Invalid, "This is not an assistant file: choose one that was exported from here.")
	}
	m.body = map[string]any{}
	for name, v := range m.file.Assistant {
		switch {
		case slices.Contains(notInFiles, name):
			m.leave("%s: it belongs to the server that the file came from.", Label(name))
		case !slices.Contains(parley.SettingNames, name):
			m.leave("%s: this server doesn't know it.", Label(name))
		default:
			m.body[name] = v
		}
	}
	slices.Sort(m.left)
	return nil
}

func (m *imported) id(name string) int64 {
	n, _ := m.body[name].(json.Number)
	id, _ := n.Int64()
	return id
}

// choose puts models, voices and providers of this server in place of those that it lacks.
func (m *imported) choose() {
	cat := m.offer
	mode, _ := m.body["mode"].(string)
	find := func(code string, kinds ...parley.ModelKind) *parley.Model {
		for _, kind := range kinds {
			for _, o := range cat.ModelsOf(kind) {
				if o.Code == code {
					return &o
				}
			}
		}
		return nil
	}
	if o := find(m.file.MultimodalModel, parley.Multimodal, parley.Dualplex); o != nil {
		m.body["multimodal_model_id"] = json.Number(strconv.FormatInt(o.ID, 10))
	} else {
		if m.file.MultimodalModel != "" {
			m.leave("The multimodal model %s: it is not available here.", m.file.MultimodalModel)
		}
		if mode == "multimodal" || mode == "dualplex" {
			m.leave("The mode %s: it needs such a model, so the mode is pipeline.", mode)
			mode = "pipeline"
			m.body["mode"] = mode
		}
	}
	if o := find(m.file.LLMModel, parley.LLM); o != nil {
		m.body["llm_model_id"] = json.Number(strconv.FormatInt(o.ID, 10))
	} else if list := cat.ModelsOf(parley.LLM); len(list) > 0 {
		if m.file.LLMModel != "" {
			m.leave("The language model %s: it is not available here, so it thinks with %s.", m.file.LLMModel,
				list[0].Name)
		}
		m.body["llm_model_id"] = json.Number(strconv.FormatInt(list[0].ID, 10))
	}
	voices, voice, language := cat.Voices(mode, m.id("language_id")), m.id("voice_id"), m.id("language_id")
	if len(voices) > 0 && !slices.ContainsFunc(voices, func(v parley.Voice) bool { return v.ID == voice }) {
		m.leave("The voice: it is not available here, so it speaks as %s.", voices[0].Name)
		m.body["voice_id"] = json.Number(strconv.FormatInt(voices[0].ID, 10))
		delete(m.body, "synthesizer_provider_id")
	}
	if id := m.id("transcriber_provider_id"); id != 0 && !slices.ContainsFunc(cat.Transcribers(language),
		func(p parley.Provider) bool { return p.ID == id }) {
		m.leave("The transcription provider: it is not available here, so the best for the language listens.")
		delete(m.body, "transcriber_provider_id")
	}
}

// resolve finds what the file names among the user's own things.
func (m *imported) resolve() error {
	ctx, user := m.ctx, m.user
	if name := m.file.Knowledgebase; name != "" {
		bases, err := m.DB.Knowledgebases(ctx, user)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(bases, func(k parley.Knowledgebase) bool { return k.Name == name }); i >= 0 {
			m.body["knowledgebase_id"] = json.Number(strconv.FormatInt(bases[i].ID, 10))
		} else {
			m.leave("The knowledgebase “%s”: you have none of this name.", name)
		}
	}
	tools, err := m.DB.Tools(ctx, user)
	if err != nil {
		return err
	}
	ids := []any{}
	for _, name := range m.file.MidCallTools {
		if i := slices.IndexFunc(tools, func(t parley.Tool) bool { return t.Name == name }); i >= 0 {
			ids = append(ids, json.Number(strconv.FormatInt(tools[i].ID, 10)))
		} else {
			m.leave("The tool %s: you have none of this name.", name)
		}
	}
	m.body["tool_ids"] = ids
	all, err := m.DB.Assistants(ctx, user, "")
	toolsOf(m.body, func(t map[string]any) bool {
		name, _ := t[transferredTo].(string)
		delete(t, transferredTo)
		if t["type"] != "assistant_transfer" {
			return t["type"] != parley.MidCall
		}
		i := slices.IndexFunc(all, func(a parley.Assistant) bool { return a.Name == name })
		if i < 0 {
			m.leave("Handing over to “%s”: you have no assistant of this name.", name)
			return false
		}
		t["assistant_id"] = json.Number(strconv.FormatInt(all[i].ID, 10))
		return true
	})
	return err
}

// Label is a field's name in words.
func Label(name string) string {
	words := strings.ReplaceAll(strings.TrimSuffix(name, "_id"), "_", " ")
	if words == "" {
		return "A field without a name"
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// Duplicate makes an assistant like another one of the user's: with another name, inactive, and without a phone number.
func (d *Studio) Duplicate(ctx context.Context, userID, id int64) (*parley.Assistant, error) {
	a, err := d.DB.Assistant(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	body := bodyOf(a.Settings())
	body["name"], body["status"], body["phone_number_id"] = copyName(a.Name), "inactive", nil
	return d.create(ctx, userID, a, body)
}

// copyName is the name of a copy, as long as a name may be.
func copyName(name string) string {
	const suffix, most = " (copy)", 255
	if r := []rune(name); len(r)+len(suffix) > most {
		name = string(r[:most-len(suffix)])
	}
	return name + suffix
}
