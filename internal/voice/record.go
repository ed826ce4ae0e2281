package voice

import (
	"io"
	"sync"

	"parley/internal/audio"
)

// recording writes both sides of a call. The disk may be slow and the leg must not wait: frames go through a short queue to a goroutine,
// and those that find no room are silence.
type recording struct {
	rec   *audio.Recorder
	size  int
	queue chan *pair
	free  chan *pair
	lost  int // frames since the last that found room
	done  chan struct{}
	err   error // of the writer, once done
}

// pair is a frame of both sides, after some that were lost.
type pair struct {
	lost              int
	customer, speaker []int16
}

// recordAhead is how many frames wait for the disk at most: more than a second.
const recordAhead = 64

func newRecording(w io.WriteSeeker, rate audio.Rate, wg *sync.WaitGroup) (*recording, error) {
	rec, err := audio.NewRecorder(w, rate)
	if err != nil {
		return nil, err
	}
	n := rate.FrameSize()
	r := &recording{rec: rec, size: n, queue: make(chan *pair, recordAhead), free: make(chan *pair, recordAhead), done: make(chan struct{})}
	for range recordAhead {
		r.free <- &pair{customer: make([]int16, n), speaker: make([]int16, n)}
	}
	wg.Go(r.write)
	return r, nil
}

// put adds a frame of both sides.
func (r *recording) put(customer, speaker audio.Frame) {
	select {
	case p := <-r.free:
		clear(p.customer[copy(p.customer, customer):])
		clear(p.speaker[copy(p.speaker, speaker):])
		p.lost, r.lost = r.lost, 0
		r.queue <- p // there is room: there are no more pairs than places
	default:
		r.lost++
	}
}

func (r *recording) write() {
	defer close(r.done)
	for p := range r.queue {
		for range p.lost {
			r.keep(r.rec.Write(nil, nil))
		}
		r.keep(r.rec.Write(p.customer, p.speaker))
		r.free <- p
	}
	r.keep(r.rec.Close())
}

func (r *recording) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

// close writes what is left. Nothing may be put any more.
func (r *recording) close() {
	close(r.queue)
	<-r.done
}
