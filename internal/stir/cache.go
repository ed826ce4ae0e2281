package stir

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/crash"
	"parley/internal/egress"
)

const (
	maxChain   = 64 << 10 // bytes of certificates at an address
	maxCached  = 1000     // addresses
	maxFetches = 16       // at once
	fetchTime  = 5 * time.Second
	// how long certificates are kept: by their Cache-Control between these bounds, usualAge without one
	minAge   = time.Minute
	usualAge = time.Hour
	maxAge   = 24 * time.Hour
	failAge  = 30 * time.Second // after which an address that failed is asked again
)

// cache has the certificates at addresses. Each is fetched once for all who wait for it.
type cache struct {
	client *http.Client
	now    func() time.Time
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	at      map[string]*entry
	fetches int
}

// entry is what is at an address.
type entry struct {
	done  chan struct{} // closed when it is known
	chain *Chain
	err   error
	until time.Time
}

func newCache(client *http.Client, now func() time.Time) *cache {
	c := &cache{client: client, now: now, at: map[string]*entry{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// close ends what is being fetched, and waits for it.
func (c *cache) close() {
	c.cancel()
	c.wg.Wait()
}

var (
	errNotInTime = errors.New("the certificate was not there in time")
	errCrowded   = errors.New("too many certificates are being fetched")
)

// get is the chain at an address. Where ctx ends first, fetching goes on for the calls after this one.
func (c *cache) get(ctx context.Context, where string) (*Chain, error) {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "https" || u.Host == "" || len(where) > maxURI {
		return nil, errors.New("the certificate's address is no https address")
	}
	c.mu.Lock()
	e := c.at[where]
	if e == nil || !e.fetching() && !c.now().Before(e.until) {
		if c.fetches >= maxFetches || c.ctx.Err() != nil || !c.room() {
			c.mu.Unlock()
			return nil, errCrowded
		}
		e = &entry{done: make(chan struct{})}
		c.at[where] = e
		c.fetches++
		crash.Go(&c.wg, func() { c.fetch(where, e) }, crash.Log("the fetching of a certificate"))
	}
	c.mu.Unlock()
	select {
	case <-e.done:
		return e.chain, e.err
	case <-ctx.Done():
		return nil, errNotInTime
	}
}

func (e *entry) fetching() bool {
	select {
	case <-e.done:
		return false
	default:
		return true
	}
}

// room makes room for one more address. The caller holds mu.
func (c *cache) room() bool {
	if len(c.at) < maxCached {
		return true
	}
	oldest, until := "", time.Time{}
	for where, e := range c.at {
		switch {
		case e.fetching():
		case !c.now().Before(e.until):
			delete(c.at, where)
		case oldest == "" || e.until.Before(until):
			oldest, until = where, e.until
		}
	}
	if len(c.at) >= maxCached {
		delete(c.at, oldest)
	}
	return len(c.at) < maxCached
}

// fetch gets what is at an address.
func (c *cache) fetch(where string, e *entry) {
	e.err, e.until = errors.New("the certificate could not be fetched"), c.now().Add(failAge) // if it panics
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fetches--
		close(e.done)
	}()
	ctx, cancel := context.WithTimeout(c.ctx, fetchTime)
	defer cancel()
	chain, age, err := Fetch(ctx, c.client, where)
	if err != nil {
		e.err = err
		return
	}
	e.chain, e.err, e.until = chain, nil, c.now().Add(age)
}

// Fetch gets the certificates at an address, and how long they may be kept.
func Fetch(ctx context.Context, client *http.Client, where string) (*Chain, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, 0, errors.New("the certificate's address can't be read")
	}
	req.Header.Set("Accept", "application/pem-certificate-chain, application/pkix-cert, */*")
	res, err := client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("the certificate could not be fetched: %s", egress.Explain(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("the certificate could not be fetched: the answer was %d", res.StatusCode)
	}
	data, more, err := egress.Read(res.Body, maxChain)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("the certificate could not be fetched: %s", egress.Explain(err))
	case more:
		return nil, 0, errors.New("what is at the certificate's address is too long")
	}
	chain, err := ParseChain(data)
	return chain, ageOf(res.Header.Get("Cache-Control")), err
}

// ageOf is how long an answer may be kept, by its Cache-Control (RFC 9111, section 5.2.2). One that is not to be kept is
// kept for a moment all the same, so that each call doesn't fetch it anew.
func ageOf(control string) time.Duration {
	age := usualAge
	for part := range strings.SplitSeq(strings.ToLower(control), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "no-store", "no-cache":
			return minAge
		case "max-age":
			if n, err := strconv.ParseUint(strings.Trim(value, `" `), 10, 31); err == nil {
				age = time.Duration(n) * time.Second
			}
		}
	}
	return max(minAge, min(age, maxAge))
}
