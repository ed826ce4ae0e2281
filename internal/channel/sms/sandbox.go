package sms

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"parley/internal/carrier"
	"parley/internal/parley"
	"parley/internal/store"
)

// reportArgs is the job that tells what became of a message in the sandbox's outbox.
type reportArgs carrier.Report

func (reportArgs) Kind() string { return "sandbox_report" }

// Outbox keeps the sandbox carrier's messages in a database: it is the sandbox.Outbox of a server. Their fate is
// reported a moment later, as a carrier's is.
func Outbox(db *store.DB) func(context.Context, carrier.SMS, parley.SMSStatus) (string, error) {
	return func(ctx context.Context, m carrier.SMS, fate parley.SMSStatus) (string, error) {
		kept := &parley.OutboxSMS{UserID: m.UserID, Reference: m.Reference, SID: "SM" + uuid.NewString(),
			From: m.From, To: m.To, Body: m.Body, Status: fate}
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			fresh, err := tx.KeepOutbox(ctx, kept)
			if err != nil || !fresh {
				return err
			}
			rep := reportArgs{Reference: m.Reference, SID: kept.SID, Status: fate}
			if fate == parley.SMSUndelivered {
				rep.Error = "The sandbox delivers nothing to numbers that end in 0002."
			}
			return tx.Enqueue(ctx, rep, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Second)})
		})
		return kept.SID, err
	}
}
