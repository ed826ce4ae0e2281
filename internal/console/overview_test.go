package console

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/store"
)

func TestOverview(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/").says("Make an assistant")
	a := h.assistant(t, u, "Front <b>desk</b>")
	r := v.get("/").says("Write to Front <b>desk</b>")
	if n := r.doc().Find(`.steps a[href="/numbers"], .steps a[href="/assistants/` + id(a.ID) +
		`#widget"]`).Length(); n != 2 {
		t.Errorf("%d of the next steps lead somewhere", n)
	}
	call := func(status parley.CallStatus, ended parley.Time, ms ...int64) {
		t.Helper()
		c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: status, EndedAt: parley.DateTime(ended)}
		for _, n := range ms {
			c.Turns = append(c.Turns, parley.CallTurn{Speaker: parley.SpeakerAssistant, Text: "Yes.",
				Latency: &parley.Latency{FirstPacketMS: n}})
		}
		if err := h.DB.Write(t.Context(), func(ctx context.Context,
			tx *store.Tx) error {
			return tx.CreateCall(ctx, u.ID, c)
		}); err != nil {
			t.Fatal(err)
		}
	}
	call(parley.CallCompleted, parley.Now(), 500, 700, 600)
	call(parley.CallFailed, parley.Now())
	call(parley.CallInProgress, 0)
	doc := v.get("/").is(http.StatusOK).doc()
	if got := strings.Join(strings.Fields(strings.Join(doc.Find(".sums dd").Map(textOfNode), " ")),
		"|"); got != "$5.00|1|2|$0.00|1|call" {
		t.Errorf("sums: %s", got)
	}
	if got := strings.Join(doc.Find(".chart figcaption span").Map(textOfNode),
		"|"); got != "2|$0.00|p50 598 ms, p95 699 ms|1 call" {
		t.Errorf("charts: %s", got)
	}
	if got := strings.Join(strings.Fields(doc.Find(".sums .bad").Text()), " "); got != "Failed today1 call" {
		t.Errorf("the failures are %q", got)
	}
	conv := h.talk(t, a, parley.WidgetConversation)
	h.model.Script(aitest.Behaviour{Status: 401})
	w, err := h.Chat.Send(t.Context(), conv, "Hello?")
	if err == nil {
		_, err = w.Wait(t.Context())
	}
	if err == nil {
		t.Fatal("the model did not fail")
	}
	if got := strings.Join(strings.Fields(v.get("/").doc().Find(".sums .bad").Text()),
		" "); got != "Failed today1 call 1 message" {
		t.Errorf("the failures are %q", got)
	}
	if got := v.get("/conversations/" + conv.ID).doc().Find(".said.customer .wrong").Text(); !strings.Contains(got,
		"There was no reply.") || len(got) < 60 {
		t.Errorf("the message says %q", got) // with the reason, and how to fix it
	}
	if doc.Find(".steps").Length() != 0 || doc.Find(".chart svg[role=img][aria-label]").Length() != 4 {
		t.Error("the charts are not there")
	}
	// Another user's numbers are not counted.
	if got := h.signedIn(t, h.user(t)).get("/").doc().Find(".sums dd").First().Next().Text(); strings.Contains(got,
		"3") {
		t.Errorf("a stranger sees %q", got)
	}
}

// Someone looking at the overview sees calls begin and end, and what they cost, without reloading.
func TestOverviewIsLive(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.caller(t, u, "Front desk")
	v := h.signedIn(t, u)
	at := func() string { return v.get("/").doc().Find("#results[data-live='/live']").AttrOr("data-list", "") }
	_, next := v.stream("GET", "/live", nil)
	seen := until(t, next, "list", "").data["version"]
	if now := at(); now != seen {
		t.Errorf("the page is at %q, the stream at %q", now, seen)
	}
	for what, change := range map[string]func(){
		"a live call":      func() { h.called(t, u, a, nil) },
		"one that is over": func() { h.called(t, u, a, over(parley.CustomerHangup)) },
		"one that failed":  func() { h.called(t, u, a, over(parley.ProviderFailure)) },
		"a charge": func() {
			h.write(t, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.MessageCharge, Reference: "x",
					Amount: -parley.USD})
				return err
			})
		},
	} {
		change()
		now := until(t, next, "list", "").data["version"]
		if now == seen || now != at() {
			t.Errorf("%s: the stream goes from %q to %q, the page is at %q", what, seen, now, at())
		}
		seen = now
	}
}

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		list []int64
		p    int
		want int64
	}{{nil, 50, 0}, {[]int64{7}, 50, 7}, {[]int64{7}, 95, 7}, {[]int64{3, 1, 2}, 50, 2},
		{[]int64{4, 3, 1, 2}, 50, 2}, {[]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
			20}, 95, 19}} {
		if got := percentile(c.list, c.p); got != c.want {
			t.Errorf("p%d of %v is %d, not %d", c.p, c.list, got, c.want)
		}
	}
}

// The owner sees why visitors are refused, and a warning before that happens.
func TestVisitorsBudgetOnTheOverview(t *testing.T) {
	h := openUnder(t, store.Rules{PublicBudget: 2 * parley.USD})
	u := h.user(t)
	v := h.signedIn(t, u)
	for i, want := range []string{"", "", "$1.60 of the $2.00", "refused until 00:00 UTC: the $2.00"} {
		doc := v.get("/").is(http.StatusOK).doc()
		if got := doc.Find("#results > .hint").Text(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d: %q, want %q", i, got, want)
		}
		amount := []parley.Money{parley.USD, parley.USD * 6 / 10, parley.USD * 4 / 10, 0}[i]
		err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.ReservePublic(ctx, u.ID, "message:"+id(int64(i)), amount, parley.Now().Add(time.Hour))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The days of the overview are the reader's, as those of the analytics are, and not those of the account.
func TestOverviewIsInTheReadersZone(t *testing.T) {
	h := open(t)
	u := h.user(t)
	u.Timezone = "Etc/GMT+12" // never on the same day as the member
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) })
	h.called(t, u, h.caller(t, u, "Front desk"), over(parley.CustomerHangup))
	v := h.in(t, h.member(t, u, parley.RoleEditor))
	form := v.get("/account").form("/account")
	form.Set("timezone", "Etc/GMT-14")
	v.post("/account", form).moved("/account?done=saved")
	today := func() string { return time.Now().In(time.FixedZone("", 14*60*60)).Format("Jan 2") }
	for {
		day := today()
		got := v.get("/").doc().Find(".chart").First().Find("title").Last().Text()
		if day != today() {
			continue // midnight
		}
		if !strings.HasPrefix(got, day+":") {
			t.Errorf("the last day is %q, and today is %s", got, day)
		}
		return
	}
}
