package campaign

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/mail"
	"parley/internal/mail/mailtest"
	"parley/internal/parley"
	"parley/internal/store"
)

// startsAt sets the scheduled start of a campaign to an instant, as if time had passed.
func (h *harness) startsAt(c *parley.Campaign, at parley.Time) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		fresh, err := tx.CampaignForUpdate(ctx, c.UserID, c.ID)
		if err != nil {
			return err
		}
		fresh.StartsAt = at
		return tx.SaveCampaignRun(ctx, c.UserID, fresh)
	})
}

// A campaign begins by itself at its time, once, whichever process looks; not before, and not when that was canceled.
func TestSchedule(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(map[string]any{"timezone": "Europe/Berlin"})
		schedule := func(at string) error {
			_, err := h.Schedule(t.Context(), h.user.ID, c.ID, at)
			return err
		}
		day := time.Now().Add(48 * time.Hour)
		if err := schedule(day.Format(time.RFC3339)); err == nil || !strings.Contains(err.Error(), "no leads") {
			t.Errorf("without leads: %v", err)
		}
		h.leads(c, 0, 3)
		for _, at := range []string{"soon", "", time.Now().Add(-time.Minute).Format(time.RFC3339), "2001-01-01 09:00", "2200-01-01 09:00"} {
			if err := schedule(at); err == nil || !strings.Contains(err.Error(), "starts_at") {
				t.Errorf("%q: %v", at, err)
			}
		}
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule(day.In(berlin).Format("2006-01-02T15:04")); err != nil {
			t.Fatal(err)
		}
		if got, want := h.now(c).StartsAt.Time(), day.Truncate(time.Minute); !got.Equal(want) {
			t.Errorf("it starts %s, want %s", got, want)
		}
		h.round()
		if got := h.now(c); got.Status != parley.CampaignDraft || got.StartsAt == 0 {
			t.Errorf("before its time: %+v", got)
		}
		if _, err := h.Unschedule(t.Context(), h.user.ID+1, c.ID); !store.IsNotFound(err) {
			t.Errorf("a stranger is answered %v", err)
		}
		if _, err := h.Unschedule(t.Context(), h.user.ID, c.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Unschedule(t.Context(), h.user.ID, c.ID); err == nil {
			t.Error("it is canceled twice")
		}

		h.startsAt(c, parley.Now()-1)
		other := New(h.Config) // another process
		var both sync.WaitGroup
		for _, d := range []*Roster{h.Roster, other} {
			both.Go(func() {
				if err := d.beginDue(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		got := h.now(c)
		if got.Status != parley.CampaignInProgress || got.StartsAt != 0 || got.StartedAt == 0 {
			t.Errorf("at its time: %+v", got)
		}
		if err := schedule(day.Format(time.RFC3339)); err == nil || !strings.Contains(err.Error(), "already in progress") {
			t.Errorf("while it runs: %v", err)
		}
		if n := h.round(); n == 0 {
			t.Error("it calls nobody")
		}
		if _, err := h.Stop(t.Context(), h.user.ID, c.ID); err != nil {
			t.Fatal(err)
		}
		h.round()
		if got := h.now(c); got.Status != parley.CampaignStopped {
			t.Errorf("after it was stopped it is %s", got.Status)
		}
	})
}

// A campaign that is begun by hand before its scheduled start does not begin again at that time.
func TestScheduleOvertaken(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		h.leads(c, 0, 1)
		if _, err := h.Schedule(t.Context(), h.user.ID, c.ID, time.Now().Add(time.Hour).Format(time.RFC3339)); err != nil {
			t.Fatal(err)
		}
		h.begin(c)
		if got := h.now(c); got.StartsAt != 0 || got.Status != parley.CampaignInProgress {
			t.Errorf("begun by hand: %+v", got)
		}
	})
}

// At its time a campaign is judged again: a list that does not fit its assistant any more does not start, and the owner
// is told, once.
func TestScheduleOfAnUnfitList(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.user.WebhookURL = "https://example.com/hooks"
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
		server := mailtest.Serve(t)
		m, err := mail.Open(server.URL(), "Parley <parley@example.com>")
		if err != nil {
			t.Fatal(err)
		}
		h.Mail, h.URL = m, "https://voice.example.com"
		c := h.campaign(nil)
		h.leads(c, 0, 2)
		if _, err := h.Schedule(t.Context(), h.user.ID, c.ID, time.Now().Add(time.Hour).Format(time.RFC3339)); err != nil {
			t.Fatal(err)
		}
		a, err := h.DB.Assistant(t.Context(), h.user.ID, c.AssistantID)
		if err != nil {
			t.Fatal(err)
		}
		next := *a
		next.InitialMessage = "Hello {{dentist}}"
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveAssistant(ctx, h.user.ID, a, &next) })
		h.startsAt(c, parley.Now()-1)
		h.round()
		h.round()
		got := h.now(c)
		if got.Status != parley.CampaignDraft || got.StartsAt != 0 || got.PauseReason == nil ||
			!strings.HasPrefix(*got.PauseReason, "The scheduled start was refused: The assistant uses {{dentist}}") {
			t.Errorf("%+v", got)
		}
		list, total, err := h.DB.Deliveries(t.Context(), h.user.ID, parley.EventCampaignNotStarted, "", store.Page{Number: 1, Size: 10})
		if err != nil || total != 1 {
			t.Fatalf("%d told: %v", total, err)
		}
		if d, err := h.DB.Delivery(t.Context(), h.user.ID, list[0].ID); err != nil || !strings.Contains(d.Payload, "no lead has a value for it") {
			t.Errorf("%+v %v", d, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		jobs, done := river.NewWorkers(), make(chan error)
		m.AddWorkers(jobs, h.DB)
		go func() {
			done <- h.DB.Work(ctx, t.Context(), store.Jobs{Workers: jobs,
				Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}})
		}()
		sent := server.Wait(1)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(sent) != 1 || sent[0].To != h.user.Email || !strings.Contains(sent[0].Text, "{{dentist}}") ||
			!strings.Contains(sent[0].Text, fmt.Sprintf("https://voice.example.com/campaigns/%d", c.ID)) {
			t.Errorf("%+v", sent)
		}
	})
}

// A scheduled start that is refused says why, and is not tried again.
func TestScheduleRefused(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		h.startsAt(c, parley.Now()-1) // its leads are gone
		h.round()
		got := h.now(c)
		if got.Status != parley.CampaignDraft || got.StartsAt != 0 || got.PauseReason == nil ||
			*got.PauseReason != "The scheduled start was refused: The campaign has no leads to call." {
			t.Errorf("%+v", got)
		}
		h.leads(c, 0, 1)
		h.begin(c)
		if got := h.now(c); got.PauseReason != nil {
			t.Errorf("begun, it says %q", *got.PauseReason)
		}
		gone := h.campaign(nil)
		h.leads(gone, 10, 1)
		h.startsAt(gone, parley.Now()-1)
		if err := h.Delete(t.Context(), h.user.ID, gone.ID); err != nil {
			t.Fatal(err)
		}
		h.round()
		for _, d := range h.dialled() {
			if d.CampaignID == gone.ID {
				t.Error("a deleted campaign calls")
			}
		}
	})
}
