package manifest

import (
	"maps"
	"slices"
	"strings"
)

// fromRetell reads what Retell's API answers and its dashboard exports: an agent with its response engine beside it (in
// retellLlmData, llm, or {"agents": […], "llms": […]}), or such a response engine alone.
func fromRetell(f *foreign) {
	all := f.parts(f.tree, "")
	llms := map[string]part{}
	if top, ok := f.tree.(map[string]any); ok && (top["agents"] != nil || top["agent"] != nil) {
		all = append(f.parts(top["agents"], "agents"), f.parts(top["agent"], "agent")...)
		for _, p := range append(f.parts(top["llms"], "llms"), f.parts(top["llm"], "llm")...) {
			llms[p.text("llm_id")] = p
			llms[""] = p
		}
	}
	for _, p := range all {
		p.retellAgent(llms)
	}
}

func (p part) retellAgent(llms map[string]part) {
	f := p.f
	engine := p.in("response_engine")
	llm := p.in("retellLlmData")
	if llm.tree == nil {
		llm = p.in("llm")
	}
	if llm.tree == nil && p.tree["general_prompt"] != nil {
		llm = p // the response engine alone
	}
	id := engine.text("llm_id")
	if other, ok := llms[id]; ok && llm.tree == nil {
		llm = other
	} else if other, ok := llms[""]; ok && llm.tree == nil && len(llms) == 2 {
		llm = other
	}
	d := f.draft(p, "agent_name")
	p.drop(ofTheOther, "agent_id", "llm_id", "version", "is_published", "last_modification_timestamp", "channel", "folder_id", "base_version")
	engine.drop(ofTheOther, "version")
	switch kind := engine.text("type"); {
	case llm.tree != nil:
		d.retellLLM(llm)
	case kind != "":
		f.note(LeftOut, engine.at, "the response engine (%s) is not in the export: put the answer of GET /get-retell-llm beside the agent, "+
			"as {\"agent\": …, \"llm\": …}", kind)
	}
	vendor, voice, _ := strings.Cut(p.text("voice_id"), "-")
	if voice != "" {
		d.voice(vendor, voice, p, "voice_id")
	}
	d.takeNumber("speech_speed", p, "voice_speed", 1, 0.7, 1.2)
	d.language(p, "language")
	if words := p.texts("boosted_keywords"); len(words) > 0 {
		d.set("keywords", words, p, "boosted_keywords")
		f.note(Taken, p.path("boosted_keywords"), "keywords")
	}
	d.take("backchannels", p, "enable_backchannel")
	d.seconds("max_duration", p, "max_call_duration_ms", 0.001, 20, 3600)
	d.seconds("max_silence_duration", p, "reminder_trigger_ms", 0.001, 1, 360)
	d.seconds("ringing_time", p, "ring_duration_ms", 0.001, 1, 120)
	switch sound := p.text("ambient_sound"); sound {
	case "":
	case "coffee-shop", "call-center":
		d.set("ambient_sound", map[string]string{"coffee-shop": "cafe", "call-center": "office"}[sound], p, "ambient_sound")
		f.note(Changed, p.path("ambient_sound"), "ambient_sound is %s", d.body["ambient_sound"])
	default:
		f.note(LeftOut, p.path("ambient_sound"), "ambient_sound has sounds of its own")
	}
	d.takeNumber("ambient_sound_volume", p, "ambient_sound_volume", 1, 0, 1)
	if action := p.in("voicemail_option").in("action"); action.text("type") == "static_text" {
		d.take("voice_mail_message", action, "text")
	}
	d.take("voice_mail_message", p, "voicemail_message")
	for _, item := range p.list("post_call_analysis_data") {
		what := item.text("description")
		if choices := item.texts("choices"); len(choices) > 0 {
			var words []string
			for _, c := range choices {
				words = append(words, c.(string))
			}
			what += " One of: " + strings.Join(words, ", ") + "."
		}
		d.extract(item.text("name"), item.text("type"), what, item)
	}
	p.drop("Parley's webhooks have a shape of their own: set webhook_url once your server takes it", "webhook_url")
	p.drop("interrupt_sensitivity has a scale of its own (0 to 5, 0.5 is usual)", "interruption_sensitivity", "responsiveness")
	d.done()
}

// retellLLM takes the response engine.
func (d *draft) retellLLM(p part) {
	f := d.f
	p.drop(ofTheOther, "llm_id", "version", "is_published", "last_modification_timestamp")
	d.take("llm_model", p, "model")
	p.drop("a realtime model needs mode: multimodal and multimodal_model", "s2s_model")
	d.takeNumber("llm_temperature", p, "model_temperature", 1, 0, 1)
	prompt := p.text("general_prompt")
	if prompt != "" {
		f.note(Taken, p.path("general_prompt"), "system_prompt")
	}
	for _, t := range p.list("general_tools") {
		d.retellTool(t)
	}
	if start := p.text("starting_state"); start != "" {
		f.note(Changed, p.path("starting_state"), "there are no states: they stand in the system_prompt one below the other")
	}
	for _, s := range p.list("states") {
		prompt += "\n\n# " + s.text("name") + "\n\n" + s.text("state_prompt")
		for _, e := range s.list("edges") {
			prompt += "\n\nGo on with " + e.text("destination_state_name") + ": " + e.text("description")
			f.read[e.at] = true
		}
		f.note(Changed, s.at, "its prompt is a section of the system_prompt, and its tools are there at all times")
		for _, t := range s.list("tools") {
			d.retellTool(t)
		}
	}
	if prompt = strings.TrimSpace(prompt); prompt != "" {
		d.set("system_prompt", prompt, p, "general_prompt")
		d.prompt(prompt, p, "general_prompt")
	}
	d.take("initial_message", p, "begin_message")
	if p.text("start_speaker") == "user" {
		d.set("wait_for_customer", true, p, "start_speaker")
		f.note(Taken, p.path("start_speaker"), "wait_for_customer")
	}
	vars := p.in("default_dynamic_variables")
	out := map[string]any{}
	for name := range vars.tree {
		out[name] = escaped(vars.text(name))
	}
	if len(out) > 0 {
		d.set("variables", out, p, "default_dynamic_variables")
		f.note(Taken, vars.at, "variables")
	}
	if ids := p.texts("knowledge_base_ids"); len(ids) > 0 {
		f.note(LeftOut, p.path("knowledge_base_ids"),
			"the export has no documents: write a file below knowledgebases, and name it as the knowledgebase")
	}
	p.drop("Parley's webhooks have a shape of their own: set inbound_webhook_url once your server takes it",
		"inbound_dynamic_variables_webhook_url")
}

func (d *draft) retellTool(p part) {
	f := d.f
	name, what := p.text("name"), p.text("description")
	switch kind := p.text("type"); kind {
	case "end_call":
		d.builtIn(p, map[string]any{"type": "end_call"})
	case "press_digit":
		d.builtIn(p, map[string]any{"type": "dtmf_input"})
	case "transfer_call":
		to := p.in("transfer_destination")
		number := to.text("number")
		to.value("type")
		if number == "" {
			number = p.text("number")
		}
		if number == "" {
			f.read[p.at] = true
			f.note(LeftOut, p.at, "%s has no number that is always the same: make a call_transfer", name)
			return
		}
		if !strings.HasPrefix(number, "+") && !strings.HasPrefix(number, "sip:") && !strings.Contains(number, "{") {
			f.note(Changed, p.at, "the number %s is written as +%s", number, number)
			number = "+" + number
		}
		tool := map[string]any{"type": "call_transfer", "phone_number": number, "description": what}
		if option := p.in("transfer_option"); option.text("type") == "warm_transfer" {
			tool["warm_transfer"] = true
		}
		d.builtIn(p, tool)
	case "custom":
		method := strings.ToUpper(p.text("method"))
		if method == "" {
			method = "POST"
		}
		body := map[string]any{"endpoint": p.text("url"), "method": method, "description": what}
		p.timeout(body, "timeout_ms", 0.001)
		query := p.in("query_params")
		for _, key := range slices.Sorted(maps.Keys(query.tree)) {
			f.note(LeftOut, query.path(key), "write it into the endpoint, as ?%s=…", key)
			f.read[query.path(key)] = true
		}
		d.use(f.tool(p, name, body, f.schema(p.in("parameters")), p.in("headers")))
		if p.value("args_at_root") != true && method != "GET" {
			f.note(Changed, p.path("url"),
				"Retell sends the call and the arguments in args, Parley the arguments as a JSON object: adjust your server")
		}
	default:
		f.read[p.at] = true
		f.note(LeftOut, p.at, "Parley has no tool of the type %s (%s)", kind, name)
	}
}
