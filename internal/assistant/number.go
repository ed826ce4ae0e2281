package assistant

import (
	"context"
	"encoding/json"
	"strconv"

	"parley/internal/parley"
	"parley/internal/store"
)

// AnswerNumber assigns a number to one of the user's inbound assistants, or to none (nil). A number has one assistant:
// its previous one gives it up in the same transaction, and keeps it if the other can't take it.
func (d *Studio) AnswerNumber(ctx context.Context, userID, numberID int64, assistantID *int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		answered, err := tx.AnsweredNumbers(ctx, userID)
		if err != nil {
			return err
		}
		before, had := answered[numberID]
		if had && assistantID != nil && *assistantID == before || !had && assistantID == nil {
			return nil
		}
		if assistantID != nil {
			a, err := tx.Assistant(ctx, userID, *assistantID)
			if store.IsNotFound(err) || err == nil && a.Type != "inbound" {
				return parley.Fields{{Name: "assistant_id",
					Messages: []string{"Choose one of your inbound assistants."}}}.Err()
			}
			if err != nil {
				return err
			}
		}
		if had {
			if err := d.change(ctx, tx, userID, before, map[string]any{"phone_number_id": nil}); err != nil {
				return err
			}
		}
		if assistantID == nil {
			return nil
		}
		return d.change(ctx, tx, userID, *assistantID,
			map[string]any{"phone_number_id": json.Number(strconv.FormatInt(numberID, 10))})
	})
}
