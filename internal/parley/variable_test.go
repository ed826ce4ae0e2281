package parley_test

import (
	"slices"
	"testing"

	"parley/internal/parley"
)

func TestVariableNames(t *testing.T) {
	got := parley.VariableNames("Hello {{ name }} of {{company}}, {{name}}.",
		"{{}} {{ two words }} {{a.b-c_1}} {{{x}}}", "", "{{company}}")
	if want := []string{"name", "company", "a.b-c_1", "x"}; !slices.Equal(got, want) {
		t.Errorf("the names are %q, not %q", got, want)
	}
}

// Every text of an assistant that may contain variables is searched for them.
func TestAssistantTexts(t *testing.T) {
	a := &parley.Assistant{InitialMessage: "{{a}}", SystemPrompt: "{{b}}", ReengagementPrompt: "{{c}}",
		VoiceMailMessage: "{{d}}",
		FillerConfig:     parley.FillerConfig{Neutral: []string{"{{e}}"}, Question: []string{"{{f}}"}},
		Tools:            []parley.AssistantTool{{WarmTransferMessage: "{{g}}"}, {MessageBeforeTransfer: "{{h}}"}},
		MidCallTools: []parley.Tool{{Endpoint: "https://example.com/{{i}}/{order}",
			Headers: []parley.ToolHeader{{Name: "X-Shop", Value: "{{j}}"}}}}}
	if got := parley.VariableNames(a.Texts()...); !slices.Equal(got, []string{"a", "b", "c", "d", "g", "h", "i", "j"}) {
		t.Errorf("without fillers: %q", got)
	}
	a.Fillers = true
	if got := parley.VariableNames(a.Texts()...); len(got) != 10 {
		t.Errorf("with fillers: %q", got)
	}
}
