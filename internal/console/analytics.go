package console

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// analyticsQuery is what analytics are asked for: the API's filters.
type analyticsQuery struct {
	dates
	Range       string `query:"range" enum:"today,yesterday,7d,30d,90d"`
	AssistantID int64  `query:"assistant_id" minimum:"1"`
	NumberID    int64  `query:"phone_number_id" minimum:"1"`
	CampaignID  int64  `query:"campaign_id" minimum:"1"`
	Channel     string `query:"channel" enum:"inbound,outbound,web,widget,whatsapp,api,sms,whatsapp-messages,numbers"`
}

// analytics is what the page shows.
type analytics struct {
	analyticsQuery
	days                           *parley.Days
	got                            *parley.Analytics
	names                          map[int64]string
	assistants, numbers, campaigns []option
	zone                           string
	saved                          saved
}

// ranges are the days that are a click away.
var ranges = enum("today=Today", "yesterday=Yesterday", "7d=7 days", "30d=30 days", "90d=90 days")

var channelLabels = []option{{value: "inbound", label: "Inbound calls"}, {value: "outbound", label: "Outbound calls"},
	{value: "web", label: "Browser calls"}, {value: "widget", label: "Widget chats"}, {value: "whatsapp", label: "WhatsApp chats"},
	{value: "api", label: "API chats"}, {value: "sms", label: "Text messages"},
	{value: "whatsapp-messages", label: "WhatsApp messages"}, {value: "numbers", label: "Number rent"}}

var answererLabels = []option{{value: "human", label: "A person"}, {value: "machine", label: "A machine"},
	{value: "unknown", label: "Not known"}, {value: "nobody", label: "Nobody"}, {value: "telephone", label: "A telephone"},
	{value: "voicemail", label: "Voicemail"}, {value: "queue", label: "The queue"}}

var sentimentLabels = []option{{value: "positive", label: "Positive"}, {value: "neutral", label: "Neutral"},
	{value: "negative", label: "Negative"}}

var outcomeChoices = []option{{value: "success", label: "Success"}, {value: "partial", label: "Partial success"},
	{value: "failure", label: "Failure"}}

var statusChoices = enum("completed=Completed", "busy=Busy", "no-answer=No answer", "failed=Failed", "canceled=Canceled")

// labelled are the choices of a filter, after one that asks for all.
func labelled(all string, list []option) []option {
	return append([]option{{label: all}}, list...)
}

// reasonLabels are why calls end, in the order in which the texts are sorted.
func reasonLabels() (list []option) {
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		list = append(list, option{value: string(r), label: reasonText(r)})
	}
	return list
}

func reasonChoices() []option { return labelled("Ended in any way", reasonLabels()) }

// boxed is a number in a box, empty for 0.
func boxed(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// numberFilter are the choices of a filter by number.
func (c *Console) numberFilter(r *request) ([]option, error) {
	list, err := c.DB.Numbers(r.Context(), r.UserID())
	options := []option{{label: "All numbers"}}
	for _, n := range list {
		label := n.PhoneNumber
		if n.Nickname != nil && *n.Nickname != "" {
			label += " (" + *n.Nickname + ")"
		}
		options = append(options, option{value: strconv.FormatInt(n.ID, 10), label: label})
	}
	return options, err
}

// campaignFilter are the choices of a filter by campaign.
func (c *Console) campaignFilter(r *request) ([]option, error) {
	list, err := c.DB.Campaigns(r.Context(), r.UserID())
	options := []option{{label: "All campaigns"}}
	for _, p := range list {
		options = append(options, option{value: strconv.FormatInt(p.ID, 10), label: p.Name})
	}
	return options, err
}

func (c *Console) analyticsPage(r *request) (*answer, error) {
	v := &analytics{}
	if len(form.Query(r.URL.Query(), &v.analyticsQuery)) > 0 {
		return see("/analytics"), nil
	}
	var wrong parley.Fields
	if v.days, wrong = parley.Asked(v.Range, v.From, v.To, time.Now(), r.zone()); len(wrong) > 0 {
		return see("/analytics"), nil
	}
	if v.From+v.To != "" {
		v.Range = ""
	} else if v.Range == "" {
		v.Range = "7d"
	}
	v.zone = r.zone().String()
	return show("Analytics", analyticsPage(v)), c.readAnalytics(r, v)
}

func (c *Console) readAnalytics(r *request, v *analytics) (err error) {
	v.got, err = c.DB.Analytics(r.Context(), r.UserID(), store.ActivityFilter{Days: v.days.Begins, To: v.days.To,
		AssistantID: v.AssistantID, NumberID: v.NumberID, CampaignID: v.CampaignID, Channel: v.Channel})
	if err != nil {
		return err
	}
	ids := v.got.ByCost()
	if v.names, err = c.DB.AssistantNames(r.Context(), r.UserID(), ids[:min(len(ids), maxRows)]); err != nil {
		return err
	}
	if v.assistants, _, err = c.assistantFilter(r); err != nil {
		return err
	}
	if v.numbers, err = c.numberFilter(r); err != nil {
		return err
	}
	if v.campaigns, err = c.campaignFilter(r); err != nil {
		return err
	}
	filters := v.whole()
	if len(v.values()) == 0 && v.Range == "7d" { // as the page begins
		filters = nil
	}
	v.saved, err = c.saved(r, "analytics", filters)
	return err
}

// maxRows is how many assistants the page has; the API has all.
const maxRows = 50

// values are the filters as parameters, without the days.
func (q analyticsQuery) values() url.Values {
	v := url.Values{}
	setID(v, "assistant_id", q.AssistantID)
	setID(v, "phone_number_id", q.NumberID)
	setID(v, "campaign_id", q.CampaignID)
	set(v, "channel", q.Channel)
	return v
}

// whole are all filters as parameters.
func (q analyticsQuery) whole() url.Values {
	v := q.values()
	set(v, "range", q.Range)
	set(v, "date_from", q.From)
	set(v, "date_to", q.To)
	return v
}

// in is the page for another range.
func (q analyticsQuery) in(name string) string {
	v := q.values()
	v.Set("range", name)
	return address("/analytics", v, 0)
}

// list is the address of the calls, or conversations, behind a figure: the page's days and filters, or one day's, with
// more of them.
func (v *analytics) list(day int, more ...string) string {
	first, last := v.days.Dates[0], v.days.Dates[len(v.days.Dates)-1]
	if day >= 0 {
		first, last = v.days.Dates[day], v.days.Dates[day]
	}
	p := dates{first.Format(time.DateOnly), last.Format(time.DateOnly)}.values()
	setID(p, "assistant_id", v.AssistantID)
	channel := v.Channel
	for i := 0; i < len(more); i += 2 {
		if more[i] == "channel" {
			channel = more[i+1]
			continue
		}
		p.Set(more[i], more[i+1])
	}
	return v.listOf(channel, p)
}

func (v *analytics) listOf(channel string, p url.Values) string {
	switch channel {
	case "widget", "whatsapp", "api":
		p.Set("type", channel)
		return address("/conversations", p, 0)
	case parley.ChannelTexts:
		return "/messages"
	case parley.ChannelTemplate:
		return "/whatsapp"
	case parley.ChannelNumbers:
		p.Del("assistant_id")
		return address("/ledger", p, 0)
	}
	set(p, "type", channel)
	setID(p, "phone_number_id", v.NumberID)
	setID(p, "campaign_id", v.CampaignID)
	p.Set("test", "false")
	return address("/calls", p, 0)
}

// share is a row of a distribution: how many, of all, and where they are.
type share struct {
	label, href string
	n, of       int64
}

// width is the row's bar, on a line of a hundred.
func (s share) width() string {
	return strconv.FormatFloat(100*float64(s.n)/float64(max(s.of, 1)), 'f', 1, 64)
}

func (s share) percent() string {
	return strconv.FormatFloat(100*float64(s.n)/float64(max(s.of, 1)), 'f', 1, 64) + " %"
}

// shares are the rows of a distribution of calls, the largest first; parameter is the list's filter.
func (v *analytics) shares(distribution, parameter string, labels []option) (list []share) {
	counts, all := v.got.Of(distribution), int64(0)
	for _, n := range counts {
		all += n
	}
	for _, o := range labels {
		if n := counts[o.value]; n > 0 {
			list = append(list, share{o.label, v.list(-1, parameter, o.value), n, all})
		}
	}
	slices.SortStableFunc(list, func(a, b share) int { return int(b.n - a.n) })
	return list
}

// spread is a distribution with its heading.
type spread struct {
	title, none string
	rows        []share
}

func (v *analytics) spreads() []spread {
	return []spread{
		{"Status", "No calls.", v.shares(parley.CountStatus, "status", statusChoices)},
		{"Ended by", "No calls.", v.shares(parley.CountReason, "ended_reason", reasonLabels())},
		{"Answered by", "No calls.", v.shares(parley.CountAnswerer, "answered_by", answererLabels)},
		{"Sentiment", "No call was evaluated.", v.shares(parley.CountSentiment, "sentiment", sentimentLabels)},
		{"Outcome", "No call was evaluated.", v.shares(parley.CountOutcome, "outcome", outcomeChoices)},
	}
}

// column of a day's chart, with where it leads.
type dayBar struct {
	x, width, y, height, title, href string
}

// dayBars draw one measure of the days.
func (v *analytics) dayBars(measure func(*parley.Sums) int64, say func() []string) (bars []dayBar) {
	most := int64(1)
	for i := range v.got.Days {
		most = max(most, measure(&v.got.Days[i]))
	}
	step, said := 280/float64(len(v.got.Days)), say()
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }
	for i := range v.got.Days {
		height := chartHeight * float64(max(measure(&v.got.Days[i]), 0)) / float64(most)
		if height > 0 {
			height = max(height, 1)
		}
		bars = append(bars, dayBar{text(float64(i)*step + step*.1), text(step * .8), text(chartHeight - height), text(height),
			v.days.Dates[i].Format("Mon, Jan 2") + ": " + said[i], v.list(i)})
	}
	return bars
}

func callsOf(s *parley.Sums) int64 { return s.Calls() }

func costOf(s *parley.Sums) int64 { return int64(s.Cost()) }

func (v *analytics) callsText() (texts []string) {
	for i := range v.got.Days {
		s := &v.got.Days[i]
		texts = append(texts, fmt.Sprintf("%s, %d failed", count(int(s.Calls()), "call", "calls"), s.Failed()))
	}
	return texts
}

func (v *analytics) costText() []string { return dayCosts(&v.got.Total, v.got.Days) }

// texts are the minutes and costs of rows.
func (v *analytics) texts(of map[int64]*parley.Sums, ids []int64) (minutes, costs []string) {
	rows := make([]*parley.Sums, len(ids))
	for i, id := range ids {
		rows[i] = of[id]
	}
	return sumsTexts(&v.got.Total, rows)
}

// channels are those in which something happened.
func (v *analytics) channels() (list []option) {
	for _, o := range channelLabels {
		if v.got.Channels[o.value] != nil {
			list = append(list, o)
		}
	}
	return list
}

func (v *analytics) channelTexts() (minutes, costs []string) {
	var rows []*parley.Sums
	for _, o := range v.channels() {
		rows = append(rows, v.got.Channels[o.value])
	}
	return sumsTexts(&v.got.Total, rows)
}

// name is an assistant's, or what belongs to none.
func (v *analytics) name(id int64) string {
	switch name := v.names[id]; {
	case id == 0:
		return "No assistant (numbers, messages)"
	case name == "":
		return "Assistant " + strconv.FormatInt(id, 10)
	default:
		return name
	}
}

// rows are the assistants that cost most.
func (v *analytics) rows() []int64 {
	ids := v.got.ByCost()
	return ids[:min(len(ids), maxRows)]
}

// behind is where an assistant's calls or conversations are.
func (v *analytics) behind(id int64) string {
	switch s := v.got.Assistants[id]; {
	case id == 0:
		return v.listOf(parley.ChannelNumbers, dates{v.days.Dates[0].Format(time.DateOnly),
			v.days.Dates[len(v.days.Dates)-1].Format(time.DateOnly)}.values())
	case s.Calls() == 0 && v.Channel == "":
		p, _ := url.Parse(v.list(-1, "assistant_id", strconv.FormatInt(id, 10)))
		q := p.Query()
		q.Del("test")
		return "/conversations?" + q.Encode()
	default:
		return v.list(-1, "assistant_id", strconv.FormatInt(id, 10))
	}
}

// successText is the share of calls that were completed.
func successText(s *parley.Sums) string {
	if rate := s.SuccessRate(); rate != nil {
		return strconv.FormatFloat(100**rate, 'f', 1, 64) + " %"
	}
	return "–"
}

func minutesText(s *parley.Sums) string { return strconv.FormatFloat(s.Minutes(), 'f', 1, 64) }

// whole is a number with commas between thousands.
func whole(n int64) string { return parley.Thousands(strconv.FormatInt(n, 10)) }

// span is the days in words.
func (v *analytics) span() string {
	first, last := v.days.Dates[0], v.days.Dates[len(v.days.Dates)-1]
	if first.Equal(last) {
		return first.Format("Monday, January 2, 2006") + " (" + v.zone + ")"
	}
	return first.Format("January 2, 2006") + " to " + last.Format("January 2, 2006") + " (" + v.zone + ")"
}
