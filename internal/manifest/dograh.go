package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// fromDograh reads what Dograh's editor downloads ({"name": …, "workflow_definition": …}) and what its API answers: an agent,
// a list of them, or {"agents": […], "tools": […]}.
func fromDograh(f *foreign) {
	all := f.parts(f.tree, "")
	if top, ok := f.tree.(map[string]any); ok && (top["agents"] != nil || top["tools"] != nil) {
		for _, p := range f.parts(top["tools"], "tools") {
			p.dograhTool()
		}
		all = f.parts(top["agents"], "agents")
	}
	for _, p := range all {
		p.dograhAgent()
	}
}

func (p part) dograhAgent() {
	f := p.f
	flow := p.in("workflow_definition")
	if flow.tree == nil {
		flow = p // the definition alone
	}
	nodes := flow.list("nodes")
	if len(nodes) == 0 {
		f.read[p.at] = true
		f.note(LeftOut, p.at, "it has no nodes: take the answer of GET /api/v1/workflow/fetch/ID, or what the editor downloads")
		return
	}
	d := f.draft(p, "name")
	p.drop(ofTheOther, "id", "status", "created_at", "current_definition_id", "folder_id", "total_runs", "version_number", "version_status",
		"workflow_uuid")
	p.drop("add a text to post_call_schema, and write which values it may have into its description", "call_disposition_codes")
	p.drop("Dograh fills them in in test calls alone: set those that hold in every call as variables", "template_context_variables")
	flow.drop(ofTheEditor, "viewport")
	d.dograhFlow(nodes, flow.list("edges"))
	config := p.in("workflow_configurations")
	d.dograhSettings(config)
	d.dograhModels(config)
	d.done()
}

const ofTheEditor = "it says where things stand in Dograh's editor"

// dograhNode is a step of a flow.
type dograhNode struct {
	part
	data           part
	id, kind, name string
}

// dograhFlow makes one prompt of a flow: the global prompt, and a section for each step in the order in which a call
// reaches them.
func (d *draft) dograhFlow(parts, edges []part) {
	var nodes []dograhNode
	for _, p := range parts {
		n := dograhNode{p, p.in("data"), p.text("id"), p.text("type"), p.in("data").text("name")}
		for key := range p.tree {
			if key != "data" {
				d.f.read[p.path(key)] = true
			}
		}
		nodes = append(nodes, n)
	}
	var prompt, talking []string
	speaks := func(n dograhNode) bool { return n.kind == "startCall" || n.kind == "agentNode" || n.kind == "endCall" }
	global := slices.IndexFunc(nodes, func(n dograhNode) bool { return n.kind == "globalNode" })
	if global >= 0 {
		prompt = append(prompt, nodes[global].data.dograhText(d, "prompt"))
		d.f.note(Taken, nodes[global].at, "system_prompt begins with it")
	}
	for _, n := range nodes {
		if speaks(n) {
			talking = append(talking, n.id)
		} else if n.kind != "globalNode" {
			n.dograhOther(d)
		}
	}
	ordered := dograhOrder(nodes, edges)
	for _, n := range ordered {
		if !speaks(n) {
			continue
		}
		text := n.dograhStep(d, global >= 0)
		if len(talking) > 1 {
			text = strings.TrimSpace("# " + n.name + "\n\n" + text)
			d.f.note(Changed, n.at, "its prompt is a section of the system_prompt, and its tools are there at all times")
		} else {
			d.f.note(Taken, n.at, "system_prompt")
		}
		prompt = append(prompt, text+n.dograhEdges(nodes, edges))
	}
	for _, e := range edges {
		if !d.f.read[e.at] {
			d.f.read[e.at] = true
			d.f.note(LeftOut, e.at, "it leads from or to no step of the conversation")
		}
	}
	d.dograhInterruptions(ordered)
	prompt = slices.DeleteFunc(prompt, func(s string) bool { return s == "" })
	if len(prompt) > 0 {
		d.set("system_prompt", strings.Join(prompt, "\n\n"), parts[0], "data")
	}
}

// dograhOrder are the nodes as a call reaches them, the start first, and those that none reaches last.
func dograhOrder(nodes []dograhNode, edges []part) (list []dograhNode) {
	seen := map[string]bool{}
	var visit func(n dograhNode)
	visit = func(n dograhNode) {
		if seen[n.id] {
			return
		}
		seen[n.id] = true
		list = append(list, n)
		for _, e := range edges {
			if e.text("source") != n.id {
				continue
			}
			if i := slices.IndexFunc(nodes, func(o dograhNode) bool { return o.id == e.text("target") }); i >= 0 {
				visit(nodes[i])
			}
		}
	}
	for _, starts := range []bool{true, false} {
		for _, n := range nodes {
			if starts == (n.kind == "startCall") {
				visit(n)
			}
		}
	}
	return list
}

// dograhEdges are the sentences of a prompt that say where a step leads.
func (n dograhNode) dograhEdges(nodes []dograhNode, edges []part) (text string) {
	f := n.f
	for _, e := range edges {
		i := slices.IndexFunc(nodes, func(o dograhNode) bool { return o.id == e.text("target") })
		if e.text("source") != n.id || i < 0 {
			continue
		}
		data := e.in("data")
		when := data.dograhText(nil, "condition")
		if when == "" {
			when = data.text("label")
		}
		text += "\n\nGo on with " + nodes[i].name + " when: " + when
		if say := data.dograhText(nil, "transition_speech"); say != "" {
			text += "\nSay then: " + say
		}
		data.drop("recordings are not in the export", "transition_speech_recording_id")
		f.read[e.at] = true
		f.note(Changed, e.at, "it is a sentence of the system_prompt: Go on with %s", nodes[i].name)
	}
	if n.kind == "endCall" {
		text += "\n\nThen end the call."
	}
	return text
}

// dograhStep takes a step of the conversation, and returns its prompt.
func (n dograhNode) dograhStep(d *draft, global bool) string {
	f, p := n.f, n.data
	text := p.dograhText(d, "prompt")
	for _, key := range []string{"is_start", "is_end", "allow_interrupt", "invalid", "validationMessage"} {
		p.value(key)
	}
	if n.kind == "startCall" {
		d.dograhStart(p)
	}
	if n.kind == "endCall" {
		d.builtIn(n.part, map[string]any{"type": "end_call"})
	}
	if alone, ok := p.value("add_global_prompt").(bool); ok && !alone && global {
		f.note(Changed, p.path("add_global_prompt"), "what is said of all steps is there in this one too")
	}
	vars := p.list("extraction_variables")
	if on, _ := p.value("extraction_enabled").(bool); !on {
		p.drop("extraction is off in this node", "extraction_variables", "extraction_prompt")
	} else {
		for _, v := range vars {
			d.extract(v.text("name"), v.text("type"), v.text("prompt"), v)
		}
		p.drop("what each item needs stands in its description", "extraction_prompt")
	}
	for _, id := range p.texts("tool_uuids") {
		uuid, _ := id.(string)
		if name, ok := f.tools[uuid]; !ok {
			f.note(LeftOut, p.path("tool_uuids"),
				"the tool %s is not in the export: put the answer of GET /api/v1/tools/ beside the agents, as {\"agents\": […], \"tools\": […]}", uuid)
		} else if name != "" {
			d.useListed(name, p.path("tool_uuids"))
		}
	}
	p.drop("the export has no documents: write a file below knowledgebases, and name it as the knowledgebase", "document_uuids")
	p.drop("Parley has no tools of MCP servers", "mcp_tool_filters")
	p.drop("the assistant waits for an answer: max_silence_duration says how long", "wait_for_user_response", "wait_for_user_response_timeout")
	return text
}

// dograhStart takes what only the first step has.
func (d *draft) dograhStart(p part) {
	f := d.f
	if p.text("greeting_type") == "audio" {
		p.drop("recordings are not in the export: write an initial_message", "greeting_recording_id")
		p.drop("a recording was played in its place", "greeting")
	} else if text := p.dograhText(d, "greeting"); text != "" {
		d.set("initial_message", text, p, "greeting")
		f.note(Taken, p.path("greeting"), "initial_message")
	}
	d.take("end_call_on_voicemail", p, "detect_voicemail")
	p.drop("Parley speaks as soon as the call is answered", "delayed_start", "delayed_start_duration")
	p.drop("Parley's webhooks have a shape of their own: set inbound_webhook_url once your server takes it", "pre_call_fetch_mode",
		"pre_call_fetch_url", "pre_call_fetch_enabled", "pre_call_fetch_credential_uuid")
}

// dograhOther tells of a node that is no step of the conversation.
func (n dograhNode) dograhOther(d *draft) {
	f := n.f
	f.read[n.at] = true
	switch n.kind {
	case "trigger":
		f.note(LeftOut, n.at, "calls are placed with POST /user/make_call")
	case "webhook":
		f.note(LeftOut, n.at, "Parley's webhooks have a shape of their own: set webhook_url once your server takes it")
	case "qa":
		on, said := n.data.value("qa_enabled").(bool)
		d.set("post_call_evaluation", on || !said, n.data, "qa_enabled")
		f.note(Changed, n.at, "post_call_evaluation is %v; what it looks at are the items of post_call_schema", on || !said)
	default:
		f.note(LeftOut, n.at, "Parley has nothing for a node of the type %s", n.kind)
	}
}

// dograhInterruptions takes whether customers may interrupt, which is one setting here.
func (d *draft) dograhInterruptions(nodes []dograhNode) {
	may := map[bool]int{}
	var last part
	for _, n := range nodes {
		if n.kind == "startCall" || n.kind == "agentNode" {
			on, _ := n.data.tree["allow_interrupt"].(bool)
			may[on]++
			last = n.data
		}
	}
	if last.tree == nil {
		return
	}
	d.set("allow_interruptions", may[true] > 0, last, "allow_interrupt")
	if len(may) > 1 {
		d.f.note(Changed, last.path("allow_interrupt"), "allow_interruptions is true in all of the call, as it is in %d of %d steps", may[true],
			may[true]+may[false])
	} else {
		d.f.note(Taken, last.path("allow_interrupt"), "allow_interruptions")
	}
}

var (
	dograhVar    = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.]+(?:/[A-Za-z0-9_+-]+)*)\s*(?:\|([^{}]*))?\}\}`)
	dograhClock  = regexp.MustCompile(`^(current_time|current_weekday)_.+$`)
	dograhCaller = map[string]string{"caller_number": "customer_phone", "called_number": "assistant_phone"}
)

// dograhText is a text with its variables as Parley has them. What stands in for an empty one becomes its value in the
// assistant's variables.
func (p part) dograhText(d *draft, key string) string {
	var told []string
	text := dograhVar.ReplaceAllStringFunc(p.text(key), func(was string) string {
		found := dograhVar.FindStringSubmatch(was)
		name := strings.TrimPrefix(found[1], "initial_context.")
		if other, ok := dograhCaller[name]; ok {
			name = other
		}
		if m := dograhClock.FindStringSubmatch(name); m != nil {
			name = m[1]
			told = append(told, "the time is that of the assistant's timezone")
		}
		if usual := strings.TrimSpace(found[2]); usual != "" {
			usual = d.usually(name, usual)
			told = append(told, usual)
		}
		now := "{{" + name + "}}"
		if !strings.Contains(was, found[1]+"}}") || name != found[1] {
			told = append(told, was+" is "+now)
		}
		return now
	})
	if strings.Contains(text, "{{gathered_context.") {
		told = append(told, "what was gathered has no variables during a call")
	}
	if len(told) > 0 {
		p.f.note(Changed, p.path(key), "%s", strings.Join(slices.Compact(told), "; "))
	}
	return text
}

// usually gives a variable a value, and tells of it.
func (d *draft) usually(name, value string) string {
	if d == nil {
		return fmt.Sprintf("%s is not %q where it is empty: set it in the assistant's variables", name, value)
	}
	vars, _ := d.body["variables"].(map[string]any)
	if vars == nil {
		vars = map[string]any{}
		d.body["variables"] = vars
	}
	if was, there := vars[name]; there && was != escaped(value) {
		return fmt.Sprintf("%s is %q in the variables, not %q", name, was, value)
	}
	vars[name] = escaped(value)
	return fmt.Sprintf("%s is %q in the variables", name, value)
}

// dograhSettings takes the settings of an agent.
func (d *draft) dograhSettings(p part) {
	f := d.f
	d.seconds("max_duration", p, "max_call_duration", 1, 20, 3600)
	if d.seconds("max_silence_duration", p, "max_user_idle_timeout", 1, 1, 360); d.body["max_silence_duration"] != nil {
		f.note(Changed, p.path("max_user_idle_timeout"), "after the silence the assistant asks whether anybody is there, and ends the call later")
	}
	d.seconds("conversation_inactivity_timeout", p, "text_chat_inactivity_timeout_seconds", 1.0/60, 1, 1440)
	const turns = "turn-taking has settings of its own: endpoint_type, endpoint_sensitivity and interrupt_sensitivity"
	if p.text("turn_start_strategy") == "min_words" {
		d.seconds("min_interrupt_words", p, "turn_start_min_words", 1, 0, 10)
	} else {
		p.drop(turns, "turn_start_min_words")
	}
	p.drop(turns, "turn_start_strategy", "turn_stop_strategy", "smart_turn_stop_secs", "provisional_vad_pause_secs")
	var words []any
	for _, word := range strings.Split(p.text("dictionary"), ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	if len(words) > 0 {
		d.set("keywords", words, p, "dictionary")
		f.note(Taken, p.path("dictionary"), "keywords")
	}
	noise := p.in("ambient_noise_configuration")
	if on, _ := noise.value("enabled").(bool); on {
		d.set("ambient_sound", "office", noise, "enabled")
		f.note(Taken, noise.path("enabled"), "ambient_sound is office")
		d.takeNumber("ambient_sound_volume", noise, "volume", 1, 0, 1)
		noise.drop("ambient_sound has sounds of its own", "storage_key", "storage_backend", "original_filename")
	} else {
		noise.drop("the sound is off", "enabled", "volume", "storage_key", "storage_backend", "original_filename")
	}
}

// dograhModels takes the models that an agent has of its own.
func (d *draft) dograhModels(config part) {
	f := d.f
	all := config.in("model_overrides") // as it was before version 2
	if over := config.in("model_configuration_v2_override"); over.tree != nil {
		over.drop(ofTheOther, "version", "mode")
		over.in("dograh").drop("Dograh's own models are on its servers: choose llm_model, voice and language", "api_key", "voice",
			"speed", "language")
		byok := over.in("byok")
		byok.drop("Parley has both modes, by mode", "mode")
		all = byok.in("pipeline")
		if real := byok.in("realtime"); real.tree != nil && all.tree == nil {
			all = real
		}
	}
	all.drop("a realtime model needs mode: multimodal and multimodal_model", "realtime", "is_realtime")
	all.drop("the server chooses what finds documents (PARLEY_OPENAI_EMBEDDING_MODEL)", "embeddings")
	const key = "no file holds keys: enter it on the console's page Providers"
	llm, tts, stt := all.in("llm"), all.in("tts"), all.in("stt")
	for _, p := range []part{llm, tts, stt} {
		p.drop(key, "api_key")
		p.drop("whoever runs the server sets where its providers are", "base_url", "endpoint")
	}
	llm.value("provider")
	d.take("llm_model", llm, "model")
	d.takeNumber("llm_temperature", llm, "temperature", 1, 0, 1)
	if tts.tree != nil {
		d.voice(tts.text("provider"), tts.text("voice"), tts, "voice")
	}
	d.takeNumber("speech_speed", tts, "speed", 1, 0.7, 1.2)
	d.language(stt, "language")
	switch vendor := stt.text("provider"); vendor {
	case "":
	case "deepgram", "openai", "assemblyai", "cartesia", "elevenlabs":
		d.set("transcriber_provider", vendor, stt, "provider")
		f.note(Taken, stt.path("provider"), "transcriber_provider; the server needs a key of the provider")
	default:
		f.note(LeftOut, stt.path("provider"), "Parley has no transcriber_provider %s: the best for the language listens", vendor)
	}
}
