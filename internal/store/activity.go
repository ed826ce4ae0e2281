package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Activity is what analytics are made of: counts of what happened, by quarter of an hour, assistant, number, campaign
// and channel. The counts of six hours of a user's are one row, packed twice: as a whole, and by quarter of an hour for
// the days that begin within them (activity_pack.go). A page of 90 days reads 360 rows, however many calls there were. A
// transaction adds to them when it commits, as its last step, so that two that end calls of one account wait for each other
// as shortly as can be.

// counted is activity that a transaction adds when it commits.
type counted struct {
	userID int64
	key    parley.ActivityKey
	counts parley.Counts
}

// Count adds to a user's activity.
func (tx *Tx) Count(userID int64, k parley.ActivityKey, counts parley.Counts) {
	if len(counts) > 0 {
		tx.counted = append(tx.counted, counted{userID, k, counts})
	}
}

// counting is a write that adds, as its last step, the activity that it counted.
func counting(fn func(context.Context, *Tx) error) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error {
		tx.counted = nil
		if err := fn(ctx, tx); err != nil || len(tx.counted) == 0 {
			return err
		}
		return tx.addActivity(ctx)
	}
}

// addActivity adds to the rows in the order of their keys: two transactions that add to the same ones never wait for
// each other in a circle.
func (tx *Tx) addActivity(ctx context.Context) error {
	type place struct{ userID, span int64 }
	by := map[place][]counted{}
	for _, c := range tx.counted {
		p := place{c.userID, c.key.Quarter / span}
		by[p] = append(by[p], c)
	}
	places := slices.SortedFunc(maps.Keys(by), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.userID, b.userID), cmp.Compare(a.span, b.span))
	})
	for _, p := range places {
		if err := tx.addSpan(ctx, p.userID, p.span, by[p]); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) addSpan(ctx context.Context, userID, at int64, list []counted) error {
	read := tx.locked(tx.q.NewSelect().TableExpr("activity").Column("pack", "quarters").Where("user_id = ? AND span = ?", userID, at))
	var rows []struct{ Pack, Quarters []byte }
	if err := read.Scan(ctx, &rows); err != nil {
		return err
	}
	if len(rows) == 0 {
		if _, err := tx.q.NewRaw("INSERT INTO activity (user_id, span, pack, quarters) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			userID, at, []byte{}, []byte{}).Exec(ctx); err != nil {
			return err
		}
		if err := read.Scan(ctx, &rows); err != nil {
			return err
		}
	}
	whole, err := unpack(rows[0].Pack)
	if err != nil {
		return err
	}
	quarters, err := unpack(rows[0].Quarters)
	if err != nil {
		return err
	}
	for _, c := range list {
		quarters.add(c.key, c.counts)
		c.key.Quarter = at * span
		whole.add(c.key, c.counts)
	}
	_, err = tx.q.NewRaw("UPDATE activity SET pack = ?, quarters = ? WHERE user_id = ? AND span = ?", whole.pack(),
		quarters.pack(), userID, at).Exec(ctx)
	return err
}

// countEnd counts a call that is over.
func (tx *Tx) countEnd(c *parley.Call) {
	c.Judge()
	if c.Counted = 1; c.Test {
		c.Counted = 2
		return
	}
	tx.Count(c.UserID, c.Key(), c.Counts())
}

// countReport counts what a call's report says, where its end was counted: else CountLeft does both.
func (tx *Tx) countReport(c *parley.Call) {
	c.Judge()
	if c.Counted == 1 {
		c.Counted = 2
		tx.Count(c.UserID, c.Key(), c.ReportCounts())
	}
}

// CountMessage counts a customer's message in a conversation, at the time of its answer.
func (tx *Tx) CountMessage(c *parley.Conversation, cost parley.Money, failed bool) {
	tx.countChat(c, parley.Now(), messageCounts(cost, failed))
}

func messageCounts(cost parley.Money, failed bool) parley.Counts {
	n := parley.Counts{"messages": 1, "cost": int64(cost)}
	if failed {
		n["failed_messages"] = 1
	}
	return n
}

func (tx *Tx) countChat(c *parley.Conversation, at parley.Time, counts parley.Counts) {
	if c.Type != parley.TestConversation {
		tx.Count(c.UserID, parley.ActivityKey{Quarter: parley.QuarterOf(at), AssistantID: c.AssistantID,
			Channel: string(c.Type)}, counts)
	}
}

// costChannels are the kinds of ledger entries that belong neither to a call nor to a conversation.
var costChannels = map[parley.LedgerKind]string{parley.RentCharge: parley.ChannelNumbers,
	parley.SMSCharge: parley.ChannelTexts, parley.WhatsAppCharge: parley.ChannelTemplate, parley.Refund: parley.ChannelTexts}

func (tx *Tx) countEntry(e *parley.LedgerEntry) {
	if channel := costChannels[e.Kind]; channel != "" {
		tx.Count(e.UserID, parley.ActivityKey{Quarter: parley.QuarterOf(parley.Time(e.CreatedAt)), Channel: channel},
			parley.Counts{"cost": -int64(e.Amount)})
	}
}

// ActivityFilter narrows analytics; zero values don't.
type ActivityFilter struct {
	Days                              []parley.Time // when each day begins, in order
	To                                parley.Time   // when the last one ends
	AssistantID, NumberID, CampaignID int64
	Channel                           string
}

func (f *ActivityFilter) takes(k *parley.ActivityKey) bool {
	return (f.AssistantID == 0 || f.AssistantID == k.AssistantID) && (f.NumberID == 0 || f.NumberID == k.NumberID) &&
		(f.CampaignID == 0 || f.CampaignID == k.CampaignID) && (f.Channel == "" || f.Channel == k.Channel)
}

// Analytics adds up a user's activity of some days.
func (q Query) Analytics(ctx context.Context, userID int64, f ActivityFilter) (*parley.Analytics, error) {
	s := newSummary(&f)
	from, to := s.begins[0], parley.QuarterOf(f.To)
	split := []int64{to / span} // six hours within which a day begins, or the last one ends
	for _, quarter := range s.begins {
		if quarter%span != 0 {
			split = append(split, quarter/span)
		}
	}
	rows, err := q.q.QueryContext(ctx, `SELECT CASE WHEN span IN (?) THEN quarters ELSE pack END AS pack FROM activity
		WHERE user_id = ? AND span >= ? AND span <= ? ORDER BY span`, bun.List(split), userID, from/span, to/span)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var pack sql.RawBytes // as the driver has it: a page of 90 days reads megabytes
		if err := rows.Scan(&pack); err != nil {
			return nil, err
		}
		if err := s.add(pack, from, to); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return s.analytics(), nil
}

// summary is analytics under way.
type summary struct {
	f      *ActivityFilter
	out    *parley.Analytics
	places map[string]int // of names
	names  []string
	totals [][]int64 // of each day, by the places of names
	begins []int64   // quarters with which the days begin
	day    int       // that of the last cell
}

func newSummary(f *ActivityFilter) *summary {
	s := &summary{f: f, places: map[string]int{}, totals: make([][]int64, len(f.Days)), out: &parley.Analytics{
		Days: make([]parley.Sums, len(f.Days)), DayCounts: make([]parley.Counts, len(f.Days)),
		Assistants: map[int64]*parley.Sums{}, Channels: map[string]*parley.Sums{}, Counts: parley.Counts{}}}
	for _, d := range f.Days {
		s.begins = append(s.begins, parley.QuarterOf(d))
	}
	return s
}

// text is a name, without new memory for one that is known.
func (s *summary) text(t []byte) string {
	if at, ok := s.places[string(t)]; ok {
		return s.names[at]
	}
	return string(t)
}

// known is a name's place among all, and the measure that it is.
type known struct{ place, measure int }

func (s *summary) known(names []string) []known {
	list := make([]known, len(names))
	for i, name := range names {
		at, ok := s.places[name]
		if !ok {
			at = len(s.names)
			s.places[name] = at
			s.names = append(s.names, name)
			for day := range s.totals {
				s.totals[day] = append(s.totals[day], 0)
			}
		}
		list[i] = known{at, parley.Sum(name)}
	}
	return list
}

// sumsOf are the sums under a key.
func sumsOf[K comparable](m map[K]*parley.Sums, k K) *parley.Sums {
	s := m[k]
	if s == nil {
		s = new(parley.Sums)
		m[k] = s
	}
	return s
}

// add adds a row, as it is read: there may be hundreds of thousands of counts.
func (s *summary) add(b []byte, from, to int64) error {
	r, names, cells, err := openPack(b, s.text)
	if err != nil {
		return err
	}
	known, k, n := s.known(names), parley.ActivityKey{}, int64(0)
	for ; cells > 0 && r.err == nil; cells-- {
		n = r.key(&k)
		if k.Quarter < from || k.Quarter >= to || !s.f.takes(&k) {
			for ; n > 0 && r.err == nil; n-- {
				r.uvarint()
				r.varint()
			}
			continue
		}
		s.turnTo(k.Quarter)
		totals, ofAssistant, ofChannel := s.totals[s.day], sumsOf(s.out.Assistants, k.AssistantID), sumsOf(s.out.Channels, k.Channel)
		for ; n > 0 && r.err == nil; n-- {
			name, v := r.uvarint(), r.varint()
			if name < 0 || name >= len(known) {
				return errPack
			}
			totals[known[name].place] += v
			if m := known[name].measure; m >= 0 {
				ofAssistant[m] += v
				ofChannel[m] += v
			}
		}
	}
	return r.err
}

// turnTo finds the day of a quarter.
func (s *summary) turnTo(quarter int64) {
	if s.begins[s.day] > quarter { // the cells come in order
		s.day = 0
	}
	for s.day+1 < len(s.begins) && s.begins[s.day+1] <= quarter {
		s.day++
	}
}

func (s *summary) analytics() *parley.Analytics {
	for day, totals := range s.totals {
		s.out.DayCounts[day] = parley.Counts{}
		for i, n := range totals {
			s.out.Counts[s.names[i]] += n
			if m := parley.Sum(s.names[i]); m >= 0 {
				s.out.Days[day][m] += n
				s.out.Total[m] += n
			}
			if n != 0 {
				s.out.DayCounts[day][s.names[i]] = n
			}
		}
	}
	return s.out
}

// countStep is how many rows a step of CountLeft counts.
const countStep = 200

// CountLeft counts, in steps, what no transaction has counted: what was there before there were analytics, and calls
// that a node of a former version ended.
func (db *DB) CountLeft(ctx context.Context) error {
	for _, step := range []func(*Tx, context.Context) (bool, error){(*Tx).countCalls, (*Tx).countMessages,
		(*Tx).countConversations, (*Tx).countLedger} {
		if err := db.InSteps(ctx, func(ctx context.Context, tx *Tx) (bool, error) { return step(tx, ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// CallsLeft says whether there is a call that CountLeft would count.
func (q Query) CallsLeft(ctx context.Context) (left bool, err error) {
	err = q.q.NewRaw("SELECT EXISTS (SELECT 1 FROM calls WHERE counted < 2 AND ended_at > 0 AND (counted = 0 "+
		"OR report_due = 0) AND updated_at < ?)",
		settled()).Scan(ctx, &left)
	return left, err
}

// settled is the time before which a call that is over was counted, if anybody was to count it.
func settled() parley.Time { return parley.Now().Add(-time.Second) }

func (tx *Tx) countCalls(ctx context.Context) (more bool, err error) {
	var list []parley.Call
	err = tx.q.NewRaw(`SELECT * FROM calls WHERE counted < 2 AND ended_at > 0 AND (counted = 0 OR report_due = 0) AND updated_at < ? LIMIT ?`+
		tx.skipLocked(), settled(), countStep).Scan(ctx, &list)
	// rows of list_changes are locked in the order of their accounts, as by a deletion of calls
	slices.SortFunc(list, func(a, b parley.Call) int { return cmp.Compare(a.UserID, b.UserID) })
	for i := range list {
		c := &list[i]
		if c.Counted == 0 {
			tx.countEnd(c)
		}
		if c.ReportDue == 0 {
			tx.countReport(c)
		}
		if _, err := tx.q.NewUpdate().Model(c).Column("counted", "answerer", "slowest_ms", "sentiment",
			"outcome").WherePK().Exec(ctx); err != nil {
			return false, err
		}
	}
	return len(list) == countStep, err
}

// uncounted takes the next rows of a table from those that were there before there were analytics: below is the
// highest id that is left.
func (tx *Tx) uncounted(ctx context.Context, table string) (below int64, err error) {
	s := tx.locked(tx.q.NewSelect().TableExpr("activity_left").Column("below").Where("name = ?", table))
	return below, s.Scan(ctx, &below)
}

// left says that the rows of a table with lower ids are left.
func (tx *Tx) left(ctx context.Context, table string, below int64) error {
	_, err := tx.q.NewRaw("UPDATE activity_left SET below = ? WHERE name = ?", below, table).Exec(ctx)
	return err
}

// countOld counts a step of a table's old rows: query reads them, newest first, up to an id; count counts one and
// gives its id.
func countOld[T any](ctx context.Context, tx *Tx, table, query string, count func(T) int64) (more bool, err error) {
	below, err := tx.uncounted(ctx, table)
	if err != nil || below == 0 {
		return false, err
	}
	var rows []T
	if err := tx.q.NewRaw(query, below, countStep).Scan(ctx, &rows); err != nil {
		return false, err
	}
	next := int64(0)
	for _, row := range rows {
		next = count(row) - 1
	}
	if len(rows) < countStep {
		next = 0
	}
	return next > 0, tx.left(ctx, table, next)
}

func (tx *Tx) countMessages(ctx context.Context) (bool, error) {
	type row struct {
		ID, UserID, AssistantID int64
		Type                    parley.ConversationType
		Cost                    parley.Money
		Failed                  bool
		CreatedAt               parley.Time
	}
	return countOld(ctx, tx, "messages", `SELECT m.id, m.cost, m.failed, m.created_at, c.user_id, c.assistant_id, c.type
		FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id WHERE m.id <= ? AND m.role = 'user' AND NOT m.pending
		ORDER BY m.id DESC LIMIT ?`, func(r row) int64 {
		tx.countChat(&parley.Conversation{UserID: r.UserID, AssistantID: r.AssistantID, Type: r.Type}, r.CreatedAt,
			messageCounts(r.Cost, r.Failed))
		return r.ID
	})
}

func (tx *Tx) countConversations(ctx context.Context) (bool, error) {
	return countOld(ctx, tx, "conversations",
		`SELECT seq, user_id, assistant_id, type, created_at FROM conversations WHERE seq <= ? ORDER BY seq DESC LIMIT ?`,
		func(c parley.Conversation) int64 {
			tx.countChat(&c, parley.Time(c.CreatedAt), parley.Counts{"conversations": 1})
			return c.Seq
		})
}

func (tx *Tx) countLedger(ctx context.Context) (bool, error) {
	return countOld(ctx, tx, "ledger", `SELECT * FROM ledger WHERE id <= ? ORDER BY id DESC LIMIT ?`, func(e parley.LedgerEntry) int64 {
		tx.countEntry(&e)
		return e.ID
	})
}

// CountAgain forgets all activity and has CountLeft count it from what is stored: what was deleted meanwhile no longer
// counts.
func (tx *Tx) CountAgain(ctx context.Context) error {
	for _, statement := range []string{"DELETE FROM activity", "UPDATE calls SET counted = 0 WHERE ended_at > 0 AND counted > 0",
		"UPDATE activity_left SET below = coalesce((SELECT max(id) FROM messages), 0) WHERE name = 'messages'",
		"UPDATE activity_left SET below = coalesce((SELECT max(seq) FROM conversations), 0) WHERE name = 'conversations'",
		"UPDATE activity_left SET below = coalesce((SELECT max(id) FROM ledger), 0) WHERE name = 'ledger'"} {
		if _, err := tx.q.NewRaw(statement).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
