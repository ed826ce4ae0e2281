package elevenlabstest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coder/websocket"

	"parley/internal/audio"
)

// listen is the socket of realtime transcription.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	if !query(w, r, "model_id", "audio_format", "language_code", "secondary_languages", "commit_strategy", "keyterms",
		"include_timestamps", "include_language_detection", "enable_logging", "no_verbatim") {
		return
	}
	q := r.URL.Query()
	rate := map[string]audio.Rate{"pcm_8000": audio.Narrow, "pcm_16000": audio.Wide}[q.Get("audio_format")]
	conn := s.accept(w, r, "hearing")
	if conn == nil {
		return
	}
	s.wg.Add(1)
	defer s.wg.Done()
	defer s.leave(conn)
	ctx := context.Background()
	send := func(v map[string]any) {
		raw, _ := json.Marshal(v) // of texts
		_ = conn.Write(ctx, websocket.MessageText, raw)
	}
	fail := func(kind, why string) {
		send(map[string]any{"message_type": kind, "error": why})
		conn.Close(websocket.StatusPolicyViolation, kind)
	}
	if rate == 0 || q.Get("model_id") != "scribe_v2_realtime" || q.Get("commit_strategy") != "manual" {
		fail("input_error", "a model, format or strategy that this server doesn't have")
		return
	}
	for _, code := range append(q["secondary_languages"], q["language_code"]...) {
		if len(code) != 2 && len(code) != 3 {
			fail("input_error", "not a code of ISO 639-1 or 639-3: "+code)
			return
		}
	}
	send(map[string]any{"message_type": "session_started", "session_id": "s1", "config": map[string]any{}})
	var pcm []int16
	partials := 0
	for {
		kind, raw, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var in struct {
			Type     string     `json:"message_type"`
			Audio    *[]byte    `json:"audio_base_64"`
			Commit   *bool      `json:"commit"`
			Rate     audio.Rate `json:"sample_rate"`
			Previous *string    `json:"previous_text"`
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil || kind != websocket.MessageText || in.Type != "input_audio_chunk" ||
			in.Audio == nil || in.Commit == nil || in.Rate != rate || len(*in.Audio)%2 != 0 {
			fail("input_error", fmt.Sprintf("%v: %.100s", err, raw))
			return
		}
		for a := *in.Audio; len(a) > 0; a = a[2:] {
			pcm = append(pcm, int16(binary.LittleEndian.Uint16(a)))
		}
		if n := len(pcm) * 2 / int(rate); n > partials && !*in.Commit { // every half a second
			partials = n
			if text := s.find(pcm, rate); text != "" {
				send(map[string]any{"message_type": "partial_transcript", "text": text[:len(text)/2]})
			}
		}
		if !*in.Commit {
			continue
		}
		if len(pcm)*10 < int(rate)*3 {
			send(map[string]any{"message_type": "commit_throttled",
				"error": fmt.Sprintf("Commit request ignored: only %.2fs of uncommitted audio. "+
					"You need at least 0.3s of uncommitted audio before committing.", float64(len(pcm))/float64(rate))})
			continue
		}
		h := s.understand(pcm, rate)
		pcm, partials = nil, 0
		switch {
		case h.Error != "":
			fail(h.Error, "as it was told to")
			return
		case h.Close != 0:
			conn.Close(h.Close, "as it was told to")
			return
		case !h.Never:
			s.commit(q, h, send)
		}
	}
}

// commit answers a commit. Language detection brings the message with the times, too, as the real server does although
// no document says so. Which of the two is first is not documented either.
func (s *Server) commit(q url.Values, h Hearing, send func(map[string]any)) {
	answers := []map[string]any{{"message_type": "committed_transcript", "text": h.Text}}
	detects := q.Get("include_language_detection") == "true"
	if detects || q.Get("include_timestamps") == "true" {
		timed := map[string]any{"message_type": "committed_transcript_with_timestamps", "text": h.Text,
			"language_code": nil, "words": []any{}}
		if detects {
			timed["language_code"] = cmp.Or(h.Language, q.Get("language_code"))
		}
		switch {
		case h.Text == "" && s.Manner.SilenceOnce:
		case s.Manner.TimesFirst:
			answers = append([]map[string]any{timed}, answers...)
		default:
			answers = append(answers, timed)
		}
	}
	for _, v := range answers {
		send(v)
	}
}

// understand is what the next utterance means.
func (s *Server) understand(pcm []int16, rate audio.Rate) (h Hearing) {
	scripted := false
	s.locked(func() {
		if len(s.script) > 0 {
			h, s.script, scripted = s.script[0], s.script[1:], true
		}
	})
	if !scripted {
		h.Text = s.find(pcm, rate)
	}
	return h
}

func (s *Server) find(pcm []int16, rate audio.Rate) string {
	if s.Hear != nil {
		return s.Hear(pcm, rate)
	}
	return s.Speaker.Find(pcm, rate)
}
