package api

import (
	"context"
	"io"
	"slices"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

func (a *API) campaignRoutes() {
	const tag, missing = "Campaigns", "Campaign not found"
	// one operation under two names, as clients know both
	for i, path := range []string{"/user/campaign", "/user/campaigns"} {
		suffix := []string{"", "Plural"}[i]
		one := path + "/{id}"
		handle(a, op{Method: "POST", Path: path, Name: "createCampaign" + suffix, Tag: tag, Status: 201,
			Body: parley.Campaign{}, Idempotent: true, Summary: "Create a campaign, a draft"}, a.createCampaign)
		handle(a, op{Method: "GET", Path: one, Name: "getCampaign" + suffix, Tag: tag, NotFound: missing,
			Summary: "Read a campaign"}, a.getCampaign)
		handle(a, op{Method: "PUT", Path: one, Name: "updateCampaign" + suffix, Tag: tag, NotFound: missing,
			Body: parley.Campaign{}, Partial: true,
			Summary: "Update the fields that are sent, also while it is in progress"}, a.updateCampaign)
		handle(a, op{Method: "DELETE", Path: one, Name: "deleteCampaign" + suffix, Tag: tag, NotFound: missing,
			Summary: "Delete a campaign with its leads; live calls go on, its calls stay"}, a.deleteCampaign)
	}
	handle(a, op{Method: "GET", Path: "/user/campaigns", Name: "listCampaigns", Tag: tag,
		Summary: "All campaigns, newest first"}, a.listCampaigns)
	handle(a, op{Method: "POST", Path: "/user/campaigns/update-status", Name: "updateCampaignStatus", Tag: tag,
		Family: successes, Idempotent: true, Summary: "Start or stop a campaign"}, a.updateCampaignStatus)
	handle(a, op{Method: "GET", Path: "/user/campaigns/{id}/stats", Name: "getCampaignStats", Tag: tag,
		NotFound: missing, Summary: "A campaign's progress"}, a.getCampaignStats)
	handle(a, op{Method: "GET", Path: "/user/campaigns/{id}/review", Name: "reviewCampaign", Tag: tag, NotFound: missing,
		Summary: "Preview a start: who is called, when in their local time, what it may cost, and what prevents it"},
		a.reviewCampaign)
	handle(a, op{Method: "POST", Path: "/user/campaigns/{id}/try", Name: "tryCampaign", Tag: tag, NotFound: missing, Idempotent: true,
		Summary: "Place a trial call to your own number, with the first lead's variables"}, a.tryCampaign)
	handle(a, op{Method: "POST", Path: "/user/campaigns/{id}/schedule", Name: "scheduleCampaign", Tag: tag, NotFound: missing,
		Summary: "Schedule a campaign's start"}, a.scheduleCampaign)
	handle(a, op{Method: "DELETE", Path: "/user/campaigns/{id}/schedule", Name: "unscheduleCampaign", Tag: tag, NotFound: missing,
		Summary: "Cancel a campaign's scheduled start"}, a.unscheduleCampaign)
	handle(a, op{Method: "GET", Path: "/user/campaigns/{id}/sample.csv", Name: "sampleCampaign", Tag: tag,
		NotFound: missing, Stream: "text/csv", Summary: "A sample list, with a column for each of the assistant's variables"}, a.sampleCampaign)
	handle(a, op{Method: "GET", Path: "/user/campaigns/{id}/export", Name: "exportCampaign", Tag: tag,
		NotFound: missing, Stream: "text/csv", Summary: "The leads with their results, as CSV"}, a.exportCampaign)
}

func (a *API) createCampaign(ctx context.Context, r *request, _ *none) (*messageData[*parley.Campaign], error) {
	c, err := a.Campaigns.Create(ctx, r.Who.User, r.Body)
	return &messageData[*parley.Campaign]{"Campaign created successfully", c}, err
}

func (a *API) listCampaigns(ctx context.Context, r *request, _ *none) ([]parley.Campaign, error) {
	return a.DB.Campaigns(ctx, r.UserID())
}

func (a *API) getCampaign(ctx context.Context, r *request, in *byID) (*parley.Campaign, error) {
	return a.DB.Campaign(ctx, r.UserID(), in.ID)
}

func (a *API) updateCampaign(ctx context.Context, r *request, in *byID) (*messageData[*parley.Campaign], error) {
	c, err := a.Campaigns.Update(ctx, r.Who.User, in.ID, r.Body)
	return &messageData[*parley.Campaign]{"Campaign updated successfully", c}, err
}

func (a *API) deleteCampaign(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Campaign deleted successfully"}, a.Campaigns.Delete(ctx, r.UserID(), in.ID)
}

type campaignAction struct {
	Body struct {
		CampaignID int64  `json:"campaign_id" required:"true"`
		Action     string `json:"action" required:"true" enum:"start,stop"`
	}
}

type campaignState struct {
	Message string `json:"message"`
	Success bool   `json:"success"`
	Data    struct {
		CampaignID int64                 `json:"campaign_id"`
		Status     parley.CampaignStatus `json:"status"`
	} `json:"data"`
}

func (a *API) updateCampaignStatus(ctx context.Context, r *request, in *campaignAction) (*campaignState, error) {
	out, do := &campaignState{Message: "Campaign started successfully", Success: true}, a.Campaigns.Begin
	if in.Body.Action == "stop" {
		out.Message, do = "Campaign stopped successfully", a.Campaigns.Stop
	}
	c, err := do(ctx, r.UserID(), in.Body.CampaignID)
	if err != nil {
		return nil, err
	}
	out.Data.CampaignID, out.Data.Status = c.ID, c.Status
	return out, nil
}

func (a *API) getCampaignStats(ctx context.Context, r *request, in *byID) (*parley.CampaignStats, error) {
	return a.Campaigns.Stats(ctx, r.UserID(), in.ID)
}

func (a *API) exportCampaign(ctx context.Context, r *request, in *byID) (none, error) {
	err := web.SendCSV(r.W, r.Request, func(begin func(name string) io.Writer) error {
		return a.Campaigns.Export(ctx, r.UserID(), in.ID, begin)
	})
	if err == nil {
		err = errAnswered
	}
	return none{}, err
}

type campaignSchedule struct {
	byID
	Body struct {
		StartsAt string `json:"starts_at" required:"true" maxLength:"40" doc:"RFC 3339, or a date and a time by the clock of the campaign's time zone: 2026-12-01 09:00. At most a year ahead."`
	}
}

func (a *API) scheduleCampaign(ctx context.Context, r *request, in *campaignSchedule) (*messageData[*parley.Campaign], error) {
	c, err := a.Campaigns.Schedule(ctx, r.UserID(), in.ID, in.Body.StartsAt)
	return &messageData[*parley.Campaign]{"Campaign scheduled successfully", c}, err
}

func (a *API) unscheduleCampaign(ctx context.Context, r *request, in *byID) (*messageData[*parley.Campaign], error) {
	c, err := a.Campaigns.Unschedule(ctx, r.UserID(), in.ID)
	return &messageData[*parley.Campaign]{"Scheduled start canceled successfully", c}, err
}

func (a *API) sampleCampaign(ctx context.Context, r *request, in *byID) (none, error) {
	err := web.SendCSV(r.W, r.Request, func(begin func(name string) io.Writer) error {
		return a.Campaigns.Sample(ctx, r.UserID(), in.ID, begin)
	})
	if err == nil {
		err = errAnswered
	}
	return none{}, err
}

// campaignReview is what is ahead of a campaign, as answers show it.
type campaignReview struct {
	CampaignID int64            `json:"campaign_id"`
	Blocked    *string          `json:"blocked" doc:"Why the campaign should not be started; null if nothing prevents it. The console refuses to start a blocked campaign."`
	Opens      parley.Time      `json:"opens_at" doc:"When the first call would begin; null if its hours never come."`
	Leads      int64            `json:"leads" doc:"Leads that will be called."`
	Barred     int64            `json:"barred" doc:"Of these, leads whose numbers may not be called from this server."`
	Places     []reviewPlace    `json:"places" doc:"Where the leads are, by their numbers."`
	Variables  []reviewVariable `json:"variables" doc:"Variables of the assistant's texts that some leads have no value for."`
	Free       parley.Money     `json:"free" doc:"Available balance, in USD."`
	Estimate   reviewEstimate   `json:"estimate"`
}

type reviewPlace struct {
	Timezone string `json:"timezone" doc:"Empty if the numbers don't tell."`
	Leads    int64  `json:"leads"`
	From     string `json:"from" doc:"The campaign's hours in local time there."`
	To       string `json:"to"`
	Night    bool   `json:"early_or_late" doc:"Some of it is before 8:00 or after 21:00."`
}

type reviewVariable struct {
	Name      string `json:"name"`
	Leads     int64  `json:"leads" doc:"Leads without a value."`
	Unmatched bool   `json:"unmatched" doc:"No lead has a value: no column of the list has this name."`
}

type reviewEstimate struct {
	Minutes int64             `json:"minutes" doc:"Of talk, if each lead is called once."`
	Cost    parley.Money      `json:"cost" doc:"USD."`
	Basis   string            `json:"basis" enum:"calls,default" doc:"calls: the assistant's own last calls; default: it has made fewer than 10, so the estimate assumes that everybody answers and talks for a minute."`
	Calls   store.CallMinutes `json:"calls" doc:"The assistant's own last calls."`
}

func (a *API) reviewCampaign(ctx context.Context, r *request, in *byID) (*campaignReview, error) {
	got, err := a.Campaigns.Ahead(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	out := &campaignReview{CampaignID: got.Campaign.ID, Opens: parley.At(got.Opens), Leads: got.Leads, Barred: got.Barred,
		Places: []reviewPlace{}, Variables: []reviewVariable{}, Free: got.Free,
		Estimate: reviewEstimate{got.Estimate.Minutes, got.Estimate.Cost, "default", got.Estimate.From}}
	if why := got.Blocked(); why != "" {
		out.Blocked = &why
	}
	if got.Estimate.Own() {
		out.Estimate.Basis = "calls"
	}
	for _, p := range got.Places {
		out.Places = append(out.Places, reviewPlace{p.Zone, p.Leads, p.From, p.To, p.Night})
	}
	unmatched := got.Unmatched()
	for _, u := range got.Unfilled {
		out.Variables = append(out.Variables, reviewVariable{u.Name, u.Leads, slices.Contains(unmatched, u.Name)})
	}
	return out, nil
}

type campaignTry struct {
	byID
	Body struct {
		PhoneNumber string `json:"phone_number" required:"true" maxLength:"32" format:"phone" doc:"Your own, in international format or as it is dialled in your country."`
	}
}

func (a *API) tryCampaign(ctx context.Context, r *request, in *campaignTry) (*startedCall, error) {
	order, err := a.Campaigns.Rehearsal(ctx, r.UserID(), in.ID, in.Body.PhoneNumber)
	if err != nil {
		return nil, err
	}
	c, err := a.Calls.Start(ctx, order)
	if err != nil {
		return nil, err
	}
	return &startedCall{Message: "Call initiated successfully", CallID: c.ID, Status: c.Status}, nil
}

type blacklistEntry struct {
	Body struct {
		PhoneNumber string `json:"phone_number" required:"true" maxLength:"32" format:"phone" doc:"In international format, or as it is dialled in your country."`
	}
}

func (a *API) blacklistRoutes() {
	const tag = "Blacklist"
	handle(a, op{Method: "GET", Path: "/user/blacklist", Name: "listBlacklist", Tag: tag,
		Summary: "The blacklist: numbers that campaigns never call"}, a.listBlacklist)
	handle(a, op{Method: "POST", Path: "/user/blacklist", Name: "addToBlacklist", Tag: tag, Status: 201,
		Summary: "Add a number to the blacklist"}, a.addToBlacklist)
	handle(a, op{Method: "DELETE", Path: "/user/blacklist/{id}", Name: "removeFromBlacklist", Tag: tag,
		NotFound: "Blacklist entry not found", Summary: "Remove a number from the blacklist"}, a.removeFromBlacklist)
}

func (a *API) listBlacklist(ctx context.Context, r *request, _ *none) (*data[[]parley.BlacklistEntry], error) {
	list, err := a.DB.Blacklist(ctx, r.UserID())
	return &data[[]parley.BlacklistEntry]{list}, err
}

func (a *API) addToBlacklist(ctx context.Context, r *request,
	in *blacklistEntry) (*messageData[*parley.BlacklistEntry], error) {
	e, err := a.Campaigns.Blacklist(ctx, r.UserID(), in.Body.PhoneNumber)
	return &messageData[*parley.BlacklistEntry]{"Phone number added to the blacklist successfully", e}, err
}

func (a *API) removeFromBlacklist(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Phone number removed from the blacklist successfully"}, a.Campaigns.Unlist(ctx, r.UserID(), in.ID)
}
