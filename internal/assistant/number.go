package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"parley/internal/parley"
	"parley/internal/store"
)

// AnswerNumber is the part of a number's change that assigns it to one of the user's inbound assistants, or to none (nil).
// A number has one assistant: its previous one gives it up in the same transaction, and keeps it if the other can't take
// it. All that keeps them from it is an error of the field assistant_id: what an assistant calls the number is, for the
// number, the assistant.
func (d *Studio) AnswerNumber(userID, numberID int64, assistantID *int64) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		err := d.answer(ctx, tx, userID, numberID, assistantID)
		var e *parley.Error
		if !errors.As(err, &e) || len(e.Fields) == 0 {
			return err
		}
		var wrong parley.Fields
		for _, f := range e.Fields {
			for _, text := range f.Messages {
				wrong.AddText("assistant_id", text)
			}
		}
		return wrong.Err()
	}
}

func (d *Studio) answer(ctx context.Context, tx *store.Tx, userID, numberID int64, assistantID *int64) error {
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
}
