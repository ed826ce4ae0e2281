package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// fromVapi reads what Vapi's API answers: an assistant, a list of them, or {"assistants": […], "tools": […]}.
func fromVapi(f *foreign) {
	all := f.parts(f.tree, "")
	if top, ok := f.tree.(map[string]any); ok && (top["assistants"] != nil || top["tools"] != nil) {
		for _, p := range f.parts(top["tools"], "tools") {
			p.vapiTool(nil)
		}
		all = f.parts(top["assistants"], "assistants")
	}
	for _, p := range all {
		p.vapiAssistant()
	}
}

const ofTheOther = "it belongs to the server that the export came from"

func (p part) vapiAssistant() {
	f := p.f
	d := f.draft(p, "name")
	p.drop(ofTheOther, "id", "orgId", "createdAt", "updatedAt", "isServerUrlSecretSet", "credentialIds", "credentials")
	d.take("initial_message", p, "firstMessage")
	d.prompt(p.text("firstMessage"), p, "firstMessage")
	switch mode := p.text("firstMessageMode"); mode {
	case "", "assistant-speaks-first":
	case "assistant-waits-for-user":
		d.set("wait_for_customer", true, p, "firstMessageMode")
		f.note(Taken, p.path("firstMessageMode"), "wait_for_customer")
	default:
		f.note(LeftOut, p.path("firstMessageMode"), "%s: write an initial_message", mode)
	}
	model := p.in("model")
	d.vapiPrompt(model)
	d.take("llm_model", model, "model")
	model.value("provider")
	d.takeNumber("llm_temperature", model, "temperature", 1, 0, 1)
	for _, key := range []string{"tools", "functions"} {
		for _, t := range model.list(key) {
			t.vapiTool(d)
		}
	}
	for _, id := range model.texts("toolIds") {
		text, _ := id.(string)
		name, ok := f.tools[text]
		if !ok {
			f.note(LeftOut, model.path("toolIds"),
				"the tool %s is not in the export: put the answer of GET /tool beside it, as {\"assistants\": […], \"tools\": […]}", text)
			continue
		}
		d.useListed(name, model.path("toolIds"))
	}
	voice := p.in("voice")
	if voice.tree != nil {
		d.voice(voice.text("provider"), voice.text("voiceId"), voice, "voiceId")
	}
	d.takeNumber("speech_speed", voice, "speed", 1, 0.7, 1.2)
	d.takeNumber("voice_stability", voice, "stability", 1, 0, 1)
	d.takeNumber("voice_similarity", voice, "similarityBoost", 1, 0, 1)
	d.vapiListening(p)
	d.take("voice_mail_message", p, "voicemailMessage")
	d.seconds("max_duration", p, "maxDurationSeconds", 1, 20, 3600)
	if d.seconds("max_silence_duration", p, "silenceTimeoutSeconds", 1, 1, 360); d.body["max_silence_duration"] != nil {
		f.note(Changed, p.path("silenceTimeoutSeconds"), "after the silence the assistant asks whether anybody is there, and ends the call later")
	}
	d.vapiPlans(p)
	p.drop("Parley's webhooks have a shape of their own: set webhook_url once your server takes it", "serverUrl", "serverUrlSecret")
	server := p.in("server")
	server.drop("Parley's webhooks have a shape of their own: set webhook_url once your server takes it", "url", "secret", "headers",
		"timeoutSeconds")
	p.drop("say so in the system_prompt", "endCallMessage")
	d.done()
}

// vapiPrompt takes the system messages.
func (d *draft) vapiPrompt(model part) {
	var prompt []string
	if s := model.text("systemPrompt"); s != "" {
		prompt = append(prompt, s)
		d.f.note(Taken, model.path("systemPrompt"), "system_prompt")
	}
	for _, m := range model.list("messages") {
		role, content := m.text("role"), m.text("content")
		if role != "system" {
			d.f.note(LeftOut, m.at, "only the system message goes into a prompt")
			continue
		}
		prompt = append(prompt, content)
		d.f.note(Taken, m.at, "system_prompt")
	}
	if text := strings.Join(prompt, "\n\n"); text != "" {
		d.set("system_prompt", text, model, "messages")
		d.prompt(text, model, "messages")
	}
}

// vapiListening takes who listens, and in which language.
func (d *draft) vapiListening(p part) {
	transcriber := p.in("transcriber")
	d.language(transcriber, "language")
	switch vendor := transcriber.text("provider"); vendor {
	case "":
	case "deepgram", "openai":
		d.set("transcriber_provider", vendor, transcriber, "provider")
		d.f.note(Taken, transcriber.path("provider"), "transcriber_provider; the server needs a key of the provider")
	case "assembly-ai":
		d.set("transcriber_provider", "assemblyai", transcriber, "provider")
		d.f.note(Taken, transcriber.path("provider"), "transcriber_provider is assemblyai; the server needs a key of the provider")
	default:
		d.f.note(LeftOut, transcriber.path("provider"), "Parley has no transcriber_provider %s: the best for the language listens", vendor)
	}
	words := append(transcriber.texts("keywords"), transcriber.texts("keyterm")...)
	for i, w := range words {
		text, _ := w.(string)
		words[i], _, _ = strings.Cut(text, ":") // a weight
	}
	if len(words) > 0 {
		d.set("keywords", words, transcriber, "keywords")
		d.f.note(Taken, transcriber.path("keywords"), "keywords, without weights")
	}
}

// vapiPlans takes the rest that has a counterpart.
func (d *draft) vapiPlans(p part) {
	f := d.f
	switch sound := p.text("backgroundSound"); sound {
	case "":
	case "off", "office":
		d.set("ambient_sound", sound, p, "backgroundSound")
		f.note(Taken, p.path("backgroundSound"), "ambient_sound")
	default:
		f.note(LeftOut, p.path("backgroundSound"), "ambient_sound has sounds of its own")
	}
	for _, key := range []string{"backgroundDenoisingEnabled", "recordingEnabled"} {
		d.take(map[string]string{"backgroundDenoisingEnabled": "enable_noise_cancellation", "recordingEnabled": "record"}[key], p, key)
	}
	d.take("record", p.in("artifactPlan"), "recordingEnabled")
	if on := p.value("endCallFunctionEnabled"); on == true {
		d.builtIn(part{f, p.path("endCallFunctionEnabled"), nil}, map[string]any{"type": "end_call"})
	}
	d.seconds("min_interrupt_words", p.in("stopSpeakingPlan"), "numWords", 1, 0, 10)
	analysis := p.in("analysisPlan")
	for _, schema := range []part{analysis.in("structuredDataSchema"), analysis.in("structuredDataPlan").in("schema")} {
		props := schema.in("properties")
		for _, name := range slices.Sorted(maps.Keys(props.tree)) {
			one := props.in(name)
			d.extract(name, one.text("type"), one.text("description"), one)
		}
		schema.value("type")
		schema.value("required")
	}
}

// builtInTool begins how a built-in tool stands among the names of tools: its fields follow.
const builtInTool = "built-in "

// useListed gives an assistant a tool of the export's list: one of the account, or a built-in one.
func (d *draft) useListed(name, at string) {
	if kind, ok := strings.CutPrefix(name, builtInTool); ok {
		var tool map[string]any
		if json.Unmarshal([]byte(kind), &tool) == nil {
			d.builtIn(part{d.f, at, nil}, tool)
		}
		return
	}
	d.use(name)
	d.f.note(Taken, at, "the tool %s", name)
}

// vapiTool makes a tool, and gives it to an assistant; without one it is kept under its id.
func (p part) vapiTool(d *draft) {
	f := p.f
	id := p.text("id")
	p.drop(ofTheOther, "orgId", "createdAt", "updatedAt")
	builtIn := func(tool map[string]any) {
		if d != nil {
			d.builtIn(p, tool)
		} else {
			f.tools[id] = builtInTool + jsonText(tool)
		}
	}
	made := func(name string) {
		if d != nil {
			d.use(name)
		}
		if id != "" {
			f.tools[id] = name
		}
	}
	function := p.in("function")
	switch kind := p.text("type"); kind {
	case "endCall":
		builtIn(map[string]any{"type": "end_call"})
		f.read[function.at] = true
	case "dtmf":
		builtIn(map[string]any{"type": "dtmf_input"})
		f.read[function.at] = true
	case "transferCall":
		f.read[function.at] = true
		for _, to := range p.list("destinations") {
			to.vapiTransfer(builtIn)
		}
	case "apiRequest":
		method := strings.ToUpper(p.text("method"))
		if method == "" {
			method = "GET"
		}
		name := p.text("name")
		if name == "" {
			name = function.text("name")
		}
		body := map[string]any{"endpoint": p.text("url"), "method": method, "description": p.text("description")}
		p.timeout(body, "timeoutSeconds", 1)
		made(f.tool(p, name, body, f.schema(p.in("body")), p.constants("headers")))
	case "function", "": // functions of old have no type
		if function.tree == nil {
			function = p
		}
		server := p.in("server")
		body := map[string]any{"endpoint": server.text("url"), "method": "POST", "description": function.text("description")}
		if body["endpoint"] == "" {
			body["endpoint"] = p.text("serverUrl")
		}
		if body["endpoint"] == "" {
			f.read[p.at] = true
			f.note(LeftOut, p.at, "the tool %s has no address of its own: the assistant's server was asked. Make a tool with an endpoint",
				function.text("name"))
			return
		}
		server.timeout(body, "timeoutSeconds", 1)
		made(f.tool(p, function.text("name"), body, f.schema(function.in("parameters")), server.in("headers")))
		f.note(Changed, server.path("url"),
			"Vapi sends its own envelope of tool calls, Parley the arguments as a JSON object: adjust your server")
	default:
		f.read[p.at] = true
		f.note(LeftOut, p.at, "Parley has no tool of the type %s", kind)
	}
}

// constants are the fixed values of a JSON schema's properties.
func (p part) constants(key string) part {
	props := p.in(key).in("properties")
	out := part{p.f, props.at, map[string]any{}}
	for name := range props.tree {
		one := props.in(name)
		p.f.read[one.at] = true
		for _, field := range []string{"value", "default"} {
			if v := one.text(field); v != "" {
				out.tree[name] = v
			}
		}
	}
	p.in(key).value("type")
	return out
}

// timeout takes a tool's timeout.
func (p part) timeout(body map[string]any, key string, factor float64) {
	if n, ok := p.number(key); ok {
		body["timeout"] = number(int64(min(30, max(1, n*factor))))
		p.f.note(Taken, p.path(key), "timeout")
	}
}

// vapiTransfer takes a destination of a transfer.
func (p part) vapiTransfer(builtIn func(map[string]any)) {
	to := p.text("number")
	kind := p.text("type")
	if kind == "sip" {
		to = p.text("sipUri")
	}
	if kind != "number" && kind != "sip" || to == "" {
		p.f.read[p.at] = true
		p.f.note(LeftOut, p.at, "a destination of the type %s: use assistant_transfer for another assistant", kind)
		return
	}
	tool := map[string]any{"type": "call_transfer", "phone_number": to, "description": p.text("description")}
	if mode := p.in("transferPlan").text("mode"); strings.HasPrefix(mode, "warm-transfer") {
		tool["warm_transfer"] = true
	}
	if message := p.text("message"); message != "" {
		if tool["warm_transfer"] == true {
			tool["warm_transfer_message"] = message
		} else {
			p.f.note(LeftOut, p.path("message"), "say so in the description, or in the system_prompt")
		}
	}
	builtIn(tool)
}
