package parley

import "fmt"

// LimitSpan is over which time a limit counts.
type LimitSpan string

// The spans.
const (
	Stored    LimitSpan = "stored"           // what there is
	Together  LimitSpan = "at the same time" // what goes on
	PerSecond LimitSpan = "per second"
	PerMinute LimitSpan = "per minute"
	PerHour   LimitSpan = "per hour"
	PerDay    LimitSpan = "per day" // UTC
)

// Limit is one row of the table of limits: what may be made, held or asked for, and how much of it.
type Limit struct {
	Name string // as the prices file and the API know it
	What string // in words, in the plural
	Per  string // what it is counted for: account, API key, address, …
	Span LimitSpan
	Most int64 // 0: the plan or the setting says it
	// names the setting that holds it; "" where the plan or nothing does
	Setting string
}

// The limits that are enforced by name elsewhere.
const (
	LimitRequests       = "requests"
	LimitToolTests      = "tool_tests"
	LimitToolTestRate   = "tool_tests_rate"
	LimitResends        = "webhook_resends"
	LimitResendRate     = "webhook_resends_rate"
	LimitTestCalls      = "test_calls"
	LimitTestMinutes    = "test_minutes"
	LimitTrunkChecks    = "trunk_checks"
	LimitTrunkCheckRate = "trunk_checks_rate"
	LimitSearchRate     = "searches_rate"
	LimitEndpointRate   = "endpoint_tests_rate"
	LimitNumberRate     = "number_searches_rate"
	LimitTogether       = "requests_together"
	LimitStreams        = "streams"
	LimitHumanReplies   = "human_replies"
	LimitUnanswered     = "unanswered_messages"
)

// Limits is the table of limits: docs/limits.md, GET /user/limits and the console show it. internal/store enforces what
// is counted in rows and by the day or minute, internal/limit what goes on in one process.
var Limits = []Limit{
	{Name: "assistants", What: "assistants", Span: Stored},
	{Name: "folders", What: "folders of assistants", Span: Stored},
	{Name: "labels", What: "labels of assistants", Span: Stored},
	{Name: "tools", What: "tools", Span: Stored},
	{Name: "tests", What: "tests", Span: Stored},
	{Name: "knowledgebases", What: "knowledgebases", Span: Stored},
	{Name: "documents", What: "documents", Span: Stored},
	{Name: "document_mb", What: "MB of documents", Span: Stored},
	{Name: "stored_mb", What: "MB of assistants, their versions, tests and tools", Span: Stored},
	{Name: "numbers", What: "phone numbers", Span: Stored},
	{Name: "trunks", What: "SIP trunks", Span: Stored},
	{Name: "campaigns", What: "campaigns", Span: Stored},
	{Name: "leads", What: "leads", Span: Stored},
	{Name: "blacklist", What: "numbers on the blacklist", Span: Stored},
	{Name: "api_keys", What: "API keys", Span: Stored},
	{Name: "members", What: "members and open invitations", Span: Stored, Most: MaxMembers},
	{Name: "alerts", What: "alerts", Span: Stored, Most: MaxAlerts},
	{Name: "endpoints", What: "endpoints of their own", Span: Stored, Most: MaxEndpoints},
	{Name: "canned_answers", What: "canned answers", Span: Stored, Most: MaxCannedAnswers},
	{Name: "saved_filters", What: "saved filters", Span: Stored, Most: MaxFilters},
	{Name: "sessions", What: "sessions of each kind; another one ends the oldest", Span: Stored, Most: MaxSessions},
	{Name: "member_sessions", What: "sessions of each kind; another one ends the oldest", Per: "member", Span: Stored,
		Most: MaxMemberSessions},
	{Name: "notes", What: "notes", Per: "conversation", Span: Stored, Most: MaxNotes},
	{Name: "messages", What: "messages", Per: "conversation", Span: Stored, Most: MaxMessages},

	{Name: "parallel_calls", What: "calls, tests among them", Span: Together},
	{Name: LimitTogether, What: "requests being answered", Span: Together},
	{Name: LimitStreams, What: "live streams", Span: Together},
	{Name: LimitTrunkChecks, What: "trunk checks", Span: Together, Most: 1},
	{Name: "connections", What: "connections", Per: "address", Span: Together, Setting: "PARLEY_CONNECTIONS_PER_ADDRESS"},
	{Name: "address_streams", What: "live streams", Per: "address", Span: Together, Setting: "PARLEY_STREAMS_PER_ADDRESS"},

	{Name: "conversations", What: "new conversations", Span: PerDay},
	{Name: "document_readings", What: "documents to be read", Span: PerDay},
	{Name: "test_conversations", What: "free test conversations", Span: PerDay},
	{Name: "test_messages", What: "free messages in test conversations", Span: PerDay},
	{Name: LimitTestCalls, What: "test calls", Span: PerDay},
	{Name: LimitTestMinutes, What: "minutes of test calls", Span: PerDay},
	{Name: "webhook_tests", What: "test webhooks and alerts", Span: PerDay},
	{Name: LimitResends, What: "webhooks sent again by hand", Span: PerDay},
	{Name: LimitToolTests, What: "tests of tools", Span: PerDay},
	{Name: LimitHumanReplies, What: "replies of people in conversations", Span: PerDay, Most: 100_000},
	{Name: LimitUnanswered, What: "messages of customers to which no assistant replies", Span: PerDay, Most: 100_000},
	{Name: "changes", What: "changes in the audit log", Span: PerDay, Most: 100_000},

	{Name: LimitResendRate, What: "webhooks sent again by hand", Span: PerMinute, Most: 60},
	{Name: LimitToolTestRate, What: "tests of tools", Span: PerMinute, Most: 30},
	{Name: LimitTrunkCheckRate, What: "trunk checks", Span: PerMinute, Most: 10},
	{Name: LimitEndpointRate, What: "tests of endpoints", Span: PerMinute, Most: 10},
	{Name: LimitSearchRate, What: "searches of knowledgebases by hand", Span: PerMinute, Most: 120},
	{Name: LimitNumberRate, What: "searches for numbers to rent", Span: PerMinute, Most: 30},
	{Name: LimitRequests, What: "requests: twice what a key may make", Span: PerSecond, Setting: "PARLEY_RATE_API"},
	{Name: "key_requests", What: "requests", Per: "API key or session", Span: PerSecond, Setting: "PARLEY_RATE_API"},
	{Name: "replies", What: "replies asked for", Per: "API key", Span: PerMinute, Setting: "PARLEY_RATE_REPLY"},
	{Name: "whatsapp_sends", What: "WhatsApp messages sent", Per: "API key", Span: PerSecond, Setting: "PARLEY_RATE_WHATSAPP"},
	{Name: "sign_ins", What: "tries to sign in", Per: "address and email", Span: PerMinute, Setting: "PARLEY_RATE_LOGIN"},
	{Name: "sign_ups", What: "accounts made", Per: "address", Span: PerHour, Most: 10},
	{Name: "invitations", What: "invitations sent", Span: PerHour, Most: 20},
	{Name: "caller_id_codes", What: "codes sent to verify a caller id", Span: PerHour, Most: 10},
	{Name: "public_conversations", What: "conversations and calls begun by visitors", Per: "address", Span: PerMinute,
		Setting: "PARLEY_RATE_CREATE"},
	{Name: "public_messages", What: "messages of a visitor", Per: "conversation", Span: PerMinute, Setting: "PARLEY_RATE_MESSAGE"},
}

// LimitUse is a limit of an account, and how much of it is used.
type LimitUse struct {
	Limit
	Most int64  // 0 where a setting of the server says it
	Used *int64 // nil: it isn't counted in rows
}

// Full says whether nothing of a limit is left.
func (l LimitUse) Full() bool { return l.Used != nil && *l.Used >= l.Most }

// LimitNamed is a row of the table of limits. An unknown name is a mistake in the program.
func LimitNamed(name string) Limit {
	for _, l := range Limits {
		if l.Name == name {
			return l
		}
	}
	panic("parley: there is no limit " + name)
}

// Holder is what a limit is counted for.
func (l Limit) Holder() string {
	if l.Per == "" {
		return "account"
	}
	return l.Per
}

// OfPlan says whether plans set a limit.
func (l Limit) OfPlan() bool { return l.Most == 0 && l.Setting == "" }

// Counted says whether something is counted by the day or minute, in rows.
func (l Limit) Counted() bool {
	return l.Span == PerDay || l.Span == PerMinute && l.Most > 0
}

// Of is how much a plan allows.
func (l Limit) Of(p Plan) int64 {
	if l.OfPlan() {
		return int64(*p.Limits()[l.Name])
	}
	return l.Most
}

// Refuse is the error of somebody who asks for more than most, in words that say how to go on. seconds is when they may
// try again, for limits that are over so soon.
func (l Limit) Refuse(most int64, seconds int) error {
	allows := fmt.Sprintf("An %s can have %d %s", l.Holder(), most, l.What)
	if l.Holder() == "conversation" {
		allows = "A" + allows[2:]
	}
	if l.OfPlan() {
		allows = fmt.Sprintf("Your plan allows %d %s", most, l.What)
	}
	const larger = ", or ask the operator of this server for a larger plan."
	switch {
	case l.Span == PerDay:
		return Errorf(Forbidden, "%s a day (UTC). Go on tomorrow"+larger, allows)
	case l.Span == Stored && l.OfPlan():
		return Errorf(Forbidden, "%s. Delete what you no longer need"+larger, allows)
	case l.Span == Stored:
		return Errorf(Forbidden, "%s. Delete what you no longer need.", allows)
	case l.Span == Together && l.OfPlan():
		return &LimitError{seconds, allows + " at the same time. Wait until one has ended" + larger}
	case l.Span == Together:
		return &LimitError{seconds, allows + " at the same time. Wait until one has ended."}
	}
	return &LimitError{seconds, fmt.Sprintf("%s %s. Go on in %d s.", allows, l.Span, seconds)}
}

// LimitError is the refusal of somebody who asks too often.
type LimitError struct {
	RetryAfter int    // seconds
	Detail     string // which limit, its value and how to go on; "" where nobody says
}

func (e *LimitError) Error() string { return "Too Many Attempts." }

// Wait is after how many seconds one may try again.
func (e *LimitError) Wait() int { return e.RetryAfter }

// Unwrap gives it its kind.
func (e *LimitError) Unwrap() error {
	return &Error{Kind: TooMany, Message: e.Error(), Detail: e.Detail}
}
