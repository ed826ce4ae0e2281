package knowledge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/ai"
	"parley/internal/blob"
	"parley/internal/document"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// library is a Library on a real database. Its files are texts: a line "# x" is a heading, and the lines below it are
// its text.
type library struct {
	testing.TB
	*Library
	user *parley.User
	base int64
	read *atomic.Int64                                  // how often a document was read
	hook func(ctx context.Context, n int64) (err error) // called at each reading
}

func each(t *testing.T, test func(t *testing.T, l *library)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, newLibrary(t, db)) })
}

func newLibrary(t testing.TB, db *store.DB) *library {
	t.Helper()
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &library{TB: t, user: storetest.User(t, db, 0), read: new(atomic.Int64)}
	l.Library = &Library{Index: search.Index{DB: db}, Blobs: blobs, Cut: document.Here, Lease: 3 * time.Second}
	l.ReadFile = func(ctx context.Context, _ parley.DocumentType, file blob.Object) (*document.Text, error) {
		n := l.read.Add(1)
		if l.hook != nil {
			if err := l.hook(ctx, n); err != nil {
				return nil, err
			}
		}
		raw, err := io.ReadAll(file)
		return plainText(string(raw)), err
	}
	l.ReadSite = func(ctx context.Context, d *parley.Document, progress func(done, total int)) (*document.Text, error) {
		n := l.read.Add(1)
		progress(1, 2)
		return &document.Text{Sections: []document.Section{{URL: d.URL,
			Text: fmt.Sprintf("The site was read %d times.", n)}}}, nil
	}
	l.base = l.knowledgebase(l.user.ID)
	return l
}

func plainText(s string) *document.Text {
	t := &document.Text{}
	for part := range strings.SplitSeq("\n"+s, "\n# ") {
		heading, body, ok := strings.Cut(part, "\n")
		if !ok || strings.TrimSpace(body) == "" {
			continue
		}
		sec := document.Section{Text: strings.TrimSpace(body)}
		if heading != "" {
			sec.Heading = []string{heading}
		}
		t.Sections = append(t.Sections, sec)
	}
	return t
}

func (l *library) knowledgebase(user int64) int64 {
	l.Helper()
	k := &parley.Knowledgebase{Name: "Handbook"}
	l.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateKnowledgebase(ctx, user, k) })
	return k.ID
}

func (l *library) write(fn func(context.Context, *store.Tx) error) {
	l.Helper()
	if err := l.DB.Write(l.Context(), fn); err != nil {
		l.Fatal(err)
	}
}

// work runs the jobs until stop is called.
func (l *library) work() (stop func()) {
	l.Helper()
	workers := river.NewWorkers()
	l.Register(workers)
	ctx, cancel := context.WithCancel(l.Context())
	soft, cut := context.WithCancel(l.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := l.DB.Work(ctx, soft, store.Jobs{Workers: workers,
			Queues: map[string]river.QueueConfig{Queue: {MaxWorkers: Readers}}})
		if err != nil {
			l.Error(err)
		}
	})
	wg.Go(func() { l.Run(ctx) })
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); cut(); wg.Wait() }) }
	l.Cleanup(stop)
	return stop
}

// add uploads a text.
func (l *library) add(name, text string) *parley.Document {
	l.Helper()
	blob, size, err := l.Upload(l.Context(), strings.NewReader(text))
	if err != nil {
		l.Fatal(err)
	}
	d := &parley.Document{Name: name, Type: parley.TXT, Links: []string{}, Blob: blob, Size: size}
	if err := l.Add(l.Context(), l.user.ID, l.base, d); err != nil {
		l.Fatal(err)
	}
	return d
}

// until waits until a condition on the database is true.
func (l *library) until(what string, is func() bool) {
	l.Helper()
	look, hang := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-hang:
			l.Fatalf("not within 30 s: %s", what)
		}
	}
}

// settled waits until a document is processed.
func (l *library) settled(id int64) *parley.Document {
	l.Helper()
	var d *parley.Document
	l.until("the document is processed", func() bool {
		var err error
		if d, err = l.DB.Document(l.Context(), l.user.ID, l.base, id); err != nil {
			l.Fatal(err)
		}
		return d.Status != parley.KnowledgeProcessing
	})
	return d
}

func (l *library) find(query string) []parley.Passage {
	l.Helper()
	list, err := l.Search(l.Context(), l.user.ID, l.base, query, 5)
	if err != nil {
		l.Fatal(err)
	}
	return list
}

// counts is how many rows each derived table has.
func (l *library) counts() map[string]int {
	l.Helper()
	out, err := search.Rows(l.Context(), l.DB.Query)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

const handbook = `# Returns
Goods can be sent back within 30 days. Refunds reach the account after a week.

# Opening hours
The bakery opens at seven and closes at noon on Sundays.

# Delivery
Bread is delivered by bicycle. Cakes are delivered by van, since they must lie flat.
`

func TestDocumentsAnswer(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		l.work()
		d := l.settled(l.add("Handbook", handbook).ID)
		if d.Status != parley.KnowledgeActive || d.ChunksCount != 3 ||
			d.Progress != (parley.Progress{Done: 3, Total: 3}) || d.Error != nil {
			t.Fatalf("%+v", d)
		}
		for query, want := range map[string]string{
			"When do I get my money back? refund": "Goods can be", "opening hours": "The bakery",
			"How are cakes delivered?": "Bread is",
			"delivery":                 "Bread is", "OPENING": "The bakery", "refudns": "Goods can be",
			"bicyle delivry": "Bread is", "opning huors": "The bakery", "sundays": "The bakery",
		} {
			got := l.find(query)
			if len(got) == 0 || !strings.HasPrefix(got[0].Text, want) || got[0].DocumentName != "Handbook" ||
				got[0].Score <= 0 || got[0].Score > 1 {
				t.Errorf("%q found %+v", query, got)
			}
		}
		if got := l.find("opening hours"); got[0].Source.Source != "Opening hours" ||
			got[0].Heading != "Opening hours" {
			t.Errorf("%+v", got[0].Source)
		}
		for _, query := range []string{"", "   ", "the of and", "xylophonist", "\x00", "'\"; DROP TABLE chunks --",
			"(", "\"", "a OR b NOT c*", "\xff\xfe"} {
			if got := l.find(query); len(got) != 0 {
				t.Errorf("%q found %+v", query, got)
			}
		}
	})
}

func TestSearchStaysInside(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		l.work()
		l.settled(l.add("Ours", handbook).ID)
		other := storetest.User(t, l.DB, 0)
		if _, err := l.Search(t.Context(), other.ID, l.base, "delivery", 5); !store.IsNotFound(err) {
			t.Errorf("a stranger searches: %v", err)
		}
		theirs := *l
		theirs.user, theirs.base = other, l.knowledgebase(other.ID)
		theirs.settled(theirs.add("Theirs", "# Delivery\nWe deliver bread by drone. Quinoa.").ID)
		if got := l.find("delivery drone bread"); len(got) != 1 || got[0].DocumentName != "Ours" {
			t.Errorf("we found %+v", got)
		}
		if got := l.find("quinao"); len(got) != 0 { // one of their words, misspelt
			t.Errorf("we found %+v", got)
		}
		if got := theirs.find("bred delivery"); len(got) != 1 || got[0].DocumentName != "Theirs" {
			t.Errorf("they found %+v", got)
		}
	})
}

func TestOtherLanguages(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		l.work()
		l.settled(l.add("Languages", `# Öffnungszeiten
Der Schlüssel für die Straße liegt im Café. Geöffnet wird um sieben, die Lieferungen kommen später.

# Доставка
Мы доставляем хлеб на велосипеде каждое утро.

# 配送
パンは自転車で配達されます。东京的面包店每天早上开门。

# Ώρες
Το αρτοποιείο ανοίγει στις επτά.

# שעות
המאפייה נפתחת בשבע בבוקר.

# เวลา
ร้านเปิดเจ็ดโมงเช้าทุกวัน

# वितरण
रोटी साइकिल से पहुंचाई जाती है।
`).ID)
		for query, want := range map[string]string{"oeffnungszeiten strasse": "Der", "schlussel": "Der",
			"Wann ist GEÖFFNET?": "Der", "lieferung": "Der", "cafe": "Der", "доставка хлеба": "Мы",
			"велосипде": "Мы", "自転車": "パン", "面包店": "パン", "αρτοποιειο": "Το", "המאפייה": "המ", "เปิดเจ็ดโมง": "ร้",
			"साइकिल": "रो"} {
			if got := l.find(query); len(got) == 0 || !strings.HasPrefix(got[0].Text, want) {
				t.Errorf("%q found %+v", query, got)
			}
		}
	})
}

func TestFailuresSayWhy(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		l.hook = func(ctx context.Context, n int64) error {
			if n == 1 {
				return document.Fail("The file is encrypted. Remove its password and upload it again.")
			}
			return nil
		}
		l.work()
		d := l.settled(l.add("Locked", handbook).ID)
		if d.Status != parley.KnowledgeFailed || d.Error == nil ||
			!strings.HasPrefix(*d.Error, "The file is encrypted.") {
			t.Fatalf("%+v", d)
		}
		good := l.settled(l.add("Good", "# Bread\nRye and wheat.").ID)
		if k, _ := l.DB.Knowledgebase(t.Context(), l.user.ID, l.base); k.Status != parley.KnowledgeFailed ||
			good.Status != parley.KnowledgeActive {
			t.Errorf("%+v", k)
		}
		if len(l.find("rye")) != 1 {
			t.Error("a failed document hides a good one")
		}
		if d, err := l.Again(t.Context(), l.user.ID, l.base, d.ID); err != nil ||
			d.Status != parley.KnowledgeProcessing || d.Error != nil {
			t.Fatal(d, err)
		}
		if d = l.settled(d.ID); d.Status != parley.KnowledgeActive || len(l.find("refunds")) == 0 {
			t.Errorf("after a retry: %+v", d)
		}
		empty := l.settled(l.add("Empty", "").ID)
		if empty.Error == nil || *empty.Error != "There is no text in it." {
			t.Errorf("%+v", empty)
		}
	})
}

// When a website is read again, the new text replaces the old one; until then, and when that fails, the old text is
// found.
func TestAgain(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		l.work()
		d := &parley.Document{Name: "Site", Type: parley.Website, URL: "https://example.com/", Links: []string{}}
		if err := l.Add(t.Context(), l.user.ID, l.base, d); err != nil {
			t.Fatal(err)
		}
		l.settled(d.ID)
		if got := l.find("site read times"); len(got) != 1 || !strings.Contains(got[0].Text, "read 1 times") ||
			got[0].URL != "https://example.com/" {
			t.Fatalf("%+v", got)
		}
		before := l.counts()
		if _, err := l.Again(t.Context(), l.user.ID, l.base, d.ID); err != nil {
			t.Fatal(err)
		}
		l.settled(d.ID)
		if got := l.find("site read times"); len(got) != 1 || !strings.Contains(got[0].Text, "read 2 times") {
			t.Fatalf("%+v", got)
		}
		l.until("the former passages are removed", func() bool { return l.counts()["chunks"] == before["chunks"] })
		after := l.counts()
		for table, n := range before {
			if after[table] != n && table != "words" && table != "word_tokens" {
				t.Errorf("%s had %d rows, now %d", table, n, after[table])
			}
		}
	})
}

// When the database fails, Again returns an error of ours, not that the document is being processed.
func TestAgainFails(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	l := newLibrary(t, storetest.Open(t, o))
	d := l.add("Broken", handbook)
	storetest.Break(t, o, "UPDATE OF run ON documents")
	l.write(func(ctx context.Context, tx *store.Tx) error {
		d.Run = 1
		_, err := tx.FinishDocument(ctx, d, "damaged")
		return err
	})
	var e *parley.Error
	if _, err := l.Again(t.Context(), l.user.ID, l.base, d.ID); err == nil || errors.As(err, &e) {
		t.Errorf("it is processed again: %v", err)
	}
}

func TestUnderWay(t *testing.T) {
	l := newLibrary(t, storetest.SQLite(t))
	gate := make(chan struct{})
	l.hook = func(ctx context.Context, n int64) error { <-gate; return nil }
	l.work()
	d := l.add("Slow", handbook)
	l.until("it is read", func() bool { return l.read.Load() == 1 })
	_, err := l.Again(t.Context(), l.user.ID, l.base, d.ID)
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != parley.Conflict {
		t.Errorf("a document under way is processed again: %v", err)
	}
	close(gate)
	l.settled(d.ID)
	if l.read.Load() != 1 {
		t.Errorf("it was read %d times", l.read.Load())
	}
}

// Nothing is left of a deleted document, even if it is deleted while it is processed.
func TestDeletedWithAllThatWasDerived(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		l.Embedder = by(&meaning{})
		l.work()
		none := l.counts()
		none["knowledgebases"] = 0 // it is deleted in the end
		long := strings.Repeat("# Part\nWords of many kinds fill this part of a book about bread and cakes.\n\n# Other\nRye.\n\n", 300)
		first, second := l.settled(l.add("First", handbook).ID), l.settled(l.add("Second", long).ID)
		some := l.counts()
		if some["vectors"] != some["chunks"] || some["chunks"] == 0 || some["words"] == 0 ||
			some["word_tokens"] == 0 || some["chunk_tokens"] == 0 {
			t.Fatalf("%v", some)
		}
		if err := l.Delete(t.Context(), l.user.ID, l.base, second.ID); err != nil {
			t.Fatal(err)
		}
		if got := l.find("book about bread"); len(got) > 0 && got[0].DocumentID == second.ID {
			t.Error("a deleted document is found")
		}
		if _, err := l.DB.Document(t.Context(), l.user.ID, l.base, second.ID); !store.IsNotFound(err) {
			t.Errorf("a deleted document is there: %v", err)
		}
		l.until("its passages are removed", func() bool { return l.counts()["chunks"] == first.ChunksCount })
		if err := l.Delete(t.Context(), l.user.ID, l.base, second.ID); !store.IsNotFound(err) {
			t.Errorf("deleted twice: %v", err)
		}
		gate := make(chan struct{})
		l.hook = func(ctx context.Context, n int64) error { <-gate; return nil }
		third := l.add("Third", long)
		l.until("it is read", func() bool { return l.read.Load() == 3 })
		if err := l.DeleteKnowledgebase(t.Context(), l.user.ID, l.base); err != nil {
			t.Fatal(err)
		}
		close(gate)
		if _, err := l.Search(t.Context(), l.user.ID, l.base, "rye", 5); !store.IsNotFound(err) {
			t.Errorf("a deleted knowledgebase is searched: %v", err)
		}
		l.until("everything is removed", func() bool { return fmt.Sprint(l.counts()) == fmt.Sprint(none) })
		for _, d := range []*parley.Document{first, second, third} {
			if _, err := l.Blobs.Open(t.Context(), d.Blob); err == nil {
				t.Errorf("the file of %s is there", d.Name)
			}
		}
	})
}

// A process dies in the middle: the next one finishes its document, and each passage is there once.
func TestResumed(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		long := strings.Repeat("# Part\nRye bread.\n\n# Other\nWheat bread.\n\n", 400)
		d := l.add("Long", long)
		// The first process takes the lease, stores some passages, and is never heard of again.
		l.write(func(ctx context.Context, tx *store.Tx) error {
			doc, err := tx.LeaseDocument(ctx, d.ID, 1, 500*time.Millisecond)
			if err != nil || doc == nil {
				return fmt.Errorf("no lease: %w", err)
			}
			chunks := []search.Chunk{{Position: 0, Text: "Rye bread."}, {Position: 1, Text: "Half a word"}}
			return search.Add(ctx, tx, doc, chunks, search.Lexicon{}.Index(chunks))
		})
		if len(l.find("rye")) != 0 {
			t.Error("half a document is found")
		}
		l.work() // the waiting job finds the lease taken, until it lapses
		d = l.settled(d.ID)
		if d.Status != parley.KnowledgeActive || l.counts()["chunks"] != d.ChunksCount {
			t.Errorf("%+v, %d passages are stored", d, l.counts()["chunks"])
		}
		if got := l.find("half word"); len(got) != 0 {
			t.Errorf("what the dead process left is found: %+v", got)
		}
		words, err := search.Words(t.Context(), l.DB.Query, l.base, []string{"rye", "half"})
		if err != nil || len(words) != 1 || words[0].Chunks != 400 {
			t.Errorf("%+v %v", words, err)
		}
	})
}

// Two jobs for one document, and a job from an earlier run, do its work once.
func TestJobsRunTwice(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		d := l.add("Once", handbook)
		l.write(func(ctx context.Context, tx *store.Tx) error {
			for range 3 {
				if err := enqueue(ctx, tx, d); err != nil {
					return err
				}
			}
			return nil
		})
		l.work()
		l.settled(d.ID)
		again := l.add("Again", "# Other\nSomething else.")
		l.settled(again.ID)
		if l.read.Load() != 2 || l.counts()["chunks"] != 4 {
			t.Errorf("read %d times, %v", l.read.Load(), l.counts())
		}
	})
}

func TestSameContentTwice(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		l.work()
		first, second := l.settled(l.add("First", handbook).ID), l.settled(l.add("Second", handbook).ID)
		if first.DuplicateOf != nil || second.DuplicateOf == nil || *second.DuplicateOf != first.ID {
			t.Errorf("%v %v", first.DuplicateOf, second.DuplicateOf)
		}
		if got := l.find("refunds"); len(got) != 1 {
			t.Errorf("found %d times", len(got))
		}
		if err := l.Delete(t.Context(), l.user.ID, l.base, first.ID); err != nil {
			t.Fatal(err)
		}
		if got := l.find("refunds"); len(got) != 1 || got[0].DocumentID != second.ID {
			t.Errorf("without the first: %+v", got)
		}
		if d := l.settled(second.ID); d.DuplicateOf != nil {
			t.Error("it is still a duplicate of what is gone")
		}
	})
}

// An upload that belongs to no document is removed; one that belongs to a document is not.
func TestStrayFiles(t *testing.T) {
	l := newLibrary(t, storetest.SQLite(t))
	name, _, err := l.Upload(t.Context(), bytes.NewReader([]byte("stray")))
	if err != nil {
		t.Fatal(err)
	}
	d := l.add("Kept", handbook)
	for _, n := range []string{name, name, d.Blob} {
		if err := l.stray(t.Context(), &river.Job[strayArgs]{Args: strayArgs{n}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Blobs.Open(t.Context(), name); err == nil {
		t.Error("a stray file is there")
	}
	if o, err := l.Blobs.Open(t.Context(), d.Blob); err != nil {
		t.Error("a document's file is gone")
	} else {
		o.Close()
	}
}

// meaning is an embedder that knows a few words and what they mean.
type meaning struct {
	fail  atomic.Pointer[ai.Error]
	asked atomic.Int64
	name  string
}

func (m *meaning) Name() string { return "test" + m.name }

func (m *meaning) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	m.asked.Add(1)
	if err := m.fail.Load(); err != nil {
		return nil, err
	}
	topics := [][]string{{"refund", "money", "back"}, {"open", "close", "hours"},
		{"deliver", "bicycle", "bike", "van"}, {"rye", "bread"}}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, 70)
		for k := range v {
			v[k] = -0.01
		}
		for k, words := range topics {
			for _, w := range words {
				if strings.Contains(strings.ToLower(text), w) {
					v[k*10], v[k*10+1], v[k*10+2] = 1, 1, 1
				}
			}
		}
		out[i] = v
	}
	return out, nil
}

// Documents that were read without an embedder get vectors once there is one, and again when it is replaced by another.
func TestVectorsCatchUp(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		var now atomic.Pointer[meaning]
		l.Embedder = func() ai.Embedder {
			if m := now.Load(); m != nil {
				return m
			}
			return nil
		}
		l.work()
		l.settled(l.add("Handbook", handbook).ID)
		gone := l.settled(l.add("Gone", "# Gone\nA van that is sold.").ID)
		if err := l.Delete(t.Context(), l.user.ID, l.base, gone.ID); err != nil {
			t.Fatal(err)
		}
		if got := l.find("bike"); len(got) != 0 {
			t.Fatalf("without an embedder: %+v", got)
		}
		byMeaning := func() bool {
			got := l.find("bike")
			return len(got) > 0 && strings.HasPrefix(got[0].Text, "Bread is")
		}
		now.Store(&meaning{})
		l.until("the document is found by its meaning", byMeaning)
		other := &meaning{name: "2"}
		now.Store(other)
		l.until("its vectors are the other embedder's", byMeaning)
		l.until("nothing is embedded twice", func() bool {
			lacking, err := l.DB.LackVectors(t.Context(), other.Name())
			return err == nil && !lacking
		})
		if c := l.counts(); c["vectors"] > c["chunks"] {
			t.Errorf("%v", c)
		}
	})
}

func by(m *meaning) func() ai.Embedder { return func() ai.Embedder { return m } }

func TestMeaning(t *testing.T) {
	each(t, func(t *testing.T, l *library) {
		m := &meaning{}
		var now atomic.Pointer[meaning]
		now.Store(m)
		l.Embedder = func() ai.Embedder { return now.Load() }
		l.work()
		l.settled(l.add("Handbook", handbook).ID)
		// by a word that occurs nowhere
		if got := l.find("bike"); len(got) == 0 || !strings.HasPrefix(got[0].Text, "Bread is") {
			t.Errorf("%+v", got)
		}
		l.settled(l.add("More", "# Rye\nA dark grain.").ID) // the codes are made a little later
		if got := l.find("bread of the dark kind"); len(got) == 0 {
			t.Error("nothing")
		}
		m.fail.Store(&ai.Error{Kind: ai.Overloaded, Err: errors.New("busy")})
		if got := l.find("bicycle"); len(got) != 1 || !strings.HasPrefix(got[0].Text, "Bread is") {
			t.Errorf("while the embedder fails: %+v", got)
		}
		asked := m.asked.Load()
		d := l.add("Later", "# Later\nEmbedded later.")
		l.until("an attempt has failed", func() bool { return m.asked.Load() > asked })
		m.fail.Store(nil)
		if d := l.settled(d.ID); d.Status != parley.KnowledgeActive {
			t.Errorf("%+v", d)
		}
		m.fail.Store(&ai.Error{Kind: ai.Config, Err: errors.New("no such model")})
		d = l.settled(l.add("Never", "# Never\nNot embedded.").ID)
		if d.Status != parley.KnowledgeFailed || !strings.HasPrefix(*d.Error, "The embedding server") {
			t.Errorf("%+v", d)
		}
		m.fail.Store(nil)
		other := &meaning{name: "2"} // vectors of two models can't be compared: words must do until there are new ones
		other.fail.Store(&ai.Error{Kind: ai.Overloaded, Err: errors.New("busy")})
		now.Store(other)
		if got := l.find("bike"); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		if got := l.find("bicycle"); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	})
}
