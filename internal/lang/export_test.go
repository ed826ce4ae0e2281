package lang

import "strings"

// Clues is for the program that learns.
func Clues(text, language string, out []uint32) []uint32 {
	tokens := Tokens(text)
	return clues(strings.TrimSpace(text), tokens, language, ruleOf(text, tokens, language), out)
}

// Weigh puts other weights into the place of the model's.
func Weigh(weights []byte) {
	m := modelOf(weights)
	overModel = func() model { return m }
}

// Stop, WordClues and EndClues are for the program that learns, too.
var (
	Stop      = stop
	WordClues = wordClues
)

// EndClues are of a text of n words. The rules may know a language that the network is not told.
func EndClues(text string, n int, language, ours string) []uint32 {
	text = strings.TrimSpace(text)
	return endClues(text, n, language, ruleOf(text, Tokens(text), ours), nil)
}

// Network is what the network alone makes of a text.
func Network(text, language string) float64 {
	tokens := Tokens(text)
	return overModel().net.judge(strings.TrimSpace(text), tokens, language, ruleOf(text, tokens, language))
}

// OverSize is how large the model is.
func OverSize() int { return len(overWeights) }
