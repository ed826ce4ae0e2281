package auth

import (
	"runtime"
	"strings"
)

// ParseToken is parseToken.
var ParseToken = parseToken

// Decoy is the hash that the password of an unknown user is checked against.
var Decoy = decoy

// Occupy takes every place for hashing until its result is called.
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

// Waiting returns once a login is waiting for a place to hash.
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

// Cost is the parameters of a hash: the algorithm, memory, passes and lanes.
func Cost(hash string) string {
	parts := strings.Split(hash, "$")
	return strings.Join(parts[:min(4, len(parts))], "$")
}

// Names is the number of buckets.
func (l *Limiter) Names() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

// Names is the number of names that have a slot.
func (s *Slots) Names() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

// Known is the number of addresses that are remembered.
func (l *Logins) Known() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known)
}
