package knowledge

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// siteOf is the site that a page belongs to: its host without "www.", with a port that is not the scheme's.
func siteOf(u *url.URL) string {
	host := strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), "www.")
	if p := u.Port(); p != "" && !(u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443") {
		host += ":" + p
	}
	return host
}

// sessions are parameters that tell visitors or their ways apart, not pages.
var sessions = regexp.MustCompile(
	`(?i)^(phpsessid|jsessionid|aspsessionid.*|sessionid|session_id|sid|s|cfid|cftoken|utm_.*|fbclid|gclid|msclkid|mc_cid|mc_eid|ref|_ga)$`)

// key is the same for addresses of the same page: without scheme, fragment, session, slash at the end and name of an
// index; parameters in order.
func key(u *url.URL) string {
	p := u.EscapedPath()
	if i := strings.Index(strings.ToLower(p), ";jsessionid="); i >= 0 {
		p = p[:i]
	}
	if p = path.Clean("/" + p); strings.HasPrefix(path.Base(p), "index.") {
		p = path.Dir(p)
	}
	q := u.Query()
	for k := range q {
		if sessions.MatchString(k) {
			q.Del(k)
		}
	}
	return siteOf(u) + strings.TrimSuffix(p, "/") + "?" + q.Encode()
}

var (
	// Pages of these kinds lead to ever more addresses: calendars, orders of lists, answers, prints.
	endless = regexp.MustCompile(`(?i)^(year|month|week|day|date|cal|calendar|start|end|from|to|sort|sortby|order|orderby|dir|filter.*|replytocom|print|printable|share|action|oldid|diff|rev|highlight)$`)
	// An archive by date; an article below one has a name behind it.
	archive = regexp.MustCompile(`/(19|20|21)\d\d/\d{1,2}(/\d{1,2})?/?$`)
	dates   = regexp.MustCompile(`/(19|20|21)\d\d-\d\d(-\d\d)?/?$`)
	// Files that hold documents are told to the user; pictures and programs are passed over.
	documents = regexp.MustCompile(`(?i)\.(pdf|docx?|odt|rtf|xlsx?|pptx?)$`)
	media     = regexp.MustCompile(`(?i)\.(jpe?g|png|gif|svg|webp|ico|bmp|tiff?|mp[34]|m4[av]|avi|mov|webm|og[gv]|wav|flac|css|m?js|json|xml|rss|atom|zip|t?gz|bz2|xz|7z|rar|tar|deb|rpm|exe|msi|dmg|iso|apk|bin|woff2?|ttf|eot|csv|epub|ics)$`)
)

// trap says why a link is not followed: "file" for one that holds a document, "trap" for everything that leads
// nowhere, "" for a page.
func trap(u *url.URL) string {
	p := u.Path
	switch {
	case documents.MatchString(p):
		return "file"
	case media.MatchString(p), archive.MatchString(p), dates.MatchString(p), len(u.String()) > 1000, repeated(p):
		return "trap"
	}
	q := u.Query()
	if len(q) > 6 {
		return "trap"
	}
	for k := range q {
		if endless.MatchString(k) {
			return "trap"
		}
	}
	return ""
}

// repeated says whether a path goes in circles: deep, or with a part three times.
func repeated(p string) bool {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	if len(parts) > 12 {
		return true
	}
	count := map[string]int{}
	for _, part := range parts {
		if count[part]++; part != "" && count[part] > 2 {
			return true
		}
	}
	return false
}
