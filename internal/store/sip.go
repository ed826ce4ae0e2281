package store

import (
	"context"
	"encoding/json"
	"fmt"

	"parley/internal/parley"
)

// KeepSIP stores what was said of a call in SIP. Of one that was deleted meanwhile nothing is kept.
func (tx *Tx) KeepSIP(ctx context.Context, callID int64, list []parley.SIPMessage) error {
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("write down SIP messages: %w", err)
	}
	_, err = tx.q.NewRaw(`INSERT INTO call_sip (call_id, messages) SELECT id, ? FROM calls WHERE id = ? ON CONFLICT (call_id) DO NOTHING`,
		string(text), callID).Exec(ctx)
	return err
}

// CallSIP is what was said of one of the user's calls in SIP, in order; empty where nothing was kept.
func (q Query) CallSIP(ctx context.Context, userID, callID int64) ([]parley.SIPMessage, error) {
	if _, err := q.Call(ctx, userID, callID); err != nil {
		return nil, err
	}
	var text []string
	if err := q.q.NewRaw("SELECT messages FROM call_sip WHERE call_id = ?", callID).Scan(ctx, &text); err != nil {
		return nil, err
	}
	list := []parley.SIPMessage{}
	if len(text) > 0 {
		if err := json.Unmarshal([]byte(text[0]), &list); err != nil {
			return nil, fmt.Errorf("read the SIP messages of call %d: %w", callID, err)
		}
	}
	return list, nil
}
