package auth

import (
	"runtime"
	"strings"
)

// ParseToken is parseToken.
var ParseToken = parseToken

// Decoy is what an unknown user's password is held against.
var Decoy = decoy

// Occupy takes every place to hash until it is called back.
func Occupy() (free func()) {
	for range cap(hashing) {
		hashing <- struct{}{}
	}
	return func() {
		for range cap(hashing) {
			<-hashing
		}
	}
}

// Waiting returns once a login waits for a place to hash.
func Waiting() {
	stacks := make([]byte, 1<<20)
	for {
		all := string(stacks[:runtime.Stack(stacks, true)])
		for _, one := range strings.Split(all, "\n\n") {
			if strings.Contains(one, "[select") && strings.Contains(one, "auth.(*Authority).Login(") &&
				!strings.Contains(one, "store.") {
				return
			}
		}
		runtime.Gosched()
	}
}

// Cost is a hash's parameters: the algorithm, its memory, passes and lanes.
func Cost(hash string) string {
	parts := strings.Split(hash, "$")
	return strings.Join(parts[:min(4, len(parts))], "$")
}

// Names is how many buckets are kept.
func (l *Limiter) Names() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

// Names is how many names have a slot.
func (s *Slots) Names() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

// Known is how many addresses are remembered.
func (l *Logins) Known() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known)
}
