package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// A new user gets from the assistant to a first test run in four clicks. A mistake is shown at its line, a worse
// prompt is shown as worse before it is saved, and a chat becomes a test and is replayed.
func TestConsoleExams(t *testing.T) {
	share(t, browser)
	s := start(t, "PARLEY_RATE_PUBLIC=off", "PARLEY_RATE_API=off")
	status := s.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", s.Assistant), map[string]any{"initial_message": "Hello, the bakery.",
		"system_prompt": "You are the receptionist of a bakery.\nWe are open Monday to Saturday from 7 am to 6 pm."}, nil)
	if status != http.StatusOK {
		t.Fatalf("the assistant is answered %d", status)
	}
	p := browse(t)
	p.signIn(s)
	home := fmt.Sprintf("%s/assistants/%d", s.URL, s.Assistant)
	tests := fmt.Sprintf("/assistants/%d/tests", s.Assistant)
	p.open(home)
	p.click(".head a[href$='/tests']") // 1
	p.see("h1", "Test this assistant")
	p.shot("exam-empty", true)
	p.click(".empty .primary") // 2
	p.see("h1", "New test")
	p.fill("#f-script", "name: Says when it is open\nchannel: chat\nsteps:\n  - shout: hello\n")
	p.expect("422")
	p.click("#run") // 3
	p.see(".mistakes", "Line 4")
	p.see(".mistakes mark", "shout: hello")
	p.look("exam-mistake")
	p.fill("#f-script", writtenTest)
	p.click("#run") // 4
	p.see(".head [role=status]", "1 passed")
	p.look("exam-run")

	p.open(s.URL + tests)
	p.see(".list", "Passed")
	p.look("exam-list")
	p.click(".head a[href$='/try']")
	p.fill("#f-system_prompt", "We are open Monday to Saturday from 8 am to 6 pm.")
	p.shot("exam-try", true)
	p.click("#save")
	p.see("#results", "1 worse than before")
	p.see("#results .list", "Passed before, Failed now")
	p.click("#results .list a")
	p.see(".list .tag.bad", "Failed")
	p.look("exam-result")

	chat := s.converse(t)
	if status, _ := s.say(t, chat, "When are you open on Saturday?"); status != http.StatusOK {
		t.Fatalf("the chat is answered %d", status)
	}
	p.open(s.URL + "/conversations/" + chat)
	p.click(".actions a[href*='/try?conversation=']")
	p.see("h1", "Replay")
	p.fill("#f-system_prompt", "We are open Monday to Saturday from 9 am to 6 pm.")
	p.click("#save")
	p.see(".replay .differs", "9 am")
	p.look("exam-replay")
	p.open(s.URL + "/conversations/" + chat)
	p.click(".actions form[action$='/test'] button")
	p.see("#notice", "Read it through")
	p.see("h1", "As in the chat of")
	p.shot("exam-made", true)
	p.click("[popovertarget=ask-delete]")
	p.click("#ask-delete .primary")
	p.see("#notice", "Deleted.")
	p.draftMustPass(s, home)
}

// draftMustPass publishes a draft that its tests keep back: it is worse than live, then it is mended.
func (p *page) draftMustPass(s *program, home string) {
	p.t.Helper()
	at := fmt.Sprintf("/user/assistants/%d/draft", s.Assistant)
	s.call(p.t, "PUT", fmt.Sprintf("/user/assistant/%d", s.Assistant), map[string]any{"require_tests": true}, nil)
	s.call(p.t, "PUT", at, map[string]any{"system_prompt": "We are open Monday to Saturday from 8 am to 6 pm."}, nil)
	p.open(home + "/publish")
	p.see(".publish", "have not been run against the draft")
	p.click("#run-draft")
	p.see("#results", "1 worse than live")
	p.see("[data-of-draft]", "Changed: System prompt")
	p.look("exam-draft")
	p.open(home + "/tests")
	p.see(".list", "Draft")
	p.look("exam-list-draft")
	p.open(home + "/publish")
	p.see(".publish", "1 of 1 did not pass")
	p.look("publish-refused")
	if status := s.call(p.t, "POST", fmt.Sprintf("/user/assistants/%d/publish", s.Assistant), map[string]any{},
		nil); status != http.StatusConflict {
		p.t.Errorf("a draft that fails its tests is answered %d", status)
	}
	s.call(p.t, "PUT", at, map[string]any{"system_prompt": "You are brief.\nWe are open Monday to Saturday from 7 am to 6 pm."}, nil)
	p.open(home + "/publish")
	p.click("#run-draft")
	p.see(".head [role=status]", "1 passed")
	p.open(home + "/publish")
	p.see("[data-draft-tests]", "1 passed")
	p.click("#publish")
	p.see("#notice", "Published")
}
