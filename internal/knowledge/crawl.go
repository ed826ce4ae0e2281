package knowledge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/internal/document"
	"parley/internal/egress"
)

// Bounds of a crawl.
const (
	pageSize    = 5 << 20 // bytes of a page, inflated; what is beyond is cut off
	pageTime    = 30 * time.Second
	crawlTime   = 10 * time.Minute
	crawlText   = 32 << 20 // bytes of text in all
	redirects   = 5
	politeness  = 250 * time.Millisecond // between requests
	maxPause    = time.Minute            // that a server may ask for, by Retry-After
	maxDelay    = 5 * time.Second        // that robots.txt may ask for, by Crawl-delay
	retries     = 2                      // after 429 and 503
	maxWarnings = 50
)

const userAgent = document.RobotName + "/1.0"

// Site says what to read: a page with the pages of the same site that it leads to, or exactly a list of pages.
type Site struct {
	URL   string
	Links []string
	Limit int // how many pages are followed from URL, beside itself
}

// Crawler reads websites. One request is under way at a time, with a pause before the next.
type Crawler struct {
	Guard    *egress.Guard
	Reader   *document.Extractor   // reads the pages
	Progress func(done, total int) // called after each page that was tried; may be nil

	sleep func(context.Context, time.Duration) error // for tests: their pauses
	limit func(*crawl)                               // for tests: smaller bounds
}

// Crawl reads a site into one text, whose sections know their pages' addresses. Pages that can't be read are
// warnings; when none can, the first one's reason is the *[document.Failure].
func (c *Crawler) Crawl(ctx context.Context, s Site) (*document.Text, error) {
	r := &crawl{Crawler: c, client: c.Guard.Client(0), pageTime: pageTime, pageSize: pageSize, total: crawlTime,
		robots: map[string]*robotRules{},
		seen:   map[string]bool{}, kept: map[string]bool{}, hashes: map[[32]byte]bool{}}
	defer c.Guard.Close()
	if r.sleep == nil {
		r.Crawler = &Crawler{c.Guard, c.Reader, c.Progress, pause, c.limit}
	}
	if c.limit != nil {
		c.limit(r)
	}
	limited, cancel := context.WithTimeoutCause(ctx, r.total, errCrawlTime)
	defer cancel()
	if len(s.Links) > 0 {
		for _, link := range s.Links {
			r.add(link)
		}
		r.most = len(r.queue)
	} else {
		r.follow, r.most = true, 1+max(0, s.Limit)
		r.add(s.URL)
	}
	r.run(limited)
	if err := ctx.Err(); err != nil { // the caller's
		return nil, err
	}
	if len(r.text.Sections) == 0 {
		reason := "there is no text on it"
		if len(r.reasons) > 0 {
			reason = r.reasons[0]
		}
		return nil, document.Fail("Nothing could be read from the website: %s.", reason)
	}
	r.text.Warnings = append(r.text.Warnings, r.reasons...)
	return &r.text, nil
}

var errCrawlTime = errors.New("the website took too long")

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// crawl is one run.
type crawl struct {
	*Crawler
	client   *http.Client
	pageTime time.Duration
	pageSize int64
	total    time.Duration
	robots   map[string]*robotRules // by origin
	follow   bool
	most     int    // pages to keep
	site     string // the host that links must be on, once the first page was read
	queue    []string
	seen     map[string]bool // addresses that were queued or read, as key has them
	kept     map[string]bool // addresses whose text was kept
	hashes   map[[32]byte]bool
	done     int // pages kept
	asked    int // requests for pages
	text     document.Text
	reasons  []string
}

// add queues an address, once.
func (r *crawl) add(link string) {
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil || u.Host == "" {
		r.skip(link, "it is not the address of a web page")
		return
	}
	if k := key(u); !r.seen[k] {
		r.seen[k] = true
		r.queue = append(r.queue, u.String())
	}
}

func (r *crawl) skip(link, reason string) {
	if len(r.reasons) < maxWarnings {
		r.reasons = append(r.reasons, short(link)+": "+reason)
	}
}

func short(s string) string {
	s = document.Clean(s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

func (r *crawl) run(ctx context.Context) {
	// Pages that are skipped don't count, but nobody is asked for ever.
	for len(r.queue) > 0 && r.done < r.most && r.asked < 2*r.most+10 {
		link := r.queue[0]
		r.queue = r.queue[1:]
		if r.asked > 0 && r.sleep(ctx, politeness) != nil {
			break
		}
		r.asked++
		if err := r.page(ctx, link); err != nil && ctx.Err() == nil {
			r.skip(link, err.Error())
		}
		if ctx.Err() != nil {
			break
		}
		if r.Progress != nil {
			r.Progress(r.done, min(r.most, r.done+len(r.queue)))
		}
		if r.text.Size() > crawlText {
			r.skip(link, "the website holds more text than is kept; the pages after this one were left out")
			return
		}
	}
	if errors.Is(context.Cause(ctx), errCrawlTime) {
		r.skip("the website", fmt.Sprintf("it took longer than %v; the pages that were left then were not read",
			r.total))
	}
}

// page reads one page and queues those that it leads to.
func (r *crawl) page(ctx context.Context, link string) error {
	got, err := r.fetch(ctx, link)
	if err != nil {
		return err
	}
	first := r.site == ""
	if first {
		r.site = siteOf(got.url)
	}
	p, err := r.read(ctx, got)
	if err != nil {
		return err
	}
	if got.cut {
		r.skip(link, fmt.Sprintf("only the first %d MB were read", r.pageSize>>20))
	}
	if p.Refresh != "" && p.Size() < 200 {
		r.extend(p.Refresh)
	}
	if r.follow && !p.Nofollow && !got.nofollow {
		for _, l := range p.Links {
			r.extend(l)
		}
	}
	if p.Noindex || got.noindex {
		return errors.New("its owner asks not to index it (noindex)")
	}
	if p.Barrier != "" {
		return errors.New(p.Barrier)
	}
	if len(p.Warnings) > 0 {
		r.skip(link, p.Warnings[0])
	}
	r.keep(got.url, p)
	return nil
}

// extend queues a link of a page, if it is on the site and no trap.
func (r *crawl) extend(link string) {
	u, err := url.Parse(link)
	if err != nil || !r.follow || siteOf(u) != r.site {
		return
	}
	switch kind := trap(u); kind {
	case "":
		r.add(link)
	case "file":
		if k := key(u); !r.seen[k] {
			r.seen[k] = true
			r.skip(link, "it is a file, not a web page: upload it as a document of its own")
		}
	}
}

// keep takes a page's text, unless it is there already: by its canonical address, or by what it says.
func (r *crawl) keep(u *url.URL, p *document.Page) {
	at := u
	if c, err := url.Parse(p.Canonical); err == nil && c.Host != "" && siteOf(c) == siteOf(u) &&
		(strings.Trim(c.Path, "/") != "" || strings.Trim(u.Path, "/") == "") {
		at = c // a site whose every page calls its front page canonical is mistaken
	}
	h := sha256.New()
	for _, s := range p.Sections {
		h.Write([]byte(s.Text))
	}
	sum := [32]byte(h.Sum(nil))
	r.seen[key(u)], r.seen[key(at)] = true, true
	if len(p.Sections) == 0 {
		r.skip(u.String(), "there is no text on it")
		return
	}
	if r.kept[key(at)] || r.hashes[sum] {
		return
	}
	r.kept[key(at)], r.hashes[sum] = true, true
	r.done++
	if r.text.Title == "" {
		r.text.Title = p.Title
	}
	for _, s := range p.Sections {
		s.URL = at.String()
		if len(s.Heading) == 0 && p.Title != "" {
			s.Heading = []string{p.Title}
		}
		r.text.Sections = append(r.text.Sections, s)
	}
}
