package failover

import (
	"context"
	"sync"
)

// script is the texts of a reply, as they come, for all who may have to say them.
type script struct {
	mu     sync.Mutex
	texts  []string
	closed bool
	more   chan struct{} // closed when there is more, and replaced
	bell   chan struct{} // has a token when there is more
}

func newScript() *script {
	return &script{more: make(chan struct{}), bell: make(chan struct{}, 1)}
}

// fill takes texts until there are no more, or ctx ends.
func (s *script) fill(ctx context.Context, texts <-chan string) {
	for {
		select {
		case text, ok := <-texts:
			s.mu.Lock()
			if ok {
				s.texts = append(s.texts, text)
			}
			s.closed = !ok
			close(s.more)
			s.more = make(chan struct{})
			s.mu.Unlock()
			select {
			case s.bell <- struct{}{}:
			default:
			}
			if !ok {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// at is text i; there is false where it has not come, and over where it will not.
func (s *script) at(i int) (text string, there, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i < len(s.texts) {
		return s.texts[i], true, false
	}
	return "", false, s.closed
}

// wait waits for text i; false where there will be none, or ctx has ended.
func (s *script) wait(ctx context.Context, i int) (string, bool) {
	for {
		s.mu.Lock()
		more := s.more
		s.mu.Unlock()
		text, there, over := s.at(i)
		if there || over {
			return text, there
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", false
		}
	}
}

// feed sends the texts from i on; the first of them without its beginning.
func (s *script) feed(ctx context.Context, i, from int, to chan<- string) {
	for ; ; i++ {
		text, ok := s.wait(ctx, i)
		if !ok {
			if ctx.Err() == nil {
				close(to)
			}
			return
		}
		select {
		case to <- text[from:]:
			from = 0
		case <-ctx.Done():
			return
		}
	}
}
