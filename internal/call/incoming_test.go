package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/call"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/voice"
)

// ringer is a caller.
type ringer struct {
	leg  *leg
	gone chan struct{}
	fail error // of Answer

	mu      sync.Mutex
	rang    bool
	refused int
	told    string
}

func newRinger() *ringer { return &ringer{leg: newLeg(), gone: make(chan struct{})} }

func (r *ringer) Ring() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rang = true
	return nil
}
func (r *ringer) Answer(context.Context) (audio.Leg, error) { return r.leg, r.fail }
func (r *ringer) Refuse(code int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = code
	return nil
}

// Tell implements what a line tells trunks' owners of.
func (r *ringer) Tell(code int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = fmt.Sprint(code, " ", why)
}

func (r *ringer) Done() <-chan struct{} { return r.gone }

// take lets a call come in; over is closed when the call is over.
func (n *node) take(in call.Arrival) (over chan struct{}) {
	over = make(chan struct{})
	go func() { defer close(over); n.Incoming(context.Background(), in) }()
	return over
}

// newest is the user's newest call.
func (h *harness) newest() *parley.Call {
	h.Helper()
	list, _, err := h.db.Calls(context.Background(), h.user.ID, store.CallFilter{}, store.Page{Number: 1, Size: 1})
	h.must(err)
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// trunk gives the user a trunk with a number of its own.
func (h *harness) trunk(phone string) *parley.Trunk {
	h.Helper()
	t := &parley.Trunk{Name: "PBX", PhoneNumber: phone, SIPAddress: "127.0.0.1", Transport: "udp", SRTP: "off",
		InboundAuthorizationType: "auth", AllowedInboundIPs: []string{}}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateTrunk(ctx, h.user.ID, t) })
	return t
}

func TestIncoming(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		trunk := h.trunk("+4930123456")
		desk := h.assistant(`{"type":"inbound","phone_number_id":%d,"name":"Desk"}`, h.number.ID)
		house := h.assistant(`{"type":"inbound","phone_number_id":%d,"name":"House"}`, trunk.PhoneNumberID)
		n := h.node()
		for name, c := range map[string]struct {
			in        call.Arrival
			assistant *parley.Assistant
			customer  string // "" for null
			ours      string
			carrier   parley.Money
		}{
			"carrier": {call.Arrival{From: "+12025550177", To: "+12025550100"}, desk, "+12025550177",
				"+12025550100", 8500},
			"carrier without plus": {call.Arrival{From: "12025550177", To: "12025550100"}, desk, "+12025550177",
				"+12025550100", 8500},
			"trunk": {call.Arrival{From: "+12025550177", To: "front", TrunkID: trunk.ID}, house,
				"+12025550177", "+4930123456", 500},
			"extension": {call.Arrival{From: "200", To: "+12025550199", TrunkID: trunk.ID}, house, "200",
				"+4930123456", 500},
			"anonymous": {call.Arrival{From: "anonymous", To: "+12025550199", TrunkID: trunk.ID}, house,
				"", "+4930123456", 500},
			"softphone": {call.Arrival{From: "ana", To: "7", AssistantID: h.a.ID}, h.a, "", "", 0},
		} {
			r := newRinger()
			c.in.Ringer = r
			over := n.take(c.in)
			r.leg.do(h, func(s *voice.Session) {
				if s.Outbound || s.Persona.Assistant.ID != c.assistant.ID || s.Persona.Initial != "Hello everybody." {
					t.Errorf("%s: %+v", name, s)
				}
			})
			r.leg.says(h, parley.SpeakerCustomer, "Hi")
			r.leg.hangUp(parley.CustomerHangup)
			<-over
			got := h.reported(h.newest().ID)
			phone := func(p *string) string {
				if p == nil {
					return ""
				}
				return *p
			}
			if !r.rang || r.refused != 0 || got.Type != parley.CallInbound || got.Status != parley.CallCompleted ||
				got.AssistantID != c.assistant.ID || got.RingingAt == 0 ||
				phone(got.CustomerPhone) != c.customer || phone(got.AssistantPhone) != c.ours ||
				got.CarrierCost != c.carrier || got.AssistantCost == 0 {
				t.Errorf("%s: rang %v, refused %d, %+v", name, r.rang, r.refused, got)
			}
		}
	})
}

func TestIncomingRefused(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		desk := h.assistant(`{"type":"inbound","phone_number_id":%d}`, h.number.ID)
		asleep := h.assistant(`{"status":"inactive"}`)
		idle := h.rent("+12025550101")
		n := h.node()
		turnedDown := func(name string, in call.Arrival, code int) {
			t.Helper()
			r := newRinger()
			in.Ringer = r
			<-n.take(in)
			rowed := name == "plan" || name == "balance" || name == "disabled" // their calls, or nobody, show it
			if r.refused != code || r.rang || strings.HasPrefix(r.told, fmt.Sprint(code, " ")) == rowed {
				t.Errorf("%s: refused with %d, want %d; rang %v; told %q", name, r.refused, code, r.rang, r.told)
			}
		}
		turnedDown("unknown number", call.Arrival{To: "+12025550142"}, 404)
		turnedDown("no number", call.Arrival{To: "front"}, 404)
		turnedDown("unknown trunk", call.Arrival{To: "+12025550100", TrunkID: 99}, 404)
		turnedDown("unknown assistant", call.Arrival{AssistantID: 9999}, 404)
		turnedDown("inactive assistant", call.Arrival{AssistantID: asleep.ID}, 480)
		turnedDown("nobody answers the number", call.Arrival{To: idle.PhoneNumber}, 480)
		h.change(desk, `{"status":"inactive"}`)
		turnedDown("inactive assistant of the number", call.Arrival{To: "+12025550100"}, 480)
		h.change(desk, `{"status":"active"}`)
		if c := h.newest(); c != nil {
			t.Errorf("a row: %+v", c)
		}
		// If room or money is lacking, the call still gets a row.
		h.user.Plan = "trial"
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
		first := n.start()
		a := h.answered()
		n.start()
		b := h.answered()
		turnedDown("plan", call.Arrival{From: "+12025550177", To: "+12025550100"}, 486)
		if c := h.reported(h.newest().ID); c.Status != parley.CallBusy || c.EndedReason != parley.LineBusy ||
			*c.CustomerPhone != "+12025550177" || c.TotalCost() != 0 {
			t.Errorf("plan: %+v", c)
		}
		a.hangUp(parley.CustomerHangup)
		b.hangUp(parley.CustomerHangup)
		h.reported(first.ID)
		h.until(first.ID+1, "over", func(c *parley.Call) bool { return c.EndedAt != 0 })
		balance, _, _ := h.money()
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit,
				Amount: parley.USD/10 - balance, Reference: "less"})
			return err
		})
		turnedDown("balance", call.Arrival{From: "+12025550177", To: "+12025550100"}, 480)
		if c := h.reported(h.newest().ID); c.Status != parley.CallFailed ||
			c.EndedReason != parley.InsufficientBalance || c.TotalCost() != 0 {
			t.Errorf("balance: %+v", c)
		}
		h.user.DisabledAt = parley.Now()
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
		was := h.newest().ID
		turnedDown("disabled", call.Arrival{To: "+12025550100"}, 480)
		if h.newest().ID != was {
			t.Error("a disabled account has a new row")
		}
	})
}

// A number's route decides what happens to a call, by the hour and by the caller.
func TestIncomingRoute(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		desk := h.assistant(`{"type":"inbound","phone_number_id":%d,"name":"Desk"}`, h.number.ID)
		night := h.assistant(`{"type":"inbound","name":"Night"}`)
		n := h.node()
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddToBlacklist(ctx, h.user.ID, "+12025550166")
			return err
		})
		route := func(r *parley.NumberRoute) {
			t.Helper()
			h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveRoute(ctx, h.user.ID, h.number.ID, r) })
		}
		refused := func(name, from string, code int) {
			t.Helper()
			r := newRinger()
			<-n.take(call.Arrival{Ringer: r, From: from, To: "+12025550100"})
			wanted := name == "nobody at night" || name == "an assistant that is gone" // the owner wants the others refused
			if r.refused != code || r.rang || (r.told == "") == wanted {
				t.Errorf("%s: refused with %d, want %d; rang %v", name, r.refused, code, r.rang)
			}
		}
		taken := func(name, from string, by *parley.Assistant) {
			t.Helper()
			r := newRinger()
			over := n.take(call.Arrival{Ringer: r, From: from, To: "+12025550100"})
			r.leg.do(h, func(s *voice.Session) {
				if s.Persona.Assistant.ID != by.ID {
					t.Errorf("%s: %s answered", name, s.Persona.Assistant.Name)
				}
			})
			r.leg.hangUp(parley.CustomerHangup)
			<-over
			if c := h.newest(); *c.AssistantPhone != "+12025550100" || c.AssistantID != by.ID {
				t.Errorf("%s: %+v", name, c)
			}
		}
		today := time.Now().UTC().Format(time.DateOnly)
		tomorrow := time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
		closed := []string{today, tomorrow} // both days, in case midnight passes during the test
		route(&parley.NumberRoute{})
		taken("open", "+12025550177", desk)
		taken("the blacklist is for campaigns", "+12025550166", desk)
		taken("withheld", "anonymous", desk)
		route(&parley.NumberRoute{ClosedDates: closed})
		refused("closed", "+12025550177", 480)
		route(&parley.NumberRoute{ClosedDates: closed, Otherwise: parley.RouteAssistant, OtherwiseAssistantID: &night.ID})
		taken("at night", "+12025550177", night)
		h.change(night, `{"status":"inactive"}`)
		refused("nobody at night", "+12025550177", 480)
		route(&parley.NumberRoute{BlockedCallers: []string{"+1202555017*"}, BlockAnonymous: true, BlockBlacklist: true})
		refused("blocked", "+12025550177", 603)
		refused("on the blacklist", "+12025550166", 603)
		refused("withheld", "anonymous", 603)
		taken("anybody else", "+12025550188", desk)
		stranger := int64(1 << 40)
		route(&parley.NumberRoute{ClosedDates: closed, Otherwise: parley.RouteAssistant, OtherwiseAssistantID: &stranger})
		refused("an assistant that is gone", "+12025550188", 480)
		route(nil)
		taken("without a route", "+12025550177", desk)
	})
}

// A number's route turns callers away, or treats them as outside the hours, whose verification failed, or all who were not
// verified. The owner is told why.
func TestIncomingSuspects(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		desk := h.assistant(`{"type":"inbound","phone_number_id":%d,"name":"Desk"}`, h.number.ID)
		night := h.assistant(`{"type":"inbound","name":"Night"}`)
		n := h.node()
		failed := &parley.CallVerification{Result: parley.VerificationFailed, By: parley.ByServer, Code: 438, Reason: "the signature is wrong"}
		said := &parley.CallVerification{Result: parley.VerificationFailed, By: parley.ByCarrier}
		open := &parley.CallVerification{Result: parley.Unverified, By: parley.ByServer, Code: 436, Reason: "too late"}
		good := &parley.CallVerification{Result: parley.Verified, By: parley.ByCarrier, Attestation: "A"}
		for name, c := range map[string]struct {
			suspect, step string
			v             *parley.CallVerification
			refused       int
			by            *parley.Assistant
		}{
			"nobody is suspect":        {"none", "refuse", failed, 0, desk},
			"failed":                   {"failed", "refuse", failed, 438, nil},
			"failed, says the carrier": {"failed", "refuse", said, 603, nil},
			"undecided is not failed":  {"failed", "refuse", open, 0, desk},
			"nothing is not failed":    {"failed", "refuse", nil, 0, desk},
			"verified":                 {"unverified", "refuse", good, 0, desk},
			"undecided":                {"unverified", "refuse", open, 436, nil},
			"nothing":                  {"unverified", "refuse", nil, 428, nil},
			"as outside the hours":     {"failed", "otherwise", failed, 0, night},
		} {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				return tx.SaveRoute(ctx, h.user.ID, h.number.ID, &parley.NumberRoute{SuspectCallers: c.suspect, SuspectStep: parley.RouteStep(c.step),
					Otherwise: parley.RouteAssistant, OtherwiseAssistantID: &night.ID})
			})
			r := newRinger()
			over := n.take(call.Arrival{Ringer: r, From: "+12025550177", To: "+12025550100", Signalling: &parley.CallSignalling{Verification: c.v}})
			if c.by != nil {
				r.leg.do(h, func(s *voice.Session) {
					if s.Persona.Assistant.ID != c.by.ID {
						t.Errorf("%s: %s answered", name, s.Persona.Assistant.Name)
					}
				})
				r.leg.hangUp(parley.CustomerHangup)
			}
			<-over
			if r.refused != c.refused || (r.told == "") != (c.refused == 0) || c.refused != 0 && !strings.Contains(r.told, c.v.String()) {
				t.Errorf("%s: refused with %d, want %d; told %q", name, r.refused, c.refused, r.told)
			}
		}
	})
}

// When a caller gives up, or answering fails, the call ends and costs nothing.
func TestIncomingGivesUp(t *testing.T) {
	h := lite(t)
	h.assistant(`{"type":"inbound","phone_number_id":%d,"inbound_webhook_url":"http://127.0.0.1:9/"}`, h.number.ID)
	n := h.node()
	gone := newRinger()
	close(gone.gone)
	<-n.take(call.Arrival{Ringer: gone, To: "+12025550100"})
	if c := h.reported(h.newest().ID); c.Status != parley.CallCanceled || c.EndedReason != parley.Canceled ||
		c.TotalCost() != 0 {
		t.Errorf("%+v", c)
	}
	torn := newRinger()
	torn.fail = errors.New("no port is free")
	<-n.take(call.Arrival{Ringer: torn, To: "+12025550100"})
	if c := h.reported(h.newest().ID); c.Status != parley.CallFailed || c.TotalCost() != 0 {
		t.Errorf("%+v", c)
	}
	n.Stop(t.Context())
	late := newRinger()
	<-n.take(call.Arrival{Ringer: late, To: "+12025550100"})
	if late.refused != 503 {
		t.Errorf("a server that stops refuses with %d", late.refused)
	}
}

// The inbound webhook adds variables to the prompt, and is notified of the end.
func TestInboundWebhook(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		var asked map[string]any
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			json.Unmarshal(body, &asked)
			io.WriteString(w, `{"variables":{"who":"Ana"}}`)
		}))
		defer srv.Close()
		a := h.assistant(`{"type":"inbound","phone_number_id":%d,"inbound_webhook_url":%q,"reengagement_prompt":"{{who}}?","voice_mail_message":"{{customer_phone}}"}`, h.number.ID, srv.URL)
		asleep := h.assistant(`{"type":"inbound","status":"inactive"}`)
		guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
		defer guard.Close()
		n := h.node(func(c *call.Config) { c.Webhooks = event.NewSender(h.db, guard) })
		r := newRinger()
		over := n.take(call.Arrival{Ringer: r, From: "+12025550177", To: "+12025550100"})
		r.leg.do(h, func(s *voice.Session) {
			if s.Persona.Initial != "Hello Ana." || s.Persona.Reengagement != "Ana?" ||
				s.Persona.VoicemailMessage != "+12025550177" {
				t.Errorf("%+v", s.Persona)
			}
			other, err := s.Hand(t.Context(), h.a.ID) // the other assistant's manners, the same call
			if err != nil || other.Assistant.ID != h.a.ID || other.Initial != "Hello Ana." {
				t.Errorf("handed to %+v: %v", other, err)
			}
			if _, err := s.Hand(t.Context(), asleep.ID); err == nil ||
				!strings.Contains(err.Error(), "is inactive: activate it") {
				t.Errorf("handed to an inactive assistant: %v", err)
			}
			if _, err := s.Hand(t.Context(), 9999); !store.IsNotFound(err) {
				t.Errorf("handed to nobody: %v", err)
			}
		})
		r.leg.hangUp(parley.AssistantHangup)
		<-over
		c := h.reported(h.newest().ID)
		if c.InputVariables["who"] != "Ana" || c.EndedReason != parley.AssistantHangup ||
			asked["customer_phone"] != "+12025550177" || asked["assistant_id"] != float64(a.ID) {
			t.Errorf("asked %v, %+v", asked, c)
		}
		events := h.events()
		if len(events) != 2 || events[0]["event"] != "call.inbound" ||
			events[1]["event"] != "call.inbound.completed" || events[1]["id"] != float64(c.ID) {
			t.Errorf("told %v", events)
		}
	})
}

func TestWeb(t *testing.T) {
	h := lite(t)
	speaker := &speech{}
	n := h.node(func(c *call.Config) { c.Speech = speaker })
	v, err := n.Web(t.Context(), h.a, call.Visitor{})
	h.must(err)
	// while the browser connects
	for deadline := time.Now().Add(20 * time.Second); len(speaker.voice.Said()) == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Error("no greeting is prepared")
			break
		}
	}
	if said := speaker.voice.Said(); len(said) != 1 || said[0].Text != "Hello everybody." {
		t.Errorf("prepared %+v", said)
	}
	// A web call that nobody has joined yet holds nothing: no row, no line, no money.
	if _, reserved, _ := h.money(); reserved != 0 {
		t.Errorf("%s are set aside for nobody", reserved)
	}
	if live, err := h.db.LiveCalls(t.Context(), h.user.ID); err != nil || live != 0 {
		t.Errorf("%d calls of nobody: %v", live, err)
	}
	v.Drop(parley.Unreachable)
	v, err = n.Web(t.Context(), h.a, call.Visitor{Variables: map[string]string{"who": "Ana"}})
	h.must(err)
	h.must(v.Enter(t.Context()))
	l := newLeg()
	v.Begin(l)
	l.do(h, func(s *voice.Session) {
		if s.Persona.Initial != "Hello Ana." || s.Outbound {
			t.Errorf("%+v", s)
		}
	})
	l.hangUp(parley.CustomerHangup)
	<-v.Done()
	<-l.down
	if said := speaker.voice.Said(); len(said) != 1 {
		t.Errorf("what a visitor's words are part of is made before they are there: %+v", said)
	}
	c := h.reported(v.ID)
	if c.Type != parley.CallWeb || c.Status != parley.CallCompleted || c.EndedReason != parley.CustomerHangup ||
		c.CustomerPhone != nil || c.AssistantPhone != nil ||
		c.CarrierCost != 0 || c.AssistantCost == 0 {
		t.Errorf("%+v", c)
	}
	v, err = n.Web(t.Context(), h.a, call.Visitor{})
	h.must(err)
	h.must(v.Enter(t.Context()))
	v.Drop(errors.New("no offer that we speak"))
	if c := h.reported(v.ID); c.Status != parley.CallFailed || c.TotalCost() != 0 {
		t.Errorf("%+v", c)
	}
	h.user.Plan = "trial"
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
	late, err := n.Web(t.Context(), h.a, call.Visitor{})
	h.must(err)
	for range 2 {
		v, err := n.Web(t.Context(), h.a, call.Visitor{})
		h.must(err)
		h.must(v.Enter(t.Context()))
		defer v.Drop(parley.CustomerHangup)
	}
	var e *parley.Error
	if _, err := n.Web(t.Context(), h.a, call.Visitor{}); !errors.As(err, &e) || e.Kind != parley.Forbidden {
		t.Errorf("over the plan: %v", err)
	}
	if err := late.Enter(t.Context()); !errors.As(err, &e) || e.Kind != parley.Forbidden {
		t.Errorf("who asked while there was room, and came when there was none: %v", err)
	}
	late.Drop(parley.Rejected)
}

// A test call from a browser is marked as one and costs nothing. It takes one of the plan's lines, as every call does.
func TestWebTest(t *testing.T) {
	h := lite(t)
	n := h.node(func(c *call.Config) { c.Speech = &speech{} })
	h.user.Plan = "trial"
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
	enter := func(begin func(context.Context, *parley.Assistant, call.Visitor) (*call.WebCall, error)) *call.WebCall {
		v, err := begin(t.Context(), h.a, call.Visitor{})
		h.must(err)
		h.must(v.Enter(t.Context()))
		return v
	}
	defer enter(n.Web).Drop(parley.CustomerHangup) // one of two lines
	balance, reserved, _ := h.money()
	v := enter(n.WebTest)
	for name, begin := range map[string]func(context.Context, *parley.Assistant, call.Visitor) (*call.WebCall, error){
		"a call": n.Web, "a test": n.WebTest} {
		if _, err := begin(t.Context(), h.a, call.Visitor{}); !errors.Is(err, call.ErrFull) {
			t.Errorf("%s beside a call and a test on two lines: %v", name, err)
		}
	}
	l := newLeg()
	v.Begin(l)
	l.hangUp(parley.CustomerHangup)
	<-v.Done()
	<-l.down
	if c := h.reported(v.ID); !c.Test || c.Status != parley.CallCompleted {
		t.Errorf("%+v", c)
	}
	if now, held, _ := h.money(); now != balance || held != reserved {
		t.Errorf("a test call cost %v, and %v is set aside", balance-now, held-reserved)
	}
	enter(n.WebTest).Drop(parley.CustomerHangup) // the line is free again
}

// A plan has minutes of test calls a day. A test sets aside what it may last, gives back what it did not, and is over
// when the day's minutes are.
func TestMinutesOfTests(t *testing.T) {
	plan := parley.Plan{ParallelCalls: 10, TestCalls: 100, TestMinutes: 12, Assistants: 5, Numbers: 5, StoredMB: 10}
	t.Parallel()
	h := open(t, storetest.SQLite(t, store.Rules{Plan: func(string) parley.Plan { return plan }}))
	n := h.node(func(c *call.Config) { c.Speech = &speech{} })
	h.change(h.a, `{"max_duration":600}`)
	h.a.MaxDuration = 600
	used := func() int64 {
		list, err := h.db.Limits(t.Context(), h.user.ID, parley.Now())
		h.must(err)
		for _, l := range list {
			if l.Name == parley.LimitTestMinutes {
				return *l.Used
			}
		}
		return -1
	}
	enter := func() (*call.WebCall, error) {
		v, err := n.WebTest(t.Context(), h.a, call.Visitor{})
		h.must(err)
		return v, v.Enter(t.Context())
	}
	first, err := enter()
	h.must(err)
	if n := used(); n != 10 {
		t.Errorf("one test of ten minutes sets %d aside", n)
	}
	second, err := enter()
	h.must(err)
	if n := used(); n != 12 || h.call(second.ID).MaxDuration != 120 {
		t.Errorf("two set %d aside, and the second may last %d s", n, h.call(second.ID).MaxDuration)
	}
	third, err := enter()
	if err == nil || !strings.Contains(err.Error(), "Your plan allows 12 minutes of test calls a day") {
		t.Errorf("a third: %v", err)
	}
	third.Drop(parley.Rejected)
	first.Drop(parley.CustomerHangup)
	h.reported(first.ID)
	if n := used(); n != 2 {
		t.Errorf("after the first, which nobody heard, %d are used", n)
	}
	l := newLeg()
	second.Begin(l)
	l.hangUp(parley.CustomerHangup)
	<-second.Done()
	<-l.down
	h.reported(second.ID)
	if n := used(); n > 1 {
		t.Errorf("after a test of a moment %d minutes are used", n)
	}
}

// A call with a test's token plays on the test's stage. A call with an unknown token is refused: it must
// not become a real call. The endpoints of a test call are neither asked nor notified.
func TestIncomingTest(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		var asked sync.Map
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Store(r.URL.Path, true) }))
		defer hook.Close()
		h.assistants.Stages = stage.New()
		asleep := h.assistant(`{"status":"inactive","is_webhook_active":true,"webhook_url":%q,"inbound_webhook_url":%q}`,
			hook.URL+"/ended", hook.URL+"/inbound")
		n := h.node()
		begin := func(user, assistant int64) string {
			token, err := h.assistants.Stages.Begin(user, assistant, stage.Set{Variables: map[string]string{"who": "Ana"}}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		for name, token := range map[string]string{"unknown": "test-unknown", "another assistant's": begin(h.user.ID, asleep.ID+1),
			"another user's": begin(h.user.ID+1, asleep.ID)} {
			r := newRinger()
			<-n.take(call.Arrival{Ringer: r, From: token, AssistantID: asleep.ID})
			if r.refused != 404 || r.rang || h.newest() != nil {
				t.Errorf("%s: refused with %d, rang %v", name, r.refused, r.rang)
			}
		}
		token := begin(h.user.ID, asleep.ID)
		r := newRinger()
		over := n.take(call.Arrival{Ringer: r, From: token, AssistantID: asleep.ID})
		r.leg.says(h, parley.SpeakerCustomer, "Hi")
		_, err := n.Invite(t.Context(), h.user.ID, h.newest().ID, call.Invitation{To: "+12025550144"})
		if refused, ok := errors.AsType[*parley.Error](err); !ok || refused.Kind != parley.Conflict {
			t.Errorf("a supervisor was called into a test: %v", err)
		}
		if list, known, err := n.TestEvents(t.Context(), h.user.ID, h.newest().ID); list != nil || known || err != nil {
			t.Errorf("the events of a call that goes on: %+v %v %v", list, known, err)
		}
		r.leg.hangUp(parley.CustomerHangup)
		<-over
		got := h.reported(h.newest().ID)
		list, known, err := n.TestEvents(t.Context(), h.user.ID, got.ID)
		if err != nil || !known || len(list) != 2 || list[0].Event != parley.EventCallCompleted ||
			list[1].Event != parley.EventCallInboundCompleted ||
			!strings.Contains(list[0].Payload, `"ended_reason":"customer_hangup"`) || !strings.Contains(list[1].Payload, "Customer: Hi") {
			t.Errorf("the events of a test are %+v %v %v", list, known, err)
		}
		if _, known, err := n.TestEvents(t.Context(), h.user.ID+1, got.ID); known || !store.IsNotFound(err) {
			t.Errorf("a stranger reads the events of a test: %v", err)
		}
		if s := h.assistants.Stages.Find(token); s.Call() != got.ID || got.InputVariables["who"] != "Ana" ||
			got.InputVariables[stage.Variable] != token || got.Status != parley.CallCompleted {
			t.Errorf("the stage has call %d; %+v", s.Call(), got)
		}
		if rows, _, err := h.db.Deliveries(t.Context(), h.user.ID, "", "", store.Page{Number: 1, Size: 100}); err != nil || len(rows) != 0 {
			t.Errorf("events of a test are on their way: %+v %v", rows, err)
		}
		asked.Range(func(path, _ any) bool { t.Errorf("%v was asked", path); return true })
	})
}

// An outgoing call can be a test too: it plays on its stage and no endpoint is notified. With an unknown token, no
// call is made.
func TestOutgoingTest(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("an endpoint of a test was told") }))
		defer hook.Close()
		h.assistants.Stages = stage.New()
		a := h.assistant(`{"type":"outbound","phone_number_id":%d,"is_webhook_active":true,"webhook_url":%q}`, h.number.ID, hook.URL)
		n := h.node()
		begin := func(user, assistant int64) string {
			token, err := h.assistants.Stages.Begin(user, assistant, stage.Set{Variables: map[string]string{"who": "Ana", "what": "cake"}},
				time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		order := func(token string) call.Order {
			return call.Order{UserID: h.user.ID, AssistantID: a.ID, To: "+12025550199",
				Variables: map[string]string{stage.Variable: token, "who": "Bo"}}
		}
		for name, token := range map[string]string{"unknown": "test-unknown", "another assistant's": begin(h.user.ID, a.ID+1),
			"another user's": begin(h.user.ID+1, a.ID)} {
			if _, err := n.Start(t.Context(), order(token)); err == nil || h.newest() != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		token := begin(h.user.ID, a.ID)
		c, err := n.Start(t.Context(), order(token))
		if err != nil {
			t.Fatal(err)
		}
		h.answered().hangUp(parley.CustomerHangup)
		got := h.reported(c.ID)
		if s := h.assistants.Stages.Find(token); s.Call() != c.ID || got.InputVariables["who"] != "Bo" || got.InputVariables["what"] != "cake" {
			t.Errorf("the stage has call %d; %+v", s.Call(), got.InputVariables)
		}
		if rows, _, err := h.db.Deliveries(t.Context(), h.user.ID, "", "", store.Page{Number: 1, Size: 100}); err != nil || len(rows) != 0 {
			t.Errorf("events of a test are on their way: %+v %v", rows, err)
		}
	})
}
