package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"parley/internal/billing"
	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/event"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/sip"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// house returns a server that runs campaigns, and an assistant of a user.
func house(t *testing.T, db *store.DB) (*server, *parley.Assistant) {
	t.Helper()
	prices, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	a := &parley.Assistant{}
	form.Defaults(a)
	a.Name, a.Type, a.Status, a.Mode, a.Timezone, a.SystemPrompt, a.VoiceID, a.LanguageID = "Caller", "outbound",
		"active", "pipeline", "UTC", "Be kind.", 1, 1
	u := storetest.User(t, db, 10*parley.USD)
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, u.ID, a) })
	d := campaign.New(campaign.Config{DB: db, Prices: prices})
	return &server{campaigns: d, calls: call.New(told(d, call.Config{DB: db, Prices: prices, Hub: event.NewHub()})),
		phone: &telephone{}}, a
}

func write(t *testing.T, db *store.DB, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	if err := db.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// A failed call pauses its campaign if the cause is the line, and not if the cause is the called number.
func TestBreaker(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h, a := house(t, db)
		calls := h.calls
		causes := map[error]bool{ // whether the campaign pauses
			parley.NoAnswer:                               false,
			parley.LineBusy:                               false,
			parley.NodeLost:                               false,
			parley.APIHangup:                              false,
			parley.Unreachable:                            true,
			parley.ProviderFailure:                        true,
			errors.New("no route to host"):                true,
			fmt.Errorf("%w: silence", parley.Unreachable): true,
		}
		for code, pauses := range map[int]bool{404: false, 410: false, 484: false, 604: false, 486: false,
			600: false, 480: false, 408: false, 603: false,
			401: true, 403: true, 407: true, 488: true, 500: true, 502: true, 503: true, 504: true} {
			causes[unassigned(fmt.Errorf("call +1: %w", &sip.Refused{Code: code}))] = pauses
		}
		for cause, pauses := range causes {
			c := &parley.Campaign{Name: "Spring", AssistantID: a.ID, Timezone: "UTC", MaxCallsInParallel: 3,
				MaxRetries: 3, RetryInterval: 60}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCampaign(ctx, a.UserID, c) })
			for i := range parley.BreakAfter {
				call := int64(i + 1)
				lead := &parley.Lead{PhoneNumber: fmt.Sprintf("+1415555%04d", i)}
				write(t, db, func(ctx context.Context, tx *store.Tx) error {
					if _, err := tx.AddLeads(ctx, a.UserID, c.ID, []*parley.Lead{lead}, false); err != nil {
						return err
					}
					lead.Status, lead.Serial, lead.Attempts, lead.LastCallID, lead.WatchAt = parley.LeadProcessing,
						1, 1, &call, 1
					if err := tx.SaveLead(ctx, a.UserID, lead); err != nil {
						return err
					}
					row := &parley.Call{ID: call, UserID: a.UserID, AssistantID: a.ID, CampaignID: &c.ID,
						LeadID: &lead.ID, Attempt: 1, Type: parley.CallOutbound}
					row.End(cause, parley.Now())
					return errors.Join(calls.Unanswered[0](ctx, tx, row, cause), calls.Finished[0](ctx, tx, row, a))
				})
			}
			got, err := db.Campaign(t.Context(), a.UserID, c.ID)
			if err != nil || (got.PauseReason != nil) != pauses {
				t.Errorf("%v: paused %v, want %v: %v", cause, got.PauseReason != nil, pauses, err)
			}
		}
	})
}

// A process whose line is full starts no campaign calls.
func TestRoom(t *testing.T) {
	db := storetest.SQLite(t)
	h, a := house(t, db)
	calls, phone := h.calls, &telephone{line: sip.New(sip.Config{Listen: "127.0.0.1:0",
		Ports: [2]int{10000, 10003}}), most: pairs([2]int{10000, 10003})}
	h.phone = phone
	d := h.caller()
	if n := d.Room(); n != 2 {
		t.Errorf("room for %d", n)
	}
	var visits []*call.WebCall
	for left := 1; left >= 0; left-- {
		v, err := calls.Web(t.Context(), a, call.Visitor{})
		if err == nil {
			err = v.Enter(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if visits = append(visits, v); d.Room() != left {
			t.Errorf("room for %d, want %d", d.Room(), left)
		}
	}
	for _, v := range visits {
		v.Drop(parley.CustomerHangup)
	}
	if n := d.Room(); n != 2 {
		t.Errorf("room for %d when they are over", n)
	}
	phone.line = nil
	if n := d.Room(); n < 1_000_000 {
		t.Errorf("without a line, room for %d", n)
	}
	for ports, want := range map[[2]int]int{{10000, 19999}: 5000, {10000, 10001}: 1, {10001, 10004}: 1,
		{10001, 10002}: 0, {10001, 10003}: 1} {
		if n := pairs(ports); n != want {
			t.Errorf("%v are %d pairs", ports, n)
		}
	}
}
