package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

type analyticsQuery struct {
	Range       string `query:"range" enum:"today,yesterday,7d,30d,90d" doc:"Days in your time zone, up to today (7d). date_from and date_to override it."`
	DateFrom    string `query:"date_from" format:"date" doc:"YYYY-MM-DD, in your time zone."`
	DateTo      string `query:"date_to" format:"date" doc:"YYYY-MM-DD, included."`
	AssistantID int64  `query:"assistant_id" format:"assistant"`
	NumberID    int64  `query:"phone_number_id"`
	CampaignID  int64  `query:"campaign_id"`
	Channel     string `query:"channel" enum:"inbound,outbound,web,widget,whatsapp,api,sms,whatsapp-messages,numbers" doc:"inbound, outbound and web are calls; widget, whatsapp and api are conversations; the others only cost."`
}

// activitySums are measures of some activity.
type activitySums struct {
	Calls          int64        `json:"calls"`
	Answered       int64        `json:"answered"`
	Completed      int64        `json:"completed"`
	Failed         int64        `json:"failed"`
	SuccessRate    *float64     `json:"success_rate" doc:"The share of calls that were completed; null without calls."`
	Minutes        float64      `json:"minutes" doc:"Of calls."`
	Conversations  int64        `json:"conversations"`
	Messages       int64        `json:"messages" doc:"Of customers, in conversations."`
	FailedMessages int64        `json:"failed_messages" doc:"Of customers, without a reply."`
	Cost           parley.Money `json:"cost"`
}

func sumsOf(s *parley.Sums) activitySums {
	return activitySums{s.Calls(), s.Answered(), s.Completed(), s.Failed(), s.SuccessRate(), s.Minutes(),
		s.Conversations(), s.Messages(), s.FailedMessages(), s.Cost()}
}

type (
	analyticsDay struct {
		Date string `json:"date"`
		activitySums
	}
	analyticsAssistant struct {
		ID   *int64 `json:"id" doc:"null for what belongs to no assistant, such as the rent of numbers."`
		Name string `json:"name"`
		activitySums
	}
	analyticsChannel struct {
		Channel string `json:"channel"`
		activitySums
	}
	analyticsLatency struct {
		Replies int64 `json:"replies"`
		P50     int64 `json:"p50"`
		P90     int64 `json:"p90"`
		P95     int64 `json:"p95"`
		P99     int64 `json:"p99"`
	}
	shownAnalytics struct {
		DateFrom   string               `json:"date_from"`
		DateTo     string               `json:"date_to"`
		Timezone   string               `json:"timezone"`
		Total      activitySums         `json:"total"`
		Days       []analyticsDay       `json:"days"`
		Assistants []analyticsAssistant `json:"assistants" doc:"The most expensive first."`
		Channels   []analyticsChannel   `json:"channels"`
		Latency    analyticsLatency     `json:"latency_ms" doc:"From the customer's last sound to the first sound of the reply, accurate to 2 %."`
		Status     map[string]int64     `json:"status" doc:"Calls by status."`
		Reasons    map[string]int64     `json:"ended_reason" doc:"Calls by ended_reason."`
		AnsweredBy map[string]int64     `json:"answered_by" doc:"Calls by who answered: human, machine, unknown; nobody; telephone, voicemail, queue of a number's route."`
		Sentiment  map[string]int64     `json:"sentiment"`
		Outcome    map[string]int64     `json:"outcome"`
	}
)

// getAnalytics leaves test calls and test conversations out. What is deleted still counts.
func (a *API) getAnalytics(ctx context.Context, r *request, in *analyticsQuery) (*shownAnalytics, error) {
	if err := a.ownFilters(ctx, r, in.AssistantID, in.CampaignID); err != nil {
		return nil, err
	}
	days, wrong := parley.Asked(in.Range, in.DateFrom, in.DateTo, time.Now(), r.Who.Zone())
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	got, err := a.DB.Analytics(ctx, r.UserID(), store.ActivityFilter{Days: days.Begins, To: days.To,
		AssistantID: in.AssistantID, NumberID: in.NumberID, CampaignID: in.CampaignID, Channel: in.Channel})
	if err != nil {
		return nil, err
	}
	names, err := a.DB.AssistantNames(ctx, r.UserID(), slices.Collect(maps.Keys(got.Assistants)))
	if err != nil {
		return nil, err
	}
	out := showAnalytics(got, days, names)
	out.Timezone = r.Who.Timezone()
	return out, nil
}

// ownFilters refuses filters that name what the user does not have.
func (a *API) ownFilters(ctx context.Context, r *request, assistantID, campaignID int64) (err error) {
	if named(r, "assistant_id") {
		_, err = a.DB.CallAssistant(ctx, r.UserID(), assistantID) // a deleted one too: its history stays
	}
	if err == nil && named(r, "campaign_id") {
		_, err = a.DB.Campaign(ctx, r.UserID(), campaignID)
	}
	return err
}

func showAnalytics(got *parley.Analytics, days *parley.Days, names map[int64]string) *shownAnalytics {
	l := got.Latencies()
	out := &shownAnalytics{DateFrom: days.Dates[0].Format(time.DateOnly),
		DateTo: days.Dates[len(days.Dates)-1].Format(time.DateOnly), Total: sumsOf(&got.Total),
		Assistants: []analyticsAssistant{}, Channels: []analyticsChannel{},
		Latency: analyticsLatency{l.Replies, l.Percentile(50), l.Percentile(90), l.Percentile(95), l.Percentile(99)},
		Status:  got.Of(parley.CountStatus), Reasons: got.Of(parley.CountReason), AnsweredBy: got.Of(parley.CountAnswerer),
		Sentiment: got.Of(parley.CountSentiment), Outcome: got.Of(parley.CountOutcome)}
	for i := range got.Days {
		out.Days = append(out.Days, analyticsDay{days.Dates[i].Format(time.DateOnly), sumsOf(&got.Days[i])})
	}
	for _, id := range got.ByCost() {
		row := analyticsAssistant{Name: names[id], activitySums: sumsOf(got.Assistants[id])}
		if id != 0 {
			row.ID = &id
		}
		out.Assistants = append(out.Assistants, row)
	}
	for _, channel := range slices.SortedFunc(maps.Keys(got.Channels), func(a, b string) int {
		return cmp.Compare(slices.Index(parley.ActivityChannels, a), slices.Index(parley.ActivityChannels, b))
	}) {
		out.Channels = append(out.Channels, analyticsChannel{channel, sumsOf(got.Channels[channel])})
	}
	return out
}
