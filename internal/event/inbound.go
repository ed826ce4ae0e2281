package event

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"parley/internal/parley"
	"parley/internal/store"
)

// maxVariables is how many variables an endpoint may give a call.
const maxVariables = 200

// Inbound tells an assistant's endpoint of a call that is about to be answered, and gives the variables that it
// answers with. It takes two seconds at most, and a little to keep the log. Whatever goes wrong there are no
// variables, and the delivery log says why.
func (s *Sender) Inbound(ctx context.Context, a *parley.Assistant, customerPhone, assistantPhone string,
	signalling *parley.CallSignalling) map[string]string {
	if a.InboundWebhookURL == nil {
		return nil
	}
	payload := parley.CallArrives(a, customerPhone, assistantPhone, signalling)
	d := parley.NewDelivery(payload.Event, *a.InboundWebhookURL, payload)
	d.WebhookID = store.NewWebhookID()
	if customerPhone != "" {
		d.CustomerPhone = &customerPhone
	}
	ctx = context.WithoutCancel(ctx) // a caller who hangs up leaves an event that was begun
	keys, err := Keys(ctx, s.DB, a.UserID, parley.At(s.now()))
	if err != nil {
		slog.ErrorContext(ctx, "sign an inbound-call webhook", "assistant", a.ID, "error", err)
		return nil
	}
	attempt, answer := s.post(ctx, d, keys, inboundTime, maxInbound)
	var vars map[string]string
	d.Status = parley.DeliveryFailed
	if attempt.Delivered() {
		d.Status = parley.DeliveryDelivered
		if vars, err = variables(answer); err != nil {
			attempt.Error = text("The endpoint gave no variables: " + err.Error() + ".")
		}
	}
	d.Attempts, d.LastStatus, d.LastError, d.Answer = 1, attempt.Status, attempt.Error, attempt.Answer
	err = s.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return tx.RecordDelivery(ctx, a.UserID, d, attempt)
	})
	if err != nil {
		slog.ErrorContext(ctx, "log an inbound-call webhook", "assistant", a.ID, "error", err)
	}
	return vars
}

// variables reads an endpoint's answer: an object of variables, or one that has them under "variables". Texts are
// taken as they are, other values as their JSON; null is none. An empty answer is no variables.
func variables(answer []byte) (map[string]string, error) {
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil, nil
	}
	if len(answer) >= maxInbound {
		return nil, fmt.Errorf("its answer is longer than %d KiB", maxInbound>>10)
	}
	var tree, inner map[string]json.RawMessage
	if err := json.Unmarshal(answer, &tree); err != nil {
		return nil, fmt.Errorf("its answer is not a JSON object")
	}
	if json.Unmarshal(tree["variables"], &inner) == nil && inner != nil {
		tree = inner
	}
	if len(tree) > maxVariables {
		return nil, fmt.Errorf("its answer has more than %d", maxVariables)
	}
	vars := make(map[string]string, len(tree))
	for name, raw := range tree {
		var v string
		switch {
		case string(raw) == "null":
			continue
		case json.Unmarshal(raw, &v) != nil:
			var b bytes.Buffer
			json.Compact(&b, raw) // it was valid as a part of the whole
			v = b.String()
		}
		vars[plainText([]byte(name))] = plainText([]byte(v))
	}
	return vars, nil
}
