package e2e

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
)

// A colleague declines a caller with a key, and accepts the next attempt: both talk with each other over real RTP, the
// recording has both, and each leg is charged once.
func TestTransferWarm(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
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
	l.change(t, map[string]any{"record": true, "tools": []any{map[string]any{"type": "warm_call_transfer",
		"supervisor_phone": "204", "outbound_phone_id": trunk.Data.PhoneNumberID, "hold_message": "Please hold.",
		"connected_message": "Here you are."}}})
	c := l.greeted(t, l.phone)
	asked := ai.ToolCall{ID: "call_1", Name: "warm_call_transfer", Arguments: `{"reason":"asked"}`}
	transfers := func() *phone.Call {
		v.hears("A colleague, please.")
		v.Script(aitest.Behaviour{Text: "One moment.", Calls: []ai.ToolCall{asked}},
			aitest.Behaviour{Text: "It is about a table."})
		asks(t, c)
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
		hears(t, d, d.Answered)
		return d
	}
	d := transfers()
	v.Script(aitest.Behaviour{Text: "What else?"})
	d.Press("2")
	gone(t, d)
	v.awaits(t, c, lang.Of("en").Phrases.NotConnected)
	v.awaits(t, c, "What else?")
	silent(t, c, 400*time.Millisecond)

	d = transfers()
	d.Press("1")
	v.awaits(t, c, "Here you are.")
	v.awaits(t, d, "Here you are.")
	mine, theirs := tone(1234, time.Second), tone(2345, time.Second)
	said, answered := c.Say(mine), d.Say(theirs)
	<-said.Done()
	<-answered.Done()
	c.Press("7")
	eventually(t, "the tones and the key", func() bool {
		return has(c.Sound(), 2345, int(c.Rate())) && has(d.Sound(), 1234, int(d.Rate())) &&
			strings.Contains(d.Digits(), "7")
	})
	if err := d.Hangup(); err != nil {
		t.Error(err)
	}
	gone(t, c)
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.Transferred)
	if !strings.Contains(row.Transcript, lang.Of("en").Phrases.NotConnected) {
		t.Error(row.Transcript)
	}
	var seen struct {
		Legs      []parley.CallLeg
		Breakdown parley.CallCosts `json:"cost_breakdown"`
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &seen)
	if len(seen.Legs) != 2 || seen.Legs[0].EndedReason != parley.Rejected || seen.Legs[0].JoinedAt != 0 ||
		seen.Legs[1].EndedReason != parley.Transferred || seen.Legs[1].JoinedAt == 0 ||
		seen.Legs[1].Summary != "It is about a table." || seen.Legs[1].PhoneNumber != "204" ||
		seen.Breakdown.LegCost != seen.Legs[0].Cost+seen.Legs[1].Cost || seen.Legs[1].Cost == 0 {
		t.Errorf("%+v", seen)
	}
	left, right, rate := l.recording(t, row)
	if !has(left, 1234, rate) || !has(right, 2345, rate) {
		t.Error("the recording lacks somebody")
	}
}

// When the far end does not accept REFER, the server calls the target itself and joins both legs.
func TestTransferWithoutRefer(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
	l.phone.Options.NoRefer = true
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
	l.change(t, map[string]any{"phone_number_id": trunk.Data.PhoneNumberID, "tools": []any{map[string]any{
		"type": "call_transfer", "phone_number": "+4930901829", "description": "to the kitchen"}}})
	c := l.greeted(t, l.phone)
	v.hears("The kitchen, please.")
	v.Script(aitest.Behaviour{Text: "One moment.", Calls: []ai.ToolCall{{ID: "call_1", Name: "call_transfer",
		Arguments: `{"reason":"the kitchen"}`}}})
	asks(t, c)
	ctx, cancel := timeout(t, patience)
	defer cancel()
	in, err := desk.Next(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, l.log)
	}
	d, err := in.Answer()
	if err != nil {
		t.Fatal(err)
	}
	delay(t, c, d, 1234)
	delay(t, d, c, 2345)
	if err := d.Hangup(); err != nil {
		t.Error(err)
	}
	gone(t, c)
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.Transferred)
	var seen struct{ Legs []parley.CallLeg }
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &seen)
	if len(seen.Legs) != 1 || seen.Legs[0].EndedReason != parley.Transferred || seen.Legs[0].JoinedAt == 0 || seen.Legs[0].Cost == 0 {
		t.Errorf("%+v", seen)
	}
}

// has reports whether a tone sounds anywhere in the audio for half a second.
func has(pcm []int16, hz float64, rate int) bool { return hasFor(pcm, hz, rate, rate/2) }

// hasFor reports whether a tone sounds anywhere in the audio for n samples.
func hasFor(pcm []int16, hz float64, rate, n int) bool {
	for ; len(pcm) >= n; pcm = pcm[n/2:] {
		var re, im, all float64
		for i, x := range pcm[:n] {
			sin, cos := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
			re, im, all = re+float64(x)*cos, im+float64(x)*sin, all+float64(x)*float64(x)
		}
		if all > 0 && 2*(re*re+im*im)/float64(n)/all > 0.6 && all/float64(n) > 1e5 {
			return true
		}
	}
	return false
}
