package event

import (
	"time"

	"parley/internal/parley"
)

// FirstKind is the first kind of event that an assistant has an endpoint for, "" where it has none.
func FirstKind(a *parley.Assistant) parley.EventKind {
	for _, kind := range []parley.EventKind{parley.EventCallCompleted, parley.EventCallInboundCompleted,
		parley.EventConversationEnded} {
		if kind.WebhookURL(a) != nil {
			return kind
		}
	}
	return ""
}

// Sample is a made-up event of a kind for an assistant's endpoint, marked as a test; nil where the assistant has no
// endpoint for it.
func Sample(a *parley.Assistant, kind parley.EventKind) *parley.Delivery {
	url := kind.WebhookURL(a)
	if url == nil {
		return nil
	}
	return sample(a, kind, *url, time.Now())
}

// Example is a made-up event of a kind, the same each time, for the API reference.
func Example(kind parley.EventKind) *parley.Delivery {
	const url = "https://example.com/parley"
	at := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
	switch kind {
	case parley.EventBalanceLow:
		return parley.BalanceLow{TotalBalance: 4_990_000, Threshold: 5_000_000, CreatedAt: parley.At(at)}.Delivery(url)
	case parley.EventPublicBudgetLow:
		return parley.PublicBudgetLow{Spent: 8_000_000, Budget: 10_000_000, CreatedAt: parley.At(at)}.Delivery(url)
	case parley.EventCampaignCompleted:
		stats := map[string]any{"total": 2, "by_status": map[string]int{"completed": 2}, "answered": 1,
			"voicemail": 1, "busy": 0, "no_answer": 0, "failed": 0, "cost": 0.12}
		return parley.CampaignCompleted{CampaignID: 7, Name: "Reminders", Status: "completed", Stats: stats,
			CompletedAt: parley.At(at)}.Delivery(url)
	}
	if kind == parley.EventCampaignNotStarted {
		return parley.CampaignNotStarted{CampaignID: 7, Name: "Reminders", Reason: "The campaign has no leads to call.",
			StartsAt: parley.At(at), CreatedAt: parley.At(at)}.Delivery(url)
	}
	if kind == parley.EventAlertRaised || kind == parley.EventAlertResolved {
		return alert(kind, parley.At(at)).Delivery(url)
	}
	to := url
	a := &parley.Assistant{ID: 1, UUID: "5f0c7c1e-6a4b-4c52-9d0e-1f5b8a3c2d10", Name: "Front desk", WebhookURL: &to,
		InboundWebhookURL: &to, ConversationEndedURL: &to}
	return sample(a, kind, url, at)
}

// alert is a made-up event of an alert.
func alert(kind parley.EventKind, at parley.Time) parley.AlertEvent {
	value := 27.3
	a := &parley.Alert{ID: 4, Name: "Failed calls", Kind: parley.AlertFailures, Threshold: 20, WindowMinutes: 60, Value: &value,
		Calls: 11, LastRaisedAt: at}
	if kind == parley.EventAlertRaised {
		return a.Event(parley.AlertRaise, at)
	}
	*a.Value, a.LastRaisedAt, a.ResolvedAt = 9.1, at.Add(-time.Hour), at
	return a.Event(parley.AlertResolve, at)
}

func sample(a *parley.Assistant, kind parley.EventKind, url string, now time.Time) *parley.Delivery {
	customer, ours := "+12025550123", "+12025550100"
	found, given := map[string]any{}, map[string]string{"customer_name": "Ana"}
	for _, item := range a.PostCallSchema {
		found[item.Name] = map[string]any{"bool": true, "number": 1, "string": "An example."}[item.Type]
	}
	const said = "AI: Hello, how can I help you?\nCustomer: I would like an appointment."
	if kind == parley.EventConversationEnded {
		at := parley.At(now.Add(-time.Minute))
		return parley.ConversationEnded{Test: true, ConversationID: "00000000-0000-4000-8000-000000000000",
			AssistantID: a.UUID, AssistantName: a.Name,
			Type: parley.WidgetConversation, MessageCount: 2, ExtractedVariables: found, InputVariables: given,
			FormattedTranscript: said,
			Transcript: []parley.TranscriptLine{{Role: parley.RoleAssistant, Content: "Hello, how can I help you?",
				Timestamp: at},
				{Role: parley.RoleUser, Content: "I would like an appointment.", Timestamp: at}},
			CustomerPhone: &customer, CreatedAt: at, EndedAt: parley.At(now)}.Delivery(a)
	}
	if kind == parley.EventCallInbound {
		arrives := parley.CallArrives(a, customer, ours, nil)
		arrives.Test = true
		return parley.NewDelivery(kind, url, arrives)
	}
	call := parley.CallEnded{Event: kind, Test: true, Type: "outbound", Status: "completed",
		CustomerPhone: &customer, AssistantPhone: &ours, Duration: 42,
		ExtractedVariables: found, InputVariables: given, Transcript: said, FormattedTranscript: said,
		Turns: []parley.CallTurn{{Speaker: "assistant", Text: "Hello, how can I help you?", StartedAtMS: 120},
			{Speaker: "customer", Text: "I would like an appointment.", StartedAtMS: 2900}},
		Evaluation: map[string]any{"sentiment": "positive", "outcome": "success", "score": 9}, AnsweredBy: "human",
		TakenBy: parley.TakenByAssistant, EndedReason: parley.CustomerHangup,
		CarrierCost: 5000, TotalCost: 75_000, CreatedAt: parley.At(now.Add(-time.Minute)), FinishedAt: parley.At(now)}
	if kind == parley.EventCallInboundCompleted {
		call.Type = "inbound"
	}
	return call.Sample(a, kind)
}
