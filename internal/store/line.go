package store

import (
	"sync"
)

// line is the writes that wait for SQLite's one writer. Accounts take turns: one that writes much makes the others wait
// for one of its writes, not for all of them. Writes of the server's own take turns as one account.
type line struct {
	mu      sync.Mutex
	waiting map[int64][]*pending // by account, in the order in which they came
	turns   []int64              // accounts with waiting writes, whose turn is next first
	closed  bool
	more    chan struct{} // has a token when somebody came
}

func newLine() *line { return &line{waiting: map[int64][]*pending{}, more: make(chan struct{}, 1)} }

// join adds a write. False: the line is closed.
func (l *line) join(p *pending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.waiting[p.account]) == 0 {
		l.turns = append(l.turns, p.account)
	}
	l.waiting[p.account] = append(l.waiting[p.account], p)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return true
}

// next takes the first write of the account whose turn it is, which is the last in turn from then on; nil where nobody
// waits.
func (l *line) next() *pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) == 0 {
		return nil
	}
	account := l.turns[0]
	list := l.waiting[account]
	l.turns = l.turns[1:]
	if len(list) == 1 {
		delete(l.waiting, account)
	} else {
		l.waiting[account], l.turns = list[1:], append(l.turns, account)
	}
	return list[0]
}

// leave takes a write out. False: it isn't waiting any more.
func (l *line) leave(p *pending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.waiting[p.account]
	for i := range list {
		if list[i] != p {
			continue
		}
		if len(list) > 1 {
			l.waiting[p.account] = append(append([]*pending{}, list[:i]...), list[i+1:]...)
			return true
		}
		delete(l.waiting, p.account)
		for j, account := range l.turns {
			if account == p.account {
				l.turns = append(l.turns[:j], l.turns[j+1:]...)
				break
			}
		}
		return true
	}
	return false
}

// close refuses whoever comes from now on, and returns who waits.
func (l *line) close() (left []*pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, list := range l.waiting {
		left = append(left, list...)
	}
	l.waiting, l.turns = nil, nil
	return left
}
