package e2e

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// picture saves a screenshot of a page for the project's front page.
func (p *page) picture(name string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
	p.shot(name, false)
	if _, err := os.Stat("../docs/" + name + ".png"); err != nil {
		p.t.Errorf("the README shows docs/%s.png: %v", name, err)
	}
}

// cake makes the first assistant one that tells people about their orders, with a tool that looks them up.
func (s *program) cake(t *testing.T) {
	t.Helper()
	s.bakery(t)
	status := s.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", s.Assistant), map[string]any{"name": "Pick-up desk",
		"variables":       map[string]any{"company": "Acme Bakery", "customer_name": "our customer"},
		"initial_message": "Good morning, this is {{company}}. Am I speaking with {{customer_name}}?",
		"system_prompt": "You are the friendly receptionist of {{company}}. You talk with {{customer_name}}.\nToday is {{current_date}}. " +
			"Answer in one or two short sentences.\n\n" +
			"What you know\n- We are open Monday to Saturday from 7 am to 6 pm.\n- We are at 12 Market Street, next to the town hall.\n" +
			"- order_status knows what an order is and when it is ready.\n\n" +
			"When you don't know something, say so and offer that a colleague calls back."}, nil)
	if status != http.StatusOK {
		t.Fatalf("the assistant is answered %d", status)
	}
}

// The pictures on the project's front page: an assistant with a test chat beside it, and a call.
func TestConsolePictures(t *testing.T) {
	share(t, browser)
	need(t, "flite")
	s, model := thinking(t, "PARLEY_SIP_LISTEN=off", "PARLEY_OPENAI_STT_MODEL="+aitest.TranscriptionModel)
	s.cake(t)
	p := browse(t)
	p.scheme("light")
	p.size(1280, 800)
	p.signIn(s)
	one := fmt.Sprintf("%s/assistants/%d", s.URL, s.Assistant)
	p.open(one)
	p.fill("#talk [name='variables.1.value']", "Ana")
	p.click("#talk-begin .primary")
	p.see("#thread", "Am I speaking with Ana?")
	model.Script(aitest.Behaviour{Calls: calls("order_status")},
		aitest.Behaviour{Text: "Good news, Ana: order 4711 is baked, and you can pick it up today from 4 pm."},
		aitest.Behaviour{Text: "We are open Monday to Saturday from 7 am to 6 pm."})
	p.do(chromedp.KeyEvent("Yes. Is my order 4711 ready?"), chromedp.KeyEvent("\r"))
	p.see("#thread", "from 4 pm")
	p.click("#thread .ai:last-child summary")
	p.do(chromedp.Focus(chromedp.CSS(".composer textarea"), chromedp.NodeVisible),
		chromedp.KeyEvent("And until when are you open?"), chromedp.KeyEvent("\r"))
	p.see("#thread", "7 am to 6 pm")
	p.do(chromedp.Evaluate[chromedp.Void]("document.getElementById('prompt').scrollIntoView()"))
	p.picture("console-assistant")

	var found struct {
		Data []struct {
			PhoneNumber string `json:"phone_number"`
		}
	}
	var bought struct{ Data struct{ ID int64 } }
	s.call(t, "GET", "/user/phone-numbers/search?country_code=US", nil, &found)
	s.call(t, "POST", "/user/phone-numbers/purchase", map[string]any{"phone_number": found.Data[0].PhoneNumber},
		&bought)
	status := s.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", s.Assistant),
		map[string]any{"type": "outbound", "status": "active", "record": true, "initial_message": "",
			"phone_number_id": bought.Data.ID, "post_call_schema": []any{map[string]any{"name": "picks_up",
				"type": "bool", "description": "Whether they pick the order up"},
				map[string]any{"name": "summary", "type": "string", "description": "What it was about"}}}, nil)
	if status != http.StatusOK {
		t.Fatalf("the assistant is answered %d", status)
	}
	// The sandbox's far end speaks according to what the model has been asked so far. One sentence may be heard in
	// pieces: the first piece counts as the whole.
	think, before := 280*time.Millisecond, model.Count()
	said := map[int]string{0: "Hello?", 1: "Yes, that's right.", 3: "Could you tell me more?", 4: "Thank you, goodbye."}
	model.Transcribe = func(aitest.Utterance) string {
		n := model.Count() - before
		text := said[n]
		delete(said, n)
		return text
	}
	model.Script(aitest.Behaviour{Text: "Good morning, this is Acme Bakery. Am I speaking with Ana?",
		FirstDelay: think},
		aitest.Behaviour{Calls: []ai.ToolCall{{ID: "call_1", Name: "order_status", Arguments: `{"number":"4711"}`}},
			FirstDelay: think},
		aitest.Behaviour{Text: "Your birthday cake is ready, and you can pick it up today from four o'clock.",
			FirstDelay: think},
		aitest.Behaviour{Text: "It is the walnut cake for twelve. We are at twelve Market Street, and open until six.", FirstDelay: think})
	model.Usually(aitest.Behaviour{Text: "Goodbye, Ana."})
	p.open(one + "/call")
	p.fill("#f-phone_number", "+1 415 555 0123")
	p.fill("#f-variables\\.1", "Ana")
	p.click(".call-form .primary")
	p.see("#call-state", "The customer hung up.")
	model.Usually(aitest.Behaviour{Text: `{"sentiment":"positive","outcome":"success","score":9,"picks_up":true,"summary":"Ana was told that her cake is ready, and picks it up today."}`})
	p.see("#facts", "picks it up today")
	p.until("document.querySelector('[data-wave]') && !document.querySelector('[data-wave]').hidden && " +
		"document.querySelector('audio').readyState > 0")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('audio').currentTime = 6"))
	p.until("document.querySelector('.said[aria-current]')")
	p.size(1280, 1125)
	p.picture("console-call")
}
