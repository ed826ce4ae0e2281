package parley

import (
	"regexp"
	"slices"
)

// BuiltinVariables always have a value.
var BuiltinVariables = []string{"customer_phone", "assistant_phone", "assistant_id", "assistant_name",
	"current_date", "current_time", "current_weekday"}

var variablePattern = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.-]{1,255})\s*\}\}`)

// VariableNames are the names in the {{name}} of some texts, in order, each once.
func VariableNames(texts ...string) (names []string) {
	for _, text := range texts {
		for _, m := range variablePattern.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// Texts are all that an assistant says or is told in which {{name}} stands for a variable.
func (a *Assistant) Texts() []string {
	texts := []string{a.InitialMessage, a.SystemPrompt, a.ReengagementPrompt, a.VoiceMailMessage}
	if a.Fillers {
		texts = slices.Concat(texts, a.FillerConfig.Neutral, a.FillerConfig.Negative, a.FillerConfig.Positive,
			a.FillerConfig.Question)
	}
	for _, t := range a.Tools {
		texts = append(texts, t.WarmTransferMessage, t.MessageBeforeTransfer, t.HoldMessage, t.SummaryInstructions,
			t.BriefingInitialMessage, t.ConnectedMessage)
	}
	for _, t := range a.MidCallTools {
		texts = append(texts, t.Endpoint, t.Filler, t.SecondFill)
		for _, h := range t.Headers {
			texts = append(texts, h.Value)
		}
	}
	return texts
}
