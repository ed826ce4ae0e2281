package console

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// template is a beginning for a new assistant: a role, with the manners that suit it.
type template struct {
	id, icon, name, summary string
	body                    map[string]any // fields of parley.Assistant, without those that depend on the server
}

func templateOf(id string) *template {
	for i := range templates {
		if templates[i].id == id {
			return &templates[i]
		}
	}
	return nil
}

func extracted(list ...[3]string) (items []any) {
	for _, e := range list {
		items = append(items, map[string]any{"name": e[0], "type": e[1], "description": e[2]})
	}
	return items
}

var templates = []template{
	{"receptionist", "bell", "Front desk", "Answers calls and questions, takes messages.", map[string]any{
		"type": "inbound", "record": true,
		"variables": map[string]any{"company": "Acme Bakery",
			"opening_hours": "Monday to Saturday, 7 am to 6 pm"},
		"initial_message": "Hello, this is {{company}}. How can I help you?",
		"system_prompt": `You are the receptionist of {{company}}. You are friendly and brief: one or two short sentences at a time.

What you know
- Opening hours: {{opening_hours}}.
- Add here what callers ask most: address, parking, prices.

What you do
1. Find out what the caller wants.
2. Answer from what you know. Never invent anything.
3. When you don't know, offer to take a message: name, phone number, what it is about. Read the number back.
4. When all is said, say goodbye and end the call.`,
		"tools": []any{map[string]any{"type": "end_call"}},
		"post_call_schema": extracted([3]string{"status", "bool", "Whether the caller got what they wanted"},
			[3]string{"summary", "string", "A short summary of the conversation"},
			[3]string{"callback", "string", "Number to call back, if one was left"}),
	}},
	{"appointment", "calendar", "Appointment booking", "Finds a time that suits and confirms it.", map[string]any{
		"type": "inbound",
		"variables": map[string]any{"company": "Bright Smile Dental",
			"services": "check-up (30 minutes), cleaning (45 minutes)"},
		"initial_message": "Hello, {{company}}. Would you like to make an appointment?",
		"system_prompt": `You book appointments for {{company}}. Today is {{current_weekday}}, {{current_date}}, the time is {{current_time}}.
Services: {{services}}.

Ask for one thing at a time:
1. Which service?
2. Which day and time would suit? Offer two alternatives when it does not work.
3. Full name, and a phone number. Read the number back digit by digit.

Before you finish, repeat service, day, time and name, and ask whether all is right. Change what is not. Then say goodbye and end the call.
You can't give medical advice: offer that somebody calls back instead.`,
		"tools": []any{map[string]any{"type": "end_call"}},
		"post_call_schema": extracted([3]string{"status", "bool", "Whether an appointment was agreed"},
			[3]string{"service", "string", "The service that was booked"},
			[3]string{"appointment", "string", "Day and time as agreed"},
			[3]string{"customer_name", "string", "The caller's full name"}),
	}},
	{"support", "help", "Support line", "Solves what it can, hands over what it can't.", map[string]any{
		"type":            "inbound",
		"variables":       map[string]any{"company": "Northwind", "product": "Northwind Router X2"},
		"initial_message": "Hi, this is {{company}} support. What can I do for you?",
		"system_prompt": `You are a support agent of {{company}} for {{product}}. Be patient and plain: no jargon, one step at a time.

1. Find out what happens, since when, and what was tried already.
2. Answer from the knowledgebase. If it says nothing, say so: never guess.
3. Give one step, wait for the result, then the next.
4. If it is not solved after three steps, or the customer is upset, offer that a colleague takes over.
Ask at the end whether it works now.`,
		"endpoint_sensitivity": 0.3,
		"tools":                []any{map[string]any{"type": "end_call"}},
		"post_call_schema": extracted([3]string{"status", "bool", "Whether the problem was solved"},
			[3]string{"summary", "string", "The problem and what was tried"},
			[3]string{"mood", "string", "How the customer felt at the end: calm, annoyed or upset"}),
	}},
	{"reminder", "clock", "Outbound reminder", "Calls people, reminds them, notes the answer.", map[string]any{
		"type": "outbound",
		"variables": map[string]any{"company": "Acme Clinic", "customer_name": "",
			"appointment": "tomorrow at 10 am"},
		"initial_message": "Hello {{customer_name}}, this is the assistant of {{company}}. Do you have a moment?",
		"system_prompt": `You call for {{company}} to remind {{customer_name}} of an appointment: {{appointment}}. Say early that you are an automated assistant.

1. Make sure that you speak with {{customer_name}}. If not, say nothing about the appointment and ask when they can be reached.
2. Remind them, and ask whether they will come.
3. If they can't, ask whether they want to move it, and for two times that would suit. Somebody will confirm.
4. Thank them and end the call. The whole call takes less than a minute.`,
		"max_duration": 180, "voice_mail_message": "Hello, this is {{company}} with a reminder: {{appointment}}. " +
			"Please call us if you can't come.",
		"tools": []any{map[string]any{"type": "end_call"}},
		"post_call_schema": extracted([3]string{"status", "bool", "Whether the customer was reached and answered"},
			[3]string{"coming", "bool", "Whether the customer will come"},
			[3]string{"new_time", "string", "Times that would suit better, if any"}),
	}},
	{"leads", "search", "Lead qualification", "Finds out who is interested, and how seriously.", map[string]any{
		"type": "outbound",
		"variables": map[string]any{"company": "Sunny Roofs", "offer": "solar panels for family homes",
			"customer_name": ""},
		"initial_message": "Hello {{customer_name}}, this is the assistant of {{company}}. You asked us about {{offer}}. Is this a good moment?",
		"system_prompt": `You call people for {{company}} who have asked about {{offer}}. Say early that you are an automated assistant. Today is {{current_weekday}}, {{current_date}}.

Find out, one question at a time, in your own words:
1. What they need, and why now.
2. Who decides about it.
3. Which budget they have in mind. Don't insist.
4. When they want to begin.

Answer simple questions from what you know here; never promise a price. If it is not a good moment, ask for a better one and end the call.
If it fits, offer that a colleague calls back, and agree on a day and time. If it doesn't, or they don't want it, thank them and end the call: never persuade.`,
		"max_duration": 300,
		"tools":        []any{map[string]any{"type": "end_call"}},
		"post_call_schema": extracted([3]string{"status", "bool",
			"Whether this is a lead worth a call from a colleague"},
			[3]string{"need", "string", "What they need, in a sentence"},
			[3]string{"decides", "bool", "Whether the person who was spoken to decides"},
			[3]string{"budget", "string", "The budget they named, if any"},
			[3]string{"begin", "string", "When they want to begin"},
			[3]string{"callback", "string", "Day and time agreed for a call from a colleague"}),
	}},
	{"survey", "ledger", "Survey", "Asks a few questions, and notes every answer.", map[string]any{
		"type": "outbound",
		"variables": map[string]any{"company": "Acme Hotels", "occasion": "your stay last week",
			"customer_name": ""},
		"initial_message": "Hello {{customer_name}}, this is the assistant of {{company}}. " +
			"May I ask you three short questions about {{occasion}}?",
		"system_prompt": `You ask the customers of {{company}} about {{occasion}}. Say early that you are an automated assistant and that it takes two minutes.

Ask these, one at a time, and wait for each answer:
1. From 0 to 10: how likely would you recommend us to a friend?
2. What did you like best?
3. What should we do better?

Take answers as they are: don't argue, don't explain, don't suggest any. When a number is unclear, ask once more. When somebody would rather not answer, go on.
If they don't want to take part, thank them and end the call at once. At the end thank them and say goodbye.`,
		"max_duration": 240,
		"tools":        []any{map[string]any{"type": "end_call"}},
		"post_call_schema": extracted([3]string{"status", "bool", "Whether all questions were answered"},
			[3]string{"score", "number", "How likely they would recommend, 0 to 10"},
			[3]string{"liked", "string", "What they liked best"},
			[3]string{"improve", "string", "What should be better"}),
	}},
}

//go:embed templates/*.yaml
var templateFiles embed.FS

// templateWords are a template's texts in a language.
type templateWords struct {
	Variables map[string]string `yaml:"variables"`
	Greeting  string            `yaml:"initial_message"`
	Prompt    string            `yaml:"system_prompt"`
	Voicemail string            `yaml:"voice_mail_message"`
}

// translated returns the texts of all templates in a language (ISO 639-1), nil for English and for languages without any.
func translated(language string) (map[string]templateWords, error) {
	raw, err := templateFiles.ReadFile("templates/" + language + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	words := map[string]templateWords{}
	if err == nil {
		err = yaml.Unmarshal(raw, &words)
	}
	if err != nil {
		return nil, fmt.Errorf("read the templates in %s: %w", language, err)
	}
	return words, nil
}

// in returns the template's body with its texts in a language, in English where there are none.
func (t *template) in(language string) (map[string]any, error) {
	body := treeOf(t.body)
	words, err := translated(language)
	w, ok := words[t.id]
	if err != nil || !ok {
		return body, err
	}
	vars := map[string]any{}
	for name, value := range w.Variables {
		vars[name] = value
	}
	body["variables"], body["initial_message"], body["system_prompt"] = vars, w.Greeting, w.Prompt
	if w.Voicemail != "" {
		body["voice_mail_message"] = w.Voicemail
	}
	return body, nil
}
