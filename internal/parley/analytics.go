package parley

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quarter is how finely activity is counted: the days of every time zone begin at one.
const Quarter = 15 * time.Minute

// ActivityKey is what activity is counted by.
type ActivityKey struct {
	Quarter                           int64 // of an hour, since 1970
	AssistantID, NumberID, CampaignID int64 // 0: none
	Channel                           string
}

// Channels of activity: the types of calls and conversations, and what costs money without either.
const (
	ChannelTexts    = "sms"
	ChannelTemplate = "whatsapp-messages"
	ChannelNumbers  = "numbers"
)

// ActivityChannels are all channels that lists and analytics may be asked for, calls first.
var ActivityChannels = []string{string(CallInbound), string(CallOutbound), string(CallWeb), string(WidgetConversation),
	string(WhatsAppConversation), string(APIConversation), ChannelTexts, ChannelTemplate, ChannelNumbers}

// QuarterOf is the quarter of an hour in which a time is.
func QuarterOf(t Time) int64 { return int64(t) / Quarter.Microseconds() }

// Counts are measures of activity by name. Measures have the names in sums; distributions are a word, a colon and the
// value: reason:customer_hangup.
type Counts map[string]int64

// The distributions.
const (
	CountStatus    = "status:"
	CountReason    = "reason:"
	CountAnswerer  = "answerer:"
	CountSentiment = "sentiment:"
	CountOutcome   = "outcome:"
	countLatency   = "latency:"
)

// Key is what a call is counted by.
func (c *Call) Key() ActivityKey {
	k := ActivityKey{Quarter: QuarterOf(Time(c.CreatedAt)), AssistantID: c.AssistantID, Channel: string(c.Type)}
	if c.NumberID != nil {
		k.NumberID = *c.NumberID
	}
	if c.CampaignID != nil {
		k.CampaignID = *c.CampaignID
	}
	return k
}

// Counts are what a call that is over counts for, without what its report will say.
func (c *Call) Counts() Counts {
	n := Counts{"calls": 1, "seconds": c.Duration, "cost": int64(c.TotalCost()), CountStatus + string(c.Status): 1,
		CountReason + string(c.EndedReason): 1, CountAnswerer + c.Answerer: 1}
	if c.Answered() {
		n["answered"] = 1
	}
	switch c.Status {
	case CallCompleted:
		n["completed"] = 1
	case CallFailed:
		n["failed"] = 1
	}
	for _, ms := range c.latencies() {
		n[countLatency+strconv.Itoa(latencyStep(ms))]++
	}
	return n
}

// ReportCounts are what a call's report counts for.
func (c *Call) ReportCounts() Counts {
	n := Counts{}
	if c.Sentiment != "" {
		n[CountSentiment+c.Sentiment] = 1
	}
	if c.Outcome != "" {
		n[CountOutcome+c.Outcome] = 1
	}
	return n
}

// Judge fills in what lists are filtered by: who answered, how slow the slowest reply was, what the report says.
func (c *Call) Judge() {
	c.Answerer, c.SlowestMS = string(c.AnsweredBy), 0
	switch {
	case !c.Answered():
		c.Answerer = string(TakenByNobody)
	case c.TakenBy != TakenByAssistant:
		c.Answerer = string(c.TakenBy)
	}
	for _, ms := range c.latencies() {
		c.SlowestMS = max(c.SlowestMS, ms)
	}
	c.Sentiment, _ = c.Evaluation["sentiment"].(string)
	c.Outcome, _ = c.Evaluation["outcome"].(string)
}

// latencies are the times that customers waited for the call's replies, in milliseconds.
func (c *Call) latencies() (list []int64) {
	for _, t := range c.Turns {
		if t.Latency != nil && t.Latency.FirstPacketMS > 0 {
			list = append(list, t.Latency.FirstPacketMS)
		}
	}
	return list
}

// Latencies are counted in steps of 4 %, so that percentiles of any days are exact to 2 %.
const latencyGrowth = 1.04

func latencyStep(ms int64) int {
	return int(math.Round(math.Log(float64(ms)) / math.Log(latencyGrowth)))
}

func latencyOf(step int) int64 { return int64(math.Round(math.Pow(latencyGrowth, float64(step)))) }

// sums are the measures that are added up per day, assistant and channel.
var sums = []string{"calls", "answered", "completed", "failed", "seconds", "cost", "conversations", "messages",
	"failed_messages"}

// Sum is the place of a measure in Sums, -1 for what is counted as a whole alone.
func Sum(name string) int { return slices.Index(sums, name) }

// Sums are measures added up.
type Sums [9]int64

// The measures.
func (s *Sums) Calls() int64          { return s[0] }
func (s *Sums) Answered() int64       { return s[1] }
func (s *Sums) Completed() int64      { return s[2] }
func (s *Sums) Failed() int64         { return s[3] }
func (s *Sums) Seconds() int64        { return s[4] }
func (s *Sums) Cost() Money           { return Money(s[5]) }
func (s *Sums) Conversations() int64  { return s[6] }
func (s *Sums) Messages() int64       { return s[7] }
func (s *Sums) FailedMessages() int64 { return s[8] }

// Minutes are the seconds of calls in minutes, to a tenth.
func (s *Sums) Minutes() float64 { return math.Round(float64(s.Seconds())/6) / 10 }

// SuccessRate is the share of calls that were completed; nil without calls.
func (s *Sums) SuccessRate() *float64 {
	if s.Calls() == 0 {
		return nil
	}
	rate := math.Round(1000*float64(s.Completed())/float64(s.Calls())) / 1000
	return &rate
}

// Analytics is what happened in a span of days.
type Analytics struct {
	Days       []Sums   // as they were asked for
	DayCounts  []Counts // everything, of each of them
	Assistants map[int64]*Sums
	Channels   map[string]*Sums
	Total      Sums
	Counts     Counts // everything
}

// Of are the counts of a distribution by value.
func (a *Analytics) Of(distribution string) map[string]int64 { return a.Counts.of(distribution) }

func (c Counts) of(distribution string) map[string]int64 {
	m := map[string]int64{}
	for name, n := range c {
		if value, ok := strings.CutPrefix(name, distribution); ok && n != 0 {
			m[value] = n
		}
	}
	return m
}

// Latencies are the steps of the replies' latencies, in order, and how many replies there were.
func (a *Analytics) Latencies() *Latencies { return a.Counts.latencies() }

// DayLatencies are the latencies of one of the days.
func (a *Analytics) DayLatencies(day int) *Latencies { return a.DayCounts[day].latencies() }

func (c Counts) latencies() *Latencies {
	l := &Latencies{}
	for value, n := range c.of(countLatency) {
		if step, err := strconv.Atoi(value); err == nil {
			l.steps = append(l.steps, latencyCount{step, n})
			l.Replies += n
		}
	}
	slices.SortFunc(l.steps, func(a, b latencyCount) int { return a.step - b.step })
	return l
}

// Latencies are how long replies took.
type Latencies struct {
	Replies int64
	steps   []latencyCount
}

type latencyCount struct {
	step int
	n    int64
}

// Percentile is the time within which p percent of the replies were heard, in milliseconds; 0 without any.
func (l *Latencies) Percentile(p int64) int64 {
	want := (l.Replies*p + 99) / 100
	for _, s := range l.steps {
		if want -= s.n; want <= 0 {
			return latencyOf(s.step)
		}
	}
	return 0
}

// ByCost are the ids of the assistants, those that cost most first; 0 is what belongs to none.
func (a *Analytics) ByCost() []int64 {
	return slices.SortedFunc(maps.Keys(a.Assistants), func(x, y int64) int {
		return cmp.Or(cmp.Compare(a.Assistants[y].Cost(), a.Assistants[x].Cost()),
			cmp.Compare(a.Assistants[y].Calls(), a.Assistants[x].Calls()), cmp.Compare(x, y))
	})
}
