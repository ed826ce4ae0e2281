package voice

import "sync"

// inbox passes events of a call to the goroutine that owns it. Posting never waits.
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

// post has the owner run f after everything that was posted before.
func (b *inbox) post(f func()) {
	b.mu.Lock()
	b.queue = append(b.queue, f)
	b.mu.Unlock()
	b.ring()
}

// ask has the owner run f and waits until it is done. The owner itself must not call it, nor anyone who holds a lock
// that the owner may need.
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

// next is the oldest posted function, nil when there is none. over means that none will ever come again.
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

// close stops the owner once it has run everything that was posted.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.ring()
}
