package manifest

import "strings"

// dograhTool makes a tool, and keeps it under its id.
func (p part) dograhTool() {
	f := p.f
	id := p.text("tool_uuid")
	p.drop(ofTheOther, "id", "category", "icon", "icon_color", "created_at", "updated_at", "created_by")
	definition := p.in("definition")
	definition.value("schema_version")
	config := definition.in("config")
	kind, name := definition.text("type"), p.text("name")
	if status := p.text("status"); status == "archived" {
		f.read[p.at], f.tools[id] = true, ""
		f.note(LeftOut, p.at, "the tool %s is archived", name)
		return
	}
	switch kind {
	case "http_api":
		f.tools[id] = p.dograhRequest(config, name)
	case "end_call":
		f.tools[id] = builtInTool + jsonText(map[string]any{"type": "end_call"})
		f.note(Taken, p.at, "the built-in tool end_call, for the assistants that use %s", name)
		config.drop("say so in the system_prompt", "customMessage", "audioRecordingId", "endCallReasonDescription")
		f.read[definition.at] = true
	case "transfer_call":
		f.tools[id] = p.dograhTransfer(config, name)
		f.read[definition.at] = true
	default:
		f.read[p.at], f.tools[id] = true, ""
		f.note(LeftOut, p.at, "Parley has no tool of the type %s (%s)", kind, name)
	}
}

// dograhRequest makes a tool of a request.
func (p part) dograhRequest(config part, name string) string {
	f := p.f
	body := map[string]any{"endpoint": config.dograhText(nil, "url"), "method": strings.ToUpper(config.text("method")),
		"description": p.text("description")}
	config.timeout(body, "timeout_ms", 0.001)
	params := []any{}
	for _, one := range config.list("parameters") {
		required, said := one.value("required").(bool)
		params = f.param(params, one, one.text("name"), required || !said)
	}
	config.drop("add the header that it stands for, with a reference as its value", "credential_uuid")
	config.drop("write each into the endpoint, as ?name={{variable}}", "preset_parameters")
	config.drop("the arguments are posted as a JSON object", "body_template")
	config.drop("say so in the system_prompt", "customMessage", "customMessageType", "customMessageRecordingId")
	given := config.in("headers")
	headers := part{f, given.at, map[string]any{}}
	for key := range given.tree {
		headers.tree[key] = given.dograhText(nil, key)
	}
	return f.tool(p, name, body, params, headers)
}

// dograhTransfer is a built-in tool that transfers a call; "" where it has no destination that is always the same.
func (p part) dograhTransfer(config part, name string) string {
	f := p.f
	source, to := config.text("destination_source"), config.dograhText(nil, "destination")
	config.drop("say so in the description, or in the system_prompt", "customMessage")
	config.drop("recordings are not in the export", "audioRecordingId")
	if source != "" && source != "static" || !strings.HasPrefix(to, "+") && !strings.HasPrefix(to, "sip:") && !strings.HasPrefix(to, "{{") {
		f.note(LeftOut, p.at, "%s has no number or SIP address of its own: make a call_transfer", name)
		return ""
	}
	f.note(Taken, p.at, "the built-in tool call_transfer to %s, for the assistants that use %s", to, name)
	return builtInTool + jsonText(map[string]any{"type": "call_transfer", "phone_number": to, "description": p.text("description")})
}
