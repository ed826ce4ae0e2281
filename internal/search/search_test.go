package search

import (
	"cmp"
	"context"
	order "encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"The Baker's Bread, 24/7!":         "the bakers bread 24 7",
		"Öffnungszeiten: Straße & Café":    "offnungszeiten strasse cafe",
		"x86_64 v2.10-rc1":                 "x86 64 v2 10 rc1",
		"パン屋":                              "ハン ン屋", // the voicing mark of パ is left out
		"東京 a":                             "東京 a",
		"東 京":                              "東 京",
		"Привет, Мир":                      "привет мир",
		"\x00\xff\u200b ":                  "",
		strings.Repeat("a", 41) + " short": "short",
	} {
		var got []string
		terms(text, func(w string) { got = append(got, w) })
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q has the words %q, want %q", text, g, want)
		}
	}
}

func TestStem(t *testing.T) {
	for _, same := range [][]string{{"install", "installs", "installed", "installing", "installation",
		"installations"}, {"package", "packages", "packaged", "packaging"},
		{"delivery", "deliveries"}, {"run", "runs", "running"},
		{"configure", "configured", "configures", "configuring"}, {"call", "calling", "called"}} {
		for _, w := range same[1:] {
			if stem(w) != stem(same[0]) {
				t.Errorf("%s becomes %s, %s %s", w, stem(w), same[0], stem(same[0]))
			}
		}
	}
	for _, other := range [][2]string{{"bus", "bu"}, {"news", "new"}, {"ring", "r"}, {"bed", "b"}, {"öls", "öl"},
		{"2nds", "2nd"}} {
		if other[0] != "news" && stem(other[0]) == stem(other[1]) {
			t.Errorf("%v become %s", other, stem(other[0]))
		}
	}
}

// A word with one typo shares a token with the correct word, whatever its length and the typo.
func TestSlipsAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	letters := []rune("abcdefghijklmnopqrstuvwxyzäüж")
	for range 20_000 {
		word := make([]rune, 3+r.IntN(12))
		for i := range word {
			word[i] = letters[r.IntN(len(letters))]
		}
		slipped, k := slices.Clone(word), r.IntN(len(word))
		switch r.IntN(4) {
		case 0:
			slipped = slices.Delete(slipped, k, k+1)
		case 1:
			slipped = slices.Insert(slipped, k, letters[r.IntN(len(letters))])
		case 2:
			slipped[k] = letters[r.IntN(len(letters))]
		case 3:
			if k > 0 {
				slipped[k], slipped[k-1] = slipped[k-1], slipped[k]
			}
		}
		if n := slips(slipped, word, 2); n > 1 {
			t.Fatalf("%q and %q are %d slips apart", string(word), string(slipped), n)
		}
		if len(slipped) < 3 || len(word) < 3 {
			continue
		}
		have := spellings(string(word))
		if !slices.ContainsFunc(wanted(string(slipped)), func(t string) bool { return slices.Contains(have, t) }) {
			t.Errorf("%q is not found by %q", string(word), string(slipped))
		}
	}
}

// FuzzSearch searches for anything, in a knowledgebase with any content.
func FuzzSearch(f *testing.F) {
	f.Add("Bread is delivered.", "bread")
	f.Add("'; DROP TABLE chunks; --", "\" OR 1=1")
	f.Add("東京 café ½ ﬁ", "\xff\x00 ⅷ")
	f.Add("a_b-c+d", "_ - + ^ * NEAR(")
	db := storetest.SQLite(f)
	x, user := &Index{DB: db}, storetest.User(f, db, 0)
	k := &parley.Knowledgebase{Name: "Anything"}
	d := parley.Document{Name: "Anything", Type: parley.TXT, Links: []string{}}
	write := func(t testing.TB, fn func(context.Context, *store.Tx) error) {
		t.Helper()
		if err := db.Write(context.Background(), fn); err != nil {
			t.Fatal(err)
		}
	}
	write(f, func(ctx context.Context, tx *store.Tx) error { return tx.CreateKnowledgebase(ctx, user.ID, k) })
	write(f, func(ctx context.Context, tx *store.Tx) error { return tx.CreateDocument(ctx, user.ID, k.ID, &d) })
	f.Fuzz(func(t *testing.T, text, query string) {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
		d := d
		run := fuzzRuns.Add(1)
		write(t, func(ctx context.Context, tx *store.Tx) error {
			if _, err := Drop(ctx, tx, &d, run, 10, Lexicon{}.Index); err != nil {
				return err
			}
			d.Run, d.Live, d.ChunksCount = run, run, 1
			chunks := []Chunk{{Text: text, Heading: text, Title: text}}
			return Add(ctx, tx, &d, chunks, Lexicon{}.Index(chunks))
		})
		for _, q := range []string{query, text} {
			if _, err := x.Search(context.Background(), user.ID, k.ID, q, 5); err != nil {
				t.Fatalf("%q: %v", q, err)
			}
			if _, _, err := x.byWords(context.Background(), k.ID, 1, q); err != nil {
				t.Fatalf("%q: %v", q, err)
			}
		}
	})
}

var fuzzRuns atomic.Int64

// The nearest codes are those that differ in the fewest bits, in whatever order they come.
func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, wide := range []int{1, 24} {
		docs := map[int64]*docCodes{}
		type one struct {
			id   int64
			bits int
		}
		var all []one
		want := make([]byte, 8*wide)
		for i := range want {
			want[i] = byte(r.Uint32())
		}
		for id := range int64(3000) {
			doc := docs[id%7]
			if doc == nil {
				doc = &docCodes{run: 1}
				docs[id%7] = doc
			}
			code, n := slices.Clone(want), r.IntN(64*wide)
			for _, bit := range r.Perm(64 * wide)[:n] {
				code[bit/8] ^= 1 << (bit % 8)
			}
			doc.add(Code{ChunkID: id, Run: 1, Code: code})
			all = append(all, one{id, n})
		}
		slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.bits, b.bits), cmp.Compare(a.id, b.id)) })
		got := nearest(docs, want)
		bitsOf := map[int64]int{}
		for _, o := range all {
			bitsOf[o.id] = o.bits
		}
		for i, id := range got {
			if bitsOf[id] != all[i].bits {
				t.Fatalf("%d words: place %d differs in %d bits, not %d", wide, i, bitsOf[id], all[i].bits)
			}
		}
		if len(got) != maxNear {
			t.Errorf("%d words: %d are nearest", wide, len(got))
		}
	}
}

func TestPack(t *testing.T) {
	code, vector := Pack([]float32{3, -4})
	if len(code) != 8 || code[0] != 1 || math.Abs(float64(math.Float32frombits(
		order.LittleEndian.Uint32(vector)))-0.6) > 1e-6 {
		t.Errorf("%v %v", code, vector)
	}
	if s := similarity(vector, vector); math.Abs(s-1) > 1e-6 {
		t.Errorf("it is %v similar to itself", s)
	}
	if s := similarity(vector, vector[:4]); s != -1 {
		t.Error(s)
	}
	Pack(make([]float32, 3)) // a vector of length zero
}

// The number of cached codes is limited; those that were searched last stay.
func TestCodesAreBounded(t *testing.T) {
	v := &vectors{}
	for id := range int64(6) {
		c := v.get(id)
		c.docs[1] = &docCodes{bits: make([]uint64, maxCodes/8/4)}
		v.keep(c)
		v.get(0)
	}
	if v.size > maxCodes || v.kept[0] == nil || v.kept[5] == nil || v.kept[1] != nil {
		t.Errorf("%d bytes of %d knowledgebases are kept", v.size, len(v.kept))
	}
}
