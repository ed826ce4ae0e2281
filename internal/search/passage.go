package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"

	"parley/internal/parley"
	"parley/internal/store"
)

// Chunk is a stored passage. It is found when its run is its document's live one.
type Chunk struct {
	bun.BaseModel `bun:"chunks,alias:c"`

	ID              int64 `bun:",pk,autoincrement"`
	KnowledgebaseID int64
	DocumentID      int64
	DocumentName    string `bun:",scanonly"`
	Run             int64
	Position        int
	Title           string // what the document was called when it was read
	Heading         string
	Page            int
	URL             string `bun:"url"`
	Text            string

	// what it is found by; each begins with a sign of its own kind and is of letters, digits and _+-
	Tokens []string `bun:"-"`
	Code   []byte   `bun:"-"` // of Vector: a bit per dimension
	Vector []byte   `bun:"-"` // nil where there is no embedder
}

// Word is an entry of a knowledgebase's vocabulary.
type Word struct {
	bun.BaseModel `bun:"words,alias:w"`

	ID              int64 `bun:",pk,autoincrement"`
	KnowledgebaseID int64
	Word            string
	Chunks          int // how many passages have it

	Tokens []string `bun:"-"` // what it is found by when it is misspelt
}

// The two keyword indexes.
const (
	chunkTokens = "chunk_tokens"
	wordTokens  = "word_tokens"
)

// Add stores passages of a document's present run, and counts their words.
func Add(ctx context.Context, tx *store.Tx, d *parley.Document, list []Chunk, words []Word) error {
	if len(list) == 0 {
		return nil
	}
	if err := tx.LockKnowledgebase(ctx, d.KnowledgebaseID); err != nil {
		return err
	}
	for i := range list {
		list[i].ID, list[i].KnowledgebaseID, list[i].DocumentID, list[i].Run = 0, d.KnowledgebaseID, d.ID, d.Run
	}
	if _, err := tx.SQL().NewInsert().Model(&list).Exec(ctx); err != nil {
		return err
	}
	if err := indexChunks(ctx, tx, d.KnowledgebaseID, list); err != nil {
		return err
	}
	if err := addVectors(ctx, tx, list); err != nil {
		return err
	}
	return countWords(ctx, tx, d.KnowledgebaseID, words)
}

// indexChunks puts a batch of passages into the keyword index.
func indexChunks(ctx context.Context, tx *store.Tx, knowledgebaseID int64, list []Chunk) error {
	if tx.SQLite() {
		index := rowsOf(tx, chunkTokens, knowledgebaseID)
		for i := range list {
			index.add(list[i].ID, list[i].Tokens)
		}
		return index.insert(ctx)
	}
	first, pre := list[0].ID, prefix(knowledgebaseID)
	have := map[string][]byte{}
	for i := range list {
		for _, t := range list[i].Tokens {
			have[t] = binary.BigEndian.AppendUint32(have[t], uint32(list[i].ID-first))
		}
	}
	var tokens, ids strings.Builder
	for i, t := range slices.Sorted(maps.Keys(have)) { // sorted: neighbours go to the same page
		if i > 0 {
			tokens.WriteByte(' ')
			ids.WriteByte(' ')
		}
		tokens.WriteString(pre + t)
		ids.WriteString(hex.EncodeToString(have[t]))
	}
	_, err := tx.SQL().NewRaw(`INSERT INTO chunk_tokens (token, first, ids)
		SELECT t.token, ?, decode(t.ids, 'hex') FROM unnest(string_to_array(?, ' '), string_to_array(?, ' ')) AS t (token, ids)`,
		first, tokens.String(), ids.String()).Exec(ctx)
	return err
}

func addVectors(ctx context.Context, tx *store.Tx, list []Chunk) error {
	type row struct {
		bun.BaseModel   `bun:"vectors"`
		ChunkID         int64
		KnowledgebaseID int64
		Code, Vector    []byte
	}
	var rows []row
	for i := range list {
		if c := &list[i]; c.Vector != nil {
			rows = append(rows, row{ChunkID: c.ID, KnowledgebaseID: c.KnowledgebaseID, Code: c.Code, Vector: c.Vector})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.SQL().NewInsert().Model(&rows).Exec(ctx)
	return err
}

// Passages are those of a document's live run beyond a position, at most limit, in order.
func Passages(ctx context.Context, q store.Query, d *parley.Document, beyond int, limit int64) (list []Chunk, err error) {
	err = q.SQL().NewSelect().Model(&list).Where("document_id = ? AND run = ? AND position > ?", d.ID, d.Live, beyond).
		Order("position").Limit(limit).Scan(ctx)
	return list, err
}

// Replace stores the vectors of stored passages in the place of those that they have. Passages that were removed
// meanwhile get none.
func Replace(ctx context.Context, tx *store.Tx, knowledgebaseID int64, list []Chunk) error {
	if err := tx.LockKnowledgebase(ctx, knowledgebaseID); err != nil {
		return err
	}
	ids := make([]int64, 0, len(list))
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	var there []int64
	if err := tx.SQL().NewRaw("SELECT id FROM chunks WHERE id IN (?)", bun.List(ids)).Scan(ctx, &there); err != nil {
		return err
	}
	if _, err := tx.SQL().NewRaw("DELETE FROM vectors WHERE chunk_id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
		return err
	}
	return addVectors(ctx, tx, slices.DeleteFunc(slices.Clone(list), func(c Chunk) bool { return !slices.Contains(there, c.ID) }))
}

// Drop removes up to limit passages of a document that are of other runs than keep, and uncounts their words, which
// words tells. It says how many there were.
func Drop(ctx context.Context, tx *store.Tx, d *parley.Document, keep int64, limit int,
	words func([]Chunk) []Word) (int, error) {
	if err := tx.LockKnowledgebase(ctx, d.KnowledgebaseID); err != nil {
		return 0, err
	}
	var list []Chunk
	err := tx.SQL().NewSelect().Model(&list).Where("document_id = ? AND run <> ?", d.ID,
		keep).OrderExpr("run, position").Limit(int64(limit)).Scan(ctx)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	if _, err := tx.SQL().NewRaw("DELETE FROM chunks WHERE id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
		return 0, err
	}
	if !tx.SQLite() { // there a trigger does it
		if _, err := tx.SQL().NewRaw("DELETE FROM chunk_tokens WHERE first IN (?)",
			bun.List(ids)).Exec(ctx); err != nil {
			return 0, err
		}
	}
	gone := words(list)
	for i := range gone {
		gone[i].Chunks = -gone[i].Chunks
	}
	return len(list), countWords(ctx, tx, d.KnowledgebaseID, gone)
}

// maxRows is how many rows a statement has at most: SQLite takes a megabyte of it.
const maxRows = 500

// countWords adds to the counts of a knowledgebase's words, or takes from them. A word that no passage has any more is
// removed.
func countWords(ctx context.Context, tx *store.Tx, knowledgebaseID int64, words []Word) error {
	index := rowsOf(tx, wordTokens, knowledgebaseID)
	for len(words) > 0 {
		part := words
		if tx.SQLite() {
			part = words[:min(maxRows, len(words))]
		}
		words = words[len(part):]
		rows, err := upsertWords(ctx, tx, knowledgebaseID, part)
		if err != nil {
			return err
		}
		given := make(map[string]*Word, len(part))
		for i := range part {
			given[part[i].Word] = &part[i]
		}
		var gone []int64
		for _, r := range rows {
			switch g := given[r.Word]; {
			case r.Chunks <= 0:
				gone = append(gone, r.ID)
			case r.Chunks == g.Chunks: // it is new
				index.add(r.ID, g.Tokens)
			}
		}
		if len(gone) > 0 {
			if _, err := tx.SQL().NewRaw("DELETE FROM words WHERE id IN (?)", bun.List(gone)).Exec(ctx); err != nil {
				return err
			}
		}
	}
	return index.insert(ctx)
}

// upsertWords adds to the counts of words. It returns at least those that are new and those that no passage has any
// more.
func upsertWords(ctx context.Context, tx *store.Tx, knowledgebaseID int64, words []Word) (rows []Word, err error) {
	if tx.SQLite() {
		rows = make([]Word, len(words))
		for i, w := range words {
			rows[i] = Word{KnowledgebaseID: knowledgebaseID, Word: w.Word, Chunks: w.Chunks}
		}
		_, err = tx.SQL().NewInsert().Model(&rows).On("CONFLICT (knowledgebase_id, word) DO UPDATE").Set(
			"chunks = w.chunks + excluded.chunks").
			Returning("id, word, chunks").Exec(ctx)
		return rows, err
	}
	var list, counts strings.Builder
	for i, w := range words {
		if i > 0 {
			list.WriteByte(' ')
			counts.WriteByte(' ')
		}
		list.WriteString(w.Word)
		counts.WriteString(strconv.Itoa(w.Chunks))
	}
	err = tx.SQL().NewRaw(`WITH counted AS (
			INSERT INTO words AS w (knowledgebase_id, word, chunks)
			SELECT ?, t.word, t.chunks FROM unnest(string_to_array(?, ' '), string_to_array(?, ' ')::bigint[]) AS t (word, chunks)
			ON CONFLICT (knowledgebase_id, word) DO UPDATE SET chunks = w.chunks + excluded.chunks
			RETURNING id, word, chunks, xmax = 0 AS fresh
		) SELECT id, word, chunks FROM counted WHERE fresh OR chunks <= 0`, knowledgebaseID, list.String(), counts.String()).Scan(ctx, &rows)
	return rows, err
}

// rows are collected for a keyword index.
type rows struct {
	tx     *store.Tx
	table  string
	prefix string
	ids    []int64
	texts  []string
}

func rowsOf(tx *store.Tx, table string, knowledgebaseID int64) *rows {
	return &rows{tx: tx, table: table, prefix: prefix(knowledgebaseID)}
}

// prefix begins each token of a knowledgebase. A token's own first sign, which is no letter and no digit, ends it.
func prefix(knowledgebaseID int64) string { return strconv.FormatInt(knowledgebaseID, 36) }

func (x *rows) add(id int64, tokens []string) {
	if len(tokens) == 0 {
		return
	}
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(x.prefix)
		b.WriteString(t)
	}
	x.ids, x.texts = append(x.ids, id), append(x.texts, b.String())
}

func (x *rows) insert(ctx context.Context) error {
	row := "(?, ?)"
	if !x.tx.SQLite() {
		row = "(?, array_to_tsvector(string_to_array(?, ' ')))"
	}
	for len(x.ids) > 0 {
		n, size := 0, 0
		for n < len(x.ids) && n < maxRows && size < 400<<10 {
			size += len(x.texts[n])
			n++
		}
		args := make([]any, 0, 2*n)
		for i := range n {
			args = append(args, x.ids[i], x.texts[i])
		}
		_, err := x.tx.SQL().NewRaw("INSERT INTO "+x.table+" (rowid, tokens) VALUES "+
			strings.Repeat(row+", ", n-1)+row, args...).Exec(ctx)
		if err != nil {
			return err
		}
		x.ids, x.texts = x.ids[n:], x.texts[n:]
	}
	return nil
}

// Settle puts what waits to be indexed into the keyword indexes: searches look through what waits, one by one.
func Settle(ctx context.Context, db *store.DB) error {
	if db.SQLite() {
		return nil
	}
	_, err := db.SQL().NewRaw("SELECT gin_clean_pending_list('word_tokens_index')").Exec(ctx)
	return err
}

// listed are, for each token, the ids of the passages of a knowledgebase that have it, of whichever run, in no order.
func postings(ctx context.Context, q store.Query, knowledgebaseID int64, tokens []string) ([][]int64, error) {
	if q.SQLite() {
		return listed(ctx, q, chunkTokens, knowledgebaseID, tokens)
	}
	lists := make([][]int64, len(tokens))
	if len(tokens) == 0 {
		return lists, nil
	}
	pre, of, wanted := prefix(knowledgebaseID), map[string]int{}, make([]string, len(tokens))
	for i, t := range tokens {
		wanted[i] = pre + t
		of[wanted[i]] = i
	}
	var rows []struct {
		Token string
		First int64
		IDs   []byte `bun:"ids"`
	}
	if err := q.SQL().NewRaw("SELECT token, first, ids FROM chunk_tokens WHERE token IN (?)",
		bun.List(wanted)).Scan(ctx, &rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		list := lists[of[r.Token]]
		for b := r.IDs; len(b) >= 4; b = b[4:] {
			list = append(list, r.First+int64(binary.BigEndian.Uint32(b)))
		}
		lists[of[r.Token]] = list
	}
	return lists, nil
}

// wordPostings are, for each token, the ids of the words of a knowledgebase that have it.
func wordPostings(ctx context.Context, q store.Query, knowledgebaseID int64, tokens []string) ([][]int64, error) {
	return listed(ctx, q, wordTokens, knowledgebaseID, tokens)
}

// listed reads an index of FTS5 or, on the other database, the words' tsvectors.
func listed(ctx context.Context, q store.Query, table string, knowledgebaseID int64, tokens []string) ([][]int64,
	error) {
	lists := make([][]int64, len(tokens))
	if len(tokens) == 0 {
		return lists, nil
	}
	pre := prefix(knowledgebaseID)
	var raw *bun.RawQuery
	if q.SQLite() {
		one := "SELECT ? AS n, group_concat(rowid) AS ids FROM " + table + " WHERE " + table + " MATCH ?"
		args := make([]any, 0, 2*len(tokens))
		for i, t := range tokens {
			args = append(args, i, `"`+pre+t+`"`)
		}
		raw = q.SQL().NewRaw(strings.Repeat(one+" UNION ALL ", len(tokens)-1)+one, args...)
	} else {
		quoted := make([]string, len(tokens))
		for i, t := range tokens {
			quoted[i] = "'" + pre + t + "'"
		}
		raw = q.SQL().NewRaw("SELECT n - 1 AS n, ids FROM words_of(ARRAY[?])", bun.List(quoted))
	}
	var rows []struct {
		N   int
		IDs []byte `bun:"ids"`
	}
	if err := raw.Scan(ctx, &rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		lists[r.N] = numbers(r.IDs)
	}
	return lists, nil
}

// numbers reads a list such as 1,2,3.
func numbers(b []byte) []int64 {
	if len(b) == 0 {
		return nil
	}
	out := make([]int64, 1, bytes.Count(b, []byte{','})+1)
	for _, c := range b {
		if c == ',' {
			out = append(out, 0)
		} else {
			last := &out[len(out)-1]
			*last = *last*10 + int64(c-'0')
		}
	}
	return out
}

// passages are those of some passages of a knowledgebase that are found, with their documents' names, in no order.
// The signs before columns keep planners that have no statistics yet from looking by them instead of by id.
func passages(ctx context.Context, q store.Query, knowledgebaseID int64, ids []int64) ([]Chunk, error) {
	var list []Chunk
	if len(ids) == 0 {
		return nil, nil
	}
	err := q.SQL().NewSelect().Model(&list).ColumnExpr("c.*, d.name AS document_name").Join(
		"JOIN documents AS d ON d.id = +c.document_id").
		Where("c.id IN (?) AND +c.knowledgebase_id = ? AND +c.run = d.live AND d.deleted_at = 0", bun.List(ids),
			knowledgebaseID).Scan(ctx)
	return list, err
}

// Words are those of some words that a knowledgebase has.
func Words(ctx context.Context, q store.Query, knowledgebaseID int64, words []string) ([]Word, error) {
	var list []Word
	if len(words) == 0 {
		return nil, nil
	}
	err := q.SQL().NewSelect().Model(&list).Where("knowledgebase_id = ? AND word IN (?)", knowledgebaseID,
		bun.List(words)).Scan(ctx)
	return list, err
}

// wordsFrom are words of a knowledgebase that begin in one of some ways, at most limit of each.
func wordsFrom(ctx context.Context, q store.Query, knowledgebaseID int64, begin []string, limit int) ([]Word, error) {
	var list []Word
	if len(begin) == 0 {
		return nil, nil
	}
	// By their bytes: how people sort words depends on where the database is.
	from, to := ">=", "<"
	if !q.SQLite() {
		from, to = "~>=~", "~<~"
	}
	one := "SELECT * FROM (SELECT word, chunks FROM words WHERE knowledgebase_id = ? AND word " + from +
		" ? AND word " + to + " ? ORDER BY word" + byBytes(q) + " LIMIT ?) AS w"
	args := make([]any, 0, 4*len(begin))
	for _, b := range begin {
		args = append(args, knowledgebaseID, b, after(b), limit)
	}
	err := q.SQL().NewRaw(strings.Repeat(one+" UNION ALL ", len(begin)-1)+one, args...).Scan(ctx, &list)
	return list, err
}

// byBytes makes an order one of bytes.
func byBytes(q store.Query) string {
	if q.SQLite() {
		return ""
	}
	return " USING ~<~"
}

// after is the first text, by bytes, that does not begin with s.
func after(s string) string {
	r := []rune(s)
	r[len(r)-1]++
	return string(r)
}

// wordsByID are some words of a knowledgebase.
func wordsByID(ctx context.Context, q store.Query, knowledgebaseID int64, ids []int64) ([]Word, error) {
	var list []Word
	if len(ids) == 0 {
		return nil, nil
	}
	err := q.SQL().NewSelect().Model(&list).Where("id IN (?) AND +knowledgebase_id = ?", bun.List(ids),
		knowledgebaseID).Scan(ctx)
	return list, err
}

// liveRuns are the runs that are found of a knowledgebase's documents that have vectors of an embedder, by document.
func liveRuns(ctx context.Context, q store.Query, knowledgebaseID int64, embedder string) (map[int64]int64, error) {
	var rows []struct{ ID, Live int64 }
	err := q.SQL().NewRaw("SELECT id, live FROM documents WHERE knowledgebase_id = ? AND deleted_at = 0 AND live > 0 AND embedder = ?",
		knowledgebaseID, embedder).
		Scan(ctx, &rows)
	runs := make(map[int64]int64, len(rows))
	for _, r := range rows {
		runs[r.ID] = r.Live
	}
	return runs, err
}

// Code is the 1-bit code of a passage's vector.
type Code struct {
	ChunkID, DocumentID, Run int64
	Code                     []byte
}

// codesOf are the codes of some documents' passages, of whichever run.
func codesOf(ctx context.Context, q store.Query, documents []int64) (list []Code, err error) {
	if len(documents) == 0 {
		return nil, nil
	}
	err = q.SQL().NewRaw(`SELECT v.chunk_id, c.document_id, c.run, v.code FROM chunks AS c JOIN vectors AS v ON v.chunk_id = c.id WHERE c.document_id IN (?)
		ORDER BY v.chunk_id`, bun.List(documents)).Scan(ctx, &list)
	return list, err
}

// vectorsOf are the vectors of some passages, by id.
func vectorsOf(ctx context.Context, q store.Query, ids []int64) (map[int64][]byte, error) {
	var rows []struct {
		ChunkID int64
		Vector  []byte
	}
	if len(ids) == 0 {
		return nil, nil
	}
	err := q.SQL().NewRaw("SELECT chunk_id, vector FROM vectors WHERE chunk_id IN (?)", bun.List(ids)).Scan(ctx, &rows)
	of := make(map[int64][]byte, len(rows))
	for _, r := range rows {
		of[r.ChunkID] = r.Vector
	}
	return of, err
}

// Rows counts what all knowledgebases hold, by table.
func Rows(ctx context.Context, q store.Query) (map[string]int, error) {
	out := map[string]int{}
	for _, table := range []string{"knowledgebases", "documents", "chunks", chunkTokens, "vectors", "words",
		wordTokens} {
		var n int
		if err := q.SQL().NewRaw("SELECT count(*) FROM ?", bun.Ident(table)).Scan(ctx, &n); err != nil {
			return nil, err
		}
		out[table] = n
	}
	return out, nil
}
