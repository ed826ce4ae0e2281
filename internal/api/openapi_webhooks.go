package api

import (
	"encoding/json"
	"reflect"
	"slices"

	"parley/internal/event"
	"parley/internal/form"
	"parley/internal/parley"
)

const webhookTag = "Events"

// webhookDocs say when each event is sent, and where to.
var webhookDocs = []struct {
	kind    parley.EventKind
	name    string
	summary string
	payload reflect.Type
}{
	{parley.EventCallCompleted, "onCallCompleted", "A call is over and has been evaluated: sent to the assistant's webhook_url",
		reflect.TypeFor[parley.CallEnded]()},
	{parley.EventCallInbound, "onCallInbound",
		"A call comes in: sent to the assistant's inbound_webhook_url before the call is answered, which waits up to 2 seconds for the response",
		reflect.TypeFor[parley.CallArriving]()},
	{parley.EventCallInboundCompleted, "onCallInboundCompleted",
		"An inbound call is over and has been evaluated: sent to the assistant's inbound_webhook_url",
		reflect.TypeFor[parley.CallEnded]()},
	{parley.EventConversationEnded, "onConversationEnded",
		"Nobody has written in a conversation for a while: sent to the assistant's conversation_ended_webhook_url",
		reflect.TypeFor[parley.ConversationEnded]()},
	{parley.EventBalanceLow, "onBalanceLow", "The balance has fallen below the threshold: sent to the account's endpoint",
		reflect.TypeFor[parley.BalanceLow]()},
	{parley.EventPublicBudgetLow, "onPublicBudgetLow",
		"Visitors have used most of the day's budget: sent to the account's endpoint",
		reflect.TypeFor[parley.PublicBudgetLow]()},
	{parley.EventCampaignCompleted, "onCampaignCompleted",
		"No lead of a campaign is left to be called: sent to the account's endpoint",
		reflect.TypeFor[parley.CampaignCompleted]()},
	{parley.EventCampaignNotStarted, "onCampaignNotStarted",
		"A campaign's scheduled start was refused: sent to the account's endpoint",
		reflect.TypeFor[parley.CampaignNotStarted]()},
	{parley.EventAlertRaised, "onAlertRaised", "An alert is raised: sent to the account's endpoint", reflect.TypeFor[parley.AlertEvent]()},
	{parley.EventAlertResolved, "onAlertResolved", "An alert is resolved: sent to the account's endpoint",
		reflect.TypeFor[parley.AlertEvent]()},
}

// eventPayload is the body of an event, as it is sent.
type eventPayload struct{ json.RawMessage }

// AnyOf are the types that it may be of; one that was sent before an update is as it was then.
func (eventPayload) AnyOf() (list []reflect.Type) {
	for _, w := range webhookDocs {
		if !slices.Contains(list, w.payload) {
			list = append(list, w.payload)
		}
	}
	return append(list, reflect.TypeFor[map[string]any]())
}

// webhooks describes the events that are sent, with an example of each.
func webhooks(s *form.Schemas) object {
	header := func(name, doc string) object {
		return object{"name": name, "in": "header", "required": true, "schema": object{"type": "string"},
			"description": doc}
	}
	taken := object{"description": "Any 2xx ends the delivery. 410 disables the endpoint. " +
		"Anything else, or no answer within 10 seconds, is tried again."}
	out := object{}
	for _, w := range webhookDocs {
		answer := object{"2XX": taken}
		if w.kind == parley.EventCallInbound {
			answer["2XX"] = object{"description": "Variables for the call: a flat object, or an object under variables.",
				"content": object{"application/json": object{"schema": object{"type": "object",
					"additionalProperties": true}, "example": object{"variables": object{"customer_name": "Ana"}}}}}
		}
		answer["4XX"] = object{"description": "Not taken."}
		out[string(w.kind)] = object{"post": object{
			"operationId": w.name, "summary": w.summary, "tags": []string{webhookTag}, "security": []any{},
			"parameters": []any{
				header("webhook-id", "The event's id, the same on every attempt (Standard Webhooks)."),
				header("webhook-timestamp", "When the attempt was made, seconds since 1970."),
				header("webhook-signature", "v1,BASE64 of HMAC-SHA256 over id.timestamp.body with the account's secret; several, "+
					"separated by a space, while a secret is being rotated."),
			},
			"requestBody": object{"required": true,
				"content": object{"application/json": object{"schema": s.Output(w.payload),
					"example": json.RawMessage(event.Example(w.kind).Payload)}}},
			"responses": answer,
		}}
	}
	return out
}
