package main

import (
	"cmp"
	"io"
	"iter"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// redact is w without what in these settings is secret: keys, tokens and passwords, and in addresses the user, the
// password and the values of the query. Whatever prints or logs an address, or an error of a client that names one,
// writes through it.
func (s *Settings) redact(w io.Writer) io.Writer {
	pairs := s.secrets()
	if len(pairs) == 0 && s.entered == nil {
		return w
	}
	return redactor{w, strings.NewReplacer(pairs...), s.entered}
}

type redactor struct {
	io.Writer
	secrets *strings.Replacer
	entered *entered
}

// entered are secrets that were entered while the server runs. A nil one has none.
type entered struct {
	mu   sync.Mutex
	list []ownSecret // each account's last ones
	now  atomic.Pointer[strings.Replacer]
}

// ownSecret is a secret of an account, 0 for the server.
type ownSecret struct {
	userID int64
	text   string
}

// What is looked for of accounts. The server's own secrets are never forgotten.
const (
	maxEntered = 2000 // of all accounts
	maxOwn     = 20   // of one
)

// hide has a secret of an account, or (0) of the server, hidden from now on. An account must not choose what the log lacks: of its
// secrets only those are hidden that look like keys.
func (e *entered) hide(userID int64, secret string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	is := ownSecret{userID, secret}
	if len(secret) < shortest || userID != 0 && !likeKey(secret) || slices.Contains(e.list, is) {
		return
	}
	e.list = append(e.list, is)
	e.forget(maxOwn, func(o ownSecret) bool { return userID != 0 && o.userID == userID })
	e.forget(maxEntered, func(o ownSecret) bool { return o.userID != 0 })
	var pairs []string
	for _, o := range e.list {
		for _, form := range []string{o.text, url.QueryEscape(o.text), url.PathEscape(o.text)} {
			pairs = append(pairs, form, "[secret]")
		}
	}
	e.now.Store(strings.NewReplacer(pairs...))
}

// forget removes the oldest of some secrets where they are more than so many.
func (e *entered) forget(most int, of func(ownSecret) bool) {
	n := 0
	for _, o := range e.list {
		if of(o) {
			n++
		}
	}
	if n > most {
		at := slices.IndexFunc(e.list, of)
		e.list = slices.Delete(e.list, at, at+1)
	}
}

// likeKey says whether an account's secret looks like a key, and like nothing else that stands in a log: a word, an attribute, an
// address.
func likeKey(secret string) bool {
	_, notAddr := netip.ParseAddr(secret)
	_, notPort := netip.ParseAddrPort(secret)
	return len(secret) >= minOwn && notAddr != nil && notPort != nil && strings.ContainsAny(secret, "0123456789") &&
		!strings.ContainsAny(strings.TrimRight(secret, "="), "=\"' @") && !strings.Contains(secret, "://")
}

// redact is a text without them.
func (e *entered) redact(text string) string {
	if e == nil {
		return text
	}
	if now := e.now.Load(); now != nil {
		return now.Replace(text)
	}
	return text
}

// Write takes whole lines: the log writes a record at a time, and so do the commands.
func (r redactor) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.Writer, r.entered.redact(r.secrets.Replace(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shortest is how long a key or a password is at least: what is shorter may stand in every other word.
const shortest = 8

// minOwn is how long an account's secret is at least that is hidden.
const minOwn = 20

// keyFiles are settings that name the file of a key.
var keyFiles = []string{"TLSKey", "SIPTLSKey", "STIRKey"}

// secrets are what is looked for and what stands in its place, the longest first. For an address, these are the user
// and password up to the @, and the values in its query, exactly as written there: on their own they may be words such
// as postgres.
func (s *Settings) secrets() (pairs []string) {
	hide := map[string]string{}
	for name, text := range s.texts() {
		if secretName.MatchString(name) && !slices.Contains(keyFiles, name) && len(text) >= shortest {
			for _, form := range []string{text, url.QueryEscape(text), url.PathEscape(text)} {
				hide[form] = "[secret]"
			}
		}
		scheme, rest, ok := strings.Cut(text, "://")
		if !ok || scheme == "" {
			continue
		}
		// By hand: an address that can't be read may be the one that is complained of.
		authority, query, _ := strings.Cut(rest, "?")
		if scheme != "s3" { // whose secrets may hold a slash
			authority, _, _ = strings.Cut(authority, "/")
		}
		if at := strings.LastIndexByte(authority, '@'); at > 0 {
			hide[authority[:at+1]] = "[secret]@"
			if u, err := url.Parse(text); err == nil && u.User != nil {
				hide[u.User.String()+"@"] = "[secret]@"
			}
		}
		for part := range strings.SplitSeq(query, "&") {
			if key, value, _ := strings.Cut(part, "="); value != "" && !slices.Contains(public, key) {
				hide[part] = key + "=[secret]"
			}
		}
	}
	found := slices.SortedFunc(maps.Keys(hide), func(a,
		b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	for _, text := range found {
		pairs = append(pairs, text, hide[text])
	}
	return pairs
}

// texts are the settings that are texts and are set, with the names of their fields.
func (s *Settings) texts() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for _, part := range append([]any{s}, s.Declared...) {
			v := reflect.ValueOf(part).Elem()
			for i := range v.NumField() {
				if f := v.Field(i); f.Kind() == reflect.String && f.String() != "" &&
					!yield(v.Type().Field(i).Name, f.String()) {
					return
				}
			}
		}
	}
}

var (
	secretName = regexp.MustCompile(`(Key|Token|Secret|Password)$`)
	public     = []string{"endpoint", "region", "sslmode", "api-version"} // query parameters that hold no secret
)
