package manifest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"parley/internal/manifest"
)

// leaves are the paths of an export's values.
func leaves(v any, at string, all map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			leaves(e, strings.TrimPrefix(at+"."+k, "."), all)
		}
	case []any:
		for i, e := range v {
			leaves(e, strings.TrimPrefix(fmt.Sprint(at, ".", i), "."), all)
		}
	case nil:
	default:
		if v != "" {
			all[at] = true
		}
	}
}

// converted are the files of an export and what was said of it.
func converted(t *testing.T, vendor string) (fstest.MapFS, []manifest.Note, map[string]bool) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + vendor + ".json")
	if err != nil {
		t.Fatal(err)
	}
	account, notes, err := manifest.Convert(vendor, raw)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	leaves(tree, "", all)
	files := fstest.MapFS{}
	for name, text := range account.Files(nil) {
		files[name] = &fstest.MapFile{Data: text}
	}
	return files, notes, all
}

// quiet are values that say what another one beside them is: nothing is to be told of them.
var quiet = []string{"type", "provider", "method", "required", "role", "content", "enum", "llm_id", "description", "name",
	"choices", "async",
	"id", "source", "target", "position", "measured", "selected", "is_start", "is_end", "schema_version", "messageType", "destination_source",
	"greeting_type"}

// Files of other products' exports can be pushed, hold no secrets, and every value of an export is told of.
func TestConvert(t *testing.T) {
	for vendor, want := range map[string][]string{
		"vapi": {"assistants/harbour-dental.yaml: voice: elevenlabs/21m00Tcm4TlvDq8ikWAM", "assistants/harbour-dental.yaml: llm_temperature: 1\n",
			"assistants/harbour-dental.yaml: mid_call_tools: [book_visit, opening_hours]", "warm_transfer: true", "transcriber_provider: deepgram",
			"keywords: [Harbour]",
			"tools/book_visit.yaml: timeout: 30", "value: \"${TOOL_BOOK_VISIT_X_KEY}\"", "value: \"${TOOL_OPENING_HOURS_AUTHORIZATION}\"",
			"name: visitkindofthepa", "type: bool",
			"changed   assistants.0.model.temperature: llm_temperature is 1, not 1.4", "left out  assistants.0.model.maxTokens",
			"left out  assistants.0.model.toolIds: the tool t-9",
			"left out  assistants.0.serverUrl", "left out  assistants.0.model.tools.1.destinations.1",
			"changed   assistants.0.model.messages: {{\"now\""},
		"retell": {"assistants/recepcion.yaml: voice: flite/slt", "language: es", "speech_speed: 1.2", "backchannels: true",
			"system_prompt: |-\n  Sé amable.\n\n  # ask",
			"phone_number: \"+16175551212\"", "tools/find_order.yaml: timeout: 8", "value: \"${TOOL_FIND_ORDER_AUTHORIZATION}\"",
			"variables:\n  city: Madrid",
			"left out  retellLlmData.states.1.tools.0: Parley has no tool of the type book_appointment_cal",
			"left out  retellLlmData.knowledge_base_ids", "name: mood"},
		"elevenlabs": {"assistants/shop.yaml: wait_for_customer: true", "language: de", "llm_model: gemini-2.5-flash",
			"phone_number: \"+4930123456\"",
			"tools/get_price.yaml: endpoint: \"https://api.example.com/p/{sku}\"", "value: \"${TOOL_GET_PRICE_X_KEY}\"",
			"value: \"{{city}}\"", "timeout: 20",
			"left out  conversation_config.agent.prompt.knowledge_base.0", "left out  platform_settings.widget.variant", "max_silence_duration: 7"},
		"bland": {"assistants/18005551234.yaml: initial_message: Good evening.", "voice: flite/slt", "max_duration: 1800",
			"phone_number: \"+18005550000\"",
			"tools/find_poem.yaml: timeout: 5\n", "value: \"${TOOL_FIND_POEM_AUTHORIZATION}\"", "name: liked_it",
			"left out  inbound_numbers.0.dynamic_data.0.url",
			"left out  inbound_numbers.0.model: Bland's models are its own", "changed   inbound_numbers.0: llm_model is local"},
		"dograh": {"assistants/bike-shop.yaml: system_prompt: |-\n  You work for {{shop}}. It is {{current_time}}.\n\n  # Start\n" +
			"\n  Ask what they need. They call from {{customer_phone}}.\n\n" +
			"  Go on with Repair when: Something is broken\n  Say then: Let me see.\n\n  # Repair\n\n  Find out what is broken.\n" +
			"\n  Go on with Goodbye when: done\n\n" +
			"  # Goodbye\n\n  Thank them.\n\n  Then end the call.\n", "initial_message: \"Hi {{first_name}}, this is Two Wheels.\"",
			"variables:\n  first_name: there\n  shop: Two Wheels\n",
			"voice: elevenlabs/21m00Tcm4TlvDq8ikWAM", "llm_model: gpt-4.1", "transcriber_provider: deepgram", "speech_speed: 1.2",
			"keywords: [Brooks, Shimano]", "ambient_sound_volume: 0.3",
			"mid_call_tools: [get_price]",
			"tools:\n  - type: call_transfer\n    phone_number: \"+493012345678\"\n    description: For complaints.\n  - type: end_call\n",
			"name: bike_model", "type: bool", "conversation_inactivity_timeout: 5\n", "min_interrupt_words: 3", "max_duration: 900",
			"tools/get_price.yaml: endpoint: \"https://api.example.com/{{shop}}/price\"",
			"value: \"${TOOL_GET_PRICE_X_KEY}\"", "timeout: 5\n", "changed   agents.0.workflow_definition.nodes.3.data.allow_interrupt: " +
				"allow_interruptions is true in all of the call, as it is in 1 of 2",
			"left out  agents.0.workflow_definition.nodes.2.data.tool_uuids: the tool t-gone is not in the export",
			"left out  agents.0.workflow_definition.nodes.4: Parley's webhooks",
			"left out  agents.0.workflow_definition.edges.2: it leads", "left out  tools.3: Desk has no number",
			"left out  tools.0.definition.config.parameters.1: parameters of tools are",
			"left out  tools.4: Parley has no tool of the type calculator",
			"left out  agents.0.template_context_variables: Dograh fills them in in test calls alone"},
	} {
		t.Run(vendor, func(t *testing.T) {
			files, notes, all := converted(t, vendor)
			var told strings.Builder
			for _, n := range notes {
				fmt.Fprintln(&told, n)
			}
			body := text(files)
			if strings.Contains(body, "s3cr3t") || strings.Contains(told.String(), "s3cr3t") {
				t.Errorf("a secret is in it:\n%s", body)
			}
			for _, w := range want {
				file, rest, ok := strings.Cut(w, ".yaml: ")
				in := body + told.String()
				if ok {
					f := files[file+".yaml"]
					if f == nil {
						t.Errorf("there is no %s.yaml", file)
						continue
					}
					in, w = string(f.Data), rest
				}
				if !strings.Contains(in, w) {
					t.Errorf("%q is not in:\n%s", w, in)
				}
			}
			for path := range all {
				last := path[strings.LastIndexByte(path, '.')+1:]
				is := false
				for _, q := range quiet {
					is = is || last == q || strings.Contains(path, "."+q+".")
				}
				for _, n := range notes {
					is = is || n.From == path || n.From != "" && strings.HasPrefix(path, n.From+".")
				}
				if !is {
					t.Errorf("nothing is said of %s:\n%s", path, &told)
				}
			}
			s := open(t, "gpt-4o", "gpt-4.1", "gemini-2.5-flash").account(t)
			env := map[string]string{"TOOL_BOOK_VISIT_X_KEY": "1", "TOOL_OPENING_HOURS_AUTHORIZATION": "2", "TOOL_FIND_ORDER_AUTHORIZATION": "3",
				"TOOL_GET_PRICE_X_KEY": "4", "TOOL_FIND_POEM_AUTHORIZATION": "5"}
			for name, f := range files { // a voice that this server has, of the language
				for from, to := range map[string]string{"elevenlabs/21m00Tcm4TlvDq8ikWAM": "openai/alloy", "flite/slt": "openai/alloy"} {
					f.Data = []byte(strings.ReplaceAll(string(f.Data), from, to))
				}
				files[name] = f
			}
			if err := push(t, s, files, false, env); err != nil {
				t.Errorf("push: %v\n%s", err, text(files))
			} else if plan, err := planned(t, s, files, true, nil); err != nil || !plan.Empty() {
				t.Errorf("it differs afterwards: %v", err)
			}
		})
	}
	for _, text := range []string{"", "[]", "{}", "<html>", `[1, "x", null]`, `{"agents": 7}`} {
		for _, vendor := range manifest.Vendors {
			if account, _, err := manifest.Convert(vendor, []byte(text)); err == nil && len(account.Things) == 0 {
				t.Errorf("%s: %q is nothing, and no error", vendor, text)
			}
		}
	}
}
