package parley

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestAmendedLaysSettingsOver(t *testing.T) {
	voice := int64(3)
	a := &Assistant{ID: 7, UserID: 2, Name: "Desk", SystemPrompt: "One.\nTwo.", Keywords: []string{"Parley"},
		Variables: map[string]string{"a": "b"}, ToolIDs: []int64{1}, MidCallTools: []Tool{{ID: 1}}, LLMModelID: &voice,
		Tools: []AssistantTool{{Type: "end_call"}, {Type: MidCall, ID: &voice}}, UpdatedAt: 5}
	got, err := a.Amended(Settings{"name": json.RawMessage(`"Front"`), "keywords": json.RawMessage(`["x"]`),
		"variables": json.RawMessage(`{"c":"d"}`), "llm_model_id": json.RawMessage(`null`), "nothing_known": json.RawMessage(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "Front" || got.SystemPrompt != a.SystemPrompt || len(got.Variables) != 1 || got.Variables["c"] != "d" ||
		got.LLMModelID != nil || got.ID != 7 || got.UserID != 2 || got.UpdatedAt != 5 || len(got.MidCallTools) != 1 || len(got.Tools) != 1 {
		t.Errorf("amended to %+v", got)
	}
	if a.Name != "Desk" || a.Keywords[0] != "Parley" || a.Variables["a"] != "b" || len(a.Tools) != 2 {
		t.Errorf("the assistant itself changed: %+v", a)
	}
	if got, _ := a.Amended(Settings{"tool_ids": json.RawMessage(`[2]`)}); got.MidCallTools != nil || got.ToolIDs[0] != 2 {
		t.Errorf("other tools are filled in: %+v", got.MidCallTools)
	}
	same, err := a.Amended(nil)
	if err != nil || len(Changed(a.Settings(), same.Settings())) != 0 {
		t.Errorf("no settings change %v, %v", Changed(a.Settings(), same.Settings()), err)
	}
}

func TestCompareFieldByField(t *testing.T) {
	a := &Assistant{Name: "Desk", SystemPrompt: "One.\nTwo.", Keywords: nil}
	b := &Assistant{Name: "Front", SystemPrompt: "One.\nThree.", Keywords: []string{}, Record: true}
	changes := Compare(a.Settings(), b.Settings())
	if got := Changed(a.Settings(), b.Settings()); !slices.Equal(got, []string{"name", "system_prompt", "record"}) {
		t.Fatalf("changed %v", got)
	}
	if string(changes[0].From) != `"Desk"` || string(changes[0].To) != `"Front"` || changes[0].Lines != nil ||
		!slices.Equal(changes[1].Lines, []DiffLine{{"=", "One."}, {"-", "Two."}, {"+", "Three."}}) {
		t.Errorf("%+v", changes)
	}
	// A setting that one of the two versions does not have is no change.
	if got := Changed(Settings{"name": json.RawMessage(`"x"`)}, Settings{"record": json.RawMessage(`true`)}); len(got) != 0 {
		t.Errorf("changed %v", got)
	}
}

// Every setting that can be changed is in a version.
func TestSettingNames(t *testing.T) {
	if len(SettingNames) < 55 || !slices.Contains(SettingNames, "tool_ids") || !slices.Contains(SettingNames, "phone_number_id") {
		t.Errorf("%d: %v", len(SettingNames), SettingNames)
	}
	for _, name := range []string{"id", "uuid", "user_id", "prompt_version", "updated_at", "language"} {
		if slices.Contains(SettingNames, name) {
			t.Errorf("%s can't be changed", name)
		}
	}
}
