package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestOverview(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 5*parley.USD), storetest.User(t, db, 5*parley.USD)
		mine, theirs := spoken(t, db, u.ID), spoken(t, db, other.ID)
		turns := func(ms ...int64) (list []parley.CallTurn) {
			list = append(list, parley.CallTurn{Speaker: parley.SpeakerCustomer, Text: "Hello?"})
			for _, n := range ms {
				list = append(list, parley.CallTurn{Speaker: parley.SpeakerAssistant, Text: "Yes.",
					Latency: &parley.Latency{FirstPacketMS: n}})
			}
			return list
		}
		call := func(a *parley.Assistant, userID int64, status parley.CallStatus, ms ...int64) {
			t.Helper()
			c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: status, Turns: turns(ms...)}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, userID, c) })
		}
		call(mine, u.ID, parley.CallCompleted, 900, 0, 700)
		call(mine, u.ID, parley.CallFailed)
		call(mine, u.ID, parley.CallNoAnswer, 300)
		call(theirs, other.ID, parley.CallFailed, 1)
		write(t, db, func(ctx context.Context, tx *store.Tx) error { // a test call is not counted
			return tx.CreateCall(ctx, u.ID, &parley.Call{AssistantID: mine.ID, Type: parley.CallWeb, Status: parley.CallFailed,
				Turns: turns(9), Test: true})
		})
		post := func(userID int64, kind parley.LedgerKind, amount parley.Money) {
			t.Helper()
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Post(ctx, userID, &parley.LedgerEntry{Kind: kind, Amount: amount,
					Reference: fmt.Sprint(kind, amount)})
				return err
			})
		}
		post(u.ID, parley.CallCharge, -300)
		post(u.ID, parley.MessageCharge, -30)
		post(u.ID, parley.Refund, 5)
		post(u.ID, parley.Credit, 10000)
		post(other.ID, parley.CallCharge, -7)

		fail := func(a *parley.Assistant, userID int64, reason *string) {
			t.Helper()
			conv := &parley.Conversation{UserID: userID, AssistantID: a.ID, Type: parley.WidgetConversation,
				Variables: map[string]string{}}
			m := &parley.Message{Role: parley.RoleUser, Author: parley.AuthorCustomer, Content: "Hi", Pending: true}
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateConversation(ctx, conv, ""); err != nil {
					return err
				}
				m.ID, m.ConversationID = 0, conv.ID
				if err := tx.AddMessage(ctx, m, 0, 0); err != nil {
					return err
				}
				_, err := tx.SettleMessage(ctx, m, 0, reason, false)
				return err
			})
		}
		reason := "The model refused."
		fail(mine, u.ID, &reason)
		fail(mine, u.ID, &reason)
		fail(mine, u.ID, nil)
		fail(theirs, other.ID, &reason)

		for _, c := range []struct {
			ago  time.Duration // how long ago the first of three days began
			want int           // the day that everything belongs to; -1: it was before them
		}{{time.Hour, 0}, {25 * time.Hour, 1}, {49 * time.Hour, 2}, {74 * time.Hour, 2}, {-time.Hour, -1}} {
			list, err := db.Overview(t.Context(), u.ID, parley.Now().Add(-c.ago), 3)
			if err != nil || len(list) != 3 {
				t.Fatal(list, err)
			}
			for i, d := range list {
				slices.Sort(d.Latencies)
				want := store.OverviewDay{}
				if i == c.want {
					want = store.OverviewDay{Calls: 3, Failed: 1, FailedMessages: 2, Cost: 325,
						Latencies: []int64{300, 700, 900}}
				}
				if d.Calls != want.Calls || d.Failed != want.Failed || d.FailedMessages != want.FailedMessages ||
					d.Cost != want.Cost || !slices.Equal(d.Latencies, want.Latencies) {
					t.Errorf("begun %v ago: day %d is %+v, not %+v", c.ago, i, d, want)
				}
			}
		}

		// A day's latencies are those of its newest calls.
		for range 20 {
			call(mine, u.ID, parley.CallCompleted, 50)
		}
		list, err := db.Overview(t.Context(), u.ID, parley.Now().Add(-time.Hour), 1)
		if err != nil || list[0].Calls != 23 || len(list[0].Latencies) != 20 || slices.Max(list[0].Latencies) != 50 {
			t.Errorf("%+v %v", list, err)
		}
	})
}
