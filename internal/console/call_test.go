package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/audio"
	"parley/internal/blob"
	"parley/internal/call"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/simulator"
	"parley/internal/store"
)

// exchange makes calls to people who are simulated in this process.
func exchange(t *testing.T, c *Config) *call.Center {
	t.Helper()
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	speech, err := provider.Open(provider.All())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(speech.Close)
	destinations, err := call.ParseDestinations([]string{"+1"})
	if err != nil {
		t.Fatal(err)
	}
	d := call.New(call.Config{DB: c.DB, Assistants: c.Assistants, Speech: speech, Prices: c.Prices, Hub: c.Hub,
		Blobs: blobs, Dir: t.TempDir(), Secret: []byte("s"), Destinations: destinations,
		Dial: func(ctx context.Context, r call.Route, ringing func()) (audio.Leg, error) {
			return simulator.Dial(ctx, simulator.Options{To: r.To}, ringing)
		}})
	t.Cleanup(func() {
		gone, cut := context.WithCancel(context.Background())
		cut()
		d.Stop(gone)
	})
	return d
}

// caller is an outbound assistant that may call people.
func (h *harness) caller(t *testing.T, u *parley.User, name string) *parley.Assistant {
	t.Helper()
	a := h.assistant(t, u, name)
	n := h.buy(t, u)
	a, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		map[string]any{"type": "outbound", "status": "active", "phone_number_id": numeral(id(n.ID)),
			"initial_message": "Hello {{who}}, {{company}} here."})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// called stores a call in a state.
func (h *harness) called(t *testing.T, u *parley.User, a *parley.Assistant, change func(c *parley.Call)) *parley.Call {
	t.Helper()
	to, from := "+14155552671", "+12025550100"
	now := parley.Now()
	c := &parley.Call{AssistantID: a.ID, AssistantName: a.Name, Type: parley.CallOutbound,
		Status: parley.CallInProgress, CustomerPhone: &to, AssistantPhone: &from, MaxDuration: 600,
		CarrierRate: 14_000, AssistantRate: 60_000,
		AnsweredAt: parley.DateTime(now.Add(-64_500 * time.Millisecond)), Node: "another",
		Turns: []parley.CallTurn{{Speaker: parley.SpeakerAssistant, Text: "Hello Ana.", StartedAtMS: 200,
			Latency: &parley.Latency{FirstPacketMS: 200}},
			{Speaker: parley.SpeakerCustomer, Text: "I would like a cake.", StartedAtMS: 2_000},
			{Speaker: parley.SpeakerAssistant, Text: "Which one?", StartedAtMS: 61_000, Interrupted: true,
				Latency: &parley.Latency{EndpointMS: 600, TranscriptMS: 640, FirstTokenMS: 900,
					FirstSentenceMS: 950, FirstAudioMS: 1100, FirstPacketMS: 1240}}},
		FunctionCalls: []parley.CallTool{{FunctionCall: parley.FunctionCall{Name: "order_cake",
			Arguments: json.RawMessage(`{"kind":"any"}`), Result: `{"ok":true}`}, AtMS: 30_000}}}
	if change != nil {
		change(c)
	}
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, u.ID, c) })
	return c
}

// over ends a call with a reason.
func over(reason parley.EndedReason) func(c *parley.Call) {
	return func(c *parley.Call) { c.End(reason, parley.Now()) }
}

// record gives a call a recording: a second of quiet, then a second in which both sides are heard.
func (h *harness) record(t *testing.T, c *parley.Call) {
	t.Helper()
	var b bytes.Buffer
	b.Write(audio.AppendWAVHeader(nil, 8000, 2, 4*16000))
	for i := range 16000 {
		left, right := int16(0), int16(0)
		if i >= 8000 {
			left, right = int16(i%2*2-1)*16384, int16(i%2*2-1)*3277
		}
		b.Write([]byte{byte(left), byte(left >> 8), byte(right), byte(right >> 8)})
	}
	name := "recordings/" + id(c.ID)
	if _, err := h.Calls.Blobs.Put(t.Context(), name, &b); err != nil {
		t.Fatal(err)
	}
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.KeepRecording(ctx, c.ID, name, 4*16000+44)
		return err
	})
}

func TestCallList(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.caller(t, u, "Front desk")
	other := h.assistant(t, u, "Night desk")
	v.get("/calls").says("No calls yet").says("sip:" + id(a.ID) + "@127.0.0.1").says("/api/user/make_call")
	for i := range pageSize + 1 {
		h.called(t, u, a, func(c *parley.Call) { c.CreatedAt = parley.DateTime(i); over(parley.CustomerHangup)(c) })
	}
	h.called(t, u, other, func(c *parley.Call) {
		phone := "+4930901820"
		c.Type, c.CustomerPhone, c.AnsweredAt, c.Turns = parley.CallInbound, &phone, 0, nil
		over(parley.LineBusy)(c)
	})
	h.called(t, u, other, func(c *parley.Call) { c.Type, c.CustomerPhone, c.AssistantPhone = parley.CallWeb, nil, nil })
	rows := func(path string) []string {
		return v.get(path).is(http.StatusOK).doc().Find(".list li a").Map(textOfNode)
	}
	for path, want := range map[string]int{"/calls": pageSize, "/calls?page=2": 3, "/calls?status=busy": 1,
		"/calls?status=in-progress": 1, "/calls?type=inbound": 1, "/calls?type=web": 1,
		"/calls?assistant_id=" + id(other.ID): 2, "/calls?phone_number=%2B49+30+90+18+20": 1,
		"/calls?phone_number=12": 0, "/calls?date_to=2020-01-01": 0, "/calls?date_from=2020-01-01": pageSize,
		"/calls?status=&type=": pageSize, "/calls?status=busy&type=web": 0} {
		if got := rows(path); len(got) != want {
			t.Errorf("%s shows %d calls: %q", path, len(got), got)
		}
	}
	if got := rows("/calls"); got[0] != "A browser" || got[1] != parley.FormatPhone("+4930901820") {
		t.Errorf("the newest are %q", got[:2])
	}
	v.get("/calls?status=busy").says("The line was busy.").says("Night desk")
	v.get("/calls?status=busy&type=web").says("No call matches these filters.")
	for _, path := range []string{"/calls?status=x", "/calls?page=0", "/calls?page=x", "/calls?date_from=yesterday",
		"/calls?type=sms"} {
		v.get(path).moved("/calls")
	}
	v.get("/calls?page=9").moved("/calls?page=2")
	v.get("/calls?assistant_id=4242").is(http.StatusNotFound)
	v.get("/assistants/" + id(a.ID)).says("Call")
	for path, want := range map[string]string{"/assistants/" + id(a.ID): "Call", "/assistants/" + id(other.ID): "Call me"} {
		if got := v.get(path).doc().Find(`a[href$="/call"]`).Text(); strings.TrimSpace(got) != want {
			t.Errorf("%s has a button %q", path, got)
		}
	}

	// The list's stream says when there is something new.
	_, next := v.stream("GET", "/calls/live", nil)
	first := until(t, next, "list", "")
	h.called(t, u, a, nil)
	if then := until(t, next, "list", ""); then.data["version"] == first.data["version"] {
		t.Error("a new call changes nothing")
	}
}

func TestCallPage(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.caller(t, u, "Front desk")
	c := h.called(t, u, a, func(c *parley.Call) {
		over(parley.CustomerHangup)(c)
		c.AnsweredBy, c.InputVariables = parley.AnsweredHuman, map[string]string{"who": "Ana"}
		c.VariablesNotes, c.Turns[1].Language = map[string]string{"age": `The model answered "old", which is no number.`}, "pt"
		c.Variables, c.Evaluation = map[string]any{"status": true, "summary": "Ana wants a cake.", "age": nil},
			map[string]any{"score": 9.5, "sentiment": "positive", "outcome": "success", "extra": "x"}
	})
	d := parley.NewDelivery(parley.EventCallCompleted, "https://shop.example.com/calls", map[string]any{})
	d.CallID = &c.ID
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueDelivery(ctx, u.ID, d) })
	path := "/calls/" + id(c.ID)
	r := v.get(path).is(http.StatusOK)
	for _, want := range []string{"The customer hung up.", "a person", "1:05", "2 min × $0.014",
		"65 s at $0.06 a minute", "$0.09", "9.5", "positive", "Ana wants a cake.", "not known: the model answered \"old\", which is no number",
		"half of the replies within 200 ms, the slowest 1.24 s", "call.completed", "order_cake", "interrupted"} {
		r.says(want)
	}
	if got := r.doc().Find("#thread .said.customer header em").Text(); got != "pt" {
		t.Errorf("the language of the customer's turn is shown as %q", got)
	}
	if got := strings.Join(r.doc().Find("#facts dt").Map(textOfNode), " "); !strings.Contains(got,
		"Sentiment Outcome Score Extra age status summary who") {
		t.Errorf("facts are %q", got)
	}
	if got := strings.Join(r.doc().Find("#thread .said").Map(func(_ int,
		s *goquery.Selection) string {
		return s.AttrOr("id", "")
	}), " "); got != "t-0 t-1 x-0 t-2" {
		t.Errorf("the transcript goes %q", got)
	}
	// The second reply's bars fill the line: 600 of 1240 is the end of the turn.
	bars := r.doc().Find("tbody tr").Eq(1).Find("rect")
	if bars.Length() != 6 || bars.First().AttrOr("width", "") != "483" || bars.Last().AttrOr("x", "") != "887" {
		t.Errorf("%d bars, from %s to %s", bars.Length(), bars.First().AttrOr("width", ""), bars.Last().AttrOr("x", ""))
	}
	if r.doc().Find("audio").Length() != 0 {
		t.Error("a player without a recording")
	}
	v.get(path + "/recording").is(http.StatusNotFound)
	v.get(path + "/peaks").is(http.StatusNotFound)

	// The recording plays from any position, and has a waveform.
	h.record(t, c)
	if src := v.get(path).doc().Find("audio").AttrOr("src", ""); src != path+"/recording" {
		t.Errorf("the player plays %q", src)
	}
	if r := v.get(path + "/recording").is(http.StatusOK); len(r.body) != 64044 ||
		r.header.Get("Content-Type") != "audio/wav" || !strings.Contains(r.header.Get("Cache-Control"), "no-store") {
		t.Errorf("%d octets, %v", len(r.body), r.header)
	}
	if r := v.get(path+"/recording", "Range", "bytes=40-43").is(
		http.StatusPartialContent); r.body != "\x00\xfa\x00\x00" {
		t.Errorf("the range is %q", r.body)
	}
	var p peaks
	if err := json.Unmarshal([]byte(v.get(path+"/peaks").is(http.StatusOK).body), &p); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Customer); p.Seconds != 2 || n != len(p.Assistant) || n < 590 || n > 600 || p.Customer[0] != 0 ||
		p.Customer[n-1] != 50 || p.Assistant[n/4] != 0 || p.Assistant[n*3/4] != 10 {
		t.Errorf("the shape is %+v", p)
	}

	// A call that is over can't be hung up; it can be deleted, together with its history.
	v.post(path+"/hangup", nil).is(http.StatusConflict)
	v.post(path+"/delete", nil).moved("/calls?done=deleted")
	v.get(path).is(http.StatusNotFound)
	v.get("/webhooks/" + id(d.ID)).is(http.StatusNotFound)
}

// Every reason and every state has a text.
func TestCallsHaveWords(t *testing.T) {
	for _, r := range []parley.EndedReason{parley.CustomerHangup, parley.AssistantHangup, parley.APIHangup,
		parley.Transferred, parley.MaxDuration, parley.MaxSilence, parley.Voicemail, parley.LineBusy,
		parley.NoAnswer, parley.Rejected, parley.Unreachable, parley.Canceled, parley.InsufficientBalance,
		parley.ProviderFailure, parley.MediaTimeout, parley.NodeLost, parley.Shutdown} {
		if text := reasonText(r); !strings.HasSuffix(text, ".") || strings.Contains(text, "_") {
			t.Errorf("%s is %q", r, text)
		}
	}
	for seconds, want := range map[int64]string{0: "0:00", 5: "0:05", 65: "1:05", 3600: "1:00:00", 3725: "1:02:05"} {
		if got := lasting(seconds); got != want {
			t.Errorf("%d s is %s", seconds, got)
		}
	}
	w := &waterfall{replies: []timed{{total: 300}, {total: 100}, {total: 200}}, longest: 300}
	for p, want := range map[int]int64{0: 100, 33: 100, 50: 200, 67: 300, 100: 300} {
		if got := w.percentile(p); got != want {
			t.Errorf("the %v th percentile is %d", p, got)
		}
	}
	// A step that was ready before the one in front of it takes no room; a step that a reply did without has no bar.
	got := w.bars(timed{times: []int64{150, 100, 0, 0, 0, 300}})
	if len(got) != 2 || got[0] != (bar{0, 0, 500}) || got[1] != (bar{5, 500, 500}) {
		t.Errorf("bars %+v", got)
	}
}

// Someone reading a live call's page sees what is said as it is said, by this node or by another, and how the call
// ends. A call that failed because of a vendor is red, with its reason and how to fix it, in the list and on its page.
func TestFailedCallSaysWhy(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	c := h.called(t, u, a, func(c *parley.Call) {
		c.End(parley.Explain(parley.ProviderFailure, "The voice failed: the key of <OpenAI> was refused."),
			parley.Now())
	})
	fine := h.called(t, u, a, over(parley.CustomerHangup))
	fine.Media = &parley.CallMedia{Codec: "G722", Strangers: 7, Stranger: "192.0.2.9:4000", Still: 12, Encryption: "AEAD_AES_128_GCM",
		Heard: parley.CallSound{LossPercent: 1.5, JitterMS: 3, MOS: 4.31}}
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(tx.EndCall(ctx, fine), tx.KeepSIP(ctx, fine.ID, []parley.SIPMessage{
			{Direction: "in", Transport: "udp", Peer: "192.0.2.1:5060", Text: "BYE <x> SIP/2.0\r\nVia: y\r\n\r\n"}}))
	})
	v := h.signedIn(t, u)
	shown := v.get("/calls/" + id(fine.ID)).is(http.StatusOK).doc()
	if got := shown.Find("#sip summary code").Text(); got != "BYE <x> SIP/2.0" {
		t.Errorf("the SIP messages say %q", got)
	}
	if got := shown.Find("#facts").Text(); !strings.Contains(got, "AEAD_AES_128_GCM") || !strings.Contains(got, "1.5 % lost") ||
		!strings.Contains(got, "7 packets from 192.0.2.9:4000") || !strings.Contains(got, "did not advance in 12 packets") {
		t.Errorf("the facts say %q", got)
	}
	for path, where := range map[string]string{"/calls": "#call-" + id(c.ID), "/calls/" + id(c.ID): "#call-state"} {
		doc := v.get(path).is(http.StatusOK).doc()
		if got := doc.Find(where + " .wrong").Text(); got != "The voice failed: the key of <OpenAI> was refused." {
			t.Errorf("%s says %q", path, got)
		}
		if got := doc.Find(where + " .tag.bad").Text(); got != "Failed" {
			t.Errorf("%s is marked %q", path, got)
		}
	}
	if doc := v.get("/calls/" + id(fine.ID)).doc(); doc.Find("#call-state .wrong").Length() != 0 {
		t.Error("a good call is red")
	}
}

func TestCallLive(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.caller(t, u, "Front desk")
	c := h.called(t, u, a, func(c *parley.Call) {
		c.Status, c.AnsweredAt, c.Turns, c.FunctionCalls = parley.CallRinging, 0, nil, nil
	})
	path := "/calls/" + id(c.ID)
	v.get(path).says("Ringing")
	_, next := v.stream("GET", path+"/live", nil)
	until(t, next, "put", "Ringing")
	keep := func(change func()) {
		t.Helper()
		change()
		h.write(t, func(ctx context.Context, tx *store.Tx) error {
			if ok, err := tx.KeepCall(ctx, c); err != nil || !ok {
				return errors.Join(err, errors.New("the row is gone"))
			}
			return nil
		})
		h.Hub.Tell(call.Topic(c.ID), event.Event{Kind: call.Status})
	}
	keep(func() { c.Status, c.AnsweredAt = parley.CallInProgress, parley.DateTime(parley.Now()) })
	until(t, next, "put", "In progress")
	h.Hub.Tell(call.Topic(c.ID), event.Event{Kind: call.Partial, Data: "I would <b>like"})
	if e := until(t, next, "put", "I would"); !strings.Contains(e.data["html"], `id="partial"`) ||
		!strings.Contains(e.data["html"], "&lt;b&gt;like") {
		t.Errorf("what is being said comes as %s", e.data["html"])
	}
	keep(func() {
		c.Turns = []parley.CallTurn{{Speaker: parley.SpeakerCustomer, Text: "I would like a cake."}}
	})
	until(t, next, "put", "I would like a cake.")
	until(t, next, "put", `id="partial" class="said customer partial" data-v="" hidden`)
	keep(func() {
		c.FunctionCalls = []parley.CallTool{{FunctionCall: parley.FunctionCall{Name: "order_cake",
			Arguments: json.RawMessage(`{}`)}, AtMS: 900}}
	})
	until(t, next, "put", "order_cake")

	// A hang-up is sent to the node that has the call.
	v.post(path+"/hangup", nil).moved(path + "?done=hung-up")
	list, err := h.DB.CallsToNotice(t.Context(), c.Node)
	if err != nil || len(list) != 1 || list[0] != (store.CallToNotice{ID: c.ID, Hangup: true}) {
		t.Errorf("to be hung up: %v %v", list, err)
	}
	v.post(path+"/delete", nil).is(http.StatusConflict).says("hang up first")
	over(parley.APIHangup)(c)
	c.ReportDue = parley.Now()
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.EndCall(ctx, c) })
	h.Hub.Tell(call.Topic(c.ID), event.Event{Kind: call.End})
	until(t, next, "put", "The call is being evaluated.")
	if e := until(t, next, "list", ""); e.data["version"] != "false.false.false.false" {
		t.Errorf("the page's version is %v", e.data)
	}
	c.Evaluation = map[string]any{"sentiment": "negative"}
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.SaveReport(ctx, c) })
	h.Hub.Tell(call.Topic(c.ID), event.Event{Kind: call.Reported})
	until(t, next, "put", "negative")
	if text := v.get(path).says("It was hung up from the console").doc().Find("main").Text(); strings.Contains(text,
		"being read") {
		t.Error("the report is made, and the page waits for it")
	}
}

func TestMakeCall(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.assistant(t, u, "Front desk")
	path := "/assistants/" + id(a.ID) + "/call"
	v.get("/calls/new").says("No assistant can make calls yet")
	v.get(path).says("It has no phone number to call from.")
	change := func(body map[string]any) {
		t.Helper()
		if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, body); err != nil {
			t.Fatal(err)
		}
	}
	change(map[string]any{"type": "outbound", "initial_message": "Hello {{who}}, {{company}} here."})
	v.get(path).says("Call me")
	change(map[string]any{"status": "active"})
	v.get("/calls/new?to=%2B14155550123").moved(path + "?to=%2B14155550123")
	v.get(path).says("It has no phone number to call from.")
	v.post(path, url.Values{"phone_number": {"+14155550123"}}).is(http.StatusUnprocessableEntity).says(
		"It has no phone number to call from.")
	change(map[string]any{"phone_number_id": numeral(id(h.buy(t, u).ID))})
	h.caller(t, u, "Second <b>")
	v.get("/calls/new").says("Second <b>")
	v.get("/calls/new?to=%2B14155550123").doc().Find(".list .stretch").Each(func(_ int, s *goquery.Selection) {
		if href := s.AttrOr("href", ""); !strings.HasSuffix(href, "/call?to=%2B14155550123") {
			t.Errorf("the number is lost on the way to %s", href)
		}
	})

	form := v.get(path + "?to=%2B14155550123").form(path)
	if form.Get("phone_number") != "+14155550123" || form.Get("variables.0.key") != "who" ||
		form.Get("variables.1.key") != "company" {
		t.Fatalf("the form is %v", form)
	}
	form.Set("variables.0.value", "Ana")
	form.Set("phone_number", "12")
	r := v.post(path, form).is(http.StatusUnprocessableEntity)
	if r.doc().Find("#e-phone_number").Length() != 1 || r.form(path).Get("variables.0.value") != "Ana" ||
		r.form(path).Get("phone_number") != "12" {
		t.Error("the mistake is not beside its box, or what was written is lost")
	}
	form.Set("phone_number", "+33142685300") // only +1 may be called
	v.post(path, form).is(http.StatusUnprocessableEntity).says("are not allowed on this server")
	form.Set("phone_number", "+1 415 555 0003")
	at := v.post(path, form).is(http.StatusSeeOther).header.Get("Location")
	list, n, err := h.DB.Calls(t.Context(), u.ID, store.CallFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil || n != 1 || at != "/calls/"+id(list[0].ID) || *list[0].CustomerPhone != "+14155550003" ||
		len(list[0].InputVariables) != 1 || list[0].InputVariables["who"] != "Ana" {
		t.Fatalf("%s, %d calls: %+v %v", at, n, list, err)
	}
	v.waitFor(at, "Call again")

	// Refusals because of the plan's limit and the balance are shown on the page.
	for range h.Prices.Plan(u.Plan).ParallelCalls {
		h.called(t, u, a, nil)
	}
	v.post(path, form).is(http.StatusUnprocessableEntity).says("Concurrent call limit reached")
}

// Every assistant calls who tries it, also one that answers calls, or is inactive.
func TestCallMe(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.assistant(t, u, "Front desk")
	path := "/assistants/" + id(a.ID) + "/call"
	n := h.buy(t, u)
	for _, status := range []string{"active", "inactive"} {
		if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"status": status}); err != nil {
			t.Fatal(err)
		}
		form := v.get(path).says("Call me").says("calls from " + parley.FormatPhone(n.PhoneNumber)).form(path)
		form.Set("phone_number", "+1 415 555 0003")
		at := v.post(path, form).is(http.StatusSeeOther).header.Get("Location")
		v.waitFor(at, "The line was busy.")
	}
	list, count, err := h.DB.Calls(t.Context(), u.ID, store.CallFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil || count != 2 || *list[0].CustomerPhone != "+14155550003" || list[0].AssistantID != a.ID || *list[0].NumberID != n.ID {
		t.Fatalf("%d calls: %+v %v", count, list, err)
	}
	order := call.Order{UserID: u.ID, AssistantID: a.ID, To: "+14155550003", NumberID: n.ID}
	if _, err := h.Calls.Start(t.Context(), order); err == nil {
		t.Error("an inbound assistant calls others")
	}
}

func TestCallsOfOthersAreUnknown(t *testing.T) {
	h := open(t)
	owner, other := h.user(t), h.user(t)
	a := h.caller(t, owner, "Secret plans")
	c := h.called(t, owner, a, over(parley.CustomerHangup))
	h.record(t, c)
	v := h.signedIn(t, other)
	for _, p := range []struct{ method, path, id string }{{"GET", "/calls/%", id(c.ID)},
		{"GET", "/calls/%/live", id(c.ID)}, {"GET", "/calls/%/recording", id(c.ID)},
		{"GET", "/calls/%/peaks", id(c.ID)},
		{"POST", "/calls/%/hangup", id(c.ID)}, {"POST", "/calls/%/delete", id(c.ID)},
		{"GET", "/assistants/%/call", id(a.ID)}, {"POST", "/assistants/%/call", id(a.ID)}} {
		bodies := map[string]bool{}
		for _, one := range []string{p.id, "424242", "0", "007", "-1", "x", "99999999999999999999"} {
			path := strings.Replace(p.path, "%", one, 1)
			bodies[v.send(p.method, path, url.Values{"phone_number": {"+14155550123"}}).is(
				http.StatusNotFound).doc().Find("main").Text()] = true
		}
		if len(bodies) != 1 {
			t.Errorf("%s %s tells a foreign id from an unknown one: %v", p.method, p.path, bodies)
		}
	}
	v.get("/calls").says("No calls yet")
	if _, err := h.DB.Call(t.Context(), owner.ID, c.ID); err != nil {
		t.Error(err)
	}
}

func TestCallsShowHostileTextAsText(t *testing.T) {
	const evil = `"></script><script>alert(1)</script><img src=x onerror=alert(2)>`
	h := open(t)
	u := h.user(t)
	a := h.caller(t, u, evil)
	hostile := func(c *parley.Call) {
		phone := evil // SIP callers can claim any number
		c.CustomerPhone, c.AssistantPhone, c.EndedReason = &phone, &phone, evil
		c.Turns = []parley.CallTurn{{Speaker: parley.SpeakerCustomer, Text: evil}, {Speaker: evil, Text: evil}}
		c.FunctionCalls = []parley.CallTool{{FunctionCall: parley.FunctionCall{Name: evil,
			Arguments: json.RawMessage(`{"x":"<script>"}`), Result: evil}}}
		c.Variables, c.Evaluation, c.InputVariables = map[string]any{evil: evil, "list": []any{evil}},
			map[string]any{evil: evil}, map[string]string{evil: evil}
	}
	done := h.called(t, u, a, func(c *parley.Call) { over(parley.CustomerHangup)(c); hostile(c) })
	live := h.called(t, u, a, hostile)
	v := h.signedIn(t, u)
	h.record(t, done)
	replies := []*reply{v.get("/calls"), v.get("/calls?phone_number=" + url.QueryEscape(evil[:32])),
		v.get("/calls/" + id(done.ID)), v.get("/calls/" + id(live.ID)),
		v.get("/assistants/" + id(a.ID) + "/call?to=" + url.QueryEscape(evil)),
		v.post("/assistants/"+id(a.ID)+"/call", url.Values{"phone_number": {evil}, "variables": {""},
			"variables.0.key": {evil}, "variables.0.value": {evil}}), v.get("/calls/new")}
	replies[2].says("alert(1)")
	for i, r := range replies {
		if n := r.doc().Find("script:not([src]), img, [onerror]").Length(); n > 0 ||
			strings.Contains(r.body, "<script>") {
			t.Errorf("%d: %d elements of the text came alive:\n%.3000s", i, n, r.body)
		}
	}
	_, next := v.stream("GET", "/calls/"+id(live.ID)+"/live", nil)
	var html string
	for range 5 {
		e, _ := next()
		html += e.data["html"]
	}
	if strings.Contains(html, "<script") || strings.Contains(html, "<img") ||
		!strings.Contains(html, "&lt;script&gt;") {
		t.Errorf("the pieces are %s", html)
	}
}

func TestPeaks(t *testing.T) {
	wav := func(channels int, samples ...int16) *bytes.Reader {
		b := audio.AppendWAVHeader(nil, 8000, channels, int64(2*len(samples)))
		for _, s := range samples {
			b = append(b, byte(s), byte(s>>8))
		}
		return bytes.NewReader(b)
	}
	p, err := readPeaks(wav(2, 0, -32768, 32767, 0, -16384, 8))
	if err != nil || len(p.Customer) != 3 || p.Customer[0] != 0 || p.Customer[1] != 100 || p.Customer[2] != 50 ||
		p.Assistant[0] != 100 || p.Assistant[1] != 0 {
		t.Errorf("%+v %v", p, err)
	}
	if p, err := readPeaks(wav(1, 16384)); err != nil || len(p.Customer) != 1 || p.Assistant[0] != 50 {
		t.Errorf("one side: %+v %v", p, err)
	}
	long := make([]int16, 2*100_001)
	long[2*100_000] = 32767
	if p, err := readPeaks(wav(2, long...)); err != nil || len(p.Customer) > maxPeaks ||
		p.Customer[len(p.Customer)-1] != 100 || p.Seconds < 12.5 || p.Seconds > 12.501 {
		t.Errorf("a long one: %d peaks, %v s, %v", len(p.Customer), p.Seconds, err)
	}
	if p, err := readPeaks(wav(2)); err != nil || len(p.Customer) != 0 || p.Seconds != 0 {
		t.Errorf("an empty one: %+v %v", p, err)
	}
	if _, err := readPeaks(bytes.NewReader([]byte("no sound"))); err == nil {
		t.Error("no sound has a shape")
	}
}

// wire is a telephone line that answers as the test says.
type wire struct {
	health  call.Health
	err     error
	secure  bool
	changed int
}

func (w *wire) Check(context.Context, *parley.Trunk) (call.Health, error) { return w.health, w.err }
func (w *wire) Registered(int64) bool                                     { return w.health.Registered }
func (w *wire) Secure() bool                                              { return w.secure }
func (w *wire) Refresh()                                                  { w.changed++ }

// Calls that were refused are on the trunk's page, for those who may read SIP messages.
func TestTrunkRefusedCalls(t *testing.T) {
	h := open(t)
	u := h.user(t)
	trunk := h.trunk(t, u, "Office", "+4930901822")
	path := "/trunks/" + id(trunk.ID)
	v := h.signedIn(t, u)
	if v.get(path).doc().Find("#refusals").Length() != 0 {
		t.Error("refused calls are shown where there are none")
	}
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		return tx.KeepRefusals(ctx,
			[]parley.TrunkRefusal{{TrunkID: trunk.ID, At: parley.Now(), Status: 401, Reason: "Enter <them> at the provider.",
				Place: "192.0.2.1", Transport: "udp", Peer: "192.0.2.1:5060", Text: "INVITE sip:x SIP/2.0\r\nTo: <sip:x>"}})
	})
	text := v.get(path).doc().Find("#refusals").Text()
	for _, want := range []string{"401", "Password missing", "Enter <them> at the provider.", "not the trunk's", "192.0.2.1:5060",
		"To: <sip:x>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

func TestTrunkCheckShowsItsResult(t *testing.T) {
	h := open(t)
	u := h.user(t)
	trunk := h.trunk(t, u, "Office", "+4930901822")
	v := h.signedIn(t, u)
	path := "/trunks/" + id(trunk.ID)
	v.post(path+"/check", nil).is(http.StatusOK).says("Something is wrong").says(
		"Telephony is not running on this server")
	w := &wire{health: call.Health{OptionsMS: 12,
		Findings: []parley.TrunkFinding{{Topic: "codecs", State: parley.FindingNote, Text: "It takes <G729>."}}}}
	if page := v.get("/trunks/new"); page.doc().Find("[data-unable]").Length() != 1 ||
		v.get("/trunks").doc().Find("[data-unable]").Length() != 1 {
		t.Error("no word of telephony that is off")
	}
	h.Calls.Line, h.Numbers.TrunksChanged = w, w.Refresh
	if page := v.get(path).says("does not listen for SIP over TLS"); page.doc().Find("[data-unable]").Length() != 0 {
		t.Error("telephony is said to be off")
	}
	w.secure = true
	if strings.Contains(v.get(path).doc().Text(), "does not listen for SIP over TLS") {
		t.Error("a server that listens for TLS says that it does not")
	}
	v.post(path+"/check", nil).says("It works").says("The trunk answers (12 ms).").says("Codecs").says("It takes <G729>.")
	v.post(path+"/test-call", url.Values{"phone_number": {"1"}}).is(http.StatusUnprocessableEntity).says("international format")
	v.post(path+"/test-call", url.Values{"phone_number": {"+4930901821"}}).is(http.StatusUnprocessableEntity).
		says("not allowed on this server")
	v.post(path+"/test-call", url.Values{"phone_number": {"+12025550003"}}).says("The test call was not answered").says("The number is busy")
	v.get("/trunks").is(http.StatusOK)
	form := v.get(path).form(path)
	form.Set("register", "1")
	v.post(path, form).moved(path + "?done=saved")
	if w.changed != 1 {
		t.Errorf("the line heard of %d changes", w.changed)
	}
	v.post(path+"/check", nil).says("Something is wrong").says("but we are not registered with it")
	v.get("/trunks").says("Not registered")
	w.health.Registered = true
	v.post(path+"/check", nil).says("It works").says("and we are registered with it.")
	w.err = errors.New("nobody answers at <10.0.0.5>:5060")
	v.post(path+"/check", nil).says("Something is wrong").says("Nobody answers at <10.0.0.5>:5060")
}

// What a call used of which vendors, and which vendor stood in for another, is shown on its page.
func TestCallVendors(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	cost := parley.Money(12_000)
	c := h.called(t, u, h.caller(t, u, "Front desk"), func(c *parley.Call) {
		c.VendorUses = []parley.VendorUse{{Part: "model", Vendor: "openai", Model: "gpt", TokensIn: 900, TokensOut: 40,
			Cost: &cost}, {Part: "recognizer", Vendor: "deepgram", SecondsHeard: 12.3}}
		c.VendorSwitches = []parley.VendorSwitch{{AtMS: 61_000, Part: "voice", From: "elevenlabs/Sarah",
			To: "deepgram/Thalia", Reason: "stalled"}}
	})
	page := v.get("/calls/" + id(c.ID))
	for _, text := range []string{"Model openai/gpt", "900 tokens in, 40 tokens out", "13 s heard",
		"Voice elevenlabs/Sarah sent nothing for too long, and deepgram/Thalia went on."} {
		page.says(text)
	}
}
