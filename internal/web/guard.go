package web

import (
	"cmp"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// Pause is how long a client may send nothing of a body that it has begun, and how long it may take to accept a
	// piece of an answer.
	Pause = 30 * time.Second
	// BodyTime is how long a whole body may take, unless Patience gives it more.
	BodyTime = 30 * time.Second
	// UploadTime is what forms with files are given.
	UploadTime = 15 * time.Minute
	// stopTime is how long bodies that are under way when the server stops may still take.
	stopTime = 5 * time.Second
	// piece is what a client must accept within Pause: so it reads at least a kilobyte a second.
	piece = 32 << 10
)

// Guard keeps slow clients from holding a request for ever, whatever route it takes: bodies arrive in time, and
// answers are read in time, streams too. Handlers may take as long as they like.
type Guard struct {
	Handler http.Handler
	Pause   time.Duration // 0: Pause
	Whole   time.Duration // that a body may take; 0: BodyTime

	mu       sync.Mutex
	stopping bool
	bodies   map[*body]struct{} // that have not arrived
}

// ServeHTTP answers a request under the guard.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &writer{w, http.NewResponseController(w), cmp.Or(g.Pause, Pause)}
	out.control.SetWriteDeadline(time.Time{}) // of the connection's last answer
	if r.Body != nil && r.Body != http.NoBody {
		in := &body{ReadCloser: r.Body, guard: g, control: out.control,
			until: time.Now().Add(cmp.Or(g.Whole, BodyTime))}
		g.arriving(in)
		defer g.arrived(in)
		defer in.last()
		r = r.WithContext(r.Context()) // a copy: net/http looks at its own whether the body was read to its end
		r.Body = in
	}
	defer out.last()
	g.Handler.ServeHTTP(out, r)
}

// Stop gives the bodies that have not arrived five more seconds: a server that stops waits for nobody who has not
// asked yet.
func (g *Guard) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	for b := range g.bodies {
		b.hurry()
	}
}

func (g *Guard) arriving(b *body) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bodies == nil {
		g.bodies = map[*body]struct{}{}
	}
	g.bodies[b] = struct{}{}
	b.wait()
	if g.stopping {
		b.hurry()
	}
}

func (g *Guard) arrived(b *body) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.bodies, b)
}

// body is a request's body under deadlines.
type body struct {
	io.ReadCloser
	guard   *Guard
	control *http.ResponseController

	mu    sync.Mutex
	until time.Time // when all of it must be there
	hasty bool      // the server stops
	over  bool      // it has arrived, or failed: the connection's deadline is others'
}

// wait lets the next piece take its time.
func (b *body) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	deadline := time.Now().Add(cmp.Or(b.guard.Pause, Pause))
	if deadline.After(b.until) {
		deadline = b.until
	}
	b.control.SetReadDeadline(deadline) // not every test writer has one
}

// hurry lets the rest take stopTime at most.
func (b *body) hurry() {
	b.mu.Lock()
	b.hasty = true
	if soon := time.Now().Add(stopTime); soon.Before(b.until) {
		b.until = soon
	}
	b.mu.Unlock()
	b.wait()
}

// allow gives the whole body so long from now, unless the server stops.
func (b *body) allow(whole time.Duration) {
	b.mu.Lock()
	if !b.hasty {
		b.until = time.Now().Add(whole)
	}
	b.mu.Unlock()
	b.wait()
}

// Read reads a piece.
func (b *body) Read(p []byte) (int, error) {
	b.wait()
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.mu.Lock()
		b.over = true
		// from here on net/http watches the connection for the client's leaving, however long that takes
		if err == io.EOF {
			b.control.SetReadDeadline(time.Time{})
		}
		b.mu.Unlock()
		b.guard.arrived(b)
	}
	return n, err
}

// last is when the handler is done: net/http reads on for a little, to use the connection again.
func (b *body) last() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		b.control.SetReadDeadline(time.Now().Add(stopTime))
	}
}

// Patience gives a request's body so long to arrive, from now on, in pieces between which Pause may pass.
func Patience(r *http.Request, whole time.Duration) {
	if b, ok := r.Body.(*body); ok {
		b.allow(whole)
	}
}

// writer is an answer that its reader must accept, piece by piece.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	pause   time.Duration
}

func (w *writer) hold()  { w.control.SetWriteDeadline(time.Now().Add(w.pause)) }
func (w *writer) relax() { w.control.SetWriteDeadline(time.Time{}) }

// last is when the handler is done: what is still buffered must be accepted too.
func (w *writer) last() { w.hold() }

// Write writes in pieces, each of which has its time.
func (w *writer) Write(p []byte) (n int, err error) {
	for {
		m, err := w.write(p[:min(len(p), piece)])
		n, p = n+m, p[m:]
		if err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (w *writer) write(p []byte) (int, error) {
	w.hold()
	defer w.relax()
	return w.ResponseWriter.Write(p)
}

// FlushError sends what was written; an error means that the reader is gone.
func (w *writer) FlushError() error {
	w.hold()
	defer w.relax()
	return w.control.Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Witness reads, and remembers how it failed: what takes a form apart tells that in words of its own.
type Witness struct {
	io.ReadCloser
	Err error // other than the end
}

// Read reads.
func (r *Witness) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		r.Err = err
	}
	return n, err
}

// StreamLife is how long a live stream goes on. Readers come back by themselves; one that has gone away unseen, or
// only pretends to read, does not.
const StreamLife = 30 * time.Minute
