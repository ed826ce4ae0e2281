package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// heard are turns of replies that took this many ms.
func heard(ms ...int64) (list []parley.CallTurn) {
	for _, n := range ms {
		list = append(list, parley.CallTurn{Speaker: parley.SpeakerAssistant, Text: "Yes.",
			Latency: &parley.Latency{FirstPacketMS: n}})
	}
	return list
}

// lately are the analytics of the hours around now.
func lately(t *testing.T, db *store.DB, userID int64, change ...func(*store.ActivityFilter)) *parley.Analytics {
	t.Helper()
	now := parley.Now()
	f := store.ActivityFilter{Days: []parley.Time{now.Add(-48 * time.Hour), now.Add(-24 * time.Hour)}, To: now.Add(time.Hour)}
	for _, c := range change {
		c(&f)
	}
	got, err := db.Analytics(t.Context(), userID, f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnalytics(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 5*parley.USD), storetest.User(t, db, 5*parley.USD)
		mine, second, theirs := spoken(t, db, u.ID), spoken(t, db, u.ID), spoken(t, db, other.ID)
		number, campaign := int64(7), int64(9)
		hold := func(a *parley.Assistant, userID int64, change func(*parley.Call)) *parley.Call {
			t.Helper()
			now := parley.DateTime(parley.Now())
			c := &parley.Call{AssistantID: a.ID, Type: parley.CallInbound, Status: parley.CallInProgress, AnsweredAt: now}
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				c.Test = false
				change(c)
				end, status := c.EndedAt, c.Status
				c.EndedAt, c.Status = 0, parley.CallInProgress
				if err := tx.CreateCall(ctx, userID, c); err != nil {
					return err
				}
				c.EndedAt, c.Status, c.ReportDue = max(end, now), status, parley.Now()
				return tx.EndCall(ctx, c)
			})
			return c
		}
		good := hold(mine, u.ID, func(c *parley.Call) {
			c.Status, c.EndedReason, c.AnsweredBy = parley.CallCompleted, parley.CustomerHangup, parley.AnsweredHuman
			c.Duration, c.AssistantCost, c.CarrierCost, c.LegCost = 61, 30, 20, 5
			c.NumberID, c.Turns = &number, heard(500, 900)
		})
		hold(second, u.ID, func(c *parley.Call) {
			c.Type, c.Status, c.EndedReason, c.AnsweredAt = parley.CallOutbound, parley.CallFailed, parley.Unreachable, 0
			c.CampaignID = &campaign
		})
		hold(mine, u.ID, func(c *parley.Call) { c.Status, c.Test, c.AssistantCost = parley.CallCompleted, true, 1000 })
		hold(theirs, other.ID, func(c *parley.Call) { c.Status, c.AssistantCost = parley.CallCompleted, 77 })

		got := lately(t, db, u.ID)
		if s := got.Total; s != (parley.Sums{2, 1, 1, 1, 61, 55}) || got.Days[1] != s || got.Days[0] != (parley.Sums{}) {
			t.Errorf("%v, by day %v", s, got.Days)
		}
		if l := got.Latencies(); l.Replies != 2 || l.Percentile(50) < 490 || l.Percentile(50) > 510 ||
			l.Percentile(99) < 882 || l.Percentile(99) > 918 {
			t.Errorf("%+v: %d, %d", l, l.Percentile(50), l.Percentile(99))
		}
		if before, day := got.DayLatencies(0), got.DayLatencies(1); before.Replies != 0 || day.Replies != 2 || day.Percentile(50) > 510 {
			t.Errorf("by day: %+v, %+v", before, day)
		}
		if d := cmp.Diff(map[string]int64{"human": 1, "nobody": 1}, got.Of(parley.CountAnswerer)); d != "" {
			t.Error(d)
		}
		if ids := got.ByCost(); !slices.Equal(ids, []int64{mine.ID, second.ID}) || got.Assistants[mine.ID].Cost() != 55 {
			t.Errorf("%v %v", ids, got.Assistants[mine.ID])
		}
		for what, c := range map[string]struct {
			calls  int64
			change func(*store.ActivityFilter)
		}{
			"assistant":         {1, func(f *store.ActivityFilter) { f.AssistantID = second.ID }},
			"number":            {1, func(f *store.ActivityFilter) { f.NumberID = number }},
			"campaign":          {1, func(f *store.ActivityFilter) { f.CampaignID = campaign }},
			"channel":           {1, func(f *store.ActivityFilter) { f.Channel = "inbound" }},
			"channel, campaign": {0, func(f *store.ActivityFilter) { f.Channel, f.CampaignID = "inbound", campaign }},
			"another's":         {0, func(f *store.ActivityFilter) { f.AssistantID = theirs.ID }},
			"before":            {0, func(f *store.ActivityFilter) { f.To = f.Days[1] }},
		} {
			if n := lately(t, db, u.ID, c.change).Total.Calls(); n != c.calls {
				t.Errorf("%s: %d calls, not %d", what, n, c.calls)
			}
		}

		// A report counts once, however often it is saved.
		good.Evaluation = map[string]any{"sentiment": "positive", "outcome": "success"}
		for range 2 {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				row, err := tx.CallForUpdate(ctx, good.ID)
				if err != nil {
					return err
				}
				row.Evaluation = good.Evaluation
				return tx.SaveReport(ctx, row)
			})
		}
		if n := lately(t, db, u.ID).Of(parley.CountSentiment)["positive"]; n != 1 {
			t.Errorf("positive: %d", n)
		}

		// Conversations and other costs.
		conv := &parley.Conversation{UserID: u.ID, AssistantID: mine.ID, Type: parley.WidgetConversation, Variables: map[string]string{}}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateConversation(ctx, conv, ""); err != nil {
				return err
			}
			tx.CountMessage(conv, 10, false)
			tx.CountMessage(conv, 0, true)
			tx.CountMessage(&parley.Conversation{UserID: u.ID, Type: parley.TestConversation}, 0, true)
			_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.RentCharge, Amount: -100, Reference: "rent"})
			return err
		})
		got = lately(t, db, u.ID)
		if s := got.Channels["widget"]; s == nil || *s != (parley.Sums{5: 10, 6: 1, 7: 2, 8: 1}) {
			t.Errorf("widget: %v", s)
		}
		if got.Total.Cost() != 165 || got.Channels[parley.ChannelNumbers].Cost() != 100 || got.Assistants[0].Cost() != 100 {
			t.Errorf("cost %v, %v", got.Total.Cost(), got.Assistants[0])
		}

		// A transaction that fails counts nothing.
		failed := fmt.Errorf("no")
		if err := db.Write(t.Context(), func(_ context.Context, tx *store.Tx) error {
			tx.CountMessage(conv, 10, false)
			return failed
		}); err != failed { //nolint:errorlint // the very error comes back
			t.Fatal(err)
		}
		if now := lately(t, db, u.ID).Total; now != got.Total {
			t.Errorf("%v, not %v", now, got.Total)
		}

		// A new count of the stored rows gives the same, except for messages, which are not stored here.
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.SQL().NewRaw("UPDATE calls SET updated_at = 1, report_due = 0").Exec(ctx); err != nil {
				return err
			}
			return tx.CountAgain(ctx)
		})
		if lately(t, db, u.ID).Total.Calls() != 0 {
			t.Error("it is not forgotten")
		}
		for range 2 {
			if err := db.CountLeft(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		again := lately(t, db, u.ID)
		if s := again.Total; s.Calls() != 2 || s.Cost() != 155 || s.Conversations() != 1 || again.Of(parley.CountSentiment)["positive"] != 1 {
			t.Errorf("counted again: %v", s)
		}
		if left, err := db.CallsLeft(t.Context()); left || err != nil {
			t.Error("calls are left", err)
		}
	})
}

// A day may begin and end within the six hours that are counted together, at a quarter of an hour.
func TestActivityDays(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := spoken(t, db, u.ID)
		at := func(hour, minute int) parley.Time {
			return parley.At(time.Date(2026, 3, 5, hour, minute, 0, 0, time.UTC))
		}
		for _, made := range []parley.Time{at(6, 0), at(8, 59), at(9, 0), at(9, 14), at(9, 15), at(11, 59)} {
			c := &parley.Call{UserID: u.ID, AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallCompleted,
				CreatedAt: parley.DateTime(made), EndedAt: parley.DateTime(made), UpdatedAt: parley.DateTime(made)}
			c.Complete()
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.SQL().NewInsert().Model(c).Exec(ctx)
				return err
			})
		}
		if err := db.CountLeft(t.Context()); err != nil {
			t.Fatal(err)
		}
		for to, last := range map[parley.Time]int64{at(11, 45): 1, at(18, 0): 2} {
			got, err := db.Analytics(t.Context(), u.ID, store.ActivityFilter{Days: []parley.Time{at(6, 0), at(9, 0), at(9, 15)}, To: to})
			if err != nil || got.Days[0].Calls() != 2 || got.Days[1].Calls() != 2 || got.Days[2].Calls() != last {
				t.Errorf("until %v: %v %v", to, got.Days, err)
			}
		}
	})
}

// Calls of one account that end at the same time are all counted.
func TestActivityTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 5*parley.USD)
		a := spoken(t, db, u.ID)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallCompleted,
						EndedAt: parley.DateTime(parley.Now()), AssistantCost: 3}
					if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
						if err := tx.CreateCall(ctx, u.ID, c); err != nil {
							return err
						}
						_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.CallCharge, Amount: -3, Reference: strconv.FormatInt(c.ID, 10)})
						return err
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if s := lately(t, db, u.ID).Total; s.Calls() != 80 || s.Cost() != 240 {
			t.Errorf("%v", s)
		}
	})
}

// many stores calls of the last 90 days, as a former version left them.
func many(b testing.TB, db *store.DB, u *parley.User, assistants, calls int) []int64 {
	b.Helper()
	ids := make([]int64, assistants)
	rnd := rand.New(rand.NewPCG(3, 4))
	step := func(fn func(ctx context.Context, tx *store.Tx) error) {
		if err := db.Write(b.Context(), fn); err != nil {
			b.Fatal(err)
		}
	}
	step(func(ctx context.Context, tx *store.Tx) error {
		for i := range ids {
			a := &parley.Assistant{UUID: uuid.NewString(), Name: "Anna", Type: "outbound", Status: "active",
				Mode: "pipeline", Timezone: "UTC", LanguageID: 1, VoiceID: 1001}
			if err := tx.CreateAssistant(ctx, u.ID, a); err != nil {
				return err
			}
			ids[i] = a.ID
		}
		return nil
	})
	now := parley.Now()
	for done := 0; done < calls; done += 500 {
		list := make([]parley.Call, min(500, calls-done))
		for i := range list {
			at := now.Add(-time.Duration(float64(90*24*time.Hour) * (1 - float64(done+i)/float64(calls))))
			list[i] = parley.Call{UserID: u.ID, AssistantID: ids[rnd.IntN(assistants)], Type: parley.CallInbound,
				Status: parley.CallCompleted, EndedReason: parley.CustomerHangup, AnsweredBy: parley.AnsweredHuman,
				Duration: rnd.Int64N(300), AssistantCost: parley.Money(rnd.Int64N(100_000)), CreatedAt: parley.DateTime(at),
				AnsweredAt: parley.DateTime(at), EndedAt: parley.DateTime(at), UpdatedAt: parley.DateTime(at),
				Evaluation: map[string]any{"sentiment": []string{"positive", "negative"}[rnd.IntN(2)], "outcome": "success"}}
			for n := range 6 {
				list[i].Turns = append(list[i].Turns, said(rnd, n))
			}
			if rnd.IntN(10) == 0 {
				list[i].Status, list[i].EndedReason = parley.CallFailed, parley.ProviderFailure
			}
			list[i].Complete()
		}
		step(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SQL().NewInsert().Model(&list).Exec(ctx)
			return err
		})
	}
	return ids
}

var common = []string{"hello", "please", "order", "delivery", "tomorrow", "morning", "invoice", "address", "street", "number",
	"refund", "payment", "thanks", "again", "bakery", "bread", "cake", "opening", "hours", "parking"}

// said is a turn of words that many calls contain, and one word that few contain.
func said(rnd *rand.Rand, n int) parley.CallTurn {
	text := "rare" + strconv.Itoa(rnd.IntN(50_000))
	for range 12 {
		text += " " + common[rnd.IntN(len(common))]
	}
	if n%2 == 0 {
		return parley.CallTurn{Speaker: parley.SpeakerCustomer, Text: text}
	}
	return parley.CallTurn{Speaker: parley.SpeakerAssistant, Text: text, Latency: &parley.Latency{FirstPacketMS: 300 + rnd.Int64N(1500)}}
}

// percentiles measures how long repeated requests take.
func percentiles(b *testing.B, ask func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := ask(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkAnswers measures the queries of pages, for an account with 100,000 calls of ten or a thousand assistants.
func BenchmarkAnswers(b *testing.B) {
	for _, engine := range storetest.Engines() {
		for _, assistants := range []int{10, 1000} {
			b.Run(fmt.Sprintf("%s/%d", engine, assistants), func(b *testing.B) {
				db := storetest.Open(b, storetest.Options(b, engine))
				u := storetest.User(b, db, parley.USD)
				ids := many(b, db, u, assistants, 100_000)
				begun := time.Now()
				if err := db.CountLeft(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.Logf("100,000 calls were counted in %v", time.Since(begun))
				now := parley.Now()
				days := parley.RangeOf("90d", now.Time(), time.UTC)
				all := store.ActivityFilter{Days: days.Begins, To: days.To}
				one := all
				one.AssistantID = ids[0]
				for name, f := range map[string]store.ActivityFilter{"90 days": all, "one assistant": one} {
					b.Run(name, func(b *testing.B) {
						percentiles(b, func() error { _, err := db.Analytics(b.Context(), u.ID, f); return err })
					})
				}
				no := false
				month := store.CallFilter{From: now.Add(-30 * 24 * time.Hour), Test: &no}
				begun = time.Now()
				if err := search.IndexTranscripts(b.Context(), db); err != nil {
					b.Fatal(err)
				}
				b.Logf("100,000 calls were indexed in %v", time.Since(begun))
				for name, text := range map[string]string{"common": "delivery", "two": "delivery invoice", "rare": "rare77", "none": "elephant"} {
					f := store.CallFilter{Words: search.Query(u.ID, text)}
					b.Run("search/"+name, func(b *testing.B) {
						percentiles(b, func() error {
							_, _, err := db.Calls(b.Context(), u.ID, f, store.Page{Number: 1, Size: 25})
							return err
						})
					})
				}
				for name, change := range map[string]func(*store.CallFilter){
					"reason":    func(f *store.CallFilter) { f.Reason = parley.CustomerHangup },
					"sentiment": func(f *store.CallFilter) { f.Sentiment = "positive" },
					"answerer":  func(f *store.CallFilter) { f.Answerer = "human" }, "slower": func(f *store.CallFilter) { f.SlowerThan = 1500 },
					"assistant": func(f *store.CallFilter) { f.AssistantID = ids[0] },
					"day":       func(f *store.CallFilter) { f.From = now.Add(-24 * time.Hour) }} {
					f := month
					change(&f)
					b.Run("list/"+name, func(b *testing.B) {
						percentiles(b, func() error {
							_, _, err := db.Calls(b.Context(), u.ID, f, store.Page{Number: 1, Size: 25})
							return err
						})
					})
				}
			})
		}
	}
}
