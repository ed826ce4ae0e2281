package event

import (
	"time"

	"parley"
)

// Sample is a made-up event of a kind for an assistant's endpoint, marked as a test; nil where the assistant has no endpoint for it. Where
// kind is "" it is the first that has one.
func Sample(a *parley.Assistant, kind parley.EventKind) *parley.Delivery {
	if kind == "" {
		for _, kind := range []parley.EventKind{parley.EventCallCompleted, parley.EventCallInboundCompleted, parley.EventConversationEnded} {
			if kind.WebhookURL(a) != nil {
				return Sample(a, kind)
			}
		}
		return nil
	}
	url := kind.WebhookURL(a)
	if url == nil {
		return nil
	}
	now := time.Now()
	customer, ours := "+12025550123", "+12025550100"
	found, given := map[string]any{}, map[string]string{"customer_name": "Ana"}
	for _, item := range a.PostCallSchema {
		found[item.Name] = map[string]any{"bool": true, "number": 1, "string": "An example."}[item.Type]
	}
	const said = "AI: Hello, how can I help you?\nCustomer: I would like an appointment."
	if kind == parley.EventConversationEnded {
		at := parley.DateTime(parley.At(now.Add(-time.Minute)))
		return parley.ConversationEnded{Test: true, ConversationID: "00000000-0000-4000-8000-000000000000", AssistantID: a.UUID, AssistantName: a.Name,
			Type: parley.WidgetConversation, MessageCount: 2, ExtractedVariables: found, InputVariables: given, FormattedTranscript: said,
			Transcript: []parley.TranscriptLine{{Role: parley.RoleAssistant, Content: "Hello, how can I help you?", Timestamp: at},
				{Role: parley.RoleUser, Content: "I would like an appointment.", Timestamp: at}},
			CustomerPhone: &customer, EndedAt: parley.DateTime(parley.At(now))}.Delivery(a)
	}
	if kind == parley.EventCallInbound {
		return parley.NewDelivery(kind, *url, parley.CallArriving{Event: kind, Test: true, CustomerPhone: customer, AssistantPhone: ours, AssistantID: a.ID})
	}
	call := parley.CallEnded{Event: kind, Test: true, Type: "outbound", Status: "completed", CustomerPhone: &customer, AssistantPhone: &ours, Duration: 42,
		ExtractedVariables: found, InputVariables: given, Transcript: said, FormattedTranscript: said,
		Turns: []parley.CallTurn{{Speaker: "assistant", Text: "Hello, how can I help you?", StartedAtMS: 120},
			{Speaker: "customer", Text: "I would like an appointment.", StartedAtMS: 2900}},
		Evaluation: map[string]any{"sentiment": "positive", "outcome": "success", "score": 9}, AnsweredBy: "human",
		CarrierCost: 5000, TotalCost: 75_000, CreatedAt: parley.DateTime(parley.At(now.Add(-time.Minute))), FinishedAt: parley.DateTime(parley.At(now))}
	if kind == parley.EventCallInboundCompleted {
		call.Type = "inbound"
	}
	return parley.NewDelivery(kind, *url, call)
}
