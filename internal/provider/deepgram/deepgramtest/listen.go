package deepgramtest

import (
	"math"

	"github.com/coder/websocket"
)

const (
	step     = 1.0  // seconds of sound after which a transcript that is not final comes
	update   = 0.25 // and one of Flux's
	eagerEnd = 0.24 // seconds of silence after which Flux is rather sure that a turn is over
	turnEnd  = 0.48 // and sure
)

// nova is /v1/listen.
var nova = engine{
	fields: []string{"model", "language", "encoding", "sample_rate", "channels", "interim_results", "punctuate",
		"smart_format", "endpointing", "keyterm", "keywords", "utterance_end_ms", "vad_events",
		"language_hint"},
	judge: func(a asked) string {
		model, language := a.Get("model"), a.Get("language")
		switch {
		case !has("nova-3 nova-2", model):
			return "No such model/language/tier combination found."
		case (language == "th") != (model == "nova-2") && model == "nova-3", language == "is":
			return "No such model/language/tier combination found."
		case a.Has("language_hint") && (model != "nova-3" || language != "multi"):
			return "language_hint needs nova-3 and language=multi."
		case model == "nova-3" && a.Has("keywords"):
			return "Keywords are not supported for Nova-3; use keyterm."
		case model != "nova-3" && a.Has("keyterm"):
			return "Keyterm is only supported for Nova-3."
		case a.Has("utterance_end_ms") && a.Get("interim_results") != "true":
			return "utterance_end_ms needs interim_results."
		}
		return ""
	},
	serve: func(p *peer) {
		n := &listening{peer: p, listener: newListener(p)}
		for n.answer() {
		}
	},
}

// listening is a socket of /v1/listen.
type listening struct {
	*peer
	*listener
	start float64 // of the present piece
	given int     // words in final transcripts
	told  float64 // when the last transcript came that is not final
}

func (n *listening) answer() bool {
	kind, data, ok := n.receive(n.s.Patience)
	if !ok {
		return false
	}
	switch kind {
	case "":
		if !n.hear(data) {
			_ = n.ws.Close(websocket.StatusPolicyViolation, "DATA-0000")
			return false
		}
		if n.now-n.start >= n.s.Piece.Seconds() {
			return n.result(n.said(), true, false)
		}
		if n.now-n.told >= step {
			return n.result(n.said(), false, false) && n.chatter()
		}
	case "Finalize":
		if n.Mute {
			return true
		}
		n.flush()
		if n.now == n.start {
			return true // nothing is buffered: it is not always answered
		}
		return n.result(n.begun(), true, true)
	case "KeepAlive":
	case "CloseStream":
		n.flush()
		_ = n.result(n.begun(), true, false)
		n.send(map[string]any{"type": "Metadata", "transaction_key": "deprecated", "request_id": requestID, "sha256": "",
			"created": "2026-11-22T00:00:00Z", "duration": n.now, "channels": 1})
		_ = n.ws.Close(websocket.StatusNormalClosure, "")
		return false
	default:
		_ = n.ws.Close(websocket.StatusPolicyViolation, "DATA-0000")
		return false
	}
	return true
}

// result tells what was said in the present piece.
func (n *listening) result(said int, final, finalize bool) bool {
	words := n.words[n.given:max(said, n.given)]
	list := make([]map[string]any, len(words))
	for i, w := range words {
		list[i] = map[string]any{"word": w.text, "start": w.start, "end": w.end, "confidence": 0.98,
			"punctuated_word": w.text}
		if n.Get("language") == "multi" && w.language != "" {
			list[i]["language"] = w.language
		}
	}
	heard := map[string]any{"transcript": textOf(words), "confidence": 0.98, "words": list}
	if n.Get("language") == "multi" {
		heard["languages"] = languagesOf(words)
	}
	ok := n.send(map[string]any{"type": "Results", "channel_index": []int{0, 1}, "start": rounded(n.start),
		"duration": rounded(n.now - n.start), "is_final": final, "speech_final": finalize, "from_finalize": finalize,
		"channel": map[string]any{"alternatives": []any{heard}},
		"metadata": map[string]any{"request_id": requestID, "model_uuid": requestID,
			"model_info": map[string]any{"name": "general-nova-3", "version": "1", "arch": "nova-3"}}})
	if final {
		n.start, n.given = n.now, max(said, n.given)
	}
	n.told = n.now
	return ok
}

// chatter is what a client must not mind.
func (n *listening) chatter() bool {
	return n.send(map[string]any{"type": "SpeechStarted", "channel": []int{0}, "timestamp": n.now}) &&
		n.send(map[string]any{"type": "UtteranceEnd", "channel": []int{0, 1}, "last_word_end": n.now}) &&
		n.send(map[string]any{"type": "Novelty", "channel": "of a later version"})
}

// rounded is a time to the vendor's hundredth of a second.
func rounded(t float64) float64 { return math.Round(t*100) / 100 }

// flux is /v2/listen.
var flux = engine{
	fields: []string{"model", "encoding", "sample_rate", "eager_eot_threshold", "eot_threshold", "eot_timeout_ms",
		"keyterm", "language_hint"},
	judge: func(a asked) string {
		eager, end := a.Get("eager_eot_threshold"), a.Get("eot_threshold")
		switch {
		case !has("flux-general-en flux-general-multi", a.Get("model")):
			return "Invalid model."
		case a.Has("language_hint") != (a.Get("model") == "flux-general-multi"):
			return "language_hint is for flux-general-multi."
		case !inRange(eager, 0.3, 0.9), !inRange(end, 0.5, 1), !inRange(a.Get("eot_timeout_ms"), 500, 60000):
			return "A threshold is out of range."
		case eager > end && end != "":
			return "eager_eot_threshold must not be above eot_threshold."
		}
		return ""
	},
	serve: func(p *peer) {
		f := &turns{peer: p, listener: newListener(p), eager: p.Has("eager_eot_threshold")}
		if !f.send(map[string]any{"type": "Connected", "request_id": requestID, "sequence_id": 0}) {
			return
		}
		for f.answer() {
		}
	},
}

// turns is a socket of /v2/listen.
type turns struct {
	*peer
	*listener
	eager    bool
	sequence int
	index    int
	first    int     // word of the present turn
	start    float64 // of the present turn's window
	told     float64 // up to where
	on       bool    // a turn is under way
	awaiting bool    // its end was said to be near
}

func (f *turns) answer() bool {
	kind, data, ok := f.receive(6 * f.s.Patience)
	if !ok {
		return false
	}
	switch kind {
	case "":
		for ; len(data) > 0; data = data[min(len(data), f.chunk()):] {
			if !f.hear(data[:min(len(data), f.chunk())]) {
				_ = f.ws.Close(websocket.StatusPolicyViolation, "DATA-0000")
				return false
			}
			if !f.follow() {
				return false
			}
		}
		return true
	case "CloseStream":
		f.flush()
		_ = f.tell("Update")
		_ = f.ws.Close(websocket.StatusNormalClosure, "")
		return false
	}
	f.send(map[string]any{"type": "Error", "sequence_id": f.sequence, "code": "UNPARSABLE_CLIENT_MESSAGE",
		"description": "The message is not of this protocol."})
	_ = f.ws.Close(websocket.StatusPolicyViolation, "")
	return false
}

func (f *turns) chunk() int { return 2 * int(window*float64(f.rate)) }

// follow tells what has become of the turn.
func (f *turns) follow() bool {
	said, quiet := f.said(), f.silence()
	switch {
	case !f.on && said > f.first:
		f.on = true
		return f.tell("StartOfTurn")
	case f.on && f.awaiting && quiet < eagerEnd:
		f.awaiting = false
		return f.tell("TurnResumed")
	case f.on && f.eager && !f.awaiting && quiet >= eagerEnd && quiet < turnEnd:
		f.awaiting = true
		return f.tell("EagerEndOfTurn")
	case f.on && quiet >= turnEnd:
		f.on, f.awaiting = false, false
		ok := f.tell("EndOfTurn")
		f.index++
		f.first, f.start = f.said(), f.now
		return ok
	case f.now-f.told >= update:
		return f.tell("Update")
	}
	return true
}

func (f *turns) tell(event string) bool {
	words := f.words[f.first:f.said()]
	list := make([]map[string]any, len(words))
	for i, w := range words {
		list[i] = map[string]any{"word": w.text, "confidence": 0.97}
		if !f.s.NoTimes {
			list[i]["start"], list[i]["end"] = rounded(w.start), rounded(w.end)
		}
	}
	f.sequence++
	f.told = f.now
	sure := 0.1
	if f.silence() > 0 {
		sure = min(1, f.silence()/turnEnd*0.7)
	}
	info := map[string]any{"type": "TurnInfo", "request_id": requestID, "sequence_id": f.sequence, "event": event,
		"turn_index": f.index, "audio_window_start": rounded(f.start), "audio_window_end": rounded(f.now),
		"transcript": textOf(words), "words": list, "end_of_turn_confidence": sure}
	if f.Get("model") == "flux-general-multi" {
		info["languages"] = languagesOf(words)
	}
	return f.send(info)
}
