package cartesiatest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"

	"github.com/coder/websocket"

	"parley/internal/audio"
)

// Of silence in a turn, in milliseconds: after so much it may have ended, and has.
const (
	eagerAfter = 100
	endAfter   = 300
)

// follow is the socket of transcription that finds turns: what is loud, and the silence within it.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	rate := map[string]audio.Rate{"8000": audio.Narrow, "16000": audio.Wide}[q.Get("sample_rate")]
	if rate == 0 || q.Get("encoding") != "pcm_s16le" || q.Get("model") != "ink-2" {
		answer(w, 400, map[string]any{"error_code": "model_not_found", "title": "No", "message": "a model or format that this server doesn't have"})
		return
	}
	conn := s.accept(w, r, "cartesia_version", "model", "encoding", "sample_rate", "keyterm")
	if conn == nil {
		return
	}
	s.wg.Add(1)
	defer s.wg.Done()
	defer s.leave(conn)
	ctx := context.Background()
	send := func(kind, text string) {
		v := map[string]any{"type": kind, "request_id": "r"}
		if text != "" {
			v["transcript"] = text
		}
		raw, _ := json.Marshal(v) // of texts
		_ = conn.Write(ctx, websocket.MessageText, raw)
	}
	send("connected", "")
	t := turn{s: s, rate: rate, send: send}
	var pcm []int16
	for {
		kind, raw, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageBinary {
			if string(raw) != `{"type":"close"}` {
				send("error", "")
			}
			conn.Close(websocket.StatusNormalClosure, "")
			return
		}
		for ; len(raw) > 1; raw = raw[2:] {
			pcm = append(pcm, int16(binary.LittleEndian.Uint16(raw)))
		}
		for n := rate.FrameSize(); len(pcm) >= n; pcm = pcm[n:] {
			t.hear(pcm[:n])
		}
	}
}

// turn is what is heard of somebody who speaks.
type turn struct {
	s    *Server
	rate audio.Rate
	send func(kind, text string)

	pcm    []int16 // nil: nobody speaks
	silent int     // ms
	text   string
}

// hear takes a frame of 20 ms.
func (t *turn) hear(frame []int16) {
	loud := 0
	for _, v := range frame {
		loud = max(loud, int(v), -int(v))
	}
	switch {
	case loud > 300:
		if t.pcm == nil {
			t.send("turn.start", "")
		} else if t.silent >= eagerAfter {
			t.send("turn.resume", "")
		}
		t.silent, t.pcm = 0, append(t.pcm, frame...)
		if len(t.pcm)%(10*len(frame)) == 0 { // every 200 ms
			t.text = t.understand()
			t.send("turn.update", t.text)
		}
	case t.pcm != nil:
		if t.silent += 20; t.silent == eagerAfter {
			t.text = t.understand()
			t.send("turn.eager_end", t.text)
		}
		if t.silent >= endAfter {
			t.send("turn.end", t.text)
			t.pcm = nil
		}
	}
}

func (t *turn) understand() string {
	if t.s.Hear != nil {
		return t.s.Hear(t.pcm, t.rate)
	}
	return t.s.Speaker.Find(t.pcm, t.rate)
}
