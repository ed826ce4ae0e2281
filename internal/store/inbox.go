package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley"
)

// LastMessages are the newest messages of conversations, by the conversations' ids. One that has none is not there.
func (q Query) LastMessages(ctx context.Context, conversationIDs []string) (map[string]parley.Message, error) {
	if len(conversationIDs) == 0 {
		return nil, nil
	}
	var list []parley.Message
	newest := q.q.NewSelect().TableExpr("messages").ColumnExpr("max(id)").Where("conversation_id IN (?)", bun.List(conversationIDs)).GroupExpr("conversation_id")
	if err := q.q.NewSelect().Model(&list).Where("id IN (?)", newest).Scan(ctx); err != nil {
		return nil, err
	}
	last := make(map[string]parley.Message, len(list))
	for _, m := range list {
		last[m.ConversationID] = m
	}
	return last, nil
}
