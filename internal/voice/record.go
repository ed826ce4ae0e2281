package voice

import (
	"io"

	"parley/internal/audio"
	"parley/internal/crash"
)

// Recording writes both sides of a call, or of one of its legs. The disk may be slow and the leg must not wait, so audio
// goes by pages through a short queue to a goroutine; what finds no free page becomes silence.
type Recording struct {
	rec   *audio.Recorder
	size  int   // of a frame
	page  *page // that is being filled; nil: there is none yet
	made  int   // pages
	queue chan *page
	free  chan *page
	lost  int // frames since the last that found a page
	done  chan struct{}
	err   error // of the writer, once done
}

// page is some audio of both sides, preceded by a number of lost frames.
type page struct {
	lost              int
	customer, speaker []int16
}

const (
	pageFrames = 10
	maxPages   = 8 // more than a second waits for the disk at most
)

// NewRecording begins a recording, which must be closed.
func NewRecording(w io.WriteSeeker, rate audio.Rate) (*Recording, error) {
	rec, err := audio.NewRecorder(w, rate)
	if err != nil {
		return nil, err
	}
	r := &Recording{rec: rec, size: rate.FrameSize(), queue: make(chan *page, maxPages),
		free: make(chan *page, maxPages), done: make(chan struct{})}
	go r.write()
	return r, nil
}

// blank is an empty page; nil when all are waiting for the disk.
func (r *Recording) blank() *page {
	select {
	case p := <-r.free:
		return p
	default:
	}
	if r.made == maxPages {
		return nil
	}
	r.made++
	pcm := make([]int16, 2*pageFrames*r.size)
	half := len(pcm) / 2
	return &page{customer: pcm[:0:half], speaker: pcm[half:half]}
}

// Put adds a frame of both sides.
func (r *Recording) Put(customer, speaker audio.Frame) {
	if r.page == nil {
		if r.page = r.blank(); r.page == nil {
			r.lost++
			return
		}
		r.page.lost, r.lost = r.lost, 0
	}
	p := r.page
	p.customer, p.speaker = pad(p.customer, customer, r.size), pad(p.speaker, speaker, r.size)
	if len(p.customer) == cap(p.customer) {
		r.queue <- p // there is room: there are no more pages than places
		r.page = nil
	}
}

// pad appends a frame of n samples, filling up with silence.
func pad(dst []int16, f audio.Frame, n int) []int16 {
	dst = append(dst, f[:min(len(f), n)]...)
	for range n - len(f) {
		dst = append(dst, 0)
	}
	return dst
}

func (r *Recording) write() {
	defer close(r.done)
	defer crash.Contain(r.keep)
	silence := make(audio.Frame, r.size)
	for p := range r.queue {
		for range p.lost {
			r.keep(r.rec.Write(silence, nil))
		}
		r.keep(r.rec.Write(p.customer, p.speaker))
		p.customer, p.speaker = p.customer[:0], p.speaker[:0]
		select {
		case r.free <- p:
		default: // the last one
		}
	}
	r.keep(r.rec.Close())
}

func (r *Recording) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Close writes what is left, and says what went wrong. Nothing may be put after it.
func (r *Recording) Close() error {
	if r.page == nil {
		r.page = &page{lost: r.lost}
	}
	r.queue <- r.page
	close(r.queue)
	<-r.done
	return r.err
}
