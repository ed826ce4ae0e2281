package aitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/ai"
	"parley/internal/audio"
)

// The models of a Server that speak, listen and embed.
const (
	SpeechModel        = "test-tts"
	TranscriptionModel = "test-stt"
	// DetectingModel is a transcription model that takes several languages, and says which ones it found.
	DetectingModel = "gpt-transcribe"
	// WhisperModel is a transcription model that says, asked for verbose_json, how likely nobody spoke. It doesn't stream.
	WhisperModel   = "whisper-1"
	EmbeddingModel = "test-embedding"
)

// Voices are those that a Server speaks with: OpenAI's.
var Voices = []string{"alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer",
	"verse", "marin", "cedar"}

// speechVoices are those that realtime models don't have.
var speechVoices = []string{"fable", "nova", "onyx"}

// SpeechRequest is a request for speech that the server got.
type SpeechRequest struct {
	Model  string  `json:"model"`
	Input  string  `json:"input"`
	Voice  string  `json:"voice"`
	Format string  `json:"response_format"`
	Speed  float64 `json:"speed"`
}

// Utterance is a request for a transcript that the server got.
type Utterance struct {
	Model, Language, Prompt string
	Languages, Keywords     []string
	Stream                  bool
	Format                  string
	PCM                     []int16 // of one channel
	Rate                    audio.Rate
}

const (
	serverRate = 24000 // of the speech, as OpenAI's
	maxSpeed   = 4.0
	minSpeed   = 0.25
	maxSpeech  = 4096 // characters
	minFile    = 100 * time.Millisecond
)

// script says how requests of one kind are answered.
type script struct {
	next  []Behaviour
	usual Behaviour
}

func (s *script) take() Behaviour {
	if len(s.next) == 0 {
		return s.usual
	}
	b := s.next[0]
	s.next = s.next[1:]
	return b
}

// ScriptSpeech appends to how the next requests for speech are answered. A Behaviour's tokens are then pieces of audio,
// of PieceTime each.
func (s *Server) ScriptSpeech(b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speech.next = append(s.speech.next, b...)
}

// UsuallySpeech sets how unscripted requests for speech are answered.
func (s *Server) UsuallySpeech(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speech.usual = b
}

// ScriptTranscripts appends to how the next utterances are understood: as Text, if it is set.
func (s *Server) ScriptTranscripts(b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hearing.next = append(s.hearing.next, b...)
}

// UsuallyTranscripts sets how unscripted utterances are understood.
func (s *Server) UsuallyTranscripts(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hearing.usual = b
}

// Speeches lists the last 1000 requests for speech, oldest first.
func (s *Server) Speeches() []SpeechRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.speeches)
}

// Utterances lists the last 1000 requests for transcripts, oldest first.
func (s *Server) Utterances() []Utterance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.utterances)
}

// record appends to what a long benchmark keeps in part.
func record[T any](list []T, v T) []T {
	if len(list) == maxRecorded {
		list = slices.Delete(list, 0, maxRecorded/2)
	}
	return append(list, v)
}

// scripted answers with a Behaviour that is not an answer to the request, and reports whether it did.
func scripted(w http.ResponseWriter, b Behaviour) bool {
	if b.Type != "" {
		w.Header().Set("Content-Type", b.Type)
	}
	switch {
	case b.Raw != "":
		w.WriteHeader(max(b.Status, http.StatusOK))
		_, _ = io.WriteString(w, b.Raw)
	case b.Status != 0:
		if b.RetryAfter != "" {
			w.Header().Set("Retry-After", b.RetryAfter)
		}
		kind := "server_error"
		if b.Status < 500 {
			kind = "invalid_request_error"
		}
		fail(w, b.Status, kind, b.Code, b.Message)
	default:
		return false
	}
	return true
}

// speak is POST /v1/audio/speech.
func (s *Server) speak(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	if !s.allowed(w, r) {
		return
	}
	in := SpeechRequest{Format: "mp3", Speed: 1}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", "",
			fmt.Sprintf("We could not parse the JSON body of your request: %v", err))
		return
	}
	s.mu.Lock()
	s.speeches = record(s.speeches, in)
	b := s.speech.take()
	s.mu.Unlock()
	if scripted(w, b) {
		return
	}
	if bad := s.judgeSpeech(in, body); bad != nil {
		reply(w, bad.status, map[string]any{"error": bad})
		return
	}
	w.Header().Set("Content-Type", "audio/pcm")
	a := &answer{Behaviour: b, w: w, ctx: r.Context(), stop: s.stop}
	if in.Format == "wav" {
		w.Header().Set("Content-Type", "audio/wav")
		a.write(audio.AppendWAVHeader(nil, serverRate, 1, math.MaxUint32)) // as a stream's: of unknown length
	}
	a.sound(s.Voice, in)
}

func (s *Server) judgeSpeech(in SpeechRequest, body []byte) *refusal {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it is an object
	for _, name := range s.Refuses {
		if _, ok := fields[name]; ok {
			return refuse(name, "unsupported_parameter",
				"Unsupported parameter: '%s' is not supported with this model.", name)
		}
	}
	switch {
	case !slices.Contains(s.SpeechModels, in.Model):
		return noModel(in.Model)
	case strings.TrimSpace(in.Input) == "":
		return refuse("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	case utf8.RuneCountInString(in.Input) > maxSpeech:
		return refuse("input", "string_above_max_length", "Invalid 'input': string too long.")
	case !slices.Contains(Voices, in.Voice):
		return refuse("voice", "invalid_value", "Invalid value: '%s'.", in.Voice)
	case in.Format != "pcm" && in.Format != "wav":
		return refuse("response_format", "invalid_value", "This server has no %s.", in.Format)
	case in.Speed < minSpeed || in.Speed > maxSpeed:
		return refuse("speed", "invalid_value", "Invalid 'speed': expected a value between 0.25 and 4.")
	}
	return nil
}

func noModel(name string) *refusal {
	r := refuse("", "model_not_found", "The model `%s` does not exist or you do not have access to it.", name)
	r.status = http.StatusNotFound
	return r
}

// sound streams what the fake voice says.
func (a *answer) sound(voice *Synthesizer, in SpeechRequest) {
	i := 0
	var raw []byte
	err := voice.say(a.ctx, ai.Speech{Voice: in.Voice, Rate: serverRate, Speed: in.Speed}, in.Input,
		func(pcm []int16) error {
			pause := a.TokenDelay
			if i == 0 {
				pause = a.FirstDelay
			}
			if a.Fault != "" && i == a.After {
				a.faultInSound()
				return ErrYield
			}
			raw = raw[:0]
			for _, v := range pcm {
				raw = append(raw, byte(v), byte(uint16(v)>>8))
			}
			if !a.sleep(pause) || !a.write(raw) || i == 0 && a.Gate != nil && !a.hold(a.Gate) {
				return ErrYield
			}
			i++
			return nil
		})
	switch {
	case err == nil && a.Fault != "":
		a.faultInSound()
	case err != nil && !errors.Is(err, ErrYield):
		panic(http.ErrAbortHandler) // the voice failed: the stream breaks
	}
}

func (a *answer) faultInSound() {
	if a.Fault != Endless {
		a.fault()
		return
	}
	for silence := make([]byte, 1<<20); a.write(silence); {
	}
}

// transcribe is POST /v1/audio/transcriptions.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	if !s.allowed(w, r) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 25<<20)
	in, bad := s.readUtterance(r)
	if bad != nil && in.Model == "" { // no form, or one that was broken off
		reply(w, bad.status, map[string]any{"error": bad})
		return
	}
	s.mu.Lock()
	s.utterances = record(s.utterances, in)
	b := s.hearing.take()
	s.mu.Unlock()
	switch {
	case scripted(w, b):
		return
	case bad != nil:
		reply(w, bad.status, map[string]any{"error": bad})
		return
	case b.Text != "":
	case s.Transcribe != nil:
		b.Text = s.Transcribe(in)
	default:
		b.Text = s.Voice.Find(in.PCM, in.Rate)
	}
	a := &answer{Behaviour: b, w: w, ctx: r.Context(), stop: s.stop}
	if in.Stream && !s.WholeTranscripts && in.Model != WhisperModel {
		a.streamTranscript(s.found(in.Model, b.Text))
		return
	}
	if a.sleep(b.FirstDelay) && (b.Gate == nil || a.hold(b.Gate)) {
		if b.Fault != "" {
			a.fault()
			return
		}
		reply(w, http.StatusOK, s.found(in.Model, b.Text))
	}
}

// found is what a model found in an utterance.
func (s *Server) found(model, text string) map[string]any {
	out := map[string]any{"text": text}
	if model == DetectingModel {
		list := []map[string]string{}
		if s.Detect != nil {
			for _, code := range s.Detect(text) {
				list = append(list, map[string]string{"code": code})
			}
		}
		out["languages"] = list
	}
	return out
}

func (s *Server) readUtterance(r *http.Request) (in Utterance, bad *refusal) {
	file, head, err := r.FormFile("file")
	if err != nil {
		return in, refuse("file", "", "Missing required parameter: 'file'.")
	}
	defer file.Close()
	in = Utterance{Model: r.FormValue("model"), Language: r.FormValue("language"), Prompt: r.FormValue("prompt"),
		Languages: r.Form["languages[]"], Keywords: r.Form["keywords[]"], Stream: r.FormValue("stream") == "true",
		Format: r.FormValue("response_format")}
	for name, list := range map[string][]string{"languages": in.Languages, "keywords": in.Keywords} {
		switch {
		case len(list) > 0 && in.Model != DetectingModel:
			return in, refuse(name, "unsupported_parameter", "Unsupported parameter: '%s' is not supported with this model.", name)
		case slices.ContainsFunc(list, badHint):
			return in, refuse(name, "invalid_value", "Invalid value in '%s'.", name)
		}
	}
	for _, name := range s.Refuses {
		if r.Form.Has(name) {
			return in, refuse(name, "unsupported_parameter",
				"Unsupported parameter: '%s' is not supported with this model.", name)
		}
	}
	if !slices.Contains(s.TranscriptionModels, in.Model) {
		return in, noModel(in.Model)
	}
	if f := in.Format; f != "" && f != "json" && !(f == "verbose_json" && in.Model == WhisperModel) {
		return in, refuse("response_format", "unsupported_value",
			"response_format '%s' is not compatible with this model.", f)
	}
	wav, err := audio.NewWAVReader(file)
	if err != nil || wav.Channels != 1 {
		return in, refuse("file", "invalid_value", "Audio file might be corrupted or unsupported")
	}
	in.Rate = audio.Rate(wav.Rate)
	in.PCM = make([]int16, head.Size/2)
	n, err := wav.Read(in.PCM)
	in.PCM = in.PCM[:n]
	if err != nil || n < int(minFile*time.Duration(in.Rate)/time.Second) {
		return in, refuse("file", "audio_too_short", "Audio file is too short. Minimum audio length is 0.1 seconds.")
	}
	return in, nil
}

// badHint reports whether a keyword or language has a character that OpenAI refuses.
func badHint(text string) bool { return text == "" || strings.ContainsAny(text, "<>\r\n") }

func (a *answer) streamTranscript(found map[string]any) {
	a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	a.w.WriteHeader(http.StatusOK)
	if !a.sleep(a.FirstDelay) {
		return
	}
	say := func(v any) bool {
		raw, _ := json.Marshal(v)
		return a.write([]byte("data: " + string(raw) + "\n\n"))
	}
	for i, p := range pieces(a.Text, nil) {
		if a.Fault != "" && i == a.After {
			a.fault()
			return
		}
		if i > 0 && !a.sleep(a.TokenDelay) || !say(map[string]any{"type": "transcript.text.delta", "delta": p.Text}) {
			return
		}
		if i == 0 && a.Gate != nil && !a.hold(a.Gate) {
			return
		}
	}
	if a.Fault != "" {
		a.fault()
		return
	}
	found["type"] = "transcript.text.done"
	if say(found) {
		a.write([]byte("data: [DONE]\n\n"))
	}
}

// vectorSize is how many numbers a vector of the Server's has.
const vectorSize = 64

// embed is POST /v1/embeddings: texts with the same words lie near each other.
func (s *Server) embed(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	if !s.allowed(w, r) {
		return
	}
	var in struct {
		Model  string `json:"model"`
		Input  any    `json:"input"`
		Format string `json:"encoding_format"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20)).Decode(&in); err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", "", "We could not parse the JSON body of your request.")
		return
	}
	if !slices.Contains(s.EmbeddingModels, in.Model) {
		reply(w, http.StatusNotFound, map[string]any{"error": noModel(in.Model)})
		return
	}
	texts, ok := in.Input.([]any)
	if text, one := in.Input.(string); one {
		texts, ok = []any{text}, true
	}
	list, count := make([]any, len(texts)), 0
	for i, t := range texts {
		text, is := t.(string)
		if ok = ok && is && text != ""; !ok {
			break
		}
		count += len(strings.Fields(text)) + 1
		list[i] = map[string]any{"object": "embedding", "index": i, "embedding": vector(text)}
	}
	if !ok || len(list) == 0 || len(list) > 2048 || in.Format != "" && in.Format != "float" {
		fail(w, http.StatusBadRequest, "invalid_request_error", "", "'$.input' is invalid.")
		return
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "model": in.Model, "data": list,
		"usage": map[string]int{"prompt_tokens": count, "total_tokens": count}})
}

func vector(text string) []float64 {
	v := make([]float64, vectorSize)
	v[0] = 0.01 // of nothing too
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(strings.Trim(word, ".,;:!?")))
		v[h.Sum32()%vectorSize]++
	}
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
	return v
}
