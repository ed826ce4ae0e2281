package parley_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

func attempt(status int) *parley.DeliveryAttempt {
	a := &parley.DeliveryAttempt{At: 1_000_000, DurationMS: 500}
	if status > 0 {
		a.Status = &status
	}
	return a
}

func TestDeliveryNote(t *testing.T) {
	const over = parley.Time(1_500_000) // the end of the attempt
	for name, c := range map[string]struct {
		before  parley.Delivery
		status  int
		holds   bool
		jitter  float64
		want    parley.DeliveryStatus
		next    parley.Time
		attempt int
	}{
		"taken": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9}, 200, true,
			0, parley.DeliveryDelivered, 0, 1},
		"taken, edge of 2xx": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9}, 299, true,
			0, parley.DeliveryDelivered, 0, 1},
		"redirected": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9}, 300, true,
			0, parley.DeliveryPending, over.Add(30 * time.Second), 1},
		"no answer": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9}, 0, true,
			0.5, parley.DeliveryPending, over.Add(31500 * time.Millisecond), 1},
		"sixth failure": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9,
			Attempts: 5}, 500, true, 1, parley.DeliveryPending, over.Add(6*time.Hour + 36*time.Minute), 6},
		"seventh failure": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9,
			Attempts: 6}, 500, true, 1, parley.DeliveryFailed, 0, 7},
		"first failure when resent": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9, Attempts: 7,
			Earlier: 7}, 500, true, 0, parley.DeliveryPending, over.Add(30 * time.Second), 8},
		"gone": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9}, 410, true,
			0, parley.DeliveryFailed, 0, 1},
		"resent meanwhile, taken": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9}, 200, false,
			0, parley.DeliveryPending, 9, 1},
		"resent meanwhile, not": {parley.Delivery{Status: parley.DeliveryPending, NextAttemptAt: 9}, 500, false,
			0, parley.DeliveryPending, 9, 1},
		"given up meanwhile, taken": {parley.Delivery{Status: parley.DeliveryFailed}, 200, false, 0,
			parley.DeliveryDelivered, 0, 1},
		"given up meanwhile, not": {parley.Delivery{Status: parley.DeliveryFailed}, 500, false, 0,
			parley.DeliveryFailed, 0, 1},
		"made by another meanwhile": {parley.Delivery{Status: parley.DeliveryDelivered}, 500, false, 0,
			parley.DeliveryDelivered, 0, 1},
	} {
		d := c.before
		d.Note(attempt(c.status), c.holds, c.jitter)
		if d.Status != c.want || d.NextAttemptAt != c.next || d.Attempts != c.attempt ||
			(d.LastStatus == nil) != (c.status == 0) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestCallDeliveries(t *testing.T) {
	out, in := "https://example.com/out", "https://example.com/in"
	phone := "+12025550123"
	base := parley.Assistant{IsWebhookActive: true, WebhookURL: &out, InboundWebhookURL: &in,
		SendWebhookOnlyOnCompleted: true, IncludeRecordingInWebhook: true}
	for name, c := range map[string]struct {
		change       func(*parley.Assistant)
		kind, status string
		want         string // event and URL of each
		recording    bool
	}{
		"outbound": {nil, "outbound", "completed", "call.completed " + out, true},
		"web":      {nil, "web", "completed", "call.completed " + out, true},
		"inbound": {nil, "inbound", "completed", "call.completed " + out +
			" call.inbound.completed " + in, true},
		"switched off": {func(a *parley.Assistant) { a.IsWebhookActive = false }, "inbound",
			"completed", "call.inbound.completed " + in, true},
		"no inbound endpoint": {func(a *parley.Assistant) { a.InboundWebhookURL = nil }, "inbound",
			"completed", "call.completed " + out, true},
		"active without an endpoint": {func(a *parley.Assistant) { a.WebhookURL = nil }, "outbound", "completed",
			"", true},
		"busy, only completed": {nil, "outbound", "busy", "", true},
		"busy, all": {func(a *parley.Assistant) { a.SendWebhookOnlyOnCompleted = false },
			"inbound", "busy", "call.completed " + out + " call.inbound.completed " + in, true},
		"without the recording": {func(a *parley.Assistant) { a.IncludeRecordingInWebhook = false },
			"outbound", "completed", "call.completed " + out, false},
	} {
		a := base
		if c.change != nil {
			c.change(&a)
		}
		var got []string
		for _, d := range (parley.CallEnded{ID: 7, Type: parley.CallType(c.kind),
			Status: parley.CallStatus(c.status), CustomerPhone: &phone, Transcript: "AI: Hi <b>",
			RecordingURL: "https://example.com/r.wav"}).Deliveries(&a) {
			got = append(got, string(d.Event)+" "+d.URL)
			var p map[string]any
			if err := json.Unmarshal([]byte(d.Payload), &p); err != nil {
				t.Fatal(err)
			}
			want := []string{"answered_by", "assistant", "assistant_id", "assistant_phone", "carrier_cost",
				"created_at", "customer_phone", "duration", "ended_detail", "ended_reason", "evaluation", "event",
				"extracted_variables",
				"finished_at", "formatted_transcript", "id", "input_variables", "legs", "recording_url", "status",
				"taken_by", "total_cost", "transcript", "turns", "type", "version"}
			if !c.recording {
				want = slices.DeleteFunc(want, func(k string) bool { return k == "recording_url" })
			}
			if keys := slices.Sorted(maps.Keys(p)); !slices.Equal(keys, want) {
				t.Errorf("%s: keys %v", name, keys)
			}
			if p["event"] != string(d.Event) || *d.CallID != 7 || *d.CustomerPhone != phone ||
				!strings.Contains(d.Payload, `"formatted_transcript":"AI: Hi <b>"`) ||
				!strings.Contains(d.Payload, `"turns":[],"evaluation":{}`) || !strings.Contains(d.Payload, `"legs":[]`) {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestConversationEndedDelivery(t *testing.T) {
	e := parley.ConversationEnded{ConversationID: "c", AssistantID: "a", Type: parley.WidgetConversation}
	if d := e.Delivery(&parley.Assistant{}); d != nil {
		t.Errorf("without an endpoint: %+v", d)
	}
	url := "https://example.com"
	d := e.Delivery(&parley.Assistant{ConversationEndedURL: &url})
	want := `{"event":"conversation.ended","version":1,"conversation_id":"c","assistant_id":"a","assistant_name":"","assistant":{"id":0,"uuid":"","name":""},` +
		`"type":"widget","status":"ended","message_count":0,"extracted_variables":{},` +
		`"input_variables":{},"transcript":[],"formatted_transcript":"","customer_phone":null,"customer_name":null,"sender":null,"created_at":null,"ended_at":null}`
	if d.Payload != want || *d.ConversationID != "c" || d.CustomerPhone != nil || d.URL != url {
		t.Errorf("%+v", d)
	}
	if d := (parley.CampaignCompleted{CampaignID: 3, Name: "Spring", Status: "completed"}).Delivery(url); d.Payload !=
		`{"event":"campaign.completed","version":1,"campaign_id":3,"name":"Spring","status":"completed","stats":{},"completed_at":null}` {
		t.Errorf("%s", d.Payload)
	}
}
