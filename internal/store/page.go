package store

import (
	"context"
	"math"
	"strings"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Page is the part of a list that is asked for: Number from 1, Size rows; or, of a list that is newest first and read
// as a whole, the next rows with a lower key than Below, which are not counted.
type Page struct {
	Number, Size int
	Below        int64
}

// First is Page.Below for the first rows.
const First int64 = math.MaxInt64

// only narrows a list to the rows that have a value in a column. The zero value doesn't.
func only[T comparable](s *bun.SelectQuery, column string, value T) {
	var none T
	if value != none {
		s.Where("? = ?", bun.Ident(column), value)
	}
}

// between narrows a list to what was made in a span of time, to being exclusive. 0 is no bound.
func between(s *bun.SelectQuery, from, to parley.Time) { inTime(s, "created_at", from, to) }

// inTime is between by another column, or expression.
func inTime(s *bun.SelectQuery, column string, from, to parley.Time) {
	if from != 0 {
		s.Where("? >= ?", bun.Safe(column), from)
	}
	if to != 0 {
		s.Where("? < ?", bun.Safe(column), to)
	}
}

// page counts a list and reads one page of it into the query's model. Beyond the end no rows are asked for.
func page(ctx context.Context, s *bun.SelectQuery, p Page, order string) (total int, err error) {
	total, more, err := p.of(ctx, s, order, s.Count)
	if err == nil && more {
		err = s.Scan(ctx)
	}
	return total, err
}

// pageOf counts a list of long rows and makes its query that of the keys of one page, newest first, unless there are
// no more: what is skipped is skipped in the index alone, and rows are read for the page.
func pageOf(ctx context.Context, s *bun.SelectQuery, p Page, key string, count counter) (total int, more bool, err error) {
	total, more, err = p.of(ctx, s, key+" DESC", count)
	s.Column(key)
	return total, more, err
}

// counter returns how many rows a list has.
type counter func(context.Context) (int64, error)

// of counts a list and narrows its query to the page; more says whether there is anything on it.
func (p Page) of(ctx context.Context, s *bun.SelectQuery, order string, count counter) (total int, more bool, err error) {
	if p.Below > 0 {
		key, _, _ := strings.Cut(order, " ")
		s.Where("? < ?", bun.Ident(key), p.Below).OrderExpr(order).Limit(int64(p.Size))
		return 0, true, nil
	}
	n, err := count(ctx)
	offset := int64(p.Number-1) * int64(p.Size)
	s.OrderExpr(order).Limit(int64(p.Size)).Offset(offset)
	return int(n), offset < n, err
}
