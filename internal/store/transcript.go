package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// The index of transcripts has a row for each call and conversation, with the tokens of its words: of FTS5 on SQLite, a
// tsvector without positions on PostgreSQL. Package search makes the tokens.

// having narrows a list to rows that an index finds by all of some tokens.
func (q Query) having(s *bun.SelectQuery, key, index string, words []string) {
	if len(words) == 0 {
		return
	}
	if q.sqlite {
		s.Where(fmt.Sprintf("%[1]s IN (SELECT rowid FROM %[2]s WHERE %[2]s MATCH ?)", key, index), `"`+strings.Join(words, `" "`)+`"`)
		return
	}
	s.Where(fmt.Sprintf("%s IN (SELECT id FROM %s WHERE tokens @@ ?::tsquery)", key, index), "'"+strings.Join(words, "' & '")+"'")
}

// index puts the tokens of a row into an index.
func (tx *Tx) index(ctx context.Context, index string, id int64, words []string) error {
	key := "id"
	if tx.sqlite {
		key = "rowid"
	}
	if _, err := tx.q.NewRaw(fmt.Sprintf("DELETE FROM %s WHERE %s = ?", index, key), id).Exec(ctx); err != nil {
		return err
	}
	tokens, value := strings.Join(words, " "), "?"
	if !tx.sqlite {
		value = "array_to_tsvector(string_to_array(?, ' '))"
	}
	_, err := tx.q.NewRaw(fmt.Sprintf("INSERT INTO %s (%s, tokens) VALUES (?, %s)", index, key, value), id, tokens).Exec(ctx)
	return err
}

// TranscriptsLeft says whether something is not in the index yet.
func (q Query) TranscriptsLeft(ctx context.Context) (left bool, err error) {
	err = q.q.NewRaw(`SELECT EXISTS (SELECT 1 FROM calls WHERE NOT indexed AND ended_at > 0)
		OR EXISTS (SELECT 1 FROM conversations WHERE indexed < message_count)`).Scan(ctx, &left)
	return left, err
}

// CallsToIndex are calls that are over and not in the index: whose they are, and what was said. The newest are first.
func (tx *Tx) CallsToIndex(ctx context.Context, limit int) (list []parley.Call, err error) {
	err = tx.q.NewRaw("SELECT id, user_id, turns FROM calls WHERE NOT indexed AND ended_at > 0 ORDER BY id DESC LIMIT ?"+tx.skipLocked(),
		limit).Scan(ctx, &list)
	return list, err
}

// IndexCall puts a call's transcript into the index.
func (tx *Tx) IndexCall(ctx context.Context, id int64, words []string) error {
	if err := tx.index(ctx, "call_tokens", id, words); err != nil {
		return err
	}
	_, err := tx.q.NewRaw("UPDATE calls SET indexed = TRUE WHERE id = ?", id).Exec(ctx)
	return err
}

// UnindexedConversation is a conversation in which more was said than the index has.
type UnindexedConversation struct {
	parley.Conversation
	Text string
}

// ConversationsToIndex are some of them, the newest first.
func (tx *Tx) ConversationsToIndex(ctx context.Context, limit int) (list []UnindexedConversation, err error) {
	var rows []parley.Conversation
	err = tx.q.NewRaw("SELECT seq, id, user_id, message_count FROM conversations WHERE indexed < message_count ORDER BY seq DESC LIMIT ?"+
		tx.skipLocked(), limit).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids, at := make([]string, len(rows)), map[string]int{}
	for i, c := range rows {
		ids[i], at[c.ID] = c.ID, i
		list = append(list, UnindexedConversation{Conversation: c})
	}
	var messages []parley.Message
	err = tx.q.NewSelect().Model(&messages).Column("conversation_id", "content").Where("conversation_id IN (?)", bun.List(ids)).
		Order("id").Scan(ctx)
	for _, m := range messages {
		list[at[m.ConversationID]].Text += m.Content + "\n"
	}
	return list, err
}

// IndexConversation puts what was said in a conversation into the index.
func (tx *Tx) IndexConversation(ctx context.Context, c *parley.Conversation, words []string) error {
	if err := tx.index(ctx, "conversation_tokens", c.Seq, words); err != nil {
		return err
	}
	_, err := tx.q.NewRaw("UPDATE conversations SET indexed = ? WHERE seq = ?", c.MessageCount, c.Seq).Exec(ctx)
	return err
}

// Said is what was said in some conversations, by their ids.
func (q Query) Said(ctx context.Context, userID int64, ids []string) (map[string][]parley.Message, error) {
	said := map[string][]parley.Message{}
	if len(ids) == 0 {
		return said, nil
	}
	var list []parley.Message
	err := q.q.NewSelect().Model(&list).ModelTableExpr("messages AS m").ColumnExpr("m.conversation_id, m.content, m.role").
		Join("JOIN conversations AS c ON c.id = m.conversation_id").
		Where("c.user_id = ? AND m.conversation_id IN (?)", userID, bun.List(ids)).OrderExpr("m.id").Scan(ctx)
	for _, m := range list {
		said[m.ConversationID] = append(said[m.ConversationID], m)
	}
	return said, err
}
