package parley

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/uptrace/bun"
)

// MaxVersions is how many versions of an assistant are kept, the newest, and beside them as many wordings of its
// prompt.
const MaxVersions = 200

// AssistantVersion is an assistant as it is live, or was.
type AssistantVersion struct {
	bun.BaseModel `bun:"assistant_versions" json:"-"`

	ID            int64    `bun:",pk,autoincrement" json:"-"`
	AssistantID   int64    `json:"assistant_id"`
	Version       int      `json:"version"`
	PromptVersion int      `json:"prompt_version"`
	Wording       bool     `json:"-"` // the first with its prompt_version
	Whole         bool     `json:"whole" doc:"false: an older version that has only the prompt and the initial message."`
	Author        string   `json:"author" doc:"Who made the change; empty if unknown."`
	Note          string   `json:"note"`
	Changed       []string `bun:"type:json" json:"changed" doc:"The fields that changed with it; empty for the first version."`
	CreatedAt     Time     `json:"created_at"`

	Plain    string   `bun:"fields" json:"-"`           // Settings as they are stored, without the variables,
	Sealed   []byte   `bun:"sealed_variables" json:"-"` // which are encrypted
	Settings Settings `bun:"-" json:"-"`                // filled in by the store where it reads one version
}

// PromptVersion is one past or present wording of an assistant.
type PromptVersion struct {
	AssistantID    int64  `json:"assistant_id"`
	Version        int    `json:"version"`
	SystemPrompt   string `json:"system_prompt"`
	InitialMessage string `json:"initial_message"`
	CreatedAt      Time   `json:"created_at"`
}

// Prompt is the wording that a version began.
func (v *AssistantVersion) Prompt() PromptVersion {
	var p PromptVersion
	json.Unmarshal([]byte(v.Plain), &p) // our own writing
	p.AssistantID, p.Version, p.CreatedAt = v.AssistantID, v.PromptVersion, v.CreatedAt
	return p
}

// Settings are fields of an assistant that can be changed, by their names, as JSON.
type Settings map[string]json.RawMessage

// SettingNames are the fields of an assistant that can be changed, in their order, without its folder and labels.
var SettingNames = settingNames()

func settingNames() (names []string) {
	for _, sf := range reflect.VisibleFields(reflect.TypeFor[Assistant]()) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name != "" && name != "-" && name != "folder_id" && name != "label_ids" && sf.Tag.Get("readOnly") != "true" {
			names = append(names, name)
		}
	}
	return names
}

// Settings are all fields of an assistant that can be changed.
func (a *Assistant) Settings() Settings {
	own := *a
	own.Tools = slices.DeleteFunc(slices.Clone(a.Tools), func(t AssistantTool) bool { return t.Type == MidCall })
	if own.PostCallShown {
		own.PostCallJSONSchema = nil
	}
	var all Settings
	raw, err := json.Marshal(&own)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		panic(fmt.Sprintf("parley: an assistant can't be written as JSON: %v", err)) // our own type
	}
	s := Settings{}
	for _, name := range SettingNames {
		s[name] = all[name]
	}
	return s
}

// Amended is an assistant with settings laid over its own. Its mid-call tools and
// endpoints are not filled in where they differ.
func (a *Assistant) Amended(s Settings) (*Assistant, error) {
	all := a.Settings()
	maps.Copy(all, s)
	out := &Assistant{ID: a.ID, UUID: a.UUID, UserID: a.UserID, InstanceID: a.InstanceID, Language: a.Language,
		PromptVersion: a.PromptVersion, FolderID: a.FolderID, LabelIDs: a.LabelIDs, DeletedAt: a.DeletedAt,
		CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt}
	raw, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return nil, fmt.Errorf("lay changes over assistant %d: %w", a.ID, err)
	}
	out.Endpoints = a.Endpoints
	out.Settle(a)
	if slices.Equal(out.ToolIDs, a.ToolIDs) {
		out.MidCallTools = a.MidCallTools
	}
	return out, nil
}

// FieldChange is a field that differs between two states of an assistant.
type FieldChange struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from"`
	To    json.RawMessage `json:"to"`
	Lines []DiffLine      `json:"lines,omitempty" doc:"For texts of several lines, such as system_prompt: what changed, line by line."`
}

// longTexts are the fields that are compared line by line.
var longTexts = []string{"system_prompt", "initial_message", "reengagement_prompt", "voice_mail_message"}

// Compare lists the fields that differ, in their order. What one of the two does not have is not compared.
func Compare(from, to Settings) []FieldChange {
	changes := []FieldChange{}
	for _, name := range SettingNames {
		was, known := from[name]
		is, also := to[name]
		if !known || !also || same(was, is) {
			continue
		}
		c := FieldChange{Field: name, From: was, To: is}
		if slices.Contains(longTexts, name) {
			c.Lines = Diff(text(was), text(is))
		}
		changes = append(changes, c)
	}
	return changes
}

// Changed are the names of the fields that differ.
func Changed(from, to Settings) []string {
	names := []string{}
	for _, c := range Compare(from, to) {
		names = append(names, c.Field)
	}
	return names
}

// same says whether two values of a field are alike; an empty list, an empty object and none are.
func same(a, b json.RawMessage) bool {
	empty := func(v json.RawMessage) bool {
		s := string(bytes.TrimSpace(v))
		return s == "" || s == "null" || s == "[]" || s == "{}"
	}
	return empty(a) && empty(b) || bytes.Equal(a, b)
}

func text(v json.RawMessage) (s string) {
	json.Unmarshal(v, &s) // "" where it is none
	return s
}
