package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
	"parley/internal/store/storetest"
)

// liveCall returns the id of the account's only live call.
func (l *line) liveCall(t *testing.T) (id int64) {
	t.Helper()
	eventually(t, "a live call", func() bool {
		var list struct{ Data []struct{ ID int64 } }
		l.call(t, "GET", "/user/calls?status=in-progress", nil, &list)
		if len(list.Data) == 1 {
			id = list.Data[0].ID
		}
		return id != 0
	})
	return id
}

// delay returns how long after a tone's first packet another telephone hears it, in its audio stream.
func delay(t *testing.T, from, to *phone.Call, hz float64) time.Duration {
	t.Helper()
	before := len(to.Sound())
	said := from.Say(tone(hz, time.Second))
	<-said.Done()
	step, found := int(to.Rate())/50, -1
	eventually(t, "a tone", func() bool {
		pcm := to.Sound()
		for at := before; at+step*2 <= len(pcm) && found < 0; at += step {
			if hasFor(pcm[at:at+step*2], hz, int(to.Rate()), step*2) {
				found = at
			}
		}
		return found >= 0
	})
	return time.Duration(found-before) * time.Second / time.Duration(to.Rate())
}

// A supervisor is called into a call over real RTP. They hear both sides, and nobody hears them; they whisper, and
// only the model gets it; they take over, which stops a reply at once; they hand back with a key, and hang up, and the
// call goes on.
func TestSupervisorByTelephone(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, map[string]any{"record": true})
	desk := handset(t, phone.Options{})
	var trunk struct {
		Data struct {
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	if status := l.call(t, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "Desk",
		"phone_number": "+4930901820", "sip_address": desk.Addr().String(), "inbound_authorization_type": "ip",
		"allowed_inbound_ips": []string{"127.0.0.1"}}, &trunk); status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	c := l.greeted(t, l.phone)
	path := fmt.Sprintf("/user/calls/%d/legs", l.liveCall(t))
	var made struct{ Data parley.CallLeg }
	if status := l.call(t, "POST", path, map[string]any{"phone_number": "204",
		"phone_number_id": trunk.Data.PhoneNumberID}, &made); status != http.StatusCreated ||
		made.Data.Mode != parley.LegListen || made.Data.Status != parley.LegDialing {
		t.Fatalf("%d %+v", status, made)
	}
	ctx, cancel := timeout(t, patience)
	defer cancel()
	in, err := desk.Next(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, l.log)
	}
	in.Ring()
	d, err := in.Answer()
	if err != nil {
		t.Fatal(err)
	}
	become := func(mode parley.LegMode) {
		t.Helper()
		one := fmt.Sprintf("%s/%d", path, made.Data.ID)
		if status := l.call(t, "PUT", one, map[string]any{"mode": mode}, &made); status != http.StatusOK || made.Data.Mode != mode {
			t.Fatalf("%d %+v", status, made)
		}
	}
	eventually(t, "the supervisor to be there", func() bool {
		var seen struct{ Legs []parley.CallLeg }
		l.call(t, "GET", strings.TrimSuffix(path, "/legs"), nil, &seen)
		return len(seen.Legs) == 1 && seen.Legs[0].Status == parley.LegJoined
	})

	v.hears("How much is a cake?")
	v.Script(aitest.Behaviour{Text: "Ten euros."})
	asks(t, c)
	v.awaits(t, c, "Ten euros.")
	v.awaits(t, d, "Ten euros.")
	silent(t, c, 400*time.Millisecond)
	nobody := d.Say(tone(2345, time.Second))
	<-nobody.Done()

	become(parley.LegWhisper)
	v.hears("Offer a discount.")
	asks(t, d)
	eventually(t, "the whisper to be understood", func() bool {
		var seen struct{ Turns []parley.CallTurn }
		l.call(t, "GET", strings.TrimSuffix(path, "/legs"), nil, &seen)
		last := seen.Turns[len(seen.Turns)-1]
		return last.Speaker == parley.SpeakerSupervisor && last.Whispered && last.Text == "Offer a discount."
	})
	v.hears("That is a lot.")
	v.Script(aitest.Behaviour{Text: strings.Repeat("Nine euros then, as it is you. ", 12)})
	asks(t, c)
	v.awaits(t, c, "Nine euros then, as it is you.")
	if has(c.Sound(), 2345, int(c.Rate())) {
		t.Error("the customer hears who listens and whispers")
	}
	told := false
	requests := v.Requests()
	for _, m := range requests[len(requests)-1].Messages {
		told = told || strings.Contains(m.Text, `does not hear it: "Offer a discount."`)
	}
	if !told {
		t.Errorf("the model is told %+v", requests[len(requests)-1].Messages)
	}

	taken := time.Now()
	become(parley.LegTakeOver)
	if last := silent(t, c, 500*time.Millisecond); last.Sub(taken) > 300*time.Millisecond {
		t.Errorf("the assistant speaks for %s after it is taken over", last.Sub(taken))
	}
	there, back := delay(t, d, c, 2345), delay(t, c, d, 1234)
	t.Logf("sound is %s late from the supervisor to the customer, and %s back", there, back)
	if there > 300*time.Millisecond || back > 300*time.Millisecond {
		t.Errorf("sound is %s and %s late", there, back)
	}

	v.Script(aitest.Behaviour{Text: "Here I am again."})
	d.Press("1")
	v.awaits(t, c, "Here I am again.")
	if status := l.call(t, "DELETE", fmt.Sprintf("%s/%d", path, made.Data.ID), nil, nil); status != http.StatusOK {
		t.Errorf("hanging up is answered %d", status)
	}
	gone(t, d)
	silent(t, c, 400*time.Millisecond)
	v.hears("I want two of them.") // no word about a listener
	v.Script(aitest.Behaviour{Text: "Goodbye then."})
	asks(t, c)
	v.awaits(t, c, "Goodbye then.")
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if strings.Contains(row.Transcript, "discount") {
		t.Error(row.Transcript)
	}
	var seen struct {
		Legs      []parley.CallLeg
		Breakdown parley.CallCosts `json:"cost_breakdown"`
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &seen)
	if len(seen.Legs) != 1 || seen.Legs[0].Kind != parley.LegSupervisor || seen.Legs[0].EndedReason != parley.APIHangup ||
		seen.Legs[0].Cost == 0 || seen.Breakdown.LegCost != seen.Legs[0].Cost {
		t.Errorf("%+v", seen)
	}
	_, right, rate := l.recording(t, row)
	if !has(right, 2345, rate) {
		t.Error("the recording lacks who took over")
	}
}

// A supervisor joins from the page of a live call: listens, takes over with their own voice, and hands back.
func TestSupervisorInConsole(t *testing.T) {
	share(t, webCall)
	l, v := bakeryLine(t, nil, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	p := browse(t, fakeMicrophone(microphone(t, 3, "good morning this is the supervisor of this bakery speaking", 1,
		"good morning this is the supervisor of this bakery speaking", 60))...)
	p.signIn(l.program)
	c := l.greeted(t, l.phone)
	v.UsuallyTranscripts(aitest.Behaviour{Text: "This is the supervisor."})
	v.Usually(aitest.Behaviour{Text: "Back again."})
	p.open(fmt.Sprintf("%s/calls/%d", l.URL, l.liveCall(t)))
	p.accessible("call that can be joined")
	p.shot("call-join", false)
	p.click("[data-join-as=listen]")
	p.see("[data-join-state]", "You hear both")
	p.see("#legs", "listens")
	if at := c.Packets(); at[len(at)-1].Loud() {
		t.Error("a listener is heard")
	}
	p.countReconnects()
	p.changeNetwork()
	taken := time.Now()
	p.click("[data-join-as=take_over]")
	p.see("[data-join-state]", "You have taken over")
	hears(t, c, taken)
	p.see(".said", "Supervisor")
	p.see("#legs", "has taken over")
	p.size(390, 844)
	p.scheme("dark")
	p.accessible("call that is taken over, dark, on a phone")
	p.shot("call-taken-over-phone-dark", false)
	p.click("[data-join-back]")
	v.awaits(t, c, "Back again.")
	p.see("[data-join-state]", "Nobody hears you")
	p.click("[data-join-leave]")
	p.see("#legs", "left")
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	l.over(t)
}

// A supervisor looks after a call from another node than the one that has it: their browser's sound goes straight to
// that node, and what they do reaches it within a second.
func TestSupervisorOnAnotherNode(t *testing.T) {
	share(t, webCall)
	l, v := bakeryLine(t, nil, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0", "PARLEY_DATABASE="+storetest.Postgres(t),
		"PARLEY_SECRET_KEY=the same on all nodes")
	l.env = append(l.env, "PARLEY_SIP_LISTEN=off") // for the node that joins
	other := l.join(t)
	p := browse(t, fakeMicrophone(microphone(t, 3, "good morning this is the supervisor of this bakery speaking", 1,
		"good morning this is the supervisor of this bakery speaking", 60))...)
	p.signIn(other)
	c := l.greeted(t, l.phone)
	v.UsuallyTranscripts(aitest.Behaviour{Text: "This is the supervisor."})
	v.Usually(aitest.Behaviour{Text: "Back again."})
	id := l.liveCall(t)
	path := fmt.Sprintf("/user/calls/%d", id)
	p.open(fmt.Sprintf("%s/calls/%d", other.URL, id))
	p.click("[data-join-as=listen]")
	p.see("[data-join-state]", "You hear both")
	p.see("#legs", "listens")
	if at := c.Packets(); at[len(at)-1].Loud() {
		t.Error("a listener is heard")
	}
	p.countReconnects()
	p.changeNetwork()
	p.changeNetwork()
	began := time.Now()
	if status := other.call(t, "POST", path+"/whisper", map[string]any{"text": "Offer a discount."}, nil); status != http.StatusOK {
		t.Errorf("whispering is answered %d", status)
	}
	t.Logf("the assistant is told after %s", time.Since(began))
	p.see(".said", "Offer a discount.")
	eventually(t, "figures of the sound", func() bool {
		var seen parley.Call
		other.call(t, "GET", path, nil, &seen)
		return seen.Media != nil && seen.Media.Codec != ""
	})
	taken := time.Now()
	p.click("[data-join-as=take_over]")
	p.see("[data-join-state]", "You have taken over")
	hears(t, c, taken)
	p.see("#legs", "has taken over")
	p.click("[data-join-back]")
	v.awaits(t, c, "Back again.")
	p.see("[data-join-state]", "Nobody hears you")
	p.click("[data-join-leave]")
	p.see("#legs", "left")
	if status := other.call(t, "POST", path+"/hangup", nil, nil); status != http.StatusOK {
		t.Errorf("hanging up is answered %d", status)
	}
	gone(t, c)
	l.over(t)
}

// One page has all live calls. A supervisor listens to one in the browser, tells the assistant something in writing, has
// a telephone called that takes over, hands back and hangs up on it; another call begins and is hung up meanwhile, and
// what is on stays on.
func TestLiveCallsPage(t *testing.T) {
	share(t, webCall)
	l, v := bakeryLine(t, nil, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	desk := handset(t, phone.Options{})
	if status := l.call(t, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "Desk",
		"phone_number": "+4930901820", "sip_address": desk.Addr().String(), "inbound_authorization_type": "ip",
		"allowed_inbound_ips": []string{"127.0.0.1"}}, nil); status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	v.UsuallyTranscripts(aitest.Behaviour{Text: "Hm."})
	v.Usually(aitest.Behaviour{Text: "Back again."})
	p := browse(t, fakeMicrophone(microphone(t, 1, "good morning", 60))...)
	p.signIn(l.program)
	p.open(l.URL + "/live-calls")
	p.see("h1", "No live calls")
	c := l.greeted(t, l.phone)
	p.see(".live-call", "Front desk") // without a reload
	one := l.liveCall(t)
	row := fmt.Sprintf("#live-%d ", one)
	p.see(row+".last-said", "AI:")
	p.click(row + "[data-join-as=listen]")
	p.see(row+"[data-join-state]", "You hear both")
	p.see(row+".leg", "listens")
	p.fill(row+"[name=message]", "Offer a <b>discount</b>.")
	p.do(chromedp.KeyEvent("\r"))
	p.see(row+".last-said", "Offer a <b>discount</b>.")
	p.until("document.querySelector('" + row + "[name=message]').value === ''")

	p.click(row + ".by-phone summary")
	p.fill(row+"[name=phone_number]", "204")
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector('%s[name=phone_number_id]').selectedIndex = 1", row)))
	p.do(chromedp.Evaluate[chromedp.Void](`{ // the answer to the form waits
		const real = window.fetch, held = new Promise((release) => { window.release = release; });
		window.fetch = async (...what) => {
			const answer = await real(...what);
			if (what[1]?.method === "POST") await held;
			return answer;
		};
	}`))
	p.click(row + ".by-phone button")
	ctx, cancel := timeout(t, patience)
	defer cancel()
	in, err := desk.Next(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, l.log)
	}
	in.Ring()
	d, err := in.Answer()
	if err != nil {
		t.Fatal(err)
	}
	p.see(row, "has taken over") // by the stream
	p.do(chromedp.Evaluate[chromedp.Void]("window.release()"))
	p.until("!document.querySelector('" + row + ".by-phone form').dataset.busy")
	p.see(row, "has taken over") // and not what the answer said before
	if there := delay(t, d, c, 2345); there > 300*time.Millisecond {
		t.Errorf("who took over is heard %s late", there)
	}

	second := l.greeted(t, handset(t, phone.Options{}))
	p.until("document.querySelectorAll('.live-call').length === 2")
	p.see(row+"[data-join-state]", "You hear both") // the row came anew around it
	p.look("live-calls")
	other := "#" + eval[string](p, fmt.Sprintf("[...document.querySelectorAll('.live-call')].find((el) => el.id !== 'live-%d').id", one))
	p.click(other + " [popovertarget^=ask-hangup]")
	p.click(other + " .ask .primary")
	gone(t, second)
	p.until("location.pathname === '/live-calls' && document.querySelectorAll('.live-call').length === 1")
	p.see(row+"[data-join-state]", "You hear both") // hanging up leaves no page

	p.click(row + ".leg form:first-of-type button") // hand back
	p.until(
		fmt.Sprintf("[...document.querySelectorAll('%s.leg')].some((el) => el.textContent.includes('204') && el.textContent.includes('listens'))",
			row))
	p.click(row + ".leg form:last-of-type button")
	gone(t, d)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	p.see("h1", "No live calls")
}
