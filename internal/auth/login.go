package auth

import (
	"strings"
	"sync"
	"time"
)

// Logins bounds how often passwords are tried, wherever: one Logins serves the API and the console. It counts
//
//   - per pair of address and account, all attempts;
//   - per address, six times as many;
//   - per account, whatever addresses they come from, those that fail: six times as many at first, then as many as a pair may.
//
// An address that has signed in to an account lately is not held up by what others try there.
type Logins struct {
	pair, address, account *Limiter
	codes                  *Limiter // wrong codes of a second factor, per person

	mu    sync.Mutex
	known map[string]time.Time // when a pair last signed in
	swept time.Time
}

// knownFor is how long an address that has signed in to an account is remembered.
const knownFor = 30 * 24 * time.Hour

// codeRate is how often a person's codes may be wrong: whoever knows the password has three in a million chances with
// each, so that a day of trying finds a code once in three years.
var codeRate = Rate{PerSecond: 1. / 300, Burst: 10}

// NewLogins makes limits from what a pair may. Codes have theirs also where passwords have none: a million of them would be tried
// in minutes.
func NewLogins(pair Rate) *Logins {
	return &Logins{codes: NewLimiter(codeRate), pair: NewLimiter(pair), address: NewLimiter(pair.Times(6)),
		account: NewLimiter(Rate{pair.PerSecond, 6 * pair.Burst}),
		known:   map[string]time.Time{}}
}

// Try counts an attempt of an address at an account, or refuses it with a LimitError. The caller calls good when the
// password was right.
func (l *Logins) Try(from, email string, now time.Time) (good func(), err error) {
	if l == nil { // no limits
		return func() {}, nil
	}
	pair, err := l.count(from, email, now)
	if err != nil {
		return nil, err
	}
	email = strings.ToLower(strings.TrimSpace(email))
	back := func() {}
	if !l.knows(pair, now) {
		if _, back, err = l.account.borrow(email, now); err != nil {
			return nil, err
		}
	}
	return func() { back(); l.remember(pair, now) }, nil
}

// TryCode counts a try of a person's code, whatever address it comes from, or refuses it with a LimitError. The caller
// calls good when the code was right.
func (l *Logins) TryCode(person string, now time.Time) (good func(), err error) {
	if l == nil { // no limits
		return func() {}, nil
	}
	_, good, err = l.codes.borrow(person, now)
	return good, err
}

// Ask counts what costs as an attempt does and tries no password: to make an account.
func (l *Logins) Ask(from, email string, now time.Time) error {
	if l == nil {
		return nil
	}
	_, err := l.count(from, email, now)
	return err
}

// Come counts what costs us a request to others, and names no account.
func (l *Logins) Come(from string, now time.Time) error {
	if l == nil {
		return nil
	}
	_, err := l.address.Take(Network(from), now)
	return err
}

// count takes from what an address and a pair may.
func (l *Logins) count(from, email string, now time.Time) (pair string, err error) {
	from = Network(from)
	pair = from + "\n" + strings.ToLower(strings.TrimSpace(email))
	if _, err := l.address.Take(from, now); err != nil {
		return "", err
	}
	_, err = l.pair.Take(pair, now)
	return pair, err
}

func (l *Logins) knows(pair string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.known[pair]
	return ok && now.Sub(at) < knownFor
}

func (l *Logins) remember(pair string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[pair] = now
	if now.Sub(l.swept) < time.Hour {
		return
	}
	l.swept = now
	for pair, at := range l.known {
		if now.Sub(at) >= knownFor {
			delete(l.known, pair)
		}
	}
}
