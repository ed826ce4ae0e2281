package store

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"parley"
)

// OverviewDay is what happened on one day.
type OverviewDay struct {
	Calls, Failed  int
	FailedMessages int          // of customers, that got no reply
	Cost           parley.Money // of everything, credit aside
	Latencies      []int64      // of replies in its newest calls: milliseconds until the first sound
}

// overviewSample is of how many calls a day the replies are read: their turns are much to read, and more of them
// change little.
const overviewSample = 20

// Overview counts the user's days from an instant on, oldest first: the first begins then, each has 24 hours, and
// what comes later belongs to the last.
func (q Query) Overview(ctx context.Context, userID int64, from parley.Time, days int) ([]OverviewDay, error) {
	list := make([]OverviewDay, days)
	at := func(n int64) *OverviewDay { return &list[min(max(n, 0), int64(days-1))] }
	length := (24 * time.Hour).Microseconds()
	// Both the days and the failures are counted in indexes alone: rows of calls are long.
	var calls []struct {
		Day           int64
		Calls, Failed int
	}
	err := q.q.NewRaw(`SELECT (created_at - ?) / ? AS day, count(*) AS calls,
		count(CASE WHEN id IN (SELECT id FROM calls WHERE user_id = ? AND status = ?) THEN 1 END) AS failed
		FROM calls WHERE user_id = ? AND created_at >= ? AND id NOT IN (SELECT id FROM calls WHERE user_id = ? AND test) GROUP BY 1`,
		from, length, userID, parley.CallFailed, userID, from, userID).Scan(ctx, &calls)
	if err != nil {
		return nil, err
	}
	for _, d := range calls {
		at(d.Day).Calls += d.Calls
		at(d.Day).Failed += d.Failed
	}
	var messages []struct {
		Day    int64
		Failed int
	}
	err = q.q.NewRaw(`SELECT (m.created_at - ?) / ? AS day, count(*) AS failed FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id
		WHERE m.failed AND m.created_at >= ? AND c.user_id = ? GROUP BY 1`, from, length, from, userID).Scan(ctx, &messages)
	if err != nil {
		return nil, err
	}
	for _, d := range messages {
		at(d.Day).FailedMessages += d.Failed
	}
	var costs []struct {
		Day  int64
		Cost parley.Money
	}
	err = q.q.NewRaw(`SELECT (created_at - ?) / ? AS day, CAST(-sum(amount) AS BIGINT) AS cost FROM ledger
		WHERE user_id = ? AND created_at >= ? AND kind <> ? GROUP BY 1`, from, length, userID, from, parley.Credit).Scan(ctx, &costs)
	if err != nil {
		return nil, err
	}
	for _, d := range costs {
		at(d.Day).Cost += d.Cost
	}
	var replies []struct{ Day, MS int64 }
	each, ms := "json_each(c.turns) AS t", "json_extract(t.value, '$.latency.first_packet_ms')"
	if !q.sqlite {
		each, ms = "jsonb_array_elements(c.turns) AS t(value)", "CAST(t.value->'latency'->>'first_packet_ms' AS BIGINT)"
	}
	// A day's newest are found by a step of the index each, however many there are.
	var newest []string
	var args []any
	for n := range days {
		begin, end := from.Add(time.Duration(n)*24*time.Hour), from.Add(time.Duration(n+1)*24*time.Hour)
		if n == days-1 {
			end = parley.Time(math.MaxInt64)
		}
		newest = append(newest, `SELECT * FROM (SELECT id, CAST(? AS BIGINT) AS day FROM calls WHERE user_id = ? AND created_at >= ? AND created_at < ? AND NOT test
			ORDER BY created_at DESC, id DESC LIMIT ?) AS d`+strconv.Itoa(n))
		args = append(args, n, userID, begin, end, overviewSample)
	}
	err = q.q.NewRaw("SELECT s.day, "+ms+" AS ms FROM ("+strings.Join(newest, " UNION ALL ")+
		") AS s JOIN calls AS c ON c.id = s.id CROSS JOIN "+each+
		" WHERE "+ms+" > 0", args...).Scan(ctx, &replies)
	for _, r := range replies {
		at(r.Day).Latencies = append(at(r.Day).Latencies, r.MS)
	}
	return list, err
}
