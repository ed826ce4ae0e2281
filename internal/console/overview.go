package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// overviewDays are the days of the charts; the last one is today.
const overviewDays = 14

// overview is what the start page shows.
type overview struct {
	builtIn   bool // there is no language model
	setup     bool // the parts of the setup can be looked at
	balance   parley.Money
	live      int
	visitors  string // what the owner should know of the visitors' budget, "" for nothing
	days      *parley.Days
	got       *parley.Analytics // of these days
	assistant *parley.Assistant // one to try, where there is one
	voice     bool              // this server takes calls from browsers

	unanswered []unanswered
}

// unanswered is a number whose calls nobody takes.
type unanswered struct {
	number parley.Number
	by     string // the inactive assistant that would; "" where it has none
}

// silentNumbers are the numbers that are called in vain.
func (c *Console) silentNumbers(r *request) (list []unanswered, err error) {
	numbers, err := c.DB.Numbers(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	answerers, err := c.DB.Answerers(r.Context(), r.UserID())
	for _, n := range numbers {
		a, has := answerers[n.ID]
		if n.Type == parley.NumberCallerID || n.ReleasedAt != 0 || has && a.Status == "active" {
			continue
		}
		list = append(list, unanswered{n, a.Name})
	}
	return list, err
}

// overview reads the user's last days, the last of which is today.
func (c *Console) overview(r *request, days int) (*overview, error) {
	u, err := c.DB.User(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	o := &overview{balance: u.Balance, voice: c.Answer != nil}
	today := time.Now().In(r.zone())
	if o.days, err = parley.DaysBetween(today.AddDate(0, 0, 1-days), today, r.zone()); err != nil {
		return nil, err
	}
	if o.got, err = c.DB.Analytics(r.Context(), r.UserID(), store.ActivityFilter{Days: o.days.Begins, To: o.days.To}); err != nil {
		return nil, err
	}
	if o.live, err = c.DB.LiveCalls(r.Context(), r.UserID()); err != nil {
		return nil, err
	}
	spent, budget, err := c.DB.PublicSpend(r.Context(), r.UserID(), parley.Now())
	o.visitors = visitorsWords(spent, budget)
	return o, err
}

// visitorsWords say how the day's budget for visitors stands, "" while there is enough of it.
func visitorsWords(spent, budget parley.Money) string {
	switch {
	case budget == 0 || spent < budget/5*4:
		return ""
	case spent < budget:
		return fmt.Sprintf("Visitors of your websites have cost %s of the %s that they may cost today. "+
			"When it is used up, they are refused until 00:00 UTC.", dollars(spent), dollars(budget))
	}
	return fmt.Sprintf("Visitors of your websites are refused until 00:00 UTC: "+
		"the %s that they may cost a day are used up or set aside for calls under way. "+
		"The operator of this server sets the limit (PARLEY_PUBLIC_DAILY_SPEND).", dollars(budget))
}

// version changes when anything does: the days before today stand.
func (o *overview) version() string {
	d := o.today()
	return fmt.Sprintf("%s.%d.%d.%d.%d.%d.%d.%s", o.days.Dates[len(o.days.Dates)-1].Format(time.DateOnly), o.balance,
		o.live, d.Calls(), d.Failed(), d.FailedMessages(), d.Cost(), o.visitors)
}

func (c *Console) overviewPage(r *request) (*answer, error) {
	if !r.may("GET /calls") { // billing
		return see("/ledger"), nil
	}
	o, err := c.overview(r, overviewDays)
	if err != nil {
		return nil, err
	}
	if o.quiet() {
		some, _, err := c.DB.AssistantPage(r.Context(), r.UserID(), store.AssistantFilter{}, store.Page{Number: 1, Size: 1})
		if err != nil {
			return nil, err
		}
		if len(some) > 0 {
			o.assistant = &some[0]
		}
	}
	if o.unanswered, err = c.silentNumbers(r); err != nil {
		return nil, err
	}
	o.builtIn, o.setup = c.builtIn(r), c.Setup != nil
	return show("Overview", overviewPage(o)), nil
}

// overviewLive tells a reader of the overview when it has changed. It reads today alone: that is little, and all that
// changes.
func (c *Console) overviewLive(r *request) (*answer, error) {
	was := ""
	return c.live(r, func(s *stream) ([]string, error) {
		o, err := c.overview(r, 1)
		if err != nil {
			return nil, err
		}
		if now := o.version(); now != was {
			was = now
			s.send("list", map[string]string{"version": now})
		}
		return nil, nil
	})
}

func (o *overview) today() *parley.Sums { return &o.got.Days[len(o.got.Days)-1] }

// quiet says whether there was nothing to show.
func (o *overview) quiet() bool {
	return o.live == 0 && o.got.Total.Calls()+o.got.Total.FailedMessages() == 0
}

// failures are a day's calls and messages that failed, in words.
func failures(d *parley.Sums) string {
	var list []string
	if d.Failed() > 0 {
		list = append(list, count(int(d.Failed()), "call", "calls"))
	}
	if d.FailedMessages() > 0 {
		list = append(list, count(int(d.FailedMessages()), "message", "messages"))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// path is a page of the assistant to try.
func (o *overview) path(more string) string {
	return assistantPath(o.assistant.ID, more)
}

// chart is a small picture of the days: a bar for each, with a second, paler one behind it where there are two
// measures.
type chart struct {
	title, sum, class string
	words             string // what it shows, for who can't see it
	bars              []column
}

type column struct{ x, y, height, behindY, behindHeight, title string }

const (
	chartHeight = 56.0
	barStep     = 20.0
)

// chart draws one measure, or two of which behind is the larger.
func (o *overview) chart(title, sum, class string, front, behind []float64, say func(i int) string) chart {
	c := chart{title: title, sum: sum, class: class, words: title + ", day by day: "}
	top := slices.Max(front)
	if behind != nil {
		top = max(top, slices.Max(behind))
	}
	rise := func(v float64) (y, height string) { // what is there is seen, however little
		h := 0.0
		if v > 0 && top > 0 {
			h = max(2, math.Round(v/top*chartHeight*10)/10)
		}
		return strconv.FormatFloat(chartHeight-h, 'f', -1, 64), strconv.FormatFloat(h, 'f', -1, 64)
	}
	for i, v := range front {
		b := column{x: strconv.FormatFloat(float64(i)*barStep+2, 'f', -1, 64), title: o.days.Dates[i].Format("Jan 2") +
			": " + say(i)}
		b.y, b.height = rise(v)
		if behind != nil {
			b.behindY, b.behindHeight = rise(behind[i])
		}
		if v > 0 {
			c.words += b.title + "; "
		}
		c.bars = append(c.bars, b)
	}
	return c
}

// charts are the measures of the days.
func (o *overview) charts() []chart {
	n := len(o.got.Days)
	calls, costs, failed, half, most := make([]float64, n), make([]float64, n), make([]float64, n),
		make([]float64, n), make([]float64, n)
	latencies := make([]*parley.Latencies, n)
	for i := range o.got.Days {
		d := &o.got.Days[i]
		latencies[i] = o.got.DayLatencies(i)
		calls[i], costs[i], failed[i] = float64(d.Calls()), float64(max(d.Cost(), 0)), float64(d.Failed()+d.FailedMessages())
		half[i], most[i] = float64(latencies[i].Percentile(50)), float64(latencies[i].Percentile(95))
	}
	all, latency, spent := &o.got.Total, "no replies yet", dayCosts(&o.got.Total, o.got.Days)
	if of := o.got.Latencies(); of.Replies > 0 {
		latency = latencyWords(of)
	}
	return []chart{
		o.chart("Calls", strconv.FormatInt(all.Calls(), 10), "", calls, nil,
			func(i int) string { return count(int(o.got.Days[i].Calls()), "call", "calls") }),
		o.chart("Cost", dollars(all.Cost()), "", costs, nil, func(i int) string { return spent[i] }),
		o.chart("Reply latency", latency, "", half, most, func(i int) string { return latencyWords(latencies[i]) }),
		o.chart("Failed", failures(all), "bad", failed, nil,
			func(i int) string { return failures(&o.got.Days[i]) + " failed" }),
	}
}

// latencyWords are the middle and the slow end of replies' latencies.
func latencyWords(l *parley.Latencies) string {
	if l.Replies == 0 {
		return "no replies"
	}
	return fmt.Sprintf("p50 %d ms, p95 %d ms", l.Percentile(50), l.Percentile(95))
}

// percentile is the smallest of some numbers that p percent of them don't exceed; 0 of none.
func percentile(list []int64, p int) int64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}
