package store

import (
	"context"

	"github.com/uptrace/bun"
)

// Page is the part of a list that is asked for: Number from 1, Size rows.
type Page struct{ Number, Size int }

// page counts a list and reads one page of it into the query's model. Beyond the end no rows are asked for.
func page(ctx context.Context, s *bun.SelectQuery, p Page, order string) (total int, err error) {
	n, err := s.Count(ctx)
	if err != nil {
		return 0, err
	}
	total = int(n)
	if offset := int64(p.Number-1) * int64(p.Size); offset < n {
		err = s.OrderExpr(order).Limit(int64(p.Size)).Offset(offset).Scan(ctx)
	}
	return total, err
}
