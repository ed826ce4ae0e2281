package voice_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/voice/voicetest"
)

// pipelineOnly are dialogues about things that the other modes don't have.
var pipelineOnly = []string{
	"speculation.dialogue", "speculation-given-up.dialogue", "speculation-tool.dialogue",
	"speculation-breaks-off.dialogue", // nothing is started early
	// the recognizer and the model are one; testdata/realtime covers its failures
	"ear-drops.dialogue", "ear-drops-now-and-then.dialogue", "ear-keeps-dropping.dialogue", "ear-loses.dialogue", "ear-loses-all.dialogue",
	"ear-loses-first.dialogue", "ear-refuses.dialogue", "ear-refuses-again.dialogue",
	"noise-slow-ear.dialogue",                                   // a sound is answered without its text after a second
	"collect-ahead.dialogue", "wait-for-customer-asks.dialogue", // the order in which the model is told
	"menu-asks.dialogue",                                                        // a model that speaks for itself can be heard by a menu
	"languages.dialogue", "languages-slow.dialogue", "languages-turns.dialogue", // the model answers in the language that it hears
	"phantom.dialogue",     // a longer sound is answered before its text is known
	"nods.dialogue",        // the text comes too late to tell a pause from an end
	"hum-unclear.dialogue", // a longer sound is answered without a text, and asks for nothing
	"nul.dialogue",         // nothing cleans the model's own copy of what it hears
}

// writtenOnly are those about a synthesizer, or about sentences that a model has only partly said.
var writtenOnly = []string{"pronunciations.dialogue", "model-breaks.dialogue", "voice-fails.dialogue",
	"voice-fails-once.dialogue", "voice-hangs.dialogue", "barge-in.dialogue", "tool-interrupted.dialogue",
	"transfer-interrupted.dialogue"}

// The dialogues are played in the other modes too: the same people are heard, answered and interrupted.
func TestDialoguesInOtherModes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.dialogue")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no dialogues", err)
	}
	for _, mode := range []string{"multimodal", "alike", "dualplex"} {
		for _, f := range files {
			name := filepath.Base(f)
			if strings.HasPrefix(name, "ear-turns") || slices.Contains(pipelineOnly, name) ||
				mode != "dualplex" && slices.Contains(writtenOnly, name) {
				continue
			}
			t.Run(mode+"/"+filepath.Base(f), func(t *testing.T) { voicetest.PlayIn(t, f, mode) })
		}
	}
}

// Dialogues about things that only the other modes have.
func TestRealtimeDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/realtime/*.dialogue")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no dialogues", err)
	}
	for _, mode := range []string{"multimodal", "alike", "dualplex"} {
		for _, f := range files {
			if mode != "multimodal" && filepath.Base(f) == "expiry-in-reply.dialogue" {
				continue // text is there at once, and a greeting by another voice is over sooner
			}
			t.Run(mode+"/"+filepath.Base(f), func(t *testing.T) { voicetest.PlayIn(t, f, mode) })
		}
	}
}

// Dialogues about what a synthesizer makes of the texts of a model that hears, and about a model that speaks itself.
func TestModeDialogues(t *testing.T) {
	for folder, modes := range map[string][]string{"dualplex": {"dualplex"}, "multimodal": {"multimodal"}} {
		files, err := filepath.Glob("testdata/" + folder + "/*.dialogue")
		if err != nil || len(files) == 0 {
			t.Fatal("there are no dialogues", err)
		}
		for _, f := range files {
			for _, mode := range modes {
				t.Run(mode+"/"+filepath.Base(f), func(t *testing.T) { voicetest.PlayIn(t, f, mode) })
			}
		}
	}
}

// A thousand interruptions at random moments in each mode, on fake time; each call's name is its random seed.
func TestInterruptions(t *testing.T) {
	for _, mode := range []string{"pipeline", "multimodal", "dualplex"} {
		for seed := range 50 {
			t.Run(fmt.Sprint(mode, "/", seed), func(t *testing.T) {
				t.Parallel()
				voicetest.Interruptions(t, mode, 20, uint64(seed))
			})
		}
	}
}
