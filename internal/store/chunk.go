package store

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

	"parley"
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

	Tokens []string `bun:"-"` // what it is found by; each begins with a sign of its own kind and is of letters, digits and _+-
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

// AddChunks stores passages of a document's present run, and counts their words.
func (tx *Tx) AddChunks(ctx context.Context, d *parley.Document, list []Chunk, words []Word) error {
	if len(list) == 0 {
		return nil
	}
	if err := tx.lockKnowledgebase(ctx, d.KnowledgebaseID); err != nil {
		return err
	}
	for i := range list {
		list[i].ID, list[i].KnowledgebaseID, list[i].DocumentID, list[i].Run = 0, d.KnowledgebaseID, d.ID, d.Run
	}
	if _, err := tx.q.NewInsert().Model(&list).Exec(ctx); err != nil {
		return err
	}
	if err := tx.indexChunks(ctx, d.KnowledgebaseID, list); err != nil {
		return err
	}
	if err := tx.addVectors(ctx, list); err != nil {
		return err
	}
	return tx.countWords(ctx, d.KnowledgebaseID, words)
}

// indexChunks puts a batch of passages into the keyword index.
func (tx *Tx) indexChunks(ctx context.Context, knowledgebaseID int64, list []Chunk) error {
	if tx.sqlite {
		index := tx.index(chunkTokens, knowledgebaseID)
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
	_, err := tx.q.NewRaw(`INSERT INTO chunk_tokens (token, first, ids)
		SELECT t.token, ?, decode(t.ids, 'hex') FROM unnest(string_to_array(?, ' '), string_to_array(?, ' ')) AS t (token, ids)`,
		first, tokens.String(), ids.String()).Exec(ctx)
	return err
}

func (tx *Tx) addVectors(ctx context.Context, list []Chunk) error {
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
	_, err := tx.q.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// DropChunks removes up to limit passages of a document that are of other runs than keep, and uncounts their words, which words tells.
// It says how many there were.
func (tx *Tx) DropChunks(ctx context.Context, d *parley.Document, keep int64, limit int, words func([]Chunk) []Word) (int, error) {
	if err := tx.lockKnowledgebase(ctx, d.KnowledgebaseID); err != nil {
		return 0, err
	}
	var list []Chunk
	err := tx.q.NewSelect().Model(&list).Where("document_id = ? AND run <> ?", d.ID, keep).OrderExpr("run, position").Limit(int64(limit)).Scan(ctx)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	if _, err := tx.q.NewRaw("DELETE FROM chunks WHERE id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
		return 0, err
	}
	if !tx.sqlite { // there a trigger does it
		if _, err := tx.q.NewRaw("DELETE FROM chunk_tokens WHERE first IN (?)", bun.List(ids)).Exec(ctx); err != nil {
			return 0, err
		}
	}
	gone := words(list)
	for i := range gone {
		gone[i].Chunks = -gone[i].Chunks
	}
	return len(list), tx.countWords(ctx, d.KnowledgebaseID, gone)
}

// maxRows is how many rows a statement has at most: SQLite takes a megabyte of it.
const maxRows = 500

// countWords adds to the counts of a knowledgebase's words, or takes from them. What no passage has goes.
func (tx *Tx) countWords(ctx context.Context, knowledgebaseID int64, words []Word) error {
	index := tx.index(wordTokens, knowledgebaseID)
	for len(words) > 0 {
		part := words
		if tx.sqlite {
			part = words[:min(maxRows, len(words))]
		}
		words = words[len(part):]
		rows, err := tx.upsertWords(ctx, knowledgebaseID, part)
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
			if _, err := tx.q.NewRaw("DELETE FROM words WHERE id IN (?)", bun.List(gone)).Exec(ctx); err != nil {
				return err
			}
		}
	}
	return index.insert(ctx)
}

// upsertWords adds to the counts of words. It returns at least those that are new and those that no passage has any more.
func (tx *Tx) upsertWords(ctx context.Context, knowledgebaseID int64, words []Word) (rows []Word, err error) {
	if tx.sqlite {
		rows = make([]Word, len(words))
		for i, w := range words {
			rows[i] = Word{KnowledgebaseID: knowledgebaseID, Word: w.Word, Chunks: w.Chunks}
		}
		_, err = tx.q.NewInsert().Model(&rows).On("CONFLICT (knowledgebase_id, word) DO UPDATE").Set("chunks = w.chunks + excluded.chunks").
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
	err = tx.q.NewRaw(`WITH counted AS (
			INSERT INTO words AS w (knowledgebase_id, word, chunks)
			SELECT ?, t.word, t.chunks FROM unnest(string_to_array(?, ' '), string_to_array(?, ' ')::bigint[]) AS t (word, chunks)
			ON CONFLICT (knowledgebase_id, word) DO UPDATE SET chunks = w.chunks + excluded.chunks
			RETURNING id, word, chunks, xmax = 0 AS fresh
		) SELECT id, word, chunks FROM counted WHERE fresh OR chunks <= 0`, knowledgebaseID, list.String(), counts.String()).Scan(ctx, &rows)
	return rows, err
}

// index collects rows for a keyword index.
type index struct {
	tx     *Tx
	table  string
	prefix string
	ids    []int64
	texts  []string
}

func (tx *Tx) index(table string, knowledgebaseID int64) *index {
	return &index{tx: tx, table: table, prefix: prefix(knowledgebaseID)}
}

// prefix begins each token of a knowledgebase. A token's own first sign, which is no letter and no digit, ends it.
func prefix(knowledgebaseID int64) string { return strconv.FormatInt(knowledgebaseID, 36) }

func (x *index) add(id int64, tokens []string) {
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

func (x *index) insert(ctx context.Context) error {
	row := "(?, ?)"
	if !x.tx.sqlite {
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
		_, err := x.tx.q.NewRaw("INSERT INTO "+x.table+" (rowid, tokens) VALUES "+strings.Repeat(row+", ", n-1)+row, args...).Exec(ctx)
		if err != nil {
			return err
		}
		x.ids, x.texts = x.ids[n:], x.texts[n:]
	}
	return nil
}

// SettleIndex puts what waits to be indexed into the keyword indexes: searches look through what waits, one by one.
func (db *DB) SettleIndex(ctx context.Context) error {
	if db.sqlite {
		return nil
	}
	_, err := db.write.ExecContext(ctx, "SELECT gin_clean_pending_list('word_tokens_index')")
	return err
}

// Postings are, for each token, the ids of the passages of a knowledgebase that have it, of whichever run, in no order.
func (q Query) Postings(ctx context.Context, knowledgebaseID int64, tokens []string) ([][]int64, error) {
	if q.sqlite {
		return q.postings(ctx, chunkTokens, knowledgebaseID, tokens)
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
	if err := q.q.NewRaw("SELECT token, first, ids FROM chunk_tokens WHERE token IN (?)", bun.List(wanted)).Scan(ctx, &rows); err != nil {
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

// WordPostings are, for each token, the ids of the words of a knowledgebase that have it.
func (q Query) WordPostings(ctx context.Context, knowledgebaseID int64, tokens []string) ([][]int64, error) {
	return q.postings(ctx, wordTokens, knowledgebaseID, tokens)
}

// postings reads an index of FTS5 or, on the other database, the words' tsvectors.
func (q Query) postings(ctx context.Context, table string, knowledgebaseID int64, tokens []string) ([][]int64, error) {
	lists := make([][]int64, len(tokens))
	if len(tokens) == 0 {
		return lists, nil
	}
	pre := prefix(knowledgebaseID)
	var raw *bun.RawQuery
	if q.sqlite {
		one := "SELECT ? AS n, group_concat(rowid) AS ids FROM " + table + " WHERE " + table + " MATCH ?"
		args := make([]any, 0, 2*len(tokens))
		for i, t := range tokens {
			args = append(args, i, `"`+pre+t+`"`)
		}
		raw = q.q.NewRaw(strings.Repeat(one+" UNION ALL ", len(tokens)-1)+one, args...)
	} else {
		quoted := make([]string, len(tokens))
		for i, t := range tokens {
			quoted[i] = "'" + pre + t + "'"
		}
		raw = q.q.NewRaw("SELECT n - 1 AS n, ids FROM words_of(ARRAY[?])", bun.List(quoted))
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

// Chunks are those of some passages of a knowledgebase that are found, with their documents' names, in no order. The signs before columns
// keep planners that have no statistics yet from looking by them instead of by id.
func (q Query) Chunks(ctx context.Context, knowledgebaseID int64, ids []int64) ([]Chunk, error) {
	var list []Chunk
	if len(ids) == 0 {
		return nil, nil
	}
	err := q.q.NewSelect().Model(&list).ColumnExpr("c.*, d.name AS document_name").Join("JOIN documents AS d ON d.id = +c.document_id").
		Where("c.id IN (?) AND +c.knowledgebase_id = ? AND +c.run = d.live AND d.deleted_at = 0", bun.List(ids), knowledgebaseID).Scan(ctx)
	return list, err
}

// Words are those of some words that a knowledgebase has.
func (q Query) Words(ctx context.Context, knowledgebaseID int64, words []string) ([]Word, error) {
	var list []Word
	if len(words) == 0 {
		return nil, nil
	}
	err := q.q.NewSelect().Model(&list).Where("knowledgebase_id = ? AND word IN (?)", knowledgebaseID, bun.List(words)).Scan(ctx)
	return list, err
}

// WordsFrom are words of a knowledgebase that begin in one of some ways, at most limit of each.
func (q Query) WordsFrom(ctx context.Context, knowledgebaseID int64, begin []string, limit int) ([]Word, error) {
	var list []Word
	if len(begin) == 0 {
		return nil, nil
	}
	// By their bytes: how people sort words depends on where the database is.
	from, to := ">=", "<"
	if !q.sqlite {
		from, to = "~>=~", "~<~"
	}
	one := "SELECT * FROM (SELECT word, chunks FROM words WHERE knowledgebase_id = ? AND word " + from + " ? AND word " + to + " ? ORDER BY word" + q.byBytes() + " LIMIT ?) AS w"
	args := make([]any, 0, 4*len(begin))
	for _, b := range begin {
		args = append(args, knowledgebaseID, b, after(b), limit)
	}
	err := q.q.NewRaw(strings.Repeat(one+" UNION ALL ", len(begin)-1)+one, args...).Scan(ctx, &list)
	return list, err
}

// byBytes makes an order one of bytes.
func (q Query) byBytes() string {
	if q.sqlite {
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

// WordsByID are some words of a knowledgebase.
func (q Query) WordsByID(ctx context.Context, knowledgebaseID int64, ids []int64) ([]Word, error) {
	var list []Word
	if len(ids) == 0 {
		return nil, nil
	}
	err := q.q.NewSelect().Model(&list).Where("id IN (?) AND +knowledgebase_id = ?", bun.List(ids), knowledgebaseID).Scan(ctx)
	return list, err
}

// LiveRuns are the runs that are found of a knowledgebase's documents that have vectors of an embedder, by document.
func (q Query) LiveRuns(ctx context.Context, knowledgebaseID int64, embedder string) (map[int64]int64, error) {
	var rows []struct{ ID, Live int64 }
	err := q.q.NewRaw("SELECT id, live FROM documents WHERE knowledgebase_id = ? AND deleted_at = 0 AND live > 0 AND embedder = ?", knowledgebaseID, embedder).
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

// Codes are the codes of some documents' passages, of whichever run.
func (q Query) Codes(ctx context.Context, documents []int64) (list []Code, err error) {
	if len(documents) == 0 {
		return nil, nil
	}
	err = q.q.NewRaw(`SELECT v.chunk_id, c.document_id, c.run, v.code FROM chunks AS c JOIN vectors AS v ON v.chunk_id = c.id WHERE c.document_id IN (?)
		ORDER BY v.chunk_id`, bun.List(documents)).Scan(ctx, &list)
	return list, err
}

// Vectors are the vectors of some passages, by id.
func (q Query) Vectors(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	var rows []struct {
		ChunkID int64
		Vector  []byte
	}
	if len(ids) == 0 {
		return nil, nil
	}
	err := q.q.NewRaw("SELECT chunk_id, vector FROM vectors WHERE chunk_id IN (?)", bun.List(ids)).Scan(ctx, &rows)
	of := make(map[int64][]byte, len(rows))
	for _, r := range rows {
		of[r.ChunkID] = r.Vector
	}
	return of, err
}

// KnowledgeRows counts what all knowledgebases hold, by table.
func (q Query) KnowledgeRows(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	for _, table := range []string{"knowledgebases", "documents", "chunks", chunkTokens, "vectors", "words", wordTokens} {
		var n int
		if err := q.q.NewRaw("SELECT count(*) FROM ?", bun.Ident(table)).Scan(ctx, &n); err != nil {
			return nil, err
		}
		out[table] = n
	}
	return out, nil
}
