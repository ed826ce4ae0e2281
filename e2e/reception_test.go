package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
)

// Outside its hours, a number rings a telephone, whose owner talks with the caller over two real legs. When nobody
// answers the next call, the caller leaves a message. The third caller waits in the queue until the line is free.
func TestReception(t *testing.T) {
	share(t, call)
	l, v := bakeryLine(t, nil)
	house, err := phone.ListenOn(netip.MustParseAddrPort("127.0.0.2:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer house.Close()
	house.Username, house.Password = "bakery", "four-in-the-morning"
	var trunk struct {
		Data struct {
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	if status := l.call(t, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "House",
		"phone_number": "+4930901820", "sip_address": house.Addr().String(), "sip_username": house.Username,
		"sip_password": house.Password, "inbound_authorization_type": "auth"}, &trunk); status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	l.change(t, map[string]any{"phone_number_id": trunk.Data.PhoneNumberID})
	route := map[string]any{"otherwise": "telephone", "unanswered": "voicemail", "ring_record": true,
		"closed_dates": []string{day(0), day(1)}, "telephones": []map[string]any{{"phone_number": "204", "seconds": 20}}}
	l.route(t, trunk.Data.PhoneNumberID, route)
	comes := func() *phone.Call {
		ctx, cancel := timeout(t, patience)
		defer cancel()
		c, err := house.Call(ctx, "+4930123456", "+4930901820", l.sip)
		if err != nil {
			t.Fatalf("%v\n%s", err, l.log)
		}
		return c
	}
	rings := func() *phone.Incoming {
		ctx, cancel := timeout(t, patience)
		defer cancel()
		in, err := house.Next(ctx)
		if err != nil {
			t.Errorf("nobody rings: %v\n%s", err, l.log)
			return nil
		}
		in.Ring()
		return in
	}
	eventually(t, "the trunk to be known to the line", func() bool {
		ctx, cancel := timeout(t, 300*time.Millisecond)
		defer cancel()
		wrong, err := phone.ListenOn(netip.MustParseAddrPort("127.0.0.2:0"))
		if err != nil {
			t.Fatal(err)
		}
		defer wrong.Close()
		_, err = wrong.Call(ctx, "+4930123456", "+4930901820", l.sip)
		var r *phone.Refused
		return errors.As(err, &r) && r.Code == 401
	})

	desk := make(chan *phone.Call, 1)
	go func() {
		if in := rings(); in != nil {
			d, err := in.Answer()
			if err != nil {
				t.Error(err)
			}
			desk <- d
		}
		close(desk)
	}()
	c, d := comes(), <-desk
	if d == nil {
		t.Fatal("the telephone was not answered")
	}
	said, answered := c.Say(tone(1234, time.Second)), d.Say(tone(2345, time.Second))
	<-said.Done()
	<-answered.Done()
	c.Press("7")
	eventually(t, "the tones and the key", func() bool {
		return has(c.Sound(), 2345, int(c.Rate())) && has(d.Sound(), 1234, int(d.Rate())) && strings.Contains(d.Digits(), "7")
	})
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	gone(t, d)
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.Transferred)
	var seen struct {
		Legs      []parley.CallLeg
		TakenBy   parley.CallTaker `json:"taken_by"`
		Breakdown parley.CallCosts `json:"cost_breakdown"`
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &seen)
	if len(seen.Legs) != 1 || seen.Legs[0].JoinedAt == 0 || seen.Legs[0].PhoneNumber != "204" || seen.TakenBy != parley.TakenByTelephone ||
		seen.Breakdown.LegCost == 0 || seen.Breakdown.AssistantCost != 0 {
		t.Errorf("%+v", seen)
	}
	left, right, rate := l.recording(t, row)
	if !has(left, 1234, rate) || !has(right, 2345, rate) {
		t.Error("the recording lacks somebody")
	}

	v.hears("Please call me back.")
	go func() {
		if in := rings(); in != nil {
			in.Refuse(486)
		}
	}()
	c = comes()
	v.awaits(t, c, lang.Of("en").Phrases.LeaveMessage)
	eventually(t, "the tone", func() bool { return has(c.Sound(), 1000, int(c.Rate())) })
	silent(t, c, 200*time.Millisecond)
	asks(t, c)
	c.Press("#")
	gone(t, c)
	row = l.over(t)
	row.expect(t, parley.CallCompleted, parley.Voicemail)
	if !strings.Contains(row.Transcript, "Customer: Please call me back.") {
		t.Error(row.Transcript)
	}
	l.call(t, "GET", fmt.Sprintf("/user/calls/%d", row.ID), nil, &seen)
	if left, _, _ := l.recording(t, row); seen.TakenBy != parley.TakenByVoicemail || loudest(left) < 1000 {
		t.Errorf("taken by %s, the caller's side has %d", seen.TakenBy, loudest(left))
	}

	l.route(t, trunk.Data.PhoneNumberID, map[string]any{"when_full": "queue", "lines": 1})
	talking := comes()
	v.awaits(t, talking, welcome)
	waiting := comes()
	v.awaits(t, waiting, strings.ReplaceAll(lang.Of("en").Phrases.InLine, "{n}", "1"))
	if v.length(waiting, welcome) > 0 {
		t.Error("the second caller is greeted while the line is taken")
	}
	if err := talking.Hangup(); err != nil {
		t.Error(err)
	}
	v.awaits(t, waiting, welcome)
	if err := waiting.Hangup(); err != nil {
		t.Error(err)
	}
	eventually(t, "the end of all calls", func() bool {
		for _, c := range l.talks(t) {
			if c.Status.Live() {
				return false
			}
		}
		return true
	})
}

// route sets a number's route.
func (l *line) route(t *testing.T, number int64, route map[string]any) {
	t.Helper()
	var answer map[string]any
	if status := l.call(t, "PUT", fmt.Sprintf("/user/phone-numbers/routes/%d", number), route, &answer); status != http.StatusOK {
		t.Fatalf("the route is answered %d: %v", status, answer)
	}
}

// day is the date that is n days from today.
func day(n int) string { return time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly) }

func loudest(pcm []int16) (most int16) {
	for _, s := range pcm {
		most = max(most, s)
	}
	return most
}
