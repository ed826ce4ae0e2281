package knowledge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"

	"parley/internal/document"
	"parley/internal/egress"
)

// fetched is a page's answer.
type fetched struct {
	url               *url.URL // where it was in the end
	contentType       string
	body              []byte
	cut               bool
	noindex, nofollow bool
}

// reason is an error in words for the user.
type reason string

func (e reason) Error() string { return string(e) }

// fetch gets a page: through redirects one by one, each by the rules of its site, and again after a pause where the
// server asks for one.
func (r *crawl) fetch(ctx context.Context, link string) (*fetched, error) {
	u, err := url.Parse(link)
	if err != nil {
		return nil, reason("it is not the address of a web page")
	}
	seen := map[string]bool{}
	for tries, hops := 0, 0; ; {
		if err := r.allowed(ctx, u); err != nil {
			return nil, err
		}
		resp, got, err := r.get(ctx, u)
		if err != nil {
			return nil, err
		}
		switch code := resp.StatusCode; {
		case resp.Header.Get("Cf-Mitigated") == "challenge":
			return nil, reason(document.IsChallenge)
		case code == http.StatusUnauthorized:
			return nil, reason(document.IsSignIn)
		case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
			wait := retryAfter(resp.Header, tries)
			if tries++; tries > retries || wait > maxPause {
				return nil, reason(fmt.Sprintf("the server is busy (%d); try again later", code))
			}
			if err := r.sleep(ctx, wait); err != nil {
				return nil, err
			}
			continue
		case code >= 300 && code < 400 && resp.Header.Get("Location") != "":
			next, err := u.Parse(resp.Header.Get("Location"))
			if err != nil || next.Host == "" {
				return nil, reason("the server redirects to nowhere")
			}
			next.Fragment = ""
			if hops++; hops > redirects || seen[next.String()] {
				return nil, reason("the server redirects too often")
			}
			if r.follow && r.site != "" && siteOf(next) != r.site {
				return nil, reason("it leads to another website")
			}
			if k := key(next); r.kept[k] {
				return nil, reason("it leads to a page that was read already")
			}
			seen[u.String()] = true
			u = next
			continue
		case code != http.StatusOK:
			return nil, reason(fmt.Sprintf("the server answers %d %s", code, http.StatusText(code)))
		}
		got.url = u
		return got, nil
	}
}

// get makes one request. Only the body of a page is read.
func (r *crawl) get(ctx context.Context, u *url.URL) (*http.Response, *fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, r.pageTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, reason("it is not the address of a web page")
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/html, application/xhtml+xml;q=0.9, text/plain;q=0.8")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, nil, reason(egress.Explain(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp, nil, nil
	}
	got := &fetched{contentType: resp.Header.Get("Content-Type")}
	kind, _, err := mime.ParseMediaType(got.contentType)
	if kind == "" || err != nil && kind == "" {
		kind, got.contentType = "text/html", ""
	}
	switch kind {
	case "text/html", "application/xhtml+xml", "text/plain":
	case "application/pdf":
		return nil, nil, reason("it is a PDF, not a web page: upload it as a document of its own")
	default:
		return nil, nil, reason("it is not a web page but " + short(kind))
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, nil, reason("the server compresses it in a way that was not asked for (" + short(enc) + ")")
	}
	for _, rules := range resp.Header.Values("X-Robots-Tag") {
		if agent, rest, ok := strings.Cut(rules, ":"); ok &&
			!strings.EqualFold(strings.TrimSpace(agent), document.RobotName) && !strings.Contains(agent, ",") {
			continue // another crawler's
		} else if ok {
			rules = rest
		}
		index, follow := document.RobotsRules(rules)
		got.noindex, got.nofollow = got.noindex || !index, got.nofollow || !follow
	}
	got.body, got.cut, err = egress.Read(resp.Body, r.pageSize)
	if err != nil {
		return nil, nil, reason(egress.Explain(err))
	}
	return resp, got, nil
}

// read has a child make a page of an answer. Whoever owns the site only learns that theirs could not be read.
func (r *crawl) read(ctx context.Context, f *fetched) (*document.Page, error) {
	p, err := r.Reader.Page(ctx, document.WebPage{URL: f.url.String(), ContentType: f.contentType, Body: f.body})
	failure := (*document.Failure)(nil)
	switch {
	case err == nil:
		return p, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &failure):
		return nil, failure
	}
	slog.ErrorContext(ctx, "read a web page", "error", err)
	return nil, reason("the page could not be read")
}

// retryAfter is how long a server wants to be left alone (RFC 9110, 10.2.3), or a while that grows.
func retryAfter(h http.Header, tries int) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.Atoi(v); err == nil && n >= 0 {
		return time.Duration(min(n, 1<<20)) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return time.Duration(1+4*tries) * time.Second
}

// robotRules is what a site's robots.txt says to this crawler.
type robotRules struct {
	group *robotstxt.Group
	delay time.Duration
	err   error // why nothing of the site may be read
}

// allowed asks robots.txt (RFC 9309) of the site, read once, and keeps the pause it asks for.
func (r *crawl) allowed(ctx context.Context, u *url.URL) error {
	origin := u.Scheme + "://" + u.Host
	rules := r.robots[origin]
	if rules == nil {
		rules = r.readRobots(ctx, origin)
		if len(r.robots) < 1000 {
			r.robots[origin] = rules
		}
	} else if rules.delay > 0 {
		if err := r.sleep(ctx, rules.delay); err != nil {
			return err
		}
	}
	if rules.err != nil {
		return rules.err
	}
	if path := u.RequestURI(); rules.group != nil && !rules.group.Test(path) {
		return reason("its robots.txt forbids reading it")
	}
	return nil
}

func (r *crawl) readRobots(ctx context.Context, origin string) *robotRules {
	ctx, cancel := context.WithTimeout(ctx, r.pageTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/robots.txt", nil)
	if err != nil {
		return &robotRules{err: reason("it is not the address of a web page")}
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := r.Guard.Client(redirects).Do(req)
	if err != nil {
		return &robotRules{err: reason(egress.Explain(err))}
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 500 || code == http.StatusTooManyRequests: // RFC 9309, 2.3.1.4: unreachable is a no
		return &robotRules{err: reason(fmt.Sprintf("its robots.txt can't be read (the server answers %d); try again later", code))}
	case code >= 300:
		return &robotRules{}
	}
	b, _, err := egress.Read(resp.Body, 512<<10)
	if err != nil && len(b) == 0 {
		return &robotRules{err: reason("its robots.txt can't be read: " + egress.Explain(err))}
	}
	return parseRobots(b)
}

// parseRobots reads the rules; rules that can't be understood are none.
func parseRobots(b []byte) (rules *robotRules) {
	defer func() {
		if recover() != nil {
			rules = &robotRules{}
		}
	}()
	data, err := robotstxt.FromBytes(b)
	if err != nil {
		return &robotRules{}
	}
	g := data.FindGroup(document.RobotName)
	return &robotRules{group: g, delay: max(0, min(g.CrawlDelay, maxDelay))}
}
