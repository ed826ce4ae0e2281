package graph_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/internal/channel/whatsapp/graph"
	"parley/internal/channel/whatsapp/graph/graphtest"
	"parley/internal/parley"
)

type object = graphtest.Object

func TestSenders(t *testing.T) {
	s := graphtest.New(t)
	s.Set([]object{
		graphtest.Number("1", "+1 631-555-8151", "Acme", "CONNECTED", "GREEN", "TIER_2K"),
		graphtest.Number("2", "+49 151 23456789", "Acme DE", "BANNED", "RED", "TIER_UNLIMITED"),
		graphtest.Number("3", "15550783881", "Test", "CONNECTED", "NA", ""),
		graphtest.Number("4", "", "broken", "CONNECTED", "GREEN", ""),
		{"id": "5", "display_phone_number": "+44 20 7946 0958", "verified_name": "Old", "status": "CONNECTED",
			"quality_rating": "YELLOW", "messaging_limit_tier": "TIER_100K"},
		graphtest.Number("6", "+1 631-555-8156", "Flagged", "FLAGGED", "RED", "TIER_2K"),
		graphtest.Number("7", "+1 631-555-8157", "Restricted", "RESTRICTED", "RED", "TIER_2K"),
		graphtest.Number("8", "+1 631-555-8158", "New", "PENDING", "NA", "TIER_2K"),
	}, nil)
	got, err := s.Client(t).Senders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	limit := func(n int64) *int64 { return &n }
	want := []parley.WhatsAppSender{
		{GraphID: "1", PhoneNumber: "+16315558151", DisplayName: "Acme", Status: "online", QualityRating: "GREEN",
			MessagingLimit: limit(2000)},
		{GraphID: "2", PhoneNumber: "+4915123456789", DisplayName: "Acme DE", Status: "offline", QualityRating: "RED"},
		{GraphID: "3", PhoneNumber: "+15550783881", DisplayName: "Test", Status: "online", QualityRating: "GREEN",
			MessagingLimit: limit(250)},
		{GraphID: "5", PhoneNumber: "+442079460958", DisplayName: "Old", Status: "online", QualityRating: "YELLOW",
			MessagingLimit: limit(100_000)},
		{GraphID: "6", PhoneNumber: "+16315558156", DisplayName: "Flagged", Status: "online", QualityRating: "RED",
			MessagingLimit: limit(2000)},
		{GraphID: "7", PhoneNumber: "+16315558157", DisplayName: "Restricted", Status: "online",
			QualityRating: "RED", MessagingLimit: limit(2000)},
		{GraphID: "8", PhoneNumber: "+16315558158", DisplayName: "New", Status: "offline", QualityRating: "GREEN",
			MessagingLimit: limit(2000)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTemplates(t *testing.T) {
	s := graphtest.New(t)
	buttons := object{"type": "BUTTONS", "buttons": []object{{"type": "QUICK_REPLY", "text": "Yes"},
		{"type": "URL", "url": "https://x.example/{{1}}"}, {"type": "COPY_CODE"}}}
	auth := graphtest.Template("4", "code", "APPROVED", "POSITIONAL", "{{1}} is your code.",
		object{"type": "BUTTONS", "buttons": []object{{"type": "URL",
			"url": "https://www.whatsapp.com/otp/code/?code=otp{{1}}"}}})
	auth["category"] = "AUTHENTICATION"
	s.Set(nil, []object{
		graphtest.Template("1", "plain", "APPROVED", "POSITIONAL", "Hello."),
		graphtest.Template("2", "order", "PENDING", "POSITIONAL", "{{2}} for {{1}}, {{2}}",
			object{"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"}, buttons),
		graphtest.Template("3", "named", "APPROVED", "NAMED", "Hi {{first_name}}, {{day}}",
			object{"type": "HEADER", "format": "IMAGE"}),
		auth,
	})
	got, err := s.Client(t).Templates(t.Context())
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v %v", got, err)
	}
	for i, want := range [][]string{{}, {"1", "2", "header_1", "button_2", "button_3"},
		{"first_name", "day", "header_url"}, {"1"}} {
		if v := got[i].Variables(); !slices.Equal(v, want) {
			t.Errorf("%s takes %v, want %v", got[i].Name, v, want)
		}
	}
	if got[1].Status != "PENDING" || got[2].BodyText != "Hi {{first_name}}, {{day}}" || got[2].Language != "en_US" {
		t.Errorf("%+v", got[1:3])
	}
	// Requests as the platform's reference describes them.
	c := s.Client(t)
	send := func(template int, values map[string]string) string {
		t.Helper()
		if _, err := c.Send(t.Context(), "1", "+14155552671",
			graph.Message{Template: &got[template], Values: values}); err != nil {
			t.Fatal(err)
		}
		sent := s.Sent()
		raw, _ := json.Marshal(sent[len(sent)-1].Template["components"])
		return string(raw)
	}
	if got := send(2, map[string]string{"first_name": "Ana", "day": "Friday",
		"header_url": "https://x.example/a.png"}); got !=
		`[{"parameters":[{"parameter_name":"first_name","text":"Ana","type":"text"},{"parameter_name":"day","text":"Friday","type":"text"}],"type":"body"},`+
			`{"parameters":[{"image":{"link":"https://x.example/a.png"},"type":"image"}],"type":"header"}]` {
		t.Error(got)
	}
	if got := send(3, map[string]string{"1": "1234"}); got != `[{"parameters":[{"text":"1234","type":"text"}],"type":"body"},`+
		`{"index":"0","parameters":[{"text":"1234","type":"text"}],"sub_type":"url","type":"button"}]` {
		t.Error(got)
	}
}

func TestFailures(t *testing.T) {
	s := graphtest.New(t)
	c := s.Client(t)
	for name, test := range map[string]struct {
		b       graphtest.Behaviour
		reason  graph.Reason
		unknown bool
		temp    bool
	}{
		"window": {graphtest.Behaviour{Status: 400, Code: 131047, Message: "Re-engagement message"},
			graph.WindowClosed, false, false},
		"recipient": {graphtest.Behaviour{Status: 400, Code: 131026, Message: "Message undeliverable"},
			graph.BadRecipient, false, false},
		"template": {graphtest.Behaviour{Status: 400, Code: 132000, Message: "mismatch"}, graph.BadTemplate, false,
			false},
		"missing": {graphtest.Behaviour{Status: 404, Code: 132001, Message: "no template"}, graph.Unapproved,
			false, false},
		"rate": {graphtest.Behaviour{Status: 429, Code: 130429, Message: "Rate limit hit", RetryAfter: "7"},
			graph.Busy, false, true},
		"token": {graphtest.Behaviour{Status: 401, Code: 190, Message: "bad token " + graphtest.Token},
			graph.BadSender, false, false},
		"gateway": {graphtest.Behaviour{Status: 502, Raw: "<html>"}, graph.NoAnswer, true, true},
		"lost":    {graphtest.Behaviour{Lose: true}, graph.NoAnswer, true, true},
		"other": {graphtest.Behaviour{Status: 400, Code: 131051, Message: "Unsupported message type"},
			graph.Refused, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s.Script(test.b)
			_, err := c.Send(t.Context(), "1", "+14155552671", graph.Message{Text: "Hi"})
			var e *graph.Error
			if !errors.As(err, &e) || e.Reason() != test.reason || e.Unknown != test.unknown ||
				e.Temporary() != test.temp {
				t.Errorf("%+v", err)
			}
			if strings.Contains(err.Error(), graphtest.Token) {
				t.Errorf("the token is in %q", err)
			}
			if name == "rate" && e.RetryAfter != 7*time.Second {
				t.Errorf("retry after %v", e.RetryAfter)
			}
		})
	}
	bad := graph.New(graph.Config{BaseURL: s.URL + "/v19.0", Token: "wrong-token", BusinessID: graphtest.BusinessID})
	defer bad.Close()
	if _, err := bad.Senders(t.Context()); err == nil || strings.Contains(err.Error(), "wrong-token") {
		t.Errorf("a wrong token: %v", err)
	}
}

func TestWords(t *testing.T) {
	for want, fields := range map[string]object{
		"Hello": {"type": "text", "text": object{"body": "  Hello "}},
		"[The customer sent an image] Look!": {"type": "image",
			"image": object{"id": "1", "mime_type": "image/jpeg", "caption": "Look!"}},
		"[The customer sent a voice message, which can't be played here]": {"type": "audio",
			"audio": object{"id": "1", "voice": true}},
		`[The customer sent the document "bill.pdf"]`: {"type": "document",
			"document": object{"filename": "bill.pdf"}},
		"[The customer sent a location: 37.483000, -122.149000, Office, 1 Hacker Way]": {"type": "location",
			"location": object{"latitude": 37.483, "longitude": -122.149, "name": "Office", "address": "1 Hacker Way"}},
		"[The customer sent a contact: Bo Ek +46 70]": {"type": "contacts",
			"contacts": []object{{"name": object{"formatted_name": "Bo Ek"}, "phones": []object{{"phone": "+46 70"}}}}},
		"[The customer reacted with 👍]": {"type": "reaction",
			"reaction": object{"message_id": "x", "emoji": "👍"}},
		"[The customer took a reaction back.]": {"type": "reaction",
			"reaction": object{"message_id": "x"}},
		`[The customer pressed the button "Yes"]`: {"type": "button",
			"button": object{"text": "Yes", "payload": "p"}},
		`[The customer chose "Friday"]`: {"type": "interactive",
			"interactive": object{"type": "button_reply", "button_reply": object{"id": "1", "title": "Friday"}}},
		`[The customer chose "Large" (for two)]`: {"type": "interactive",
			"interactive": object{"type": "list_reply",
				"list_reply": object{"title": "Large", "description": "for two"}}},
		"[The customer sent an order: 2 x cake] soon": {"type": "order",
			"order": object{"text": "soon", "product_items": []object{{"product_retailer_id": "cake", "quantity": 2}}}},
		"[The customer sent something that WhatsApp does not pass on]": {"type": "unsupported",
			"errors": []object{{"code": 131051}}},
		"[The customer sent a message of the type hologram]": {"type": "hologram"},
		"[The customer sent a location: 0.000000, 0.000000]": {"type": "location",
			"location": object{"latitude": "north"}},
		"a": {"type": "text", "text": object{"body": "a\x00"}},
	} {
		n, err := graph.Read(graphtest.Inbound("1", "14155552671", "Ana", "wamid.1", time.Unix(1_700_000_000, 0),
			fields))
		if err != nil || len(n.Messages) != 1 || n.Messages[0].Text != want {
			t.Errorf("%v reads %+v %v, want %q", fields, n, err, want)
			continue
		}
		m := n.Messages[0]
		if m.Phone != "+14155552671" || m.Name != "Ana" || m.SaidAt != parley.At(time.Unix(1_700_000_000, 0)) ||
			m.Sender != "1" {
			t.Errorf("%+v", m)
		}
	}
	if n, err := graph.Read(graphtest.Inbound("1", "14155552671", "Ana", "x", time.Now(),
		object{"type": "system"})); err != nil || len(n.Messages) != 0 {
		t.Errorf("a system message reads %+v %v", n, err)
	}
	future := graphtest.Inbound("1", "14155552671", "Ana", "x", time.Now().Add(48*time.Hour),
		object{"type": "text", "text": object{"body": "x"}})
	if n, _ := graph.Read(future); n.Messages[0].SaidAt > parley.Now() {
		t.Error("a message from the future would keep the window open")
	}
}

func TestStatuses(t *testing.T) {
	n, err := graph.Read(graphtest.Status("1", "wamid.1", "failed", "parley:7",
		object{"code": 131026, "title": "Message undeliverable", "error_data": object{"details": "no account"}}))
	want := []graph.Status{{ID: "wamid.1", Opaque: "parley:7", Status: "failed",
		Error: "Message undeliverable: no account (131026)"}}
	if err != nil || !cmp.Equal(n.Statuses, want) {
		t.Errorf("%+v %v", n, err)
	}
	if n, err := graph.Read(graphtest.Status("1", "wamid.1", "played", "")); err != nil || len(n.Statuses) != 0 {
		t.Errorf("%+v %v", n, err)
	}
}

func TestVerify(t *testing.T) {
	body := []byte(`{"a":1}`)
	good := graph.Sign("secret", body)
	for name, ok := range map[string]bool{
		"good":       graph.Verify("secret", body, good),
		"no secret":  !graph.Verify("", body, graph.Sign("", body)),
		"other body": !graph.Verify("secret", []byte(`{"a":2}`), good),
		"other key":  !graph.Verify("secret2", body, good),
		"none":       !graph.Verify("secret", body, ""),
		"prefix":     !graph.Verify("secret", body, strings.TrimPrefix(good, "sha256=")),
		"cut":        !graph.Verify("secret", body, good[:len(good)-2]),
	} {
		if !ok {
			t.Error(name)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(graphtest.Text("1", "14155552671", "wamid.1", "Hi"))
	f.Add(graphtest.Status("1", "wamid.1", "sent", ""))
	f.Add([]byte(`{"entry":[{"changes":[{"field":"messages","value":{"messages":[null,1,{"id":1}],"statuses":{}}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, _ := graph.Read(body)
		for _, m := range n.Messages {
			if m.ID == "" || m.Phone == "" || m.Text == "" || strings.ContainsRune(m.Text+m.ID+m.Name, 0) ||
				m.SaidAt > parley.Now() {
				t.Errorf("%+v", m)
			}
		}
	})
}
