package local

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

func TestConforms(t *testing.T) { aitest.Conform(t, Model{}) }

const bakery = `You are Rosa, the receptionist of the Blue Door bakery. Always be polite and never mention our competitors.
You are an AI assistant.

# Opening hours
- Monday to Friday: 7:00 to 18:00
- Saturday: 8:00 to 13:00
- Sunday: closed

Our address is 5 Harbour Street, next to the old mill. Dr. Miller's practice is in the same house.
**Sourdough bread** costs 4.50 euros. A croissant costs 2 euros.
Q: Do you deliver?
A: We deliver within 5 km for orders above 20 euros.
If the customer is angry, apologise.
Cakes must be ordered two days ahead.
ケーキは二日前に注文してください。`

// dialogue gives the model the customer's lines and returns the last reply.
func dialogue(t *testing.T, system string, tools []ai.Tool, lines ...string) ai.Reply {
	t.Helper()
	var history []ai.Message
	var last ai.Reply
	for _, line := range lines {
		history = append(history, ai.Message{Role: ai.User, Text: line})
		r, err := Model{}.Generate(t.Context(), ai.Request{System: system, Tools: tools, Messages: history},
			func(ai.Delta) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, ai.Message{Role: ai.Assistant, Text: r.Text})
		last = r
	}
	return last
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		says string // lines are separated by |
		want string // a part of the reply; with ! in front: a part that it must not have
	}{
		{"Hello!", "How can I help you?"},
		{"good morning", "How can I help you?"},
		{"Are you open on Saturday?", "Saturday: 8:00 to 13:00"},
		{"What are your opening hours on Sunday?", "Sunday: closed"},
		{"How much is a croissant?", "A croissant costs 2 euros."},
		{"how much does sourdough bread cost", "Sourdough bread costs 4.50 euros."},
		{"Where are you located?", "5 Harbour Street, next to the old mill."},
		{"Do you deliver to my home?", "We deliver within 5 km"},
		{"When must I order cakes?", "two days ahead"},
		{"ケーキ", "ケーキは二日前に注文してください。"},
		{"My name is Bob, how do you sell cakes?", "Cakes must be ordered two days ahead."},
		{"What is the bakery's address?", "Our address is 5 Harbour Street"},
		{"Do you mention competitors?", "!never mention"},
		{"I am angry", "!apologise"},
		{"What is the capital of Mongolia?", "without a language model"},
		{"Who are you?", "built-in responder without a language model"},
		{"Are you a bot?", "built-in responder without a language model"},
		{"Are you ChatGPT?", "built-in responder without a language model"},
		{"What kind of AI are you?", "built-in responder without a language model"},
		{"My name is Ana", "Nice to meet you, Ana."},
		{"My name is Ana.|Do you deliver?|What is my name?", "your name is Ana."},
		{"my name is Ana and my order number is 4711|what's my order number?", "4711"},
		{"my name is Ana and my order number is 4711|who am I?", "Ana."},
		{"Hi, my name is Ana|my name is Anna|Do you know my name?", "Anna."},
		{"I live in Porto Alegre.|Where do I live?", "Porto Alegre"},
		{"What is my name?", "You have not told me your name yet."},
		{"My favourite bread is rye|What is my favourite bread?", "rye"},
		{"My name is Ana|Hello", "Hello, Ana!"},
		{"Thank you!", "welcome"},
		{"ok, bye", "goodbye"},
		{"", "How can I help you?"},
		{"???", "found nothing"},
	} {
		got := dialogue(t, bakery, nil, strings.Split(c.says, "|")...).Text
		want, not := strings.CutPrefix(c.want, "!")
		if strings.Contains(got, want) == not {
			t.Errorf("%s\n got %q\nwant %q", c.says, got, c.want)
		}
		if strings.Contains(got, "AI assistant") || strings.Contains(got, "I am a language model") {
			t.Errorf("%s: claims to be what it isn't: %q", c.says, got)
		}
	}
}

// The sentences of a prompt that tell the assistant how to behave are never said, whatever is asked for with their words.
func TestOrdersUnsaid(t *testing.T) {
	for _, line := range []string{
		"When you don't know something, say so.",
		"If something is unclear, ask one short question.",
		"Whenever a booking fails, apologise and offer another time.",
		"Before you hang up, repeat the appointment.",
		"Remind the customer of the appointment at noon.",
		"Call the customer by their first name.",
		"Do not mention the discount.",
		"Don’t mention the discount.",
		"Only mention the discount when asked.",
		"First, greet everybody by name.",
		"Please repeat the number back.",
		"You are to mention the discount.",
		"Collect the name and the number of the caller.",
		"Then transfer the call to the office.",
		"Under no circumstances mention the discount.",
		"Sage nie, was der Rabatt ist.",
	} {
		for _, asked := range []string{line, "What do I say when I don't know something?", "Tell me about the " + line} {
			got := dialogue(t, "The shop is in Lisbon. "+line, nil, asked).Text
			if strings.Contains(strings.ToLower(got), strings.ToLower(strings.TrimSuffix(line, "."))) || strings.Contains(got, "say so") {
				t.Errorf("%q is answered with a line of the prompt: %q", asked, got)
			}
		}
	}
	for _, line := range []string{
		"Your appointment is on Friday at noon.",
		"If it rains, the terrace is closed.",
		"When the shop is closed, parcels are left with the neighbour.",
		"Checks are not accepted.",
		"Bring your passport to the appointment.",
		"Call 555 0100 to cancel the appointment.",
		"Stays of a week cost 300 euros.",
		"Start of the season is in May.",
		"Help is at hand on the second floor.",
		"We remind every customer of the appointment.",
	} {
		if got := dialogue(t, "The shop is in Lisbon. "+line, nil, line).Text; got != line {
			t.Errorf("%q is a fact, and %q was said", line, got)
		}
	}
}

func tool(name, description, properties string, required ...string) ai.Tool {
	r, _ := json.Marshal(append([]string{}, required...))
	return ai.Tool{Name: name, Description: description,
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s}`, properties, r))}
}

var office = []ai.Tool{
	tool("get_weather", "Get the current weather of a city.",
		`"city":{"type":"string","description":"Name of the city"}`, "city"),
	tool("book_appointment", "Book an appointment for the customer.",
		`"date":{"type":"string","description":"The day"},"email":{"type":"string","description":"Where the confirmation goes"},"people":{"type":"number","description":"How many come"},"urgent":{"type":"boolean","description":"Whether it can't wait"}`, "date", "email"),
	tool("check_order", "Check the status of an order.",
		`"order_number":{"type":"number","description":"Number of the order"}`, "order_number"),
	tool("send_note", "Send a note to the team.", `"text":{"type":"string","description":"What to tell"}`, "text"),
	tool("search_knowledgebase", "Search the knowledgebase.",
		`"query":{"type":"string","description":"What to search for"}`, "query"),
}

func TestCalls(t *testing.T) {
	for _, c := range []struct{ says, want string }{
		{"What's the weather in New York?", `get_weather {"city":"New York"}`},
		{"check_order order_number 17", `check_order {"order_number":17}`},
		{"Can you check the status of my order 1,234?", `check_order {"order_number":1234}`},
		{"My order number is 88|Please check my order", `check_order {"order_number":88}`},
		{"Please check my order|It is 4711", `check_order {"order_number":4711}`},
		{"Please check my order", "Please tell me the order number."},
		{"Book an appointment on 2026-03-04 for ana@example.com",
			`book_appointment {"date":"2026-03-04","email":"ana@example.com"}`},
		{"My email is ana@example.com|I want to book an appointment next Tuesday, people: 3",
			`book_appointment {"date":"next Tuesday","email":"ana@example.com","people":3}`},
		{"Book an urgent appointment tomorrow, bo@example.org",
			`book_appointment {"date":"tomorrow","email":"bo@example.org","urgent":true}`},
		{`Send the team a note: "Call me back"`, `send_note {"text":"Call me back"}`},
		{`call check_order with {"order_number": 5}`, `check_order {"order_number":5}`},
		{"Do you have gluten-free pizza?", `search_knowledgebase {"query":"Do you have gluten-free pizza?"}`},
		{"Hello", "How can I help you?"},
		{"How much is a croissant?", "A croissant costs 2 euros."},
	} {
		r := dialogue(t, bakery, office, strings.Split(c.says, "|")...)
		got := r.Text
		if len(r.Calls) > 0 {
			got = r.Calls[0].Name + " " + r.Calls[0].Arguments
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s\n got %s\nwant %s", c.says, got, c.want)
		}
	}
}

func TestResults(t *testing.T) {
	for _, c := range []struct{ tool, asked, result, want string }{
		{"check_order", "Where is my order?", `{"status":"in the oven","ready_at":"9:30"}`,
			"Here is what I found: ready at: 9:30; status: in the oven."},
		{"check_order", "Where is my order?", "Error: status 404", "that did not work: status 404."},
		{"check_order", "Where is my order?", "", "That is done."},
		{"check_order", "Where is my order?", "It left at nine", "Here is what I found: It left at nine."},
		{"search_knowledgebase", "Is there gluten in the pizza?",
			`{"data":[{"text":"Our pizza is free of gluten. We open at ten.","document_name":"menu"}]}`,
			"Our pizza is free of gluten."},
		{"search_knowledgebase", "Is there gluten in the pizza?", `{"data":[]}`, "found nothing"},
	} {
		r, err := Model{}.Generate(t.Context(), ai.Request{System: bakery, Tools: office, Messages: []ai.Message{
			{Role: ai.User, Text: c.asked},
			{Role: ai.Assistant, Calls: []ai.ToolCall{{ID: "1", Name: c.tool, Arguments: "{}"}}},
			{Role: ai.ToolRole, CallID: "1", Text: c.result},
		}}, func(ai.Delta) error { return nil })
		if err != nil || !strings.Contains(r.Text, c.want) {
			t.Errorf("%s: got %q, %v; want %q", c.result, r.Text, err, c.want)
		}
	}
}

func TestExtracts(t *testing.T) {
	talk := "AI: Hello, how can I help?\nCustomer: I want to book a table for 4 people. My name is Ana Silva.\n" +
		"AI: For when, and what is your email?\nCustomer: tomorrow, ana@example.com. I do not need parking.\nAI: Booked.\n" +
		"Customer: Great, thank you!"
	schema := `{"type":"object","properties":{
		"status":{"type":["boolean","null"],"description":"Whether the goal of the conversation was reached"},
		"summary":{"type":["string","null"],"description":"A short summary of the conversation"},
		"people":{"type":["number","null"],"description":"How many people come"},
		"email":{"type":["string","null"],"description":"The customer's email"},
		"customer_name":{"type":["string","null"],"description":"Name of the customer"},
		"parking":{"type":["boolean","null"],"description":"Whether parking is needed"},
		"budget":{"type":["number","null"],"description":"What they want to spend"},
		"allergies":{"type":["string","null"],"description":"Food that they can't eat"}}}`
	want := `{"allergies":null,"budget":null,"customer_name":"Ana Silva","email":"ana@example.com","parking":false,"people":4,"status":true,"summary":"I want to book a table for 4 people. Great, thank you!"}`
	if got := extract(json.RawMessage(schema), talk); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := extract(json.RawMessage(schema),
		"AI: Hello?\n"); got !=
		`{"allergies":null,"budget":null,"customer_name":null,"email":null,"parking":null,"people":null,"status":null,"summary":null}` {
		t.Errorf("of nothing: %s", got)
	}
	bad := "AI: Hello\nCustomer: I am not interested."
	if got := extract(json.RawMessage(schema), bad); !strings.Contains(got, `"status":false`) {
		t.Errorf("got %s", got)
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"Dr. Who is here. It costs 4.50 euros! Really? Yes": "Dr. Who is here.|It costs 4.50 euros!|Really?|Yes",
		"see example.com. End":                              "see example.com.|End",
		"一。二！":                                              "一。|二！",
		"":                                                  "",
	} {
		if got := strings.Join(sentences(text), "|"); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestStems(t *testing.T) {
	for _, group := range []string{"opens opening opened open", "orders ordered ordering order",
		"deliveries delivers delivery deliver", "bakes baked baking bake", "cancelled cancels cancelling",
		"costs price prices fee", "glass glass"} {
		words := strings.Fields(group)
		for _, w := range words {
			if stem(w) != stem(words[0]) {
				t.Errorf("%s and %s have the stems %s and %s", words[0], w, stem(words[0]), stem(w))
			}
		}
	}
}

func FuzzRespond(f *testing.F) {
	f.Add(bakery, "My name is Ana. What is my name?", `{"a":[1,"b"]}`, "order_number")
	f.Add("# \n- \nQ: \nA:", "check \"\" {", "Error:", "")
	f.Add("You are", "my is is", "[[[", "(")
	f.Fuzz(func(t *testing.T, system, said, result, param string) {
		p, _ := json.Marshal(map[string]any{"type": "object",
			"properties": map[string]any{param: map[string]any{"type": "string"},
				"n": map[string]any{"type": "number"}}, "required": []string{param}})
		tools := append([]ai.Tool{{Name: param, Description: said, Schema: p}}, office...)
		base := []ai.Message{{Role: ai.User, Text: result}, {Role: ai.Assistant, Text: system},
			{Role: ai.User, Text: said}}
		for _, req := range []ai.Request{
			{System: system, Messages: base, Tools: tools},
			{System: system, Messages: append(base,
				ai.Message{Role: ai.Assistant, Calls: []ai.ToolCall{{ID: "1", Name: param}}},
				ai.Message{Role: ai.ToolRole, CallID: "1", Text: result}), Tools: tools},
			{System: system, Messages: base, Schema: &ai.Schema{Name: "x", JSON: p}},
		} {
			r, err := Model{}.Generate(t.Context(), req, func(ai.Delta) error { return nil })
			again := respond(req)
			if err != nil || r.Text != again.Text || fmt.Sprint(r.Calls) != fmt.Sprint(again.Calls) {
				t.Fatalf("not the same twice: %+v and %+v, %v", r, again, err)
			}
			if r.Text == "" && len(r.Calls) == 0 {
				t.Fatal("nothing said")
			}
			if utf8.ValidString(system+"|"+said+"|"+result+"|"+param) && !utf8.ValidString(r.Text) {
				t.Fatalf("broken text %q", r.Text)
			}
			for _, c := range r.Calls {
				if !json.Valid([]byte(c.Arguments)) {
					t.Fatalf("arguments %q", c.Arguments)
				}
			}
			if req.Schema != nil && !json.Valid([]byte(r.Text)) {
				t.Fatalf("no JSON: %q", r.Text)
			}
		}
	})
}
