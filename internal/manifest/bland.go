package manifest

import (
	"maps"
	"slices"
	"strings"
)

// fromBland reads what Bland's API answers: {"inbound_numbers": […]}, {"agents": […]}, one of them, or a list.
func fromBland(f *foreign) {
	all := f.parts(f.tree, "")
	if top, ok := f.tree.(map[string]any); ok && (top["inbound_numbers"] != nil || top["agents"] != nil) {
		all = append(f.parts(top["inbound_numbers"], "inbound_numbers"), f.parts(top["agents"], "agents")...)
	}
	for _, p := range all {
		p.blandAgent()
	}
}

func (p part) blandAgent() {
	f := p.f
	key := "name"
	if p.tree[key] == nil {
		key = "phone_number"
	}
	d := f.draft(p, key)
	p.drop("numbers are rented, or come with a trunk: name one of the account's as the phone_number", "phone_number")
	p.drop(ofTheOther, "agent_id", "created_at", "updated_at", "encrypted_key")
	for _, key := range []string{"prompt", "task"} {
		d.take("system_prompt", p, key)
		d.prompt(p.text(key), p, key)
	}
	p.drop("Parley has no pathways: write a prompt", "pathway_id", "start_node_id")
	d.take("initial_message", p, "first_sentence")
	d.take("wait_for_customer", p, "wait_for_greeting")
	voice := p.text("voice")
	if id, ok := p.number("voice_id"); ok || voice != "" {
		if voice == "" {
			voice = jsonText(id)
		}
		d.voice("bland", voice, p, map[bool]string{true: "voice", false: "voice_id"}[p.tree["voice"] != nil])
	}
	p.drop("Bland's models are its own: choose an llm_model", "model")
	d.takeNumber("llm_temperature", p, "temperature", 1, 0, 1)
	d.language(p, "language")
	d.take("record", p, "record")
	d.seconds("max_duration", p, "max_duration", 60, 20, 3600)
	if words := p.texts("keywords"); len(words) > 0 {
		d.set("keywords", words, p, "keywords")
		f.note(Taken, p.path("keywords"), "keywords")
	}
	if to := p.text("transfer_phone_number"); to != "" {
		d.builtIn(part{f, p.path("transfer_phone_number"), nil}, map[string]any{"type": "call_transfer", "phone_number": to})
	}
	switch track := p.text("background_track"); track {
	case "", "none":
	case "office", "cafe":
		d.take("ambient_sound", p, "background_track")
	default:
		f.note(LeftOut, p.path("background_track"), "ambient_sound has sounds of its own")
	}
	schema := p.in("analysis_schema")
	for _, name := range slices.Sorted(maps.Keys(schema.tree)) {
		d.extract(name, schema.text(name), "", part{f, schema.path(name), nil})
	}
	for _, t := range p.list("tools") {
		t.blandTool(d)
	}
	p.drop("Parley's webhooks have a shape of their own: set webhook_url once your server takes it", "webhook")
	p.drop("interrupt_sensitivity has a scale of its own (0 to 5, 0.5 is usual)", "interruption_threshold")
	d.done()
}

// blandTool makes a tool of a request that Bland sends.
func (p part) blandTool(d *draft) {
	f := p.f
	name, url := p.text("name"), p.text("url")
	if url == "" {
		f.read[p.at] = true
		f.note(LeftOut, p.at, "the tool %s has no address", name)
		return
	}
	method := strings.ToUpper(p.text("method"))
	if method == "" {
		method = "POST"
	}
	body := map[string]any{"endpoint": url, "method": method, "description": p.text("description")}
	p.timeout(body, "timeout", 0.001)
	input := p.in("input_schema")
	p.drop("the arguments are posted as a JSON object: {{input.name}} is not replaced", "body", "query")
	input.drop("it stands in the parameters' descriptions", "example")
	p.drop("say so in the system_prompt", "speech")
	d.use(f.tool(p, name, body, f.schema(input), p.in("headers")))
}
