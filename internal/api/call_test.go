package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/api"
	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/blob"
	phone "parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/voice"
)

// phones is a house with a telephone. The number that is dialled decides what happens to the call, by the sandbox's
// rule; the test decides what is said in it.
type phones struct {
	*harness
	calls *phone.Center
	blobs blob.Store
	talks chan *talk // conversations, as they begin
	to    int64      // an outbound assistant that can call

	written writes
}

// talk is a conversation: it reports the events that it is given, and ends with a reason.
type talk struct {
	tell   chan voice.Event
	reason chan parley.EndedReason
}

func eachPhone(t *testing.T, test func(t *testing.T, p *phones)) {
	t.Helper()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			w, o := make(writes, 1), storetest.Options(t, engine, rules)
			o.Watch = w
			p := openPhones(t, storetest.Open(t, o))
			p.written = w
			test(t, p)
		})
	}
}

// writes has a token when calls have been written since it was last read.
type writes chan struct{}

func (w writes) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (w writes) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	if strings.HasPrefix(e.Query, "UPDATE") && strings.Contains(e.Query, "calls") {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func openPhones(t testing.TB, db *store.DB) *phones {
	t.Helper()
	p := &phones{talks: make(chan *talk, 100)}
	where, err := phone.ParseDestinations([]string{"US"})
	if err != nil {
		t.Fatal(err)
	}
	if p.blobs, err = blob.OpenDir(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	p.harness = open(t, db, func(c *api.Config) {
		providers, err := provider.Open(provider.All())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(providers.Close)
		c.Hub = event.NewHub()
		c.Assistants = &assistant.Studio{DB: db, Catalog: c.Catalog, Providers: providers}
		p.calls = phone.New(phone.Config{DB: db, Assistants: c.Assistants, Speech: tones{}, Prices: c.Prices,
			Hub: c.Hub, Blobs: p.blobs, Dir: t.TempDir(), Secret: []byte("secret"),
			Destinations: where, Dial: p.dial, Converse: p.converse, Beat: 100 * time.Millisecond})
		c.Calls = p.calls
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.calls.Run(ctx) }()
	t.Cleanup(func() {
		gone, cut := context.WithCancel(context.Background())
		cut()
		p.calls.Stop(gone)
		stop()
		<-done
	})
	models := p.get("/user/assistants/models?type=llm", status(200)).list()
	local := models[len(models)-1]["id"]
	number := p.buy("US", true)
	p.to = p.assistant(map[string]any{"type": "outbound", "status": "active", "phone_number_id": number["id"],
		"llm_model_id": local, "record": true, "max_duration": 60})
	return p
}

type nobody struct{ audio.Leg }

func (nobody) Rate() audio.Rate { return audio.Narrow }
func (nobody) Hangup()          {}

// audible is a leg that reports on its sound.
type audible struct{ nobody }

func (audible) Media() *parley.CallMedia {
	return &parley.CallMedia{Codec: "G722", Heard: parley.CallSound{Packets: 50, MOS: 4.4}}
}

func (p *phones) dial(ctx context.Context, r phone.Route, ringing func()) (audio.Leg, error) {
	if strings.HasSuffix(r.To, "0103") {
		return nil, parley.LineBusy
	}
	ringing()
	if strings.HasSuffix(r.To, "0104") {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if strings.HasSuffix(r.To, "0105") {
		return audible{}, nil
	}
	return nobody{}, nil
}

func (p *phones) converse(ctx context.Context, s *voice.Session, _ audio.Leg) (r voice.Result) {
	if rec, err := audio.NewRecorder(s.Record, audio.Narrow); err == nil {
		rec.Write(make(audio.Frame, 1600), make(audio.Frame, 1600))
		rec.Close()
	}
	k := &talk{make(chan voice.Event), make(chan parley.EndedReason, 1)}
	p.talks <- k
	for {
		select {
		case e := <-k.tell:
			if e.Kind == voice.TurnEnded {
				r.Turns = append(r.Turns, e.Turn)
			}
			s.Tell(e)
		case r.Reason = <-k.reason:
			return r
		case <-ctx.Done():
			r.Reason, _ = context.Cause(ctx).(parley.EndedReason)
			return r
		}
	}
}

// call makes a call and gives its id.
func (p *phones) call(to string, o ...option) int64 {
	p.Helper()
	got := p.post("/user/make_call", map[string]any{"phone_number": to, "assistant_id": p.to},
		append(o, status(200))...).json()
	if got["message"] != "Call initiated successfully" || len(got["data"].(map[string]any)) != 0 ||
		got["status"] != "initiated" || len(got) != 4 {
		p.Errorf("made %v", got)
	}
	n, _ := got["call_id"].(json.Number).Int64()
	return n
}

func callAt(id int64, more ...string) string {
	return fmt.Sprintf("/user/calls/%d%s", id, strings.Join(more, ""))
}

// until waits until a call is in a state. Every change of a call is written, except that it is still alive.
func (p *phones) until(id int64, ok func(c map[string]any) bool) map[string]any {
	p.Helper()
	for guard := time.After(20 * time.Second); ; {
		c := p.get(callAt(id), status(200)).json()
		if ok(c) {
			return c
		}
		select {
		case <-p.written: // the write is committed once we can lock the row
			p.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.CallForUpdate(ctx, id)
				return err
			})
		case <-guard:
			p.Fatalf("call %d stays %v", id, c)
		}
	}
}

func (p *phones) ended(id int64) map[string]any {
	p.Helper()
	return p.until(id, func(c map[string]any) bool {
		return c["ended_at"] != nil && (c["recording_url"] != nil || c["answered_at"] == nil)
	})
}

func TestMakeCallRefused(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		at := "/user/make_call"
		p.post(at, map[string]any{}, status(422)).fails("phone_number", "assistant_id")
		p.post(at, map[string]any{"phone_number": "12", "assistant_id": p.to}, status(422)).says("phone_number",
			"The phone_number field must be a valid phone number in international format.")
		p.post(at, map[string]any{"phone_number": "+12025550100", "assistant_id": "x", "variables": []any{1}},
			status(422)).fails("assistant_id", "variables")
		p.post(at, map[string]any{"phone_number": "+12025550100", "assistant_id": p.to,
			"variables": map[string]any{"a": []int{1}}}, status(422)).fails("variables.a")
		p.post(at, map[string]any{"phone_number": "+12025550100", "assistant_id": p.to,
			"sip_headers": map[string]any{"Via": "x", "X-A": "a\r\nVia: b"}}, status(422)).fails("sip_headers.Via", "sip_headers.X-A")
		good := map[string]any{"phone_number": "+12025550100", "assistant_id": p.to}
		for name, c := range map[string]struct {
			change map[string]any
			status int
			says   string
		}{
			"unknown assistant": {map[string]any{"assistant_id": 9999}, 404, "Assistant not found"},
			"inbound": {map[string]any{"assistant_id": p.assistant(map[string]any{"status": "active"})},
				422, "outbound"},
			"inactive": {map[string]any{"assistant_id": p.assistant(map[string]any{"type": "outbound"})},
				422, "inactive"},
			"no number": {map[string]any{"assistant_id": p.assistant(map[string]any{"type": "outbound",
				"status": "active"})}, 422, "number"},
			"destination": {map[string]any{"phone_number": "+33142685300"}, 403, "not allowed"},
		} {
			got := p.post(at, with(good, c.change), status(c.status)).json()
			if text, _ := got["message"].(string); !strings.Contains(text, c.says) || len(got) != 1 {
				t.Errorf("%s: %v", name, got)
			}
		}
		p.stranger().post(at, good, status(404)).is(`{"message":"Assistant not found"}`)
		p.user.Plan = "trial" // two calls
		p.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, p.user) })
		first, second := p.call("+12025550104"), p.call("+12025550104")
		if text := p.post(at, good, status(403)).json()["message"]; !strings.Contains(fmt.Sprint(text), "plan") {
			t.Errorf("over the plan: %v", text)
		}
		for _, n := range []int64{first, second} {
			p.post(callAt(n, "/hangup"), nil, status(200)).is(`{"message":"Call hung up successfully"}`)
			if c := p.ended(n); c["status"] != "canceled" || c["ended_reason"] != "canceled" {
				t.Errorf("hung up while it rang: %v", c)
			}
		}
		p.write(func(ctx context.Context, tx *store.Tx) error {
			free, err := tx.Free(ctx, p.user.ID)
			if err != nil {
				return err
			}
			_, err = tx.Post(ctx, p.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: parley.USD/100 - free,
				Reference: "less"})
			return err
		})
		p.post(at, good, status(402)).is(`{"message":"Insufficient balance"}`)
	})
}

func TestCall(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		key := header("Idempotency-Key", "once")
		n := p.call("+1 (202) 555-0100", key)
		if again := p.call("+1 (202) 555-0100", key); again != n {
			t.Errorf("one key made calls %d and %d", n, again)
		}
		k := <-p.talks
		live := p.until(n, func(c map[string]any) bool { return c["status"] == "in-progress" })
		if live["recording_url"] != nil || live["ended_reason"] != "" || live["total_cost"] != json.Number("0") {
			t.Errorf("live %v", live)
		}
		p.delete(callAt(n), status(409))
		k.tell <- voice.Event{Kind: voice.TurnEnded,
			Turn: parley.CallTurn{Speaker: "assistant", Text: "Hello.", StartedAtMS: 20,
				Latency: &parley.Latency{FirstPacketMS: 700}}}
		k.tell <- voice.Event{Kind: voice.TurnEnded,
			Turn: parley.CallTurn{Speaker: "customer", Text: "Yes,\nthat sounds good.", StartedAtMS: 900}}
		k.reason <- parley.CustomerHangup
		c := p.until(n, func(c map[string]any) bool {
			return c["recording_url"] != nil && len(c["variables"].(map[string]any)) > 0
		})
		want := []string{"answered_at", "answered_by", "assistant_id", "assistant_name", "assistant_phone_number",
			"carrier_cost", "client_phone_number", "cost_breakdown", "created_at",
			"duration", "ended_at", "ended_detail", "ended_reason", "evaluation", "function_calls", "id",
			"input_variables", "recording_url", "ringing_at", "status", "taken_by", "test", "total_cost", "transcript", "turns", "type",
			"updated_at", "variables", "vendor_uses", "webhook_response"}
		if !slices.Equal(keys(c), want) {
			t.Errorf("keys %q", keys(c))
		}
		for name, value := range map[string]string{"type": "outbound", "status": "completed",
			"client_phone_number": "+12025550100", "ended_reason": "customer_hangup", "answered_by": "unknown",
			"transcript": "AI: Hello.\nCustomer: Yes, that sounds good.", "webhook_response": "map[]",
			"evaluation": "map[]", "function_calls": "[]", "carrier_cost": "0.014",
			"variables": "map[status:true summary:Yes, that sounds good.]"} {
			if got := fmt.Sprint(c[name]); got != value {
				t.Errorf("%s is %s, want %s", name, got, value)
			}
		}
		cost := c["cost_breakdown"].(map[string]any)
		if cost["carrier_minutes"] != json.Number("1") || cost["assistant_seconds"] != c["duration"] ||
			cost["assistant_rate"] != json.Number("0.06") || len(cost) != 6 {
			t.Errorf("costs %v", cost)
		}
		// The endpoint's answer shows as webhook_response.
		p.write(func(ctx context.Context, tx *store.Tx) error {
			d := parley.NewDelivery(parley.EventCallCompleted, "https://example.com/", map[string]any{})
			code := 202
			d.CallID, d.LastStatus, d.Answer = &n, &code, "thanks"
			return tx.RecordDelivery(ctx, p.user.ID, d, &parley.DeliveryAttempt{At: parley.Now(), Status: &code})
		})
		for _, got := range []map[string]any{p.get(callAt(n)).json(), p.get("/user/calls").rows()[0]} {
			if fmt.Sprint(got["webhook_response"]) != "map[body:thanks status:202]" || !slices.Equal(keys(got), want) {
				t.Errorf("%v", got)
			}
		}
		if kinds := p.get("/user/billing/ledger").rows(); len(kinds) < 2 || kinds[0]["kind"] != "call" ||
			kinds[1]["kind"] != "carrier" || kinds[0]["reference"] != fmt.Sprintf("call:%d", n) {
			t.Errorf("ledger %v", kinds)
		}
		other := p.stranger()
		for _, path := range []string{callAt(n), "/user/calls/99999", "/user/calls/x"} {
			for _, method := range []string{"GET", "DELETE"} {
				other.do(method, path, nil, status(404)).is(`{"message":"Call not found"}`)
			}
			other.post(path+"/hangup", nil, status(404)).is(`{"message":"Call not found"}`)
			other.get(path+"/events", status(404)).is(`{"message":"Call not found"}`)
			other.get(path+"/sip", status(404)).is(`{"message":"Call not found"}`)
			other.get(path+"/recording", status(404)).is(`{"message":"Call not found"}`)
		}
		p.get(callAt(n, "/sip"), status(200)).is(`{"data":[]}`)
		p.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.KeepSIP(ctx, n, []parley.SIPMessage{{Direction: "in", Transport: "tls", Peer: "192.0.2.1:5061",
				Text: "BYE sip:x SIP/2.0"}})
		})
		if rows := p.get(callAt(n, "/sip"), status(200)).rows(); len(rows) != 1 || rows[0]["text"] != "BYE sip:x SIP/2.0" ||
			rows[0]["transport"] != "tls" {
			t.Errorf("SIP messages %v", rows)
		}
		p.post(callAt(n, "/hangup"), nil, status(409))
		p.delete(callAt(n), status(200)).is(`{"message":"Call deleted successfully"}`)
		p.get(callAt(n), status(404))
	})
}

func TestCallList(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		busy := p.call("+12025550103")
		p.ended(busy)
		ringing := p.call("+12025550104")
		p.until(ringing, func(map[string]any) bool {
			return p.get("/user/calls?status=ringing").json()["total"] == json.Number("1")
		}) // the row follows
		today := time.Now().UTC().Format(time.DateOnly)
		for query, want := range map[string]string{
			"": "2", "status=busy": "1", "status=ringing": "1", "status=completed": "0", "type=outbound": "2",
			"type=inbound": "0", "type=web": "0",
			"phone_number=%2B12025550103": "1", "phone_number=+12025550103": "1", "phone_number=12025550103": "1",
			"phone_number=%2B12025550199": "0", "phone_number=nonsense": "0",
			fmt.Sprintf("assistant_id=%d&status=busy", p.to): "1", "date_from=" + today: "2", "date_to=" +
				today: "2", "date_to=2020-01-01": "0",
			// forms send empty fields too
			"status=&type=&phone_number=&assistant_id=&campaign_id=&date_from=&date_to=": "2",
		} {
			if got := p.get("/user/calls?"+query, status(200)).json()["total"]; got != json.Number(want) {
				t.Errorf("%s: %v calls, want %s", query, got, want)
			}
		}
		page := p.get("/user/calls?per_page=1&status=", status(200)).json()
		if rows := page["data"].([]any); len(rows) != 1 || id(rows[0].(map[string]any)) != ringing ||
			page["per_page"] != json.Number("1") || page["last_page"] != json.Number("2") {
			t.Errorf("page %v", page)
		}
		p.get("/user/calls?status=gone&type=fax&date_from=1.1.2026&per_page=101&page=0&assistant_id=x",
			status(422)).fails("status", "type", "date_from", "per_page", "page", "assistant_id")
		p.get("/user/calls?assistant_id=9999", status(404)).is(`{"message":"Assistant not found"}`)
		p.get("/user/calls?assistant_id=0", status(404)).is(`{"message":"Assistant not found"}`)
		p.get("/user/calls?campaign_id=9999", status(404)).is(`{"message":"Campaign not found"}`)
		if got := p.stranger().get("/user/calls", status(200)).json()["total"]; got != json.Number("0") {
			t.Errorf("a stranger sees %v", got)
		}
		// Erasing the customer deletes the call.
		if got := p.delete("/user/customers/+12025550103", status(200)).json()["calls"]; got != json.Number("1") {
			t.Errorf("erased %v", got)
		}
		p.get(callAt(busy), status(404))
		p.delete("/user/customers/+12025550104", status(409)).is(
			`{"message":"The customer is in a call: hang up first."}`)
	})
}

// A stream that the server itself reads in its user's name, as tests do that belong to an assistant, goes on until the call is
// over, and ends when the account is disabled.
func TestFollowCallInside(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		n := p.call("+12025550107")
		k := <-p.talks
		p.until(n, func(c map[string]any) bool { return c["status"] == "in-progress" })
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://parley.internal/api"+callAt(n, "/events"), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.api.As(p.user.ID).RoundTrip(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		defer res.Body.Close()
		lines := bufio.NewReader(res.Body)
		beats := func() bool { // a sign of life comes after each look at whether the reader may go on
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return false
				}
				if line == ": \n" {
					return true
				}
			}
		}
		for range 2 {
			if !beats() {
				t.Fatal("the stream ended while the call goes on")
			}
		}
		k.tell <- voice.Event{Kind: voice.TurnEnded, Turn: parley.CallTurn{Speaker: "customer", Text: "One"}}
		if got := read(t, lines, "turn"); !strings.Contains(got[len(got)-1], `"text":"One"`) {
			t.Errorf("turn %q", got)
		}
		p.write(func(ctx context.Context, tx *store.Tx) error {
			p.user.DisabledAt = parley.Now()
			return tx.SaveUser(ctx, p.user)
		})
		if text, err := io.ReadAll(lines); err != nil || strings.Contains(string(text), "event: end") {
			t.Errorf("of a disabled account it ended with %q, %v", text, err)
		}
		k.reason <- parley.CustomerHangup
	})
}

// follow listens to a call's events after a turn.
func (p *phones) follow(id int64, after string, query ...string) *http.Response {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), "GET", p.url+"/api"+callAt(id, "/events")+strings.Join(query, ""), nil)
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Last-Event-ID", after)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		p.Fatalf("%s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	return res
}

func TestFollowCall(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		n := p.call("+12025550105")
		k := <-p.talks
		p.until(n, func(c map[string]any) bool { return c["status"] == "in-progress" })
		say := func(text string) {
			k.tell <- voice.Event{Kind: voice.TurnEnded, Turn: parley.CallTurn{Speaker: "customer", Text: text}}
		}
		say("One")
		p.until(n, func(c map[string]any) bool { return len(c["turns"].([]any)) == 1 })
		// The quality of the sound is told only to clients that ask for it.
		if m, _ := p.get(callAt(n), status(200)).json()["media"].(map[string]any); m["codec"] != "G722" {
			t.Errorf("the sound of a live call is %v", m)
		}
		if got := read(t, bufio.NewReader(p.follow(n, "", "?media=true").Body), "media"); !strings.HasPrefix(got[len(got)-1],
			`media {"codec":"G722","encryption":"","round_trip_ms":null,"heard":{"packets":50,`) {
			t.Errorf("the sound is told as %q", got)
		}
		late := bufio.NewReader(p.follow(n, "").Body)
		first := read(t, late, "turn")
		if len(first) != 2 || first[0] != `status {"status":"in-progress"}` ||
			!strings.Contains(first[1], `"text":"One"`) {
			t.Errorf("at first %q", first)
		}
		k.tell <- voice.Event{Kind: voice.PartialHeard, Text: "Tw"}
		if got := read(t, late, "partial"); got[len(got)-1] != `partial {"text":"Tw"}` {
			t.Errorf("partial %q", got)
		}
		say("Two")
		if got := read(t, late, "turn"); len(got) != 1 || !strings.Contains(got[0], `"text":"Two"`) {
			t.Errorf("turn %q", got)
		}
		used := voice.Event{Kind: voice.ToolUsed}
		used.Call.Name, used.Call.Arguments, used.Call.Result = "look_up", json.RawMessage(`{"a":1}`), "found"
		k.tell <- used
		if got := read(t, late, "tool"); !strings.HasPrefix(got[0],
			`tool {"name":"look_up","arguments":{"a":1},"result":"found","at_ms":`) {
			t.Errorf("tool %q", got)
		}
		k.reason <- parley.CustomerHangup
		got := read(t, late, "end")
		if got[0] != `status {"status":"completed"}` ||
			!strings.HasPrefix(got[1], `end {"status":"completed","ended_reason":"customer_hangup","ended_detail":null,"duration":`) ||
			len(got) != 2 {
			t.Errorf("end %q", got)
		}
		if rest, err := io.ReadAll(late); err != nil || len(bytes.TrimSpace(rest)) != 0 {
			t.Errorf("after the end %q: %v", rest, err)
		}
		// A client that comes back after some turns, or after the end, gets what it missed, and its stream ends.
		text, _ := io.ReadAll(p.follow(n, "1").Body)
		if s := string(text); strings.Contains(s, `"One"`) ||
			!strings.Contains(s, "id: 2\ndata: {\"speaker\":\"customer\",\"text\":\"Two\"") ||
			!strings.Contains(s, "event: end") {
			t.Errorf("came back to %s", s)
		}
	})
}

// When the server stops, streams that follow a call of another node end. The server waits only for its own calls; those
// are followed to their end.
func TestStopWithFollowers(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		mine := p.call("+12025550100")
		k := <-p.talks
		p.until(mine, func(c map[string]any) bool { return c["status"] == "in-progress" })
		row, err := p.db.Call(t.Context(), p.user.ID, mine)
		if err != nil {
			t.Fatal(err)
		}
		others := &parley.Call{AssistantID: row.AssistantID, Type: parley.CallOutbound,
			Status: parley.CallInProgress, Node: "another", MaxDuration: 60}
		p.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, p.user.ID, others) })
		here, there := bufio.NewReader(p.follow(mine, "").Body), bufio.NewReader(p.follow(others.ID, "").Body)
		for _, r := range []*bufio.Reader{here, there} {
			if line, err := r.ReadString('\n'); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
		p.api.Stop()
		gone := make(chan error, 1)
		go func() { _, err := io.ReadAll(there); gone <- err }()
		select {
		case err := <-gone:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the stop waits for another node's call")
		}
		k.reason <- parley.CustomerHangup
		if got := read(t, here, "end"); len(got) == 0 || !strings.Contains(got[len(got)-1], "customer_hangup") {
			t.Errorf("its own call is followed to %q", got)
		}
	})
}

func TestRecordingRoutes(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		n := p.call("+12025550100")
		k := <-p.talks
		k.reason <- parley.AssistantHangup
		c := p.ended(n)
		fetch := func(url, token, span string) (*http.Response, []byte) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			if span != "" {
				r.Header.Set("Range", span)
			}
			res, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res, body
		}
		link := c["recording_url"].(string)
		if !strings.HasPrefix(link, p.url+"/api/recordings/") {
			t.Errorf("link %s", link)
		}
		own := p.url + "/api" + callAt(n, "/recording")
		var whole []byte
		for name, url := range map[string]string{own: p.token, link: ""} {
			res, body := fetch(name, url, "")
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != "audio/wav" || len(body) != 44+4*1600 ||
				string(body[:4]) != "RIFF" {
				t.Errorf("%s: %s, %v, %d bytes", name, res.Status, res.Header, len(body))
			}
			whole = body
			res, body = fetch(name, url, "bytes=40-49")
			if res.StatusCode != 206 || !bytes.Equal(body, whole[40:50]) {
				t.Errorf("%s: %s, %d bytes of a range", name, res.Status, len(body))
			}
		}
		for _, url := range []string{own, link[:len(link)-1] + "x",
			strings.Replace(link, fmt.Sprintf("/%d/", n), fmt.Sprintf("/%d/", n+1), 1), p.url +
				"/api/recordings/x/y/z"} {
			if res, body := fetch(url, "", ""); res.StatusCode != 404 && res.StatusCode != 401 ||
				!strings.HasPrefix(string(body), `{"message":`) {
				t.Errorf("%s: %s %s", url, res.Status, body)
			}
		}
		// A leg of the call has its own.
		legs := []parley.CallLeg{{CallID: n, Kind: parley.LegGuest}, {CallID: n, Kind: parley.LegGuest}}
		if _, err := p.blobs.Put(t.Context(), "recordings/leg", bytes.NewReader(whole[:200])); err != nil {
			t.Fatal(err)
		}
		if err := p.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if err := errors.Join(tx.CreateLeg(ctx, p.user.ID, &legs[0]), tx.CreateLeg(ctx, p.user.ID, &legs[1])); err != nil {
				return err
			}
			_, err := tx.KeepLegRecording(ctx, legs[0].ID, "recordings/leg")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		shown := p.get(callAt(n, ""), status(200)).json()["legs"].([]any)
		link, _ = shown[0].(map[string]any)["recording_url"].(string)
		if shown[1].(map[string]any)["recording_url"] != nil {
			t.Errorf("a leg without a recording: %v", shown[1])
		}
		at := func(leg int64) string { return callAt(n, fmt.Sprintf("/legs/%d/recording", leg)) }
		for url, token := range map[string]string{p.url + "/api" + at(legs[0].ID): p.token, link: ""} {
			if res, body := fetch(url, token, ""); res.StatusCode != 200 || !bytes.Equal(body, whole[:200]) {
				t.Errorf("%s: %s, %d bytes", url, res.Status, len(body))
			}
		}
		other := strings.Replace(link, fmt.Sprintf("/legs/%d/", legs[0].ID), fmt.Sprintf("/legs/%d/", legs[1].ID), 1)
		if res, body := fetch(other, "", ""); res.StatusCode != 404 {
			t.Errorf("%s: %s %s", other, res.Status, body)
		}
		p.get(at(legs[1].ID), status(404)).is(`{"message":"Recording not found"}`)
		busy := p.call("+12025550103")
		p.ended(busy)
		p.get(callAt(busy, "/recording"), status(404)).is(`{"message":"Recording not found"}`)
	})
}

// The number of queries for a list of calls does not grow with the list.
func TestQueriesOfCalls(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			c := &counter{}
			o := storetest.Options(t, engine, rules)
			o.Watch = c
			p := openPhones(t, storetest.Open(t, o))
			p.write(func(ctx context.Context, tx *store.Tx) error {
				for range 60 {
					if err := tx.CreateCall(ctx, p.user.ID,
						&parley.Call{AssistantID: p.to, Type: parley.CallWeb, Status: parley.CallCompleted,
							EndedAt: 1}); err != nil {
						return err
					}
				}
				return nil
			})
			for path, most := range map[string]int64{"/user/calls?per_page=2": 4, "/user/calls?per_page=60": 4,
				"/user/calls?page=99": 3, callAt(7): 4} {
				got := int64(1 << 30)
				for range 5 { // the server makes queries in the background
					c.n.Store(0)
					p.get(path, status(200))
					got = min(got, c.n.Load())
				}
				if got > most {
					t.Errorf("%s asked %d times, at most %d", path, got, most)
				}
			}
		})
	}
}

// trunkLine is a telephone line that answers for trunks.
type trunkLine struct{ refreshed int }

func (l *trunkLine) Check(_ context.Context, t *parley.Trunk) (phone.Health, error) {
	if t.SIPAddress == "10.0.0.9" {
		return phone.Health{}, fmt.Errorf("no answer from %s within 5 s: is the address right?", t.SIPAddress)
	}
	return phone.Health{Registered: true, OptionsMS: 12,
		Findings: []parley.TrunkFinding{{Topic: "nat", State: parley.FindingOK, Text: "No NAT."}}}, nil
}
func (l *trunkLine) Registered(int64) bool { return true }
func (l *trunkLine) Secure() bool          { return false }
func (l *trunkLine) Refresh()              { l.refreshed++ }

func TestTrunkCheck(t *testing.T) {
	l := &trunkLine{}
	h := lite(t, func(c *api.Config) {
		c.Calls = phone.New(phone.Config{DB: c.DB, Line: l})
		c.Numbers.TrunksChanged = l.Refresh
	})
	trunk := h.post(trunksAt, with(trunkBody(), map[string]any{"register": true}),
		status(201)).json()["data"].(map[string]any)
	at := fmt.Sprintf("%s/%d", trunksAt, id(trunk))
	if got := h.get(at, status(200)).json()["data"].(map[string]any); got["registered"] != true {
		t.Errorf("read %v", got)
	}
	h.post(at+"/check", nil, status(200)).is(`{"registered":true,"options_ms":12,"error":null}`)
	h.post(at+"/check?findings=true", nil, status(200)).is(
		`{"registered":true,"options_ms":12,"error":null,"findings":[{"topic":"nat","state":"ok","text":"No NAT."}]}`)
	h.post(at+"/test-call", map[string]any{"phone_number": "1"}, status(422)).fails("phone_number")
	if got := h.put(at, map[string]any{"register": false, "sip_address": "10.0.0.9"},
		status(200)).json()["data"].(map[string]any); got["registered"] != false {
		t.Errorf("changed %v", got)
	}
	h.post(at+"/check", nil, status(200)).
		is(`{"registered":false,"options_ms":null,"error":"no answer from 10.0.0.9 within 5 s: is the address right?"}`)
	if rows := h.get(trunksAt).rows(); rows[0]["registered"] != false {
		t.Errorf("listed %v", rows)
	}
	h.delete(at, status(200))
	again := h.post(trunksAt, trunkBody(), status(201)).json()["data"].(map[string]any)
	// the trunk is deleted with its number
	h.delete(fmt.Sprintf("/user/phone-numbers/%v", again["phone_number_id"]), status(200))
	if l.refreshed != 5 {
		t.Errorf("the line was told %d times", l.refreshed)
	}
}

// A campaign is looked over before its start, and its user is called first, for the price of a call.
func TestCampaignReview(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		p.put(fmt.Sprintf("/user/assistant/%d", p.to), map[string]any{"initial_message": "Hello {{who}}."}, status(200))
		c := p.campaign(map[string]any{"assistant_id": p.to})
		at := fmt.Sprintf("/user/campaigns/%d", c)
		p.post(at+"/try", map[string]any{"phone_number": "+12025550105"}, status(400))
		p.post(at+"/try", map[string]any{"phone_number": "me"}).fails("phone_number")
		storetest.Jobs(t, p.db, p.api.Campaigns.AddWorkers, campaign.Queue)
		list := "Mobile,name\n+12025550101,Ana\n12,Bo\n"
		p.post("/user/leads/import", nil, multi("campaign_id", fmt.Sprint(c), "columns", "[]", "file", strings.NewReader(list))).fails("columns")
		got := p.post("/user/leads/import", nil,
			multi("campaign_id", fmt.Sprint(c), "rejected_csv", "1", "columns", `{"Mobile": "phone_number"}`, "file", strings.NewReader(list)),
			status(200)).json()["data"].(map[string]any)
		if csv, _ := got["rejected_csv"].(string); !strings.Contains(csv, "international format.,12,Bo\n") {
			t.Errorf("%v", got)
		}
		review := p.get(at+"/review", status(200)).json()
		if why, _ := review["blocked"].(string); !strings.Contains(why, "{{who}}") || fmt.Sprint(review["leads"]) != "1" ||
			fmt.Sprint(review["variables"]) != "[map[leads:1 name:who unmatched:true]]" ||
			review["estimate"].(map[string]any)["basis"] != "default" {
			t.Errorf("%v", review)
		}
		if rows := p.sheet(fmt.Sprintf("campaigns/%d/sample.csv", c)); fmt.Sprint(rows) != "[[phone_number who] [+12025550123 ]]" {
			t.Errorf("the example is %q", rows)
		}

		made := p.post(at+"/try", map[string]any{"phone_number": "+1 202 555 0105"}, status(200)).json()
		n, _ := made["call_id"].(json.Number).Int64()
		talk := <-p.talks
		talk.reason <- parley.CustomerHangup
		call := p.ended(n)
		if call["client_phone_number"] != "+12025550105" || call["campaign_id"] != nil || fmt.Sprint(call["input_variables"]) != "map[name:Ana]" {
			t.Errorf("%v", call)
		}
		if entries := fmt.Sprint(p.get("/user/billing/ledger", status(200)).json()["data"]); !strings.Contains(entries,
			fmt.Sprintf("call:%d", n)) {
			t.Errorf("nothing was charged: %s", entries)
		}
		leads := p.get("/user/leads?page=1&campaign_id="+fmt.Sprint(c), status(200)).json()["data"].([]any)
		if l := leads[0].(map[string]any); l["status"] != "created" || fmt.Sprint(l["attempts"]) != "0" || l["last_call_id"] != nil {
			t.Errorf("the lead is %v", l)
		}
		other := p.stranger()
		other.get(at+"/review", status(404))
		other.get(at+"/sample.csv", status(404))
		other.post(at+"/try", map[string]any{"phone_number": "+12025550105"}, status(404))
		other.post(at+"/schedule", map[string]any{"starts_at": "2030-01-01 09:00"}, status(404))
		p.post(at+"/schedule", map[string]any{"starts_at": "soon"}).fails("starts_at")
		when := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		planned := p.post(at+"/schedule", map[string]any{"starts_at": when.Format(time.RFC3339)}, status(200)).json()["data"].(map[string]any)
		if planned["starts_at"] != when.Format("2006-01-02T15:04:05.000000Z") || planned["status"] != "draft" {
			t.Errorf("%v", planned)
		}
		other.delete(at+"/schedule", status(404))
		if got := p.delete(at+"/schedule", status(200)).json()["data"].(map[string]any); got["starts_at"] != nil {
			t.Errorf("%v", got)
		}
		p.delete(at+"/schedule", status(400))
		// the contract's start asks none of this
		p.post("/user/campaigns/update-status", map[string]any{"campaign_id": c, "action": "start"}, status(200))
	})
}
