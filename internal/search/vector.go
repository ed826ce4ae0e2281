package search

import (
	"cmp"
	"container/list"
	"context"
	order "encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/store"
)

const (
	maxCodes  = 256 << 20 // bytes of codes that are kept in memory, of all knowledgebases together
	maxNear   = 100       // passages whose codes are nearest; they are compared by their whole vectors
	embedTime = 3 * time.Second
	loadDocs  = 200 // documents whose codes are loaded with one question
)

// Pack makes of a vector what is stored: its code, a bit per dimension that says the sign, and itself at length 1.
func Pack(v []float32) (code, vector []byte) {
	length := 0.0
	for _, x := range v {
		length += float64(x) * float64(x)
	}
	scale := float32(1 / math.Sqrt(max(length, 1e-30)))
	code, vector = make([]byte, (len(v)+63)/64*8), make([]byte, 0, 4*len(v))
	for i, x := range v {
		if x > 0 {
			code[i/8] |= 1 << (i % 8)
		}
		vector = order.LittleEndian.AppendUint32(vector, math.Float32bits(x*scale))
	}
	return code, vector
}

// similarity is the cosine of the angle between two stored vectors; -1 where they can't be compared.
func similarity(a, b []byte) float64 {
	if len(a) != len(b) {
		return -1
	}
	sum := float32(0)
	for i := 0; i+4 <= len(a); i += 4 {
		sum += math.Float32frombits(order.LittleEndian.Uint32(a[i:])) * math.Float32frombits(
			order.LittleEndian.Uint32(b[i:]))
	}
	return float64(sum)
}

// vectors keeps the codes of the knowledgebases that were searched last. It is loaded as searches need it, and
// follows the revisions that the database tells.
type vectors struct {
	mu   sync.Mutex
	kept map[int64]*list.Element // of *codes, by knowledgebase
	used *list.List              // the one used last in front
	size int64
}

// codes are one knowledgebase's.
type codes struct {
	knowledgebase int64
	size          int64 // as it is counted in vectors

	mu       sync.Mutex // one loads, others wait for it
	revision int64
	embedder string
	docs     map[int64]*docCodes
}

type docCodes struct {
	run  int64
	ids  []int64
	bits []uint64 // wide words for each id
	wide int
}

// search finds the passages whose vectors are nearest to that of a question.
func (v *vectors) search(ctx context.Context, db *store.DB, embedder ai.Embedder, knowledgebaseID, revision int64,
	query string) ([]int64, error) {
	c := v.get(knowledgebaseID)
	docs, err := c.load(ctx, db, embedder.Name(), revision)
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	v.keep(c)
	ctx, cancel := context.WithTimeout(ctx, embedTime)
	defer cancel()
	got, err := embedder.Embed(ctx, []string{query})
	if err != nil {
		return nil, ai.TheEmbedder.Of(err)
	}
	if len(got) != 1 {
		return nil, errors.New("the embedder gave no vector")
	}
	code, vector := Pack(got[0])
	near := nearest(docs, code)
	whole, err := vectorsOf(ctx, db.Query, near)
	if err != nil {
		return nil, err
	}
	score := make(map[int64]float64, len(near))
	for _, id := range near {
		if w := whole[id]; w != nil {
			score[id] = similarity(vector, w)
		}
	}
	slices.SortFunc(near, func(a, b int64) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	return near[:min(maxJudged, len(near))], nil
}

// nearest are the passages whose codes differ from code in the fewest bits.
func nearest(docs map[int64]*docCodes, code []byte) []int64 {
	want := make([]uint64, len(code)/8)
	for i := range want {
		want[i] = order.LittleEndian.Uint64(code[8*i:])
	}
	at := make([][]int64, 64*len(want)+1) // by how many bits differ
	found, bound := 0, len(at)            // what is at bound or above is not among the nearest
	for _, doc := range docs {
		if doc.wide != len(want) {
			continue // of another length, it can't be compared
		}
		for i, id := range doc.ids {
			n := 0
			for k, w := range doc.bits[i*doc.wide : (i+1)*doc.wide] {
				n += bits.OnesCount64(w ^ want[k])
			}
			if n >= bound {
				continue
			}
			at[n] = append(at[n], id)
			for found++; bound > 0 && found-len(at[bound-1]) >= maxNear; {
				bound--
				found -= len(at[bound])
				at[bound] = nil
			}
		}
	}
	var out []int64
	for _, ids := range at {
		slices.Sort(ids)
		out = append(out, ids...)
	}
	return out[:min(maxNear, len(out))]
}

func (v *vectors) get(knowledgebaseID int64) *codes {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept == nil {
		v.kept, v.used = map[int64]*list.Element{}, list.New()
	}
	if e := v.kept[knowledgebaseID]; e != nil {
		v.used.MoveToFront(e)
		return e.Value.(*codes)
	}
	c := &codes{knowledgebase: knowledgebaseID, revision: -1, docs: map[int64]*docCodes{}}
	v.kept[knowledgebaseID] = v.used.PushFront(c)
	return c
}

// keep counts what a knowledgebase's codes take and drops those that were not used for longest, the present ones too
// where they alone are too many.
func (v *vectors) keep(c *codes) {
	size := c.bytes()
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.kept[c.knowledgebase]; e == nil || e.Value != any(c) {
		return
	}
	v.size += size - c.size
	c.size = size
	for v.size > maxCodes {
		last := v.used.Back()
		old := v.used.Remove(last).(*codes)
		delete(v.kept, old.knowledgebase)
		v.size -= old.size
	}
}

func (c *codes) bytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, doc := range c.docs {
		n += int64(8*len(doc.ids) + 8*len(doc.bits) + 100)
	}
	return n
}

// load brings the codes up to a revision: what is loaded of documents that have not changed is kept. The map that it
// returns is not changed any more.
func (c *codes) load(ctx context.Context, db *store.DB, name string, revision int64) (map[int64]*docCodes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision == revision && c.embedder == name {
		return c.docs, nil
	}
	runs, err := liveRuns(ctx, db.Query, c.knowledgebase, name)
	if err != nil {
		return nil, err
	}
	docs := make(map[int64]*docCodes, len(runs))
	var lack []int64
	for id, run := range runs {
		if old := c.docs[id]; old != nil && old.run == run && c.embedder == name {
			docs[id] = old
		} else {
			docs[id] = &docCodes{run: run}
			lack = append(lack, id)
		}
	}
	slices.Sort(lack)
	for part := range slices.Chunk(lack, loadDocs) {
		list, err := codesOf(ctx, db.Query, part)
		if err != nil {
			return nil, fmt.Errorf("load codes of knowledgebase %d: %w", c.knowledgebase, err)
		}
		for _, code := range list {
			docs[code.DocumentID].add(code)
		}
	}
	c.docs, c.revision, c.embedder = docs, revision, name
	return docs, nil
}

func (doc *docCodes) add(c Code) {
	wide := len(c.Code) / 8
	if c.Run != doc.run || doc.wide != 0 && doc.wide != wide {
		return
	}
	doc.wide, doc.ids = wide, append(doc.ids, c.ChunkID)
	for i := range wide {
		doc.bits = append(doc.bits, order.LittleEndian.Uint64(c.Code[8*i:]))
	}
}
