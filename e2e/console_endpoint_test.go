package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// An endpoint is saved in the console, measured, chosen in an assistant, and answers the test chat beside its editor.
func TestConsoleEndpoint(t *testing.T) {
	share(t, browser)
	url, _, _ := reference(t, "http://")
	s, model := thinking(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/endpoints")
	p.see("#main", "You have none yet")
	p.click("a[href='/endpoints/new']")
	p.fill("#f-name", "Our program")
	p.choose("#f-kind", "agent")
	p.choose("#f-protocol", "parley")
	p.fill("#f-url", "ftp://example.com")
	p.look("endpoint-new")
	p.click("main form .primary[type=submit]")
	p.expect("422")
	p.see("[role=alert], .wrong", "valid URL")
	p.fill("#f-url", url)
	p.click("main form .primary[type=submit]")
	p.see("h1", "Our program")
	p.click("#measure-now")
	for _, words := range []string{"First word", "Piece by piece", "It called the tool and told its result.",
		"It stopped, and answered the next turn."} {
		p.see("#measured", words)
	}
	if bad := eval[int](p, "[...document.querySelectorAll('#measured .tag')].filter((tag) => tag.textContent !== 'ok').length"); bad != 0 {
		t.Errorf("%d findings are not ok", bad)
	}
	p.look("endpoint-measured")

	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	id := eval[string](p, "[...document.querySelector('#f-llm_model_id').options].find((o) => o.text === 'Our program').value")
	p.choose("#f-llm_model_id", id)
	p.click("#save")
	p.see("#notice", "The draft is saved.")
	p.click("#talk-begin [type=submit]")
	p.fill("#talk .composer textarea", "Do you bake?")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.see("#talk .said.ai:last-child .words", "You said: Do you bake?")
	p.look("endpoint-chosen")
	if n := len(model.Requests()); n != 0 {
		t.Errorf("the assistant's own model was asked %d times", n)
	}
}

// The test chat beside an assistant goes on while an asynchronous tool runs, and shows the further message when the tool has answered.
func TestConsoleTestChatLive(t *testing.T) {
	share(t, browser)
	ready := make(chan struct{})
	shop := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-ready
		_, _ = w.Write([]byte(`{"left":3}`))
	}))
	s, model := thinking(t)
	var made struct{ Data struct{ ID int64 } }
	if status := s.call(t, "POST", "/user/tools", map[string]any{"name": "stock", "description": "Looks into the warehouse", "method": "GET",
		"endpoint": shop, "mode": "async", "timeout": 300}, &made); status != http.StatusCreated {
		t.Fatal(status)
	}
	s.call(t, "PUT", "/user/assistant/"+itoa(s.Assistant), map[string]any{"tool_ids": []int64{made.Data.ID}}, nil)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	p.click("#talk-begin [type=submit]")
	ask := func(text string) {
		p.fill("#talk .composer textarea", text)
		p.do(chromedp.KeyEvent(kb.Enter))
	}
	model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_1", Name: "stock", Arguments: "{}"}}},
		aitest.Behaviour{Text: "I am looking."})
	ask("Is it there in blue?")
	p.see("#talk .said.ai:last-child .words", "I am looking.")
	model.Script(aitest.Behaviour{Text: "Until six."}, aitest.Behaviour{Text: "Three are left."})
	ask("How long are you open?")
	p.see("#talk .said.ai:last-child .words", "Until six.")
	close(ready)
	p.see("#talk .said.ai:last-child .words", "Three are left.")
	p.until("document.querySelector('#talk [data-forming]').hidden && document.querySelector('#talk #typing').hidden")
	list := eval[string](p, "[...document.querySelectorAll('#talk .said.customer .words')].map((w) => w.textContent).join('|')")
	if list != "Is it there in blue?|How long are you open?" {
		t.Errorf("the customer has said %s", list)
	}
	p.look("test-chat-live")
	p.click("[data-restart]")
	p.see("#talk-begin", "")
}
