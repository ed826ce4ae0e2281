package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/document"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

const (
	attempts   = 4                // of a document whose processing failed for reasons of our own
	ingestTime = 30 * time.Minute // no document takes longer
	batch      = 200              // passages that are stored or removed in one transaction: nobody waits long for it
	embedBatch = 64               // passages that the embedder is asked about at once
)

// ingestArgs is the job that makes a document answer.
type ingestArgs struct {
	Document int64 `json:"document"`
	Run      int64 `json:"run"`
}

// Kind implements river.JobArgs.
func (ingestArgs) Kind() string { return "document_ingest" }

// ingest may run twice, and at two places at once: the lease lets one of them go on, a run begins by removing what a
// former attempt of it left behind, and its passages are found only when all are there.
func (d *Library) ingest(ctx context.Context, job *river.Job[ingestArgs]) error {
	var doc *parley.Document
	var owner int64
	var full bool
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if owner, err = tx.DocumentOwner(ctx, job.Args.Document); err != nil || owner == 0 {
			return err
		}
		free, err := tx.FreePlaces(ctx, owner, Places)
		if full = free <= 0; err != nil || full && job.Attempt > 1 {
			return err
		}
		if full {
			return tx.QueueDocument(ctx, job.Args.Document, job.Args.Run)
		}
		doc, err = tx.LeaseDocument(ctx, job.Args.Document, job.Args.Run, d.lease())
		return err
	})
	switch {
	case err != nil:
		return err
	case full && job.Attempt > 1: // how often it was tried must not be forgotten
		return river.JobSnooze(d.lease())
	case full: // whoever frees a place enqueues it
		return nil
	case doc != nil:
		err = d.read(ctx, job, doc)
	}
	return errors.Join(err, d.next(context.WithoutCancel(ctx), owner))
}

// next has those of a user's documents worked that wait for a place, as far as there are any.
func (d *Library) next(ctx context.Context, userID int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.NextDocuments(ctx, userID, Places)
		if err != nil {
			return err
		}
		return enqueueAll(ctx, tx, list)
	})
}

// read makes a leased document answer, or says why it can't.
func (d *Library) read(ctx context.Context, job *river.Job[ingestArgs], doc *parley.Document) error {
	p := &processing{Library: d, doc: doc, embedder: d.Present()}
	err := p.run(ctx)
	failure := (*document.Failure)(nil)
	switch {
	case err == nil, errors.Is(err, errUnwanted):
		return nil
	case errors.As(err, &failure):
	case ctx.Err() == nil && (job.Attempt >= attempts || hopeless(err)):
		slog.Error("process a document", "document", doc.ID, "error", err)
		failure = &document.Failure{Reason: p.excuse(err)}
	default: // the next attempt may do better
		return errors.Join(fmt.Errorf("process document %d: %w", doc.ID, err),
			d.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
				return tx.UnleaseDocument(ctx, doc)
			}))
	}
	return p.finish(context.WithoutCancel(ctx), failure.Reason)
}

// hopeless says whether the embedder will fail alike when it is asked again.
func hopeless(err error) bool {
	failure, ok := errors.AsType[*ai.Error](err)
	return ok && !failure.Retry() && failure.Kind != ai.Stalled && failure.Kind != ai.Interrupted
}

// processing is one attempt at a document.
type processing struct {
	*Library
	doc         *parley.Document
	embedder    ai.Embedder // for all of it; nil: none
	done, total atomic.Int64
}

var errUnwanted = errors.New("the document is wanted no more")

// excuse tells a person of a failure that was none of theirs.
func (p *processing) excuse(err error) string {
	if ai.KindOf(err) != "" {
		return "The embedding server did not answer as it should. Retry later, or ask the operator to look at it."
	}
	return "The document could not be processed because of a fault on this server. Retry later."
}

func (p *processing) progress() parley.Progress {
	return parley.Progress{Done: int(p.done.Load()), Total: int(p.total.Load())}
}

// run reads, cuts, embeds and stores. A heartbeat keeps the lease meanwhile and ends the work when the document is
// deleted.
func (p *processing) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, ingestTime,
		document.Fail("Reading took longer than %v. Split the document into smaller ones.", ingestTime))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		defer crash.Contain(stop)
		p.beat(ctx, stop)
	}()
	err := crash.Run(func() error { return p.process(ctx) })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	stop(nil)
	<-beating
	return err
}

func (p *processing) beat(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(min(p.lease()/3, time.Second))
	defer tick.Stop()
	told, at := parley.Progress{}, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := p.progress()
		if now == told && time.Since(at) < p.lease()/3 {
			continue
		}
		err := p.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return p.renew(ctx, tx) })
		if errors.Is(err, errUnwanted) {
			stop(err)
			return
		}
		if err == nil {
			told, at = now, time.Now()
		}
	}
}

func (p *processing) renew(ctx context.Context, tx *store.Tx) error {
	ok, err := tx.RenewDocument(ctx, p.doc, p.progress(), p.lease())
	if err == nil && !ok {
		err = errUnwanted
	}
	return err
}

func (p *processing) process(ctx context.Context) error {
	text, err := p.text(ctx)
	if err != nil {
		return err
	}
	cut, err := p.Cut(ctx, text.Sections)
	if err != nil {
		return err
	}
	if len(cut) == 0 {
		return document.Fail("There is no text in it.")
	}
	sum := sha256.New()
	for _, c := range cut {
		fmt.Fprintf(sum, "%d\n%s\n%s\n", len(c.Text), c.Heading, c.Text)
	}
	p.doc.Hash, p.doc.ChunksCount = hex.EncodeToString(sum.Sum(nil)), len(cut)
	if err := p.drop(ctx, p.doc, p.doc.Live); err != nil {
		return err
	}
	pages := p.doc.Type == parley.Website // whose progress is told already
	if !pages {
		p.total.Store(int64(len(cut)))
	}
	if p.doc.Embedder = ""; p.embedder != nil {
		p.doc.Embedder = p.embedder.Name()
	}
	words, title := search.Lexicon{}, titleOf(p.doc, text)
	step := batch
	// a batch takes little time and no writer waits for it, and each counts its words anew
	if !p.DB.SQLite() && p.embedder == nil {
		step = 5 * batch
	}
	for from := 0; from < len(cut); from += step {
		to := min(from+step, len(cut))
		if err := p.store(ctx, words, title, from, cut[from:to]); err != nil {
			return err
		}
		if !pages {
			p.done.Store(int64(to))
		}
	}
	if err := search.Settle(ctx, p.DB); err != nil {
		return err
	}
	p.doc.Progress, p.doc.Warnings = p.progress(), text.Warnings
	return p.finish(ctx, "")
}

// text gets the document's text.
func (p *processing) text(ctx context.Context) (*document.Text, error) {
	if p.doc.Type == parley.Website {
		return p.ReadSite(ctx, p.doc, func(done, total int) {
			p.done.Store(int64(done))
			p.total.Store(int64(total))
		})
	}
	file, err := p.Blobs.Open(ctx, p.doc.Blob)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return p.ReadFile(ctx, p.doc.Type, file)
}

// titleOf is what a document is found by beside its text: its name, and what it calls itself where that says more. A
// later name counts from the next reading on.
func titleOf(doc *parley.Document, text *document.Text) string {
	if text.Title == "" || strings.Contains(strings.ToLower(doc.Name), strings.ToLower(text.Title)) {
		return doc.Name
	}
	return doc.Name + "\n" + text.Title
}

// store embeds and stores a batch of passages.
func (p *processing) store(ctx context.Context, l search.Lexicon, title string, from int, cut []document.Chunk) error {
	chunks := make([]search.Chunk, len(cut))
	for i, c := range cut {
		chunks[i] = search.Chunk{Position: from + i, Title: title, Heading: c.Heading, Page: c.Page, URL: c.URL,
			Text: c.Text}
	}
	if p.embedder != nil {
		if err := embed(ctx, p.embedder, chunks); err != nil {
			return err
		}
	}
	select { // documents take turns
	case p.storing <- struct{}{}:
		defer func() { <-p.storing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	words := l.Index(chunks)
	return p.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := p.renew(ctx, tx); err != nil { // a document that was deleted gets no more passages
			return err
		}
		return search.Add(ctx, tx, p.doc, chunks, words)
	})
}

// embed gives passages their vectors.
func embed(ctx context.Context, embedder ai.Embedder, chunks []search.Chunk) error {
	for len(chunks) > 0 {
		part := chunks[:min(embedBatch, len(chunks))]
		chunks = chunks[len(part):]
		texts := make([]string, len(part))
		for i, c := range part {
			if texts[i] = c.Text; c.Heading != "" {
				texts[i] = c.Heading + "\n" + c.Text
			}
		}
		got, err := embedder.Embed(ctx, texts)
		if err != nil {
			return ai.TheEmbedder.Of(err)
		}
		if len(got) != len(part) {
			return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("%d vectors for %d texts", len(got), len(part))}
		}
		for i := range part {
			part[i].Code, part[i].Vector = search.Pack(got[i])
		}
	}
	return nil
}

// finish ends the run and has what is found no more removed.
func (p *processing) finish(ctx context.Context, failure string) error {
	return p.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		doc := *p.doc // the transaction may run twice
		if ok, err := tx.FinishDocument(ctx, &doc, failure); err != nil || !ok {
			return err
		}
		return tx.Enqueue(ctx, tidyArgs{p.doc.ID}, &river.InsertOpts{Queue: Queue})
	})
}

// drop removes the passages of a document's runs other than keep, in steps.
func (d *Library) drop(ctx context.Context, doc *parley.Document, keep int64) error {
	l := search.Lexicon{}
	for {
		n := 0
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = search.Drop(ctx, tx, doc, keep, batch, l.Index)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// tidyArgs is the job that removes what a document holds and nobody can find: all of a deleted one, else what its
// live run has replaced.
type tidyArgs struct {
	Document int64 `json:"document"`
}

// Kind implements river.JobArgs.
func (tidyArgs) Kind() string { return "document_tidy" }

func (d *Library) tidy(ctx context.Context, job *river.Job[tidyArgs]) error {
	doc, hidden, err := d.DB.AnyDocument(ctx, job.Args.Document)
	switch {
	case err != nil || doc == nil:
		return err
	case hidden:
		return d.forget(ctx, doc)
	case doc.Status == parley.KnowledgeProcessing: // the run under way does it
		return nil
	}
	return d.drop(ctx, doc, doc.Live)
}

// forget removes all of a deleted document.
func (d *Library) forget(ctx context.Context, doc *parley.Document) error {
	if err := d.drop(ctx, doc, -1); err != nil {
		return err
	}
	if err := d.forgetFile(ctx, doc.Blob); err != nil {
		return err
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.ForgetDocument(ctx, doc.ID) })
}

// forgetFile removes a file that no document wants.
func (d *Library) forgetFile(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if wanted, err := d.DB.BlobWanted(ctx, name); err != nil || wanted {
		return err
	}
	return d.Blobs.Delete(ctx, name)
}

// forgetArgs is the job that removes all of a deleted knowledgebase.
type forgetArgs struct {
	Knowledgebase int64 `json:"knowledgebase"`
}

// Kind implements river.JobArgs.
func (forgetArgs) Kind() string { return "knowledgebase_forget" }

func (d *Library) forgetAll(ctx context.Context, job *river.Job[forgetArgs]) error {
	for {
		list, err := d.DB.HiddenDocuments(ctx, job.Args.Knowledgebase, 50)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		for i := range list {
			if err := d.forget(ctx, &list[i]); err != nil {
				return err
			}
		}
	}
	for {
		n := 0
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.ForgetWords(ctx, job.Args.Knowledgebase, 5*batch)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// strayArgs is the job that removes a file unless a document names it.
type strayArgs struct {
	Blob string `json:"blob"`
}

// Kind implements river.JobArgs.
func (strayArgs) Kind() string { return "document_stray" }

func (d *Library) stray(ctx context.Context, job *river.Job[strayArgs]) error {
	return d.forgetFile(ctx, job.Args.Blob)
}
