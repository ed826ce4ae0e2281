package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	every = time.Minute     // how often each alert is looked at
	look  = 5 * time.Second // how often it is looked for alerts that are due
	batch = 50              // claimed at once
)

// Watch looks at the alerts of all accounts. Several processes share the work.
type Watch struct {
	DB   *store.DB
	Mail *mail.Sender
	URL  string // of this server, for links
	Now  func() time.Time
}

// New makes a watch. It starts nothing.
func New(db *store.DB, m *mail.Sender, url string) *Watch {
	return &Watch{DB: db, Mail: m, URL: url, Now: func() time.Time { return parley.Now().Time() }}
}

// Run looks at what is due until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if err := w.Round(ctx); err != nil && ctx.Err() == nil {
			slog.Error("look at alerts; they are looked at again in a minute", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Round looks once at all alerts that are due.
func (w *Watch) Round(ctx context.Context) (failed error) {
	for {
		var list []parley.Alert
		now := parley.At(w.Now())
		err := w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			list, err = tx.ClaimAlerts(ctx, batch, now, now.Add(every))
			return err
		})
		if err != nil {
			return errors.Join(failed, fmt.Errorf("claim alerts: %w", err))
		}
		for i := range list {
			if err := w.look(ctx, &list[i]); err != nil {
				failed = errors.Join(failed, fmt.Errorf("alert %d: %w", list[i].ID, err))
			}
		}
		if len(list) < batch || ctx.Err() != nil {
			return failed
		}
	}
}

// look reads an alert's figure, notes it, and tells what changed.
func (w *Watch) look(ctx context.Context, a *parley.Alert) error {
	u, err := w.DB.User(ctx, a.UserID)
	if err != nil || u.DisabledAt != 0 {
		return err
	}
	now := w.Now()
	found, err := w.read(ctx, u, a, now)
	if err != nil {
		return err
	}
	return w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		at := parley.At(now)
		held, err := tx.AlertForUpdate(ctx, a.UserID, a.ID)
		switch {
		case store.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case held.UpdatedAt != a.UpdatedAt || held.CheckedAt != a.CheckedAt:
			return nil // it was changed, or somebody else looked at it: what was read is not its figure any more
		}
		change := held.Judge(found, at)
		if change != parley.AlertSame {
			if _, err := w.tell(ctx, tx, u, held, held.Event(change, at)); err != nil {
				return err
			}
		}
		return tx.SaveAlert(ctx, held.UserID, held)
	})
}

// read is the figure that an alert watches.
func (w *Watch) read(ctx context.Context, u *parley.User, a *parley.Alert, now time.Time) (parley.AlertReading, error) {
	switch a.Kind {
	case parley.AlertBalance:
		return reading(float64(u.Balance)/float64(parley.USD), 0), nil
	case parley.AlertSilence:
		return w.silence(ctx, u, a, now)
	}
	f := store.ActivityFilter{Days: []parley.Time{parley.At(now.Add(-time.Duration(a.WindowMinutes) * time.Minute))},
		To: parley.At(now.Add(parley.Quarter))}
	if a.Kind == parley.AlertSpend {
		f.Days = parley.RangeOf("today", now, u.Zone()).Begins
	}
	if a.AssistantID != nil {
		f.AssistantID = *a.AssistantID
	}
	if a.Channel != nil {
		f.Channel = *a.Channel
	}
	got, err := w.DB.Analytics(ctx, u.ID, f)
	if err != nil {
		return parley.AlertReading{}, err
	}
	calls := got.Total.Calls()
	switch a.Kind {
	case parley.AlertSpend:
		return reading(float64(got.Total.Cost())/float64(parley.USD), 0), nil
	case parley.AlertLatency:
		if l := got.Latencies(); l.Replies > 0 {
			return reading(float64(l.Percentile(90)), calls), nil
		}
	case parley.AlertFailures:
		if calls > 0 {
			return reading(100*float64(got.Total.Failed())/float64(calls), calls), nil
		}
	}
	return parley.AlertReading{Calls: calls}, nil
}

func reading(v float64, calls int64) parley.AlertReading {
	return parley.AlertReading{Value: &v, Calls: calls}
}

// silence is how many hours that count have passed since the last call; where there was none, since the alert was made.
func (w *Watch) silence(ctx context.Context, u *parley.User, a *parley.Alert, now time.Time) (parley.AlertReading, error) {
	var assistant int64
	if a.AssistantID != nil {
		assistant = *a.AssistantID
	}
	var kind parley.CallType
	if a.Channel != nil {
		kind = parley.CallType(*a.Channel)
	}
	last, err := w.DB.LastCall(ctx, u.ID, assistant, kind)
	if err != nil {
		return parley.AlertReading{}, err
	}
	if last == 0 {
		last = a.CreatedAt
	}
	return reading(a.Open(last.Time(), now, u.Zone()).Hours(), 0), nil
}
