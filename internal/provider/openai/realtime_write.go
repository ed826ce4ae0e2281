package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"sync"

	"parley/internal/audio"
	"parley/internal/provider/wire"
)

// writer is what is on its way to a realtime server: messages, and sound between them, in order. Sound goes out when
// there is enough of it for a message, or when a message follows.
type writer struct {
	bell    chan struct{}
	written int // samples since the utterance began; of who writes

	mu    sync.Mutex
	queue []outgoing
	free  [][]byte // buffers for sound that went out
}

// outgoing is a message, or sound as the server takes it.
type outgoing struct {
	sound bool
	data  []byte
}

const (
	soundPiece = 800     // octets of µ-law in a message: 100 ms, of PCM six times as many
	mostSound  = 4 << 20 // that may wait for the server
	soundHead  = `{"type":"input_audio_buffer.append","audio":"`
	soundTail  = `"}`
	mostFree   = 4         // buffers
	bufferSize = 16 * 1024 // of a new one
)

func (w *writer) init() { w.bell = make(chan struct{}, 1) }

func (w *writer) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// sound appends what was heard.
func (w *writer) sound(pcm []int16, coded bool) {
	w.written += len(pcm)
	w.mu.Lock()
	defer w.mu.Unlock()
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
	piece := soundPiece
	if coded {
		o.data = audio.EncodeULaw(o.data, pcm)
	} else {
		piece *= 2 * realtimeRate / int(audio.Narrow)
		for _, v := range pcm {
			o.data = append(o.data, byte(v), byte(v>>8))
		}
	}
	if len(o.data) >= piece {
		w.ring()
	}
}

// send appends a message.
func (w *writer) send(message any) {
	raw, err := json.Marshal(message)
	if err != nil {
		slog.Error("write to a realtime model", "error", err) // all that is sent can be written
		return
	}
	w.mu.Lock()
	w.queue = append(w.queue, outgoing{data: raw})
	w.mu.Unlock()
	w.ring()
}

// write sends what there is until ctx ends. Where the socket is gone the reader is told by its end.
func (w *writer) write(ctx context.Context, conn *wire.Conn) {
	var queue []outgoing
	var message []byte
	for {
		select {
		case <-w.bell:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		queue, w.queue = w.queue, queue[:0]
		w.mu.Unlock()
		for i := range queue {
			o := &queue[i]
			data := o.data
			if o.sound {
				message = append(message[:0], soundHead...)
				message = base64.StdEncoding.AppendEncode(message, data)
				message = append(message, soundTail...)
				data = message
			}
			if err := conn.SendWritten(data); err != nil {
				return // the reader sees why
			}
			if o.sound {
				w.mu.Lock()
				if len(w.free) < mostFree {
					w.free = append(w.free, o.data)
				}
				w.mu.Unlock()
			}
			*o = outgoing{}
		}
	}
}
