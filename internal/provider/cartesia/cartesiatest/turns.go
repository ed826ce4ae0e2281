package cartesiatest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

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
	if rate == 0 || q.Get("encoding") != "pcm_s16le" || q.Get("model") != "ink-2" && q.Get("model") != "ink-preview" {
		answer(w, 400,
			map[string]any{"error_code": "model_not_found", "title": "No", "message": "a model or format that this server doesn't have"})
		return
	}
	conn := s.accept(w, r, "cartesia_version", "model", "encoding", "sample_rate", "keyterm", "language_hint")
	if conn == nil {
		return
	}
	s.wg.Add(1)
	defer s.wg.Done()
	defer s.leave(conn)
	ctx := context.Background()
	send := func(kind, text string) {
		v := map[string]any{"type": kind, "request_id": "r"}
		if q.Get("model") == "ink-preview" && text != "" { // ink-2 tells no languages
			v["languages"] = s.languages(text)
		}
		if text != "" {
			v["transcript"] = text
		}
		raw, _ := json.Marshal(v) // of texts
		_ = conn.Write(ctx, websocket.MessageText, raw)
	}
	send("connected", "")
	if bad := unhinted(q); bad != "" {
		raw, _ := json.Marshal(map[string]any{"type": "error", "status_code": 400, "title": "No", "message": bad})
		_ = conn.Write(ctx, websocket.MessageText, raw)
		conn.Close(websocket.StatusPolicyViolation, "")
		return
	}
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

// unhinted is what is wrong with the hints.
func unhinted(q url.Values) string {
	hints := q["language_hint"]
	switch known := strings.Fields("ar bn bg yue cs da nl en fi fr ka de el gu hi ja ms ml zh mr no or pl pt pa ro ru sk es sv"); {
	case len(hints) > 0 && q.Get("model") == "ink-2":
		return "ink-2 takes no hints"
	case len(hints) > 6:
		return "more than 6 hints"
	case slices.ContainsFunc(hints, func(h string) bool { return !slices.Contains(known, h) }):
		return "an unsupported hint"
	}
	return ""
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

// languages are those that a text is in, as events list them.
func (s *Server) languages(text string) (list []map[string]any) {
	found := map[string]float64{"en": 1}
	if s.Detect != nil {
		found = s.Detect(text)
	}
	for code, confidence := range found {
		list = append(list, map[string]any{"language": code, "confidence": confidence})
	}
	return list
}
