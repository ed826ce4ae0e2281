package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// bakery gives the first assistant a prompt, a tool that works and a tool that fails.
func (s *program) bakery(t *testing.T) {
	t.Helper()
	shop := http.NewServeMux()
	shop.HandleFunc("GET /orders/{n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"order":%q,"status":"baked","ready":"today, 4 pm"}`, r.PathValue("n"))
	})
	at := serveLocal(t, shop)
	var ids []int64
	for _, tool := range []string{"order_status", "loyalty_points"} {
		var made struct{ Data struct{ ID int64 } }
		path := map[string]string{"order_status": "/orders/{number}", "loyalty_points": "/nowhere/{number}"}[tool]
		status := s.call(t, "POST", "/user/tools", map[string]any{"name": tool, "description": "Looks up an order",
			"method": "GET", "endpoint": at + path,
			"schema": []any{map[string]any{"name": "number", "type": "string", "description": "Order number"}}}, &made)
		if status != http.StatusCreated {
			t.Fatalf("the tool is answered %d", status)
		}
		ids = append(ids, made.Data.ID)
	}
	status := s.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), map[string]any{"tool_ids": ids,
		"variables":       map[string]any{"company": "Acme Bakery"},
		"initial_message": "Hello {{customer_name}}, this is {{company}}. How can I help you?",
		"system_prompt": "You are the friendly receptionist of {{company}}.\nToday is {{current_date}}. You talk with {{customer_name}}.\n\n" +
			"What you know\n- We are open Monday to Saturday from 7 am to 6 pm."}, nil)
	if status != http.StatusOK {
		t.Fatalf("the assistant is answered %d", status)
	}
}

func calls(name string) []ai.ToolCall {
	return []ai.ToolCall{{ID: "call_" + name, Name: name, Arguments: `{"number":"4711"}`}}
}

// A new user signs in, opens the assistant, chats with it, and sees the reply being written and what its tools did.
func TestFirstChatInConsole(t *testing.T) {
	share(t, browser)
	s, model := thinking(t)
	s.bakery(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/assistants")
	p.click(".list a")
	p.see("#talk", "Test the saved version of Front desk")
	p.fill("#talk [name='variables.0.value']", "Ana <b>&")
	p.look("chat-begin")
	p.click("#talk-begin .primary")
	p.see("#thread", "Hello Ana <b>&, this is Acme Bakery.") // shown as text, not HTML
	p.until("document.activeElement.name === 'message'")

	gate := make(chan struct{})
	model.Script(aitest.Behaviour{Calls: append(calls("order_status"),
		ai.ToolCall{ID: "call_2", Name: "loyalty_points", Arguments: `{"number":"4711"}`})},
		aitest.Behaviour{Text: "Your order is <i>baked</i> & ready today at 4 pm.", Gate: gate})
	p.do(chromedp.KeyEvent("Where is my order?"), chromedp.KeyEvent("\r"))
	p.see("#thread .customer", "Where is my order?")
	p.see("[data-forming]", "order_status")
	p.see("[data-forming] .failed", "failed")
	// the reply is being written
	p.until("document.querySelector('[data-forming] .words').textContent.length > 0 && " +
		"!document.querySelector('#thread').innerText.includes('ready today')")
	p.shot("chat-forming-light", false)
	close(gate)
	p.see("#thread .ai:last-child", "Your order is <i>baked</i> & ready today at 4 pm.")
	p.until("document.querySelector('[data-forming]').hidden && document.querySelector('#typing').hidden && " +
		"document.activeElement.name === 'message' && document.activeElement.value === ''")
	p.click("#thread .ai:last-child summary")
	p.see("#thread .tool-call pre", `"number": "4711"`)
	p.see("#thread .tool-call pre", `"status": "baked"`)
	p.look("chat-talk")

	// Shift+Enter starts a new line.
	model.Script(aitest.Behaviour{Text: "Two lines, understood."})
	p.do(chromedp.Focus(chromedp.CSS(".composer textarea"), chromedp.NodeVisible), chromedp.KeyEvent("one"),
		chromedp.KeyEvent("\r", chromedp.KeyModifiers(8)), chromedp.KeyEvent("two"), chromedp.KeyEvent("\r"))
	p.see("#thread", "Two lines, understood.")
	p.until("[...document.querySelectorAll('#thread .customer .words')].at(-1).textContent === 'one\\ntwo'")

	// When the model fails, the page says so; the chat goes on.
	model.Script(aitest.Behaviour{Status: 400})
	p.do(chromedp.KeyEvent("Are you there?"), chromedp.KeyEvent("\r"))
	p.until("!document.querySelector('.composer [data-refused]').hidden")
	p.see("#thread .customer:last-child .wrong", "There was no reply")
	p.shot("chat-failed-light", false)

	// Unsaved changes do not apply to the chat; saved ones do, and the chat stays.
	p.until("getComputedStyle(document.querySelector('[data-unsaved]')).display === 'none'")
	p.fill("#f-initial_message", "Good day, {{title}}. What is it?")
	p.see("[data-unsaved]", "Save the draft to test them")
	p.click("#save")
	p.see("#notice", "The draft is saved.")
	p.see("[data-talks-draft]", "talking to the draft")
	p.see("[data-stale]", "Restart to hear the new greeting")
	p.see("#thread", "Two lines, understood.")
	p.until("getComputedStyle(document.querySelector('[data-unsaved]')).display === 'none'")
	p.click("[data-restart]")
	p.see("#talk-begin", "title")
	p.until("document.activeElement.name === 'variables.0.value'")
	p.do(chromedp.KeyEvent("\r")) // Enter submits the form
	p.see("#thread", "Good day, . What is it?")
	if before := s.balance(t); before != 100 {
		t.Errorf("test chats cost: the balance is %v", before)
	}

	// An inactive assistant can be tested too, from a phone.
	s.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), map[string]any{"status": "inactive"}, nil)
	p.size(390, 844)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	p.until("getComputedStyle(document.querySelector('#talk')).display === 'none'")
	p.click("[popovertarget=talk]")
	p.click("#talk-begin .primary")
	p.see("#thread", "Good day")
	model.Script(aitest.Behaviour{Text: "Of course."})
	p.do(chromedp.KeyEvent("Hi"), chromedp.KeyEvent("\r"))
	p.see("#thread", "Of course.")
	p.accessible("chat on a phone")
	p.shot("chat-phone", false)
	p.until("!document.querySelector('#talk .composer').dataset.busy")
	if !eval[bool](p, "document.querySelector('#talk').matches(':popover-open')") {
		t.Error("the test chat closes after a message")
	}

	// What was typed while a message was refused stands behind it.
	p.do(chromedp.Evaluate[chromedp.Void](`window.fetch = ((real) => (at, how) => String(at).endsWith("/say") ?
		new Promise((_, refuse) => { window.cut = () => refuse(new TypeError("cut")) }) : real(at, how))(window.fetch), undefined`))
	p.do(chromedp.KeyEvent("One"), chromedp.KeyEvent("\r"), chromedp.KeyEvent("Two"), chromedp.Evaluate[chromedp.Void]("window.cut()"))
	p.see("#talk [data-refused]", "can't be reached")
	p.until("document.querySelector('#talk textarea').value === 'One\\nTwo'")
}

// follow reads the public events of a conversation, as the widget does.
func (s *program) follow(t *testing.T, id string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/conversations/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	opened := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		sc := bufio.NewScanner(res.Body)
		for first := true; sc.Scan(); first = false {
			if first {
				close(opened)
			}
			lines <- sc.Text()
		}
	}()
	t.Cleanup(func() { res.Body.Close(); <-read })
	<-opened
	return lines
}

func hear(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case line := <-lines:
			if strings.Contains(line, want) {
				return
			}
		case <-timeout:
			t.Fatalf("the widget never heard %q", want)
		}
	}
}

// A person watches the inbox, sees a visitor's conversation come in live, takes over, replies and hands back.
func TestInbox(t *testing.T) {
	share(t, browser)
	s, model := thinking(t)
	s.bakery(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/conversations")
	p.see("h1", "No conversations yet")
	p.see(".code", s.AssistantUUID)
	p.look("inbox-none")

	id := s.converse(t)
	p.see("#results .unread", "Visitor") // without a reload
	p.until("document.title.startsWith('(1) ')")
	model.Script(aitest.Behaviour{Text: "On Saturday until 6 pm."})
	s.say(t, id, "When are you <b>open</b>?")
	p.see("#results .unread", "On Saturday until 6 pm.")
	for i, text := range []string{"Do you bake gluten-free bread?", "Where can I park?",
		strings.Repeat("A very long message ", 20)} {
		other := s.converse(t)
		model.Script(aitest.Behaviour{Text: []string{"Yes, every Thursday.", "Behind the town hall, for free.",
			"I see."}[i]})
		s.say(t, other, text)
	}
	s.call(t, "POST", "/user/ai/generate-reply", map[string]any{"assistant_id": s.Assistant,
		"customer_identifier": "ana@example.com", "message": "Hello from my shop"}, nil)
	p.see("#results", "ana@example.com")
	p.see("#results", "I see.")
	p.look("inbox")

	// The filters narrow the list, and it stays live.
	p.do(chromedp.SetValue(chromedp.CSS("[name=type]"), "api"),
		chromedp.Evaluate[chromedp.Void]("document.querySelector('[name=type]').dispatchEvent(new Event('change', {bubbles: true}))"))
	p.until("document.querySelectorAll('#results li').length === 1 && location.search.includes('type=api')")
	s.call(t, "POST", "/user/ai/generate-reply", map[string]any{"assistant_id": s.Assistant,
		"customer_identifier": "+4930901820", "message": "Hello"}, nil)
	p.until("document.querySelectorAll('#results li').length === 2")

	// A conversation is followed live.
	widget := s.follow(t, id)
	p.open(s.URL + "/conversations/" + id)
	p.see("#thread .customer", "When are you <b>open</b>?")
	p.see("#mode", "The assistant replies.")
	gate := make(chan struct{})
	model.Script(aitest.Behaviour{Calls: calls("order_status")}, aitest.Behaviour{Text: "It is baked.", Gate: gate})
	said := make(chan int, 1)
	go func() { status, _ := s.say(t, id, "And my order 4711?"); said <- status }()
	p.see("#thread .customer", "And my order 4711?")
	p.until("!document.querySelector('#typing').hidden")
	close(gate)
	p.see("#thread .ai", "It is baked.")
	p.until("document.querySelector('#typing').hidden")
	p.see("#thread .tool-call", "order_status")
	p.see("#facts", "$0.02")
	<-said

	p.click("#mode button")
	p.see("#mode", "is replying")
	hear(t, widget, `"enabled":false`)
	if _, r := s.say(t, id, "Can I talk to a person?"); r.Message != nil {
		t.Errorf("the silent assistant said %q", *r.Message)
	}
	p.see("#thread .customer", "Can I talk to a person?")
	p.see("#waits", "Waiting since")
	p.see("#waiting", "1")
	p.look("conversation-waits")
	p.open(s.URL + "/conversations") // begins with what needs a person
	p.see(".parts-of [aria-current]", "Needs a person")
	p.until("document.querySelectorAll('#results li').length === 1 && document.querySelectorAll('#results .tag')[0].textContent === 'Waiting'")
	p.look("inbox-waits")
	p.open(s.URL + "/canned-answers")
	p.fill("[name=name]", "hello")
	p.fill("[name=content]", "Of course, this is <i>Maria</i>.")
	p.click(".canned-form .primary")
	p.see(".list", "/hello")
	p.look("canned-answers")
	p.open(s.URL + "/conversations/" + id)
	p.fill(".notes textarea", "Wants to know about <b>4711</b>.")
	p.click(".notes .one-line button")
	p.see("#notes", "Wants to know about <b>4711</b>.")
	p.until("document.querySelector('.notes textarea').value === '' && !document.querySelector('#thread').innerText.includes('about')")
	p.do(chromedp.Focus(chromedp.CSS(".composer textarea"), chromedp.NodeVisible), chromedp.KeyEvent("/he"))
	p.see("#canned-list .first", "/hello")
	p.look("conversation-canned")
	p.do(chromedp.Focus(chromedp.CSS(".composer textarea"), chromedp.NodeVisible), chromedp.KeyEvent("\r"))
	p.until("document.querySelector('.composer textarea').value === 'Of course, this is <i>Maria</i>.' && " +
		"document.querySelector('#canned-list').hidden")
	p.do(chromedp.KeyEvent("\r"))
	p.see("#thread .human", "Of course, this is <i>Maria</i>.")
	p.until("document.querySelector('#waits').hidden && document.querySelector('#waiting').hidden")
	hear(t, widget, "this is <i>Maria</i>.")
	p.until("document.activeElement.name === 'message' && document.activeElement.value === ''")
	p.look("conversation")
	p.click("#mode button")
	p.see("#mode", "The assistant replies.")
	hear(t, widget, `"enabled":true`)
	model.Script(aitest.Behaviour{Text: "I am back."})
	s.say(t, id, "Thank you")
	p.see("#thread .ai", "I am back.")

	// Its cost is in the ledger.
	p.open(s.URL + "/ledger")
	p.see(".ledger", "−$0.01")
	p.see(".sums", "$99.92")
	p.look("ledger")

	p.open(s.URL + "/conversations/" + id)
	p.click("[popovertarget=ask-delete]")
	p.see("#ask-delete", "Delete this conversation?")
	p.click("#ask-delete .primary")
	p.see("#notice", "Deleted.")
	p.until("!document.querySelector('#results').innerText.includes('Can I talk')")
	if status := s.call(t, "GET", "/user/conversations/"+id, nil, nil); status != http.StatusNotFound {
		t.Errorf("the deleted conversation is answered %d", status)
	}
}
