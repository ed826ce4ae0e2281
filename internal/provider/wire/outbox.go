package wire

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
)

// Outbox is what is on its way to a server that hears: messages, and sound between them, in order. Sound goes out as
// base64 in messages of its own, when there is enough of it for one, or when something follows. The zero value is no
// use: set the fields, then Resume with a connection.
//
// A message that asks for a reply can hold back what follows until the reply is made (Release).
type Outbox struct {
	Head, Tail string                               // of a message with sound
	Piece      int                                  // octets of sound in it
	Encode     func(dst []byte, pcm []int16) []byte // nil is PCM of 16 bits, little endian

	bell    chan struct{}
	ringing sync.Once

	mu     sync.Mutex
	conn   *Conn
	urgent [][]byte // messages that don't wait
	queue  []outgoing
	free   [][]byte // buffers for sound that went out
	shut   bool     // a reply is waited for
	paused bool     // there is no connection at the moment
}

// outgoing is a message, or sound as the server takes it.
type outgoing struct {
	sound bool
	data  []byte
	shuts bool // it asks for a reply
}

const (
	maxSound   = 4 << 20   // octets that may wait for the server
	maxFree    = 4         // buffers
	bufferSize = 16 * 1024 // of a new one
)

// Ring has what there is sent, even sound that is less than a piece.
func (o *Outbox) Ring() {
	select {
	case o.waiting() <- struct{}{}:
	default:
	}
}

func (o *Outbox) waiting() chan struct{} {
	o.ringing.Do(func() { o.bell = make(chan struct{}, 1) })
	return o.bell
}

// Sound appends what was heard. It never allocates per frame.
func (o *Outbox) Sound(pcm []int16) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.queue)
	if n == 0 || !o.queue[n-1].sound {
		var buffer []byte
		if f := len(o.free); f > 0 {
			buffer, o.free = o.free[f-1][:0], o.free[:f-1]
		} else {
			buffer = make([]byte, 0, bufferSize)
		}
		o.queue = append(o.queue, outgoing{sound: true, data: buffer})
		n = len(o.queue)
	}
	last := &o.queue[n-1]
	if len(last.data) > maxSound {
		return
	}
	if o.Encode != nil {
		last.data = o.Encode(last.data, pcm)
	} else {
		for _, v := range pcm {
			last.data = binary.LittleEndian.AppendUint16(last.data, uint16(v))
		}
	}
	if len(last.data) >= o.Piece {
		o.Ring()
	}
}

// Send appends a message.
func (o *Outbox) Send(message any) { o.send(message, false) }

// Ask appends a message that asks for a reply: what follows is held back until Release.
func (o *Outbox) Ask(message any) { o.send(message, true) }

func (o *Outbox) send(message any, asks bool) {
	raw := encode(message)
	o.mu.Lock()
	o.queue = append(o.queue, outgoing{data: raw, shuts: asks})
	o.mu.Unlock()
	o.Ring()
}

// Hurry sends a message before those that wait; one that asks for a reply holds those back.
func (o *Outbox) Hurry(message any, asks bool) {
	raw := encode(message)
	o.mu.Lock()
	o.urgent = append(o.urgent, raw)
	o.shut = o.shut || asks
	o.mu.Unlock()
	o.Ring()
}

func encode(message any) []byte {
	raw, err := json.Marshal(message)
	if err != nil {
		slog.Error("write to a realtime model", "error", err) // all that is sent can be written
	}
	return raw
}

// Release lets out what was held back by a reply, or would be once it is asked for.
func (o *Outbox) Release() {
	o.mu.Lock()
	o.shut = false
	for i := range o.queue {
		o.queue[i].shuts = false
	}
	o.mu.Unlock()
	o.Ring()
}

// Hold keeps everything back until Resume says to which connection it goes.
func (o *Outbox) Hold() {
	o.mu.Lock()
	o.paused = true
	o.mu.Unlock()
}

// Resume has everything sent to a connection from here on.
func (o *Outbox) Resume(conn *Conn) {
	o.mu.Lock()
	o.conn, o.paused = conn, false
	o.mu.Unlock()
	o.Ring()
}

// Unsent reports whether anything waits.
func (o *Outbox) Unsent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)+len(o.urgent) > 0
}

// pop takes what is sent next, if there is anything.
func (o *Outbox) pop() (next outgoing, conn *Conn, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.paused:
	case len(o.urgent) > 0:
		next, ok = outgoing{data: o.urgent[0]}, true
		o.urgent = slices.Delete(o.urgent, 0, 1)
	case !o.shut && len(o.queue) > 0:
		next, ok = o.queue[0], true
		o.queue = slices.Delete(o.queue, 0, 1)
		o.shut = next.shuts
	}
	return next, o.conn, ok
}

// sent keeps the buffer of sound that went out.
func (o *Outbox) sent(next outgoing) {
	if !next.sound {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.free) < maxFree {
		o.free = append(o.free, next.data)
	}
}

// Run sends what there is until ctx ends. If a connection is gone, who reads from it is told so by its end.
func (o *Outbox) Run(ctx context.Context) {
	var message []byte
	for {
		select {
		case <-o.waiting():
		case <-ctx.Done():
			return
		}
		for {
			next, conn, ok := o.pop()
			if !ok {
				break
			}
			data := next.data
			if next.sound {
				message = append(message[:0], o.Head...)
				message = base64.StdEncoding.AppendEncode(message, data)
				message = append(message, o.Tail...)
				data = message
			}
			if err := conn.SendWritten(data); err != nil {
				break // the reader sees why
			}
			o.sent(next)
		}
	}
}
