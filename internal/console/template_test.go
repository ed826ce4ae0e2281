package console

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The templates exist in every language that the widget speaks, with the same variables, within the limits of their fields.
func TestTemplateLanguages(t *testing.T) {
	widget, err := fs.Glob(templateFiles, "templates/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, name := range widget {
		have = append(have, strings.TrimSuffix(path.Base(name), ".yaml"))
	}
	if want := strings.Fields("ar de es fr he hi it ja nl pl pt ru tr uk zh"); !slices.Equal(have, want) {
		t.Fatalf("languages %v, want %v", have, want)
	}
	used := regexp.MustCompile(`\{\{(\w+)\}\}`)
	names := func(body map[string]any) []string {
		raw, err := json.Marshal([]any{body["initial_message"], body["system_prompt"], body["voice_mail_message"]})
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]bool{}
		for _, m := range used.FindAllSubmatch(raw, -1) {
			set[string(m[1])] = true
		}
		return slices.Sorted(maps.Keys(set))
	}
	for _, language := range have {
		for i := range templates {
			english := treeOf(templates[i].body)
			body, err := templates[i].in(language)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := names(body), names(english); !slices.Equal(got, want) {
				t.Errorf("%s, %s: variables %v, want %v", language, templates[i].id, got, want)
			}
			vars, _ := body["variables"].(map[string]any)
			other, _ := english["variables"].(map[string]any)
			if got, want := slices.Sorted(maps.Keys(vars)), slices.Sorted(maps.Keys(other)); !slices.Equal(got, want) {
				t.Errorf("%s, %s: values for %v, want %v", language, templates[i].id, got, want)
			}
			for _, field := range []string{"initial_message", "system_prompt"} {
				if text, _ := body[field].(string); text == english[field] || len(text) < 20 {
					t.Errorf("%s, %s: %s is %q", language, templates[i].id, field, text)
				}
			}
			if has := english["voice_mail_message"] != nil; has && body["voice_mail_message"] == english["voice_mail_message"] {
				t.Errorf("%s, %s: the voicemail message is English", language, templates[i].id)
			}
		}
	}
	if body, err := templates[0].in("sv"); err != nil || body["system_prompt"] != treeOf(templates[0].body)["system_prompt"] {
		t.Errorf("a language without templates: %v %v", body, err)
	}
}
