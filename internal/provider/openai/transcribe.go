package openai

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// maxPrompt is how many bytes of keywords are sent. Models accept about 200 tokens.
const maxPrompt = 800

// transcribe requests the text of an utterance. If the server streams its response, partial gets the text as it grows.
func (r *recognizer) transcribe(ctx context.Context, h ai.Hearing, said *sound, partial func(string) error) (
	text transcription, err error) {
	if said.n < int(minUtterance*time.Duration(h.Rate)/time.Second) || said.silent() {
		return text, nil
	}
	for {
		begun := false
		err := rest.Again(ctx, "transcription model", r.model, func() bool { return begun }, func() error {
			u := r.upload(h, said)
			defer u.close()
			req, err := http.NewRequest(http.MethodPost, r.client.rest.Base+"/audio/transcriptions", u.open())
			if err != nil {
				return &ai.Error{Kind: ai.Config, Err: err}
			}
			req.ContentLength, req.GetBody = u.size(), func() (io.ReadCloser, error) { return u.open(), nil }
			req.Header.Set("Content-Type", u.kind)
			return r.client.rest.Ask(ctx, req, 0, func(res *http.Response) (err error) {
				text, err = transcript(res, func(so string) error {
					begun = true
					return partial(so)
				})
				return err
			}, func() bool { return begun })
		})
		if err != nil && r.learn(err) {
			continue
		}
		text.text = strings.TrimSpace(text.text)
		return text, err
	}
}

// transcription is what a model understood, and in which languages.
type transcription struct {
	text      string
	languages []detected
	noSpeech  float64 // how likely nobody spoke; 0 where the model doesn't say
}

// tellsNoSpeech is OpenAI's model that says how likely nobody spoke. It doesn't stream.
const tellsNoSpeech = "whisper-1"

// segment is a part of a transcript.
type segment struct {
	Text     string  `json:"text"`
	NoSpeech float64 `json:"no_speech_prob"`
}

// noSpeech is how likely nobody spoke in segments: their mean, each by the length of its text.
func noSpeech(list []segment) float64 {
	sum, size := 0.0, 0
	for _, s := range list {
		n := len(strings.TrimSpace(s.Text))
		sum, size = sum+float64(n)*min(max(s.NoSpeech, 0), 1), size+n
	}
	if size == 0 {
		return 0
	}
	return sum / float64(size)
}

// prompt lists the expected words.
func prompt(keywords []string) string {
	var b strings.Builder
	for _, k := range keywords {
		if b.Len()+len(k)+2 > maxPrompt {
			break
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k)
	}
	return b.String()
}

// dispensable lists the form fields that a transcription can do without.
var dispensable = []string{"stream", "prompt", "keywords", "languages", "language", "response_format"}

func (r *recognizer) refuses(field string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[field]
}

// learn reports whether the server refused an optional field, so that it can be asked again without it.
func (r *recognizer) learn(err error) bool {
	bad, ok := errors.AsType[*badRequest](err)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range dispensable {
		if !r.refused[name] && (strings.TrimSuffix(bad.param, "[]") == name || bad.param == "" &&
			strings.Contains(strings.ToLower(bad.message), name)) {
			r.refused[name] = true
			return true
		}
	}
	return false
}

// transcript reads a response: JSON with the text, or a stream of events with its pieces.
func transcript(res *http.Response, partial func(string) error) (got transcription, err error) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return got, err
		}
		var answer struct {
			Text      *string    `json:"text"`
			Languages []detected `json:"languages"`
			Segments  []segment  `json:"segments"`
		}
		if err := json.Unmarshal(body, &answer); err != nil || answer.Text == nil {
			return got, rest.Malformed("a transcript without a text: %.200q", body)
		}
		return transcription{*answer.Text, answer.Languages, noSpeech(answer.Segments)}, nil
	}
	var text strings.Builder
	ended := false
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:"); ok && err == nil {
			data = strings.TrimSpace(data)
			if data == "[DONE]" {
				return transcription{text: text.String()}, nil
			}
			whole, more, err := event([]byte(data))
			switch {
			case err != nil:
				return got, err
			case whole != nil:
				return *whole, nil
			case more.ended:
				ended = true
			}
			if more.text == "" {
				continue
			}
			text.WriteString(more.text)
			if err := partial(strings.TrimSpace(text.String())); err != nil {
				return got, rest.Refuse(err)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && ended:
			return transcription{text: text.String()}, nil
		case errors.Is(err, io.EOF):
			return got, io.ErrUnexpectedEOF
		case err != nil:
			return got, err
		}
	}
}

type addition struct {
	text  string
	ended bool
}

// event reads one event: OpenAI's transcript.text.delta and .done, or vLLM's chunks, which have the shape of chat
// chunks.
func event(data []byte) (whole *transcription, more addition, err error) {
	var e struct {
		Type      string          `json:"type"`
		Delta     string          `json:"delta"`
		Text      *string         `json:"text"`
		Languages []detected      `json:"languages"`
		Segments  []segment       `json:"segments"`
		Error     json.RawMessage `json:"error"`
		Choices   []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
			Finish *string `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, more, rest.Malformed("an event that is not JSON: %.200q", data)
	}
	switch {
	case len(e.Error) > 0 && string(e.Error) != "null" || e.Type == "error":
		s := parse(data)
		return nil, more, &ai.Error{Kind: s.kind(0), Err: errors.New("in mid-stream: " + s.Message)}
	case e.Type == "transcript.text.done" && e.Text != nil:
		return &transcription{*e.Text, e.Languages, noSpeech(e.Segments)}, more, nil
	case e.Type == "transcript.text.delta":
		return nil, addition{text: e.Delta}, nil
	case len(e.Choices) > 0:
		return nil, addition{e.Choices[0].Delta.Content, e.Choices[0].Finish != nil}, nil
	}
	return nil, more, nil
}
