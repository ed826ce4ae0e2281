package gemini

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"parley/internal/provider/wire"
)

// writer is what is on its way to the server: messages, and sound between them, in order. Sound goes out when there is
// enough of it for a message, or when a message or the end of an utterance follows. While a reply is made the queue
// is shut: speech would interrupt the reply, and whether it is to do so is not the vendor's decision.
type writer struct {
	bell  chan struct{}
	head  []byte // of a message with sound
	piece int    // octets of sound in a message

	outbox sync.Mutex
	conn   *wire.Conn
	urgent [][]byte // messages that don't wait
	queue  []outgoing
	free   [][]byte // buffers for sound that went out
	shut   bool
	paused bool // the session is moving to another connection
}

// outgoing is a message, or sound as the server takes it.
type outgoing struct {
	sound bool
	data  []byte
	shuts bool // it asks for a reply
}

const (
	mostSound  = 4 << 20 // octets that may wait for the server
	soundTail  = `"}}}`
	mostFree   = 4         // buffers
	bufferSize = 16 * 1024 // of a new one
)

func (w *writer) init(rate int) {
	w.bell, w.piece = make(chan struct{}, 1), 2*rate/10
	w.head = fmt.Appendf(nil, `{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=%d","data":"`, rate)
}

func (w *writer) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// sound appends what was heard.
func (w *writer) sound(pcm []int16) {
	w.outbox.Lock()
	defer w.outbox.Unlock()
	n := len(w.queue)
	if n == 0 || !w.queue[n-1].sound {
		var buffer []byte
		if f := len(w.free); f > 0 {
			buffer, w.free = w.free[f-1][:0], w.free[:f-1]
		} else {
			buffer = make([]byte, 0, bufferSize)
		}
		w.queue = append(w.queue, outgoing{sound: true, data: buffer})
		n = len(w.queue)
	}
	o := &w.queue[n-1]
	if len(o.data) > mostSound {
		return
	}
	for _, v := range pcm {
		o.data = append(o.data, byte(v), byte(v>>8))
	}
	if len(o.data) >= w.piece {
		w.ring()
	}
}

// send appends a message; one that asks for a reply holds back what follows until the reply is made.
func (w *writer) send(message any, asks bool) {
	w.outbox.Lock()
	w.queue = append(w.queue, outgoing{data: encode(message), shuts: asks})
	w.outbox.Unlock()
	w.ring()
}

// hurry sends a message before those that wait; one that asks for a reply holds those back.
func (w *writer) hurry(message any, asks bool) {
	w.outbox.Lock()
	w.urgent = append(w.urgent, encode(message))
	w.shut = w.shut || asks
	w.outbox.Unlock()
	w.ring()
}

func encode(message any) []byte {
	raw, err := json.Marshal(message)
	if err != nil {
		slog.Error("write to a realtime model", "error", err) // all that is sent can be written
	}
	return raw
}

// release lets out what was held back by a reply.
func (w *writer) release() {
	w.outbox.Lock()
	w.shut = false
	w.outbox.Unlock()
	w.ring()
}

// hold keeps everything back until resume says to which connection it goes.
func (w *writer) hold() {
	w.outbox.Lock()
	w.paused = true
	w.outbox.Unlock()
}

func (w *writer) resume(conn *wire.Conn) {
	w.outbox.Lock()
	w.conn, w.paused = conn, false
	w.outbox.Unlock()
	w.ring()
}

// unsent reports whether anything waits.
func (w *writer) unsent() bool {
	w.outbox.Lock()
	defer w.outbox.Unlock()
	return len(w.queue)+len(w.urgent) > 0
}

// pop takes what is sent next, if there is anything.
func (w *writer) pop() (o outgoing, conn *wire.Conn, ok bool) {
	w.outbox.Lock()
	defer w.outbox.Unlock()
	switch {
	case w.paused:
	case len(w.urgent) > 0:
		o, ok = outgoing{data: w.urgent[0]}, true
		w.urgent = slices.Delete(w.urgent, 0, 1)
	case !w.shut && len(w.queue) > 0:
		o, ok = w.queue[0], true
		w.queue = slices.Delete(w.queue, 0, 1)
		w.shut = o.shuts
	}
	return o, w.conn, ok
}

// write sends what there is until ctx ends. Where the socket is gone the reader is told by its end.
func (w *writer) write(ctx context.Context) {
	var message []byte
	for {
		select {
		case <-w.bell:
		case <-ctx.Done():
			return
		}
		for {
			o, conn, ok := w.pop()
			if !ok {
				break
			}
			data := o.data
			if o.sound {
				message = append(message[:0], w.head...)
				message = base64.StdEncoding.AppendEncode(message, data)
				message = append(message, soundTail...)
				data = message
			}
			if err := conn.SendWritten(data); err != nil {
				break // the reader sees why
			}
			if o.sound {
				w.outbox.Lock()
				if len(w.free) < mostFree {
					w.free = append(w.free, o.data)
				}
				w.outbox.Unlock()
			}
		}
	}
}
