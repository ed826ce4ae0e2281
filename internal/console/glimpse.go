package console

import (
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// glimpse is a folded field as the line of its fold shows it.
type glimpse struct {
	name, label, value string
	set                bool // it differs from the default
}

// The choices of fields whose folds show them too.
var (
	ambients = enum("off=Off", "office=Office", "city=City", "forest=Forest", "crowded_room=Crowded room", "cafe=Café",
		"nature=Nature")
	endpoints = enum("vad=By silence", "ai=By meaning")
	corners   = enum("bottom-right=Bottom right", "bottom-left=Bottom left", "top-right=Top right", "top-left=Top left")
)

// glimpse is a field that is a text, a number or a switch, a list or a map.
func (e *editor) glimpse(name, label string, unit ...string) glimpse {
	g := glimpse{name: name, label: label}
	def := e.rule(name).def
	switch v := e.get(name).(type) {
	case []any:
		g.set = len(v) > 0
		g.value = strconv.Itoa(len(v))
	case map[string]any:
		n := 0
		for _, one := range v {
			if list, ok := one.([]any); ok {
				n += len(list)
			} else {
				n++
			}
		}
		g.set, g.value = n > 0, strconv.Itoa(n)
	default:
		g.value = e.text(name)
		g.set = g.value != def && e.decimals(name) != def && !e.rule(name).required
		if def == "true" || def == "false" || e.isSwitch(name) {
			on := def == "true" || def == "1"
			g.set, g.value = e.on(name) != on, map[bool]string{true: "on", false: "off"}[e.on(name)]
		}
	}
	if g.value == "" || g.value == "0" && !g.set && def == "" {
		g.value = "none"
	}
	if len(unit) > 0 && g.value != "none" {
		g.value += " " + unit[0]
	}
	return g
}

// chosenGlimpse is a field that is one of some choices.
func (e *editor) chosenGlimpse(name, label string, options []option) glimpse {
	g := glimpse{name: name, label: label, value: "none"}
	now := e.text(name)
	g.set = now != e.rule(name).def
	for _, o := range options {
		if o.value == now {
			g.value = o.label
		}
	}
	return g
}

// isSwitch says whether a field is 0 or 1.
func (e *editor) isSwitch(name string) bool {
	return name == "fillers" || name == "end_call_on_voicemail"
}

// mustSee says whether something in a fold is wrong, or takes over from something else.
func (e *editor) mustSee(inside []glimpse) bool {
	return slices.ContainsFunc(inside, func(g glimpse) bool {
		return g.set && strings.HasSuffix(g.name, "_ids") || slices.ContainsFunc(e.errors, func(f parley.Field) bool {
			return f.Name == g.name || strings.HasPrefix(f.Name, g.name+".")
		})
	})
}

func (e *editor) modelGlimpses() []glimpse {
	list := []glimpse{e.glimpse("fallback_llm_model_ids", "Fallback models"),
		e.glimpse("fallback_multimodal_model_ids", "Fallback multimodal models")}
	if e.text("mode") == "pipeline" {
		list = append(list, e.chosenGlimpse("multimodal_model_id", "Multimodal model", e.multimodals))
	}
	return list
}

func (e *editor) providerGlimpses() []glimpse {
	return []glimpse{e.chosenGlimpse("synthesizer_provider_id", "Speech provider", e.synthesizers),
		e.glimpse("fallback_voice_ids", "Fallback voices"),
		e.glimpse("fallback_transcriber_provider_ids", "Fallback transcription")}
}

// builtins are the built-in tools that the assistant has, as the model knows them.
func (e *editor) builtins() (names []string) {
	for _, row := range e.rows("tools") {
		if kind := e.text(row + ".type"); !slices.Contains(names, kind) {
			names = append(names, kind)
		}
	}
	return names
}
