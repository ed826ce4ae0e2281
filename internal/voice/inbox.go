package voice

import "sync"

// inbox takes what happens to a call to the goroutine that owns it. Posting never waits.
type inbox struct {
	bell chan struct{} // there is something in it
	done chan struct{} // closed when nobody reads it any more

	mu     sync.Mutex
	queue  []func()
	closed bool
}

func newInbox() *inbox { return &inbox{bell: make(chan struct{}, 1), done: make(chan struct{})} }

// ring wakes the owner.
func (b *inbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// post has the owner do something, after all that was posted before.
func (b *inbox) post(f func()) {
	b.mu.Lock()
	b.queue = append(b.queue, f)
	b.mu.Unlock()
	b.ring()
}

// ask has the owner do something and waits until that is done. The owner may not ask, nor who holds a lock that it
// may need.
func (b *inbox) ask(f func()) {
	done := make(chan struct{})
	b.post(func() {
		defer close(done)
		f()
	})
	select {
	case <-done:
	case <-b.done:
	}
}

// next is what was posted first, nil when there is nothing; over says that there will never be anything again.
func (b *inbox) next() (f func(), over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.queue = nil // the array is let go: a call that is quiet has none
		return nil, b.closed
	}
	f, b.queue[0] = b.queue[0], nil
	b.queue = b.queue[1:]
	return f, false
}

// close ends the owner when it has done all that was posted.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.ring()
}
