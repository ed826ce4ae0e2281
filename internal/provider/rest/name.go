package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"parley/internal/ai"
)

// plain is a name that every vendor takes: OpenAI and Anthropic letters, digits, underscores and hyphens, 64 of them;
// Gemini a letter or an underscore at the beginning.
var plain = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// Names translates tool names to what vendors accept, and back.
type Names map[string]string // by wire name

// NewNames are those of tools.
func NewNames(tools []ai.Tool) Names {
	n := make(Names, len(tools))
	for _, t := range tools {
		n[n.Wire(t.Name)] = t.Name
	}
	return n
}

// Wire is the name itself, or a recognizable part of it with a hash if it is too long or has odd characters.
func (Names) Wire(name string) string {
	if plain.MatchString(name) {
		return name
	}
	part := strings.Map(func(r rune) rune {
		if r < 0x80 && plain.MatchString("_"+string(r)) {
			return r
		}
		return '_'
	}, name)
	if part == "" || !plain.MatchString(part[:1]) {
		part = "_" + part
	}
	sum := sha256.Sum256([]byte(name))
	return part[:min(len(part), 47)] + "_" + hex.EncodeToString(sum[:8])
}

// Own is the tool's own name.
func (n Names) Own(wire string) string {
	if name, ok := n[wire]; ok {
		return name
	}
	return wire
}
