package manifest

import (
	"maps"
	"slices"
	"strings"
)

// fromElevenLabs reads what ElevenLabs' API answers: an agent, a list of them, or {"agents": […], "tools": […]}.
func fromElevenLabs(f *foreign) {
	all := f.parts(f.tree, "")
	if top, ok := f.tree.(map[string]any); ok && (top["agents"] != nil || top["tools"] != nil) {
		for _, p := range f.parts(top["tools"], "tools") {
			config := p.in("tool_config")
			if config.tree == nil {
				config = p
			}
			f.tools[p.text("id")] = config.elevenTool(nil)
			f.read[p.path("access_info")] = true
			f.read[p.path("usage_stats")] = true
		}
		all = f.parts(top["agents"], "agents")
	}
	for _, p := range all {
		p.elevenAgent()
	}
}

func (p part) elevenAgent() {
	f := p.f
	d := f.draft(p, "name")
	p.drop(ofTheOther, "agent_id", "metadata", "phone_numbers", "whatsapp_accounts", "access_info", "version_id", "branch_id",
		"main_branch_id")
	config := p.in("conversation_config")
	agent := config.in("agent")
	d.take("initial_message", agent, "first_message")
	d.prompt(agent.text("first_message"), agent, "first_message")
	if _, said := agent.tree["first_message"]; said && agent.text("first_message") == "" {
		d.set("wait_for_customer", true, agent, "first_message")
		f.note(Taken, agent.path("first_message"), "it is empty: wait_for_customer")
	}
	d.language(agent, "language")
	vars := agent.in("dynamic_variables").in("dynamic_variable_placeholders")
	out := map[string]any{}
	for name := range vars.tree {
		out[name] = escaped(vars.text(name))
	}
	if len(out) > 0 {
		d.set("variables", out, vars, "")
		f.note(Taken, vars.at, "variables")
	}
	d.elevenPrompt(agent.in("prompt"))
	tts := config.in("tts")
	if tts.tree != nil {
		d.voice("elevenlabs", tts.text("voice_id"), tts, "voice_id")
	}
	d.takeNumber("voice_stability", tts, "stability", 1, 0, 1)
	d.takeNumber("voice_similarity", tts, "similarity_boost", 1, 0, 1)
	d.takeNumber("speech_speed", tts, "speed", 1, 0.7, 1.2)
	if words := config.in("asr").texts("keywords"); len(words) > 0 {
		d.set("keywords", words, config.in("asr"), "keywords")
		f.note(Taken, config.in("asr").path("keywords"), "keywords")
	}
	d.seconds("max_duration", config.in("conversation"), "max_duration_seconds", 1, 20, 3600)
	d.seconds("max_silence_duration", config.in("turn"), "turn_timeout", 1, 1, 360)
	platform := p.in("platform_settings")
	data := platform.in("data_collection")
	for _, name := range slices.Sorted(maps.Keys(data.tree)) {
		one := data.in(name)
		d.extract(name, one.text("type"), one.text("description"), one)
	}
	d.done()
}

func (d *draft) elevenPrompt(p part) {
	f := d.f
	d.take("system_prompt", p, "prompt")
	d.prompt(p.text("prompt"), p, "prompt")
	d.take("llm_model", p, "llm")
	d.takeNumber("llm_temperature", p, "temperature", 1, 0, 1)
	inline := map[string]bool{}
	for _, t := range p.list("tools") {
		inline[t.text("id")] = true
		if name := t.elevenTool(d); name != "" {
			d.use(name)
		}
	}
	built := p.in("built_in_tools")
	for _, name := range slices.Sorted(maps.Keys(built.tree)) {
		if one := built.in(name); one.tree != nil {
			one.elevenSystem(d, name)
		}
	}
	for _, id := range p.texts("tool_ids") {
		text, _ := id.(string)
		switch name, ok := f.tools[text]; {
		case ok && name != "":
			d.use(name)
			f.note(Taken, p.path("tool_ids"), "the tool %s", name)
		case !ok && len(p.list("tools")) == 0:
			f.note(LeftOut, p.path("tool_ids"),
				"the tool %s is not in the export: put the tools beside the agents, as {\"agents\": […], \"tools\": […]}", text)
		}
	}
	for _, k := range p.list("knowledge_base") {
		f.read[k.at] = true
		f.note(LeftOut, k.at, "the export has no documents: write a file below knowledgebases, and name it as the knowledgebase")
	}
}

// elevenSystem takes a tool that is built in there.
func (p part) elevenSystem(d *draft, name string) {
	f := p.f
	params := p.in("params")
	switch name {
	case "end_call":
		d.builtIn(p, map[string]any{"type": "end_call"})
	case "play_keypad_touch_tone":
		d.builtIn(p, map[string]any{"type": "dtmf_input"})
	case "transfer_to_number":
		for _, t := range params.list("transfers") {
			number := t.in("transfer_destination").text("phone_number")
			if number == "" {
				number = t.text("phone_number")
			}
			d.builtIn(t, map[string]any{"type": "call_transfer", "phone_number": number, "description": t.text("condition")})
			f.read[t.at] = true
		}
	default:
		f.note(LeftOut, p.at, "Parley has no tool of the type %s", name)
	}
	f.read[p.at] = true
}

// elevenTool makes a tool, and returns its name; "" where there is none of the account's for it.
func (p part) elevenTool(d *draft) string {
	f := p.f
	name := p.text("name")
	switch kind := p.text("type"); {
	case kind == "system" && d != nil:
		p.elevenSystem(d, name)
		return ""
	case kind != "webhook":
		f.read[p.at] = true
		f.note(LeftOut, p.at, "Parley has no tool of the type %s (%s)", kind, name)
		return ""
	}
	api := p.in("api_schema")
	method := strings.ToUpper(api.text("method"))
	if method == "" {
		method = "GET"
	}
	body := map[string]any{"endpoint": api.text("url"), "method": method, "description": p.text("description")}
	p.timeout(body, "response_timeout_secs", 1)
	whole := part{f, api.at, map[string]any{"properties": map[string]any{}}}
	props, required := whole.tree["properties"].(map[string]any), []any{}
	for _, key := range []string{"path_params_schema", "query_params_schema", "request_body_schema"} {
		schema := api.in(key)
		from := schema.in("properties").tree
		if key == "path_params_schema" {
			from = schema.tree
			for name := range from {
				required = append(required, name)
			}
		}
		required = append(required, schema.texts("required")...)
		maps.Copy(props, from)
		f.read[schema.at] = true
		if key == "query_params_schema" && len(from) > 0 && method != "GET" && method != "DELETE" {
			f.note(Changed, schema.at, "with %s the arguments go into the body: write {name} into the endpoint for those of the query", method)
		}
	}
	whole.tree["required"] = required
	headers := part{f, api.path("request_headers"), map[string]any{}}
	given := api.in("request_headers")
	for name, v := range given.tree {
		switch v := v.(type) {
		case string:
			headers.tree[name] = v
		default: // a secret of the workspace, or a variable
			f.read[given.path(name)] = true
			one := given.in(name)
			if variable := one.text("variable_name"); variable != "" {
				headers.tree[name] = "{{" + variable + "}}"
			} else {
				headers.tree[name] = "a secret of the workspace"
			}
		}
	}
	return f.tool(p, name, body, f.schema(whole), headers)
}
