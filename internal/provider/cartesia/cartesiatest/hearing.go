package cartesiatest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"parley/internal/audio"
)

// listen is the socket of transcription that is told when an utterance is over.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	rate := map[string]audio.Rate{"8000": audio.Narrow, "16000": audio.Wide}[q.Get("sample_rate")]
	model := q.Get("model")
	if rate == 0 || q.Get("encoding") != "pcm_s16le" || model != "ink-whisper" {
		answer(w, 400,
			map[string]any{"error_code": "model_not_found", "title": "No", "message": "a model or format that this server doesn't have"})
		return
	}
	conn := s.accept(w, r, "cartesia_version", "model", "language", "encoding", "sample_rate", "min_volume",
		"max_silence_duration_secs")
	if conn == nil {
		return
	}
	s.wg.Add(1)
	defer s.wg.Done()
	defer s.leave(conn)
	ctx := context.Background()
	send := func(kind string, v map[string]any) {
		v["type"], v["request_id"] = kind, "r"
		raw, _ := json.Marshal(v) // of texts
		_ = conn.Write(ctx, websocket.MessageText, raw)
	}
	var pcm []int16
	for {
		kind, raw, err := conn.Read(ctx)
		switch {
		case err != nil:
			return
		case kind == websocket.MessageBinary:
			for ; len(raw) > 1; raw = raw[2:] {
				pcm = append(pcm, int16(binary.LittleEndian.Uint16(raw)))
			}
		case string(raw) == "finalize":
			h := s.understand(pcm, rate)
			pcm = nil
			switch {
			case h.Error != 0:
				send("error", map[string]any{"status_code": h.Error, "title": "No", "message": "as it was told to"})
				conn.Close(websocket.StatusInternalError, "")
				return
			case h.Close != 0:
				conn.Close(h.Close, "as it was told to")
				return
			case h.Never:
				continue
			}
			for i, part := range split(h.Text) { // deltas: the spaces between them are theirs
				if i == 0 {
					send("transcript", map[string]any{"is_final": false, "text": part})
				}
				send("transcript", map[string]any{"is_final": true, "text": part, "language": "en"})
			}
			send("flush_done", map[string]any{})
		case string(raw) == "close":
			send("done", map[string]any{})
			conn.Close(websocket.StatusNormalClosure, "")
			return
		default:
			send("error", map[string]any{"status_code": 400, "title": "Unknown command", "message": string(raw)})
		}
	}
}

// split cuts a text into two deltas.
func split(text string) []string {
	if text == "" {
		return nil
	}
	if i := strings.IndexByte(text, ' '); i > 0 {
		return []string{text[:i], text[i:]}
	}
	return []string{text}
}

// understand is what the next utterance means.
func (s *Server) understand(pcm []int16, rate audio.Rate) (h Hearing) {
	scripted := false
	s.locked(func() {
		if len(s.script) > 0 {
			h, s.script, scripted = s.script[0], s.script[1:], true
		}
	})
	switch {
	case scripted:
	case s.Hear != nil:
		h.Text = s.Hear(pcm, rate)
	default:
		h.Text = s.Speaker.Find(pcm, rate)
	}
	return h
}
