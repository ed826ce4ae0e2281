package console

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

// campaignRow is a campaign in the list.
type campaignRow struct {
	parley.Campaign
	stats parley.CampaignStats
}

func (c *Console) campaignList(r *request) (*answer, error) {
	list, err := c.DB.Campaigns(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	counts, err := c.DB.LeadCountsOf(r.Context(), r.UserID(), ids)
	if err != nil {
		return nil, err
	}
	rows := make([]campaignRow, len(list))
	for i := range list {
		rows[i] = campaignRow{list[i], list[i].Stats(counts[list[i].ID])}
	}
	return show("Campaigns", campaignList(rows, c.base(r))), nil
}

func (c *Console) campaignDelete(r *request) (*answer, error) {
	if err := c.Campaigns.Delete(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/campaigns", "deleted"), nil
}

func (c *Console) campaignStart(r *request) (*answer, error) {
	_, err := c.Campaigns.Launch(r.Context(), r.UserID(), r.id("id"), "")
	return c.campaignMoved(r, err, "started")
}

func (c *Console) campaignStop(r *request) (*answer, error) {
	_, err := c.Campaigns.Stop(r.Context(), r.UserID(), r.id("id"))
	return c.campaignMoved(r, err, "stopped")
}

// campaignMoved shows the page again; why it could not be done stands on it.
func (c *Console) campaignMoved(r *request, err error, done string) (*answer, error) {
	if err == nil {
		return see("/campaigns/"+r.PathValue("id"), done), nil
	}
	e := plain(r.Request, err)
	if e.Kind != parley.Refused {
		return nil, err
	}
	v, err := c.campaign(r)
	if err != nil {
		return nil, err
	}
	v.refused = e.Message
	return &answer{status: http.StatusConflict, title: v.Name, body: campaignPage(v)}, nil
}

// leadQuery is what the table of leads is asked for.
type leadQuery struct {
	Status string `query:"status" enum:"created,scheduled,processing,completed,rescheduled,reached-max-retries,blacklisted"`
	Phone  string `query:"phone_number" maxLength:"32" reads:"phone"`
	Page   int    `query:"page" minimum:"1" maximum:"2147483648"`
}

func (q leadQuery) values() url.Values {
	v := url.Values{}
	set(v, "status", q.Status)
	set(v, "phone_number", q.Phone)
	return v
}

// campaignView is a campaign as its page shows it.
type campaignView struct {
	*parley.Campaign
	leadQuery
	stats   parley.CampaignStats
	caller  string // its assistant's name
	opens   time.Time
	calls   []parley.Call // live
	leads   []parley.Lead // of the page
	total   int
	refused string // why it could not be started or stopped

	report  *campaign.ImportReport // of the list that was just sent
	checked bool                   // it was looked at only
	wrong   string                 // why it is no list
	columns []listColumn           // of that list, to say what they are
	lacking []string               // variables that it has no column for
	used    []string               // variables of the assistant's
	country string                 // where national numbers of a list are read
	last    *parley.LeadImport     // the newest list that is here: it runs, or has ended; nil: none
	zone    *time.Location
}

func (v *campaignView) path(more string) string {
	return "/campaigns/" + strconv.FormatInt(v.ID, 10) + more
}

func (v *campaignView) at(path string, page int) string {
	return address(v.path(path), v.values(), page)
}

// campaign reads one of the user's campaigns with a page of its leads.
func (c *Console) campaign(r *request) (*campaignView, error) {
	camp, err := c.DB.Campaign(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	v := &campaignView{Campaign: camp, leadQuery: leadQuery{Page: 1}, country: r.who.User.Country,
		zone: (&parley.User{Timezone: camp.Timezone}).Zone()}
	if wrong := r.query(&v.leadQuery); len(wrong) > 0 {
		v.leadQuery = leadQuery{Page: 1}
	}
	if v.last, err = c.DB.LastImport(r.Context(), r.UserID(), camp.ID); err != nil {
		return nil, err
	}
	counts, err := c.DB.LeadCounts(r.Context(), r.UserID(), camp.ID)
	if err != nil {
		return nil, err
	}
	v.stats = camp.Stats(counts)
	if v.calls, err = c.DB.CampaignCalls(r.Context(), r.UserID(), camp.ID); err != nil {
		return nil, err
	}
	hours := campaign.HoursOf(camp)
	if now := time.Now(); !hours.Open(now) {
		v.opens = hours.Next(now)
	}
	if a, err := c.DB.Assistant(r.Context(), r.UserID(), camp.AssistantID); err == nil {
		v.caller = a.Name
	} else if !store.IsNotFound(err) {
		return nil, err
	}
	f := store.LeadFilter{CampaignID: camp.ID, Status: parley.LeadStatus(v.leadQuery.Status), PhoneNumber: v.Phone}
	v.leads, v.total, err = c.DB.Leads(r.Context(), r.UserID(), f, store.Page{Number: v.Page, Size: pageSize})
	return v, err
}

func (c *Console) campaignPage(r *request) (*answer, error) {
	v, err := c.campaign(r)
	if err != nil {
		return nil, err
	}
	if len(v.leads) == 0 && v.total > 0 { // beyond the end
		return see(v.at("", (v.total+pageSize-1)/pageSize)), nil
	}
	return show(v.Name, campaignPage(v)).in(v.Timezone), nil
}

// campaignLive sends what changes of a campaign's page: its state, its counts, its live calls, an import under way;
// and that the table is old.
func (c *Console) campaignLive(r *request) (*answer, error) {
	if _, err := c.DB.Campaign(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	sent, listed := map[string]string{}, ""
	look := func(s *stream) ([]string, error) {
		v, err := c.campaign(r)
		if err != nil {
			return nil, err
		}
		for _, p := range v.parts() {
			if sent[p.id] != p.version {
				sent[p.id] = p.version
				s.put(p.body)
			}
		}
		if now := v.listed(); now != listed {
			listed = now
			s.send("list", map[string]string{"version": now})
		}
		topics := []string{campaign.Topic(v.ID)}
		for _, live := range v.calls {
			topics = append(topics, call.Topic(live.ID))
		}
		return topics, nil
	}
	return c.follow(r, look, func(s *stream, e event.Event) bool {
		if p, ok := e.Data.(campaign.Importing); ok {
			s.put(campaignImporting(p))
			return p.Done
		}
		return e.Kind != call.Partial
	})
}

// listed changes when the table of leads does.
func (v *campaignView) listed() string {
	var b strings.Builder
	for _, l := range v.leads {
		fmt.Fprintf(&b, "%d.%s.%d.%d ", l.ID, l.Status, l.Attempts, l.TotalCost)
	}
	return b.String() + strconv.Itoa(v.total)
}

func (v *campaignView) parts() []part {
	return []part{{"campaign-state", v.stateVersion(), campaignState(v)},
		{"campaign-sums", v.sumsVersion(), campaignSums(v)}, {"campaign-calls", v.callsVersion(), campaignCalls(v)},
		{"import-last", v.importVersion(), importLast(v)}}
}

func (v *campaignView) stateVersion() string {
	return fmt.Sprintf("%s.%d.%d.%t.%t", v.Campaign.Status, v.PausedUntil, v.StartsAt, v.opens.IsZero(), v.PauseReason == nil)
}

func (v *campaignView) sumsVersion() string { return fmt.Sprint(v.stats) }

func (v *campaignView) callsVersion() string {
	var b strings.Builder
	for _, c := range v.calls {
		fmt.Fprintf(&b, "%d.%s ", c.ID, c.Status)
	}
	return b.String()
}

// slice is a part of a bar: how many of all.
type slice struct {
	label, class string
	n            int64
	from, width  int64 // in thousandths of the bar
}

// slices are the parts of a bar one after another, without those that are empty.
func slicesOf(list ...slice) (out []slice) {
	var total, at int64
	for _, s := range list {
		total += s.n
	}
	for _, s := range list {
		if s.n == 0 {
			continue
		}
		s.from = at * 1000 / total
		at += s.n
		s.width = at*1000/total - s.from
		out = append(out, s)
	}
	return out
}

// progress is how the leads stand.
func progress(s *parley.CampaignStats) []slice {
	n := s.ByStatus
	return slicesOf(slice{label: "Completed", class: "s-good", n: n[parley.LeadCompleted]},
		slice{label: "Out of attempts", class: "s-bad", n: n[parley.LeadExhausted]},
		slice{label: "On the do-not-call list", class: "s-off", n: n[parley.LeadBlacklisted]},
		slice{label: "Being called", class: "s-live", n: n[parley.LeadScheduled] + n[parley.LeadProcessing]},
		slice{label: "To be called again", class: "s-wait", n: n[parley.LeadRescheduled]},
		slice{label: "Not called yet", class: "s-new", n: n[parley.LeadCreated]})
}

// outcomes are what became of the calls.
func outcomes(s *parley.CampaignStats) []slice {
	return slicesOf(slice{label: "Answered", class: "s-good", n: s.Answered},
		slice{label: "Voicemail", class: "s-wait", n: s.Voicemail},
		slice{label: "No answer", class: "s-new", n: s.NoAnswer},
		slice{label: "Busy", class: "s-live", n: s.Busy}, slice{label: "Failed", class: "s-bad", n: s.Failed},
		slice{label: "Canceled", class: "s-off", n: s.Canceled})
}

// done is how many leads wait no more.
func done(s *parley.CampaignStats) int64 {
	return s.ByStatus[parley.LeadCompleted] + s.ByStatus[parley.LeadExhausted] + s.ByStatus[parley.LeadBlacklisted]
}

// campaignLabels are the states of campaigns in words, leadLabels those of leads.
var (
	campaignLabels = map[parley.CampaignStatus]string{parley.CampaignDraft: "Draft",
		parley.CampaignInProgress: "In progress", parley.CampaignStopped: "Stopped", parley.CampaignEnded: "Completed"}
	leadLabels = map[parley.LeadStatus]string{parley.LeadCreated: "Not called yet",
		parley.LeadScheduled: "About to be called", parley.LeadProcessing: "Being called",
		parley.LeadRescheduled: "To be called again", parley.LeadCompleted: "Completed",
		parley.LeadExhausted: "Out of attempts", parley.LeadBlacklisted: "On the do-not-call list"}
	outcomeLabels = map[parley.Outcome]string{parley.OutcomeAnswered: "answered",
		parley.OutcomeVoicemail: "voicemail", parley.OutcomeBusy: "busy", parley.OutcomeNoAnswer: "no answer",
		parley.OutcomeFailed: "failed", parley.OutcomeCanceled: "canceled"}
)

// outcomeText is what became of a lead's last call.
func outcomeText(l *parley.Lead) string {
	if l.Outcome == nil {
		return ""
	}
	return outcomeLabels[*l.Outcome]
}

// campaignExport sends the leads with what became of them.
func (c *Console) campaignExport(r *request) (*answer, error) {
	return nil, web.SendCSV(r.w, r.Request, func(begin func(name string) io.Writer) error {
		return c.Campaigns.Export(r.Context(), r.UserID(), r.id("id"), begin)
	})
}
