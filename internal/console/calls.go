package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

// callQuery is what the list of calls is asked for: the API's filters.
type callQuery struct {
	dates
	Status      string `query:"status" enum:"initiated,ringing,in-progress,completed,busy,no-answer,failed,canceled"`
	Type        string `query:"type" enum:"inbound,outbound,web"`
	Phone       string `query:"phone_number" maxLength:"32" reads:"phone"`
	Search      string `query:"search" maxLength:"200"`
	AssistantID int64  `query:"assistant_id" minimum:"1"`
	CampaignID  int64  `query:"campaign_id" minimum:"1"`
	NumberID    int64  `query:"phone_number_id" minimum:"1"`
	Reason      string `query:"ended_reason" maxLength:"32"`
	Answerer    string `query:"answered_by" enum:"human,machine,unknown,nobody,telephone,voicemail,queue"`
	Sentiment   string `query:"sentiment" enum:"positive,neutral,negative"`
	Outcome     string `query:"outcome" enum:"success,partial,failure"`
	SlowerThan  int64  `query:"slower_than_ms" minimum:"1"`
	Test        *bool  `query:"test"`
	Page        int    `query:"page" minimum:"1" maximum:"2147483648"`
}

// values are the filters as parameters, without the page.
func (q callQuery) values() url.Values {
	v := q.dates.values()
	set(v, "status", q.Status)
	set(v, "type", q.Type)
	set(v, "phone_number", q.Phone)
	set(v, "search", q.Search)
	setID(v, "assistant_id", q.AssistantID)
	setID(v, "campaign_id", q.CampaignID)
	setID(v, "phone_number_id", q.NumberID)
	set(v, "ended_reason", q.Reason)
	set(v, "answered_by", q.Answerer)
	set(v, "sentiment", q.Sentiment)
	set(v, "outcome", q.Outcome)
	setID(v, "slower_than_ms", q.SlowerThan)
	if q.Test != nil {
		v.Set("test", strconv.FormatBool(*q.Test))
	}
	return v
}

// more says whether there are filters that are folded away.
func (q callQuery) more() bool {
	return q.CampaignID+q.NumberID+q.SlowerThan != 0 || q.Reason+q.Answerer+q.Sentiment+q.Outcome != "" || q.Test != nil
}

// test is whether tests are asked for, as the choice of a filter.
func (q callQuery) test() string {
	if q.Test == nil {
		return ""
	}
	return strconv.FormatBool(*q.Test)
}

func setID(v url.Values, name string, id int64) {
	if id != 0 {
		v.Set(name, strconv.FormatInt(id, 10))
	}
}

// filter is what the store is asked for.
func (q callQuery) filter(userID int64, zone *time.Location) store.CallFilter {
	from, to := q.bounds(zone)
	f := store.CallFilter{Status: parley.CallStatus(q.Status), Type: parley.CallType(q.Type), Phone: q.Phone,
		AssistantID: q.AssistantID, CampaignID: q.CampaignID, NumberID: q.NumberID, Reason: parley.EndedReason(q.Reason),
		Answerer: q.Answerer, Sentiment: q.Sentiment, Outcome: q.Outcome, SlowerThan: q.SlowerThan, Test: q.Test,
		Words: search.Query(userID, q.Search), From: from, To: to}
	return f
}

func (q callQuery) at(path string, page int) string { return address(path, q.values(), page) }

// calls is a page of calls.
type calls struct {
	callQuery
	list       []parley.Call
	total      int
	assistants []option
	numbers    []option
	campaigns  []option
	words      []string          // that are searched for
	any        *parley.Assistant // to show how calls begin; nil when there is none
	base       string            // of the API
	saved      saved
}

// version changes when anything in the list does.
func (l *calls) version() string {
	var b strings.Builder
	for _, c := range l.list {
		fmt.Fprintf(&b, "%d.%s.%d.%d ", c.ID, c.Status, c.Duration, c.TotalCost())
	}
	b.WriteString(strconv.Itoa(l.total))
	return b.String()
}

// topics are what tells of the calls that are live.
func (l *calls) topics() (list []string) {
	for _, c := range l.list {
		if c.Status.Live() {
			list = append(list, call.Topic(c.ID))
		}
	}
	return list
}

// calls reads what a query asks for; ok is false when it is none.
func (c *Console) calls(r *request) (l *calls, ok bool, err error) {
	l = &calls{callQuery: callQuery{Page: 1}}
	if len(r.query(&l.callQuery)) > 0 {
		return nil, false, nil
	}
	if l.AssistantID != 0 {
		if _, err := c.DB.Assistant(r.Context(), r.UserID(), l.AssistantID); err != nil {
			return nil, false, err
		}
	}
	l.words = search.Query(r.UserID(), l.Search)
	l.list, l.total, err = c.DB.Calls(r.Context(), r.UserID(), l.filter(r.UserID(), r.zone()), store.Page{Number: l.Page, Size: pageSize})
	return l, true, err
}

func (c *Console) callList(r *request) (*answer, error) {
	l, ok, err := c.calls(r)
	if err != nil {
		return nil, err
	}
	if !ok {
		return see("/calls"), nil
	}
	if len(l.list) == 0 && l.total > 0 { // beyond the end
		return see(l.at("/calls", (l.total+pageSize-1)/pageSize)), nil
	}
	if l.assistants, l.any, err = c.assistantFilter(r); err != nil {
		return nil, err
	}
	if l.numbers, err = c.numberFilter(r); err != nil {
		return nil, err
	}
	if l.campaigns, err = c.campaignFilter(r); err != nil {
		return nil, err
	}
	if l.saved, err = c.saved(r, "calls", l.values()); err != nil {
		return nil, err
	}
	l.base = c.base(r)
	return show("Calls", callList(l)), nil
}

// callListLive tells a reader of the list when it has changed.
func (c *Console) callListLive(r *request) (*answer, error) {
	if _, ok, err := c.calls(r); err != nil || !ok {
		return see("/calls"), err
	}
	was := ""
	return c.live(r, func(s *stream) ([]string, error) {
		l, _, err := c.calls(r)
		if err != nil {
			return nil, err
		}
		if now := l.version(); now != was {
			was = now
			s.send("list", map[string]string{"version": now})
		}
		return l.topics(), nil
	})
}

// found is where in a call it is said what is searched for.
func (l *calls) found(c *parley.Call) []search.Piece {
	return search.InCall(l.words, c)
}
