package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/rest"
)

const (
	speechRate = 24000 // of response_format pcm, Hz
	maxInput   = 4096  // characters that the server takes
	// speechPiece is the largest piece that is passed on. Sound that has arrived is passed on without waiting for more.
	speechPiece = 100 * time.Millisecond
)

// Synthesizer is one of the server's speech models. Whether the model exists shows when it is used. Synthesizers of one
// model are equal, so that caches find earlier speech.
func (c *Client) Synthesizer(model string) ai.Synthesizer { return ai.Streamed(speaker{c, model}) }

type speaker struct {
	client *Client
	model  string
}

// Reads implements ai.Reader. What other servers with this API have for a model is not known.
func (s speaker) Reads() bool { return s.client.rest.Base == DefaultBaseURL }

// speechRequest is the body of POST /audio/speech.
type speechRequest struct {
	Model  string  `json:"model"`
	Input  string  `json:"input"`
	Voice  string  `json:"voice"`
	Format string  `json:"response_format"`
	Speed  float64 `json:"speed,omitempty"`
}

// Say implements ai.Plain: the protocol takes whole texts. A failed request is tried again until some sound has been
// passed on.
func (s speaker) Say(ctx context.Context, as ai.Speech, text string, yield func([]int16) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return nil // servers refuse it, or sigh
	}
	if n := utf8.RuneCountInString(text); n > maxInput {
		return &ai.Error{Kind: ai.TooLong, Err: fmt.Errorf("a text of %d characters, %d are said at once", n, maxInput)}
	}
	in := speechRequest{Model: s.model, Input: text, Voice: as.Voice, Format: "pcm"}
	if as.Speed != 1 {
		in.Speed = as.Speed
	}
	body, err := json.Marshal(in)
	if err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	begun := false
	return rest.Again(ctx, "speech model", s.model, func() bool { return begun }, func() error {
		req, err := http.NewRequest(http.MethodPost, s.client.rest.Base+"/audio/speech", bytes.NewReader(body))
		if err != nil {
			return &ai.Error{Kind: ai.Config, Err: err}
		}
		req.Header.Set("Content-Type", "application/json")
		return s.client.rest.Ask(ctx, req, maxSound(text), func(res *http.Response) error {
			err := speak(ctx, res, as.Rate, func(pcm []int16) error {
				begun = true
				return yield(pcm)
			})
			if err == nil && !begun {
				err = rest.Malformed("no sound for %q", text)
			}
			return err
		}, func() bool { return begun })
	})
}

// maxSound is the most bytes of sound that are accepted for a text: 20 seconds, and half a second per character.
func maxSound(text string) int {
	return 2 * speechRate * (20 + utf8.RuneCountInString(text)/2)
}

// speak passes on the sound of a response: bare samples as requested, or a WAV file, which some servers send in any
// case.
func speak(ctx context.Context, res *http.Response, rate audio.Rate, yield func([]int16) error) error {
	kind := res.Header.Get("Content-Type")
	for _, other := range []string{"json", "text/", "mpeg", "mp3", "opus", "ogg", "aac", "flac"} {
		if strings.Contains(kind, other) {
			return rest.Malformed("the server sent %s in place of PCM", kind)
		}
	}
	w := works.Get().(*work)
	defer works.Put(w)
	body := w.body
	body.Reset(res.Body)
	defer body.Reset(nil)
	if head, err := body.Peek(12); err == nil && string(head[:4]) == "RIFF" && string(head[8:]) == "WAVE" {
		return speakWAV(ctx, body, rate, yield)
	}
	out, err := newSpoken(speechRate, rate, yield)
	if err != nil {
		return err
	}
	out.in, out.out = w.in, w.out
	defer func() { w.in, w.out = out.in, out.out }()
	for {
		_, err := body.Peek(2) // waits for a sample
		raw, _ := body.Peek(body.Buffered() &^ 1)
		if e := out.pass(ctx, raw); e != nil {
			return e
		}
		_, _ = body.Discard(len(raw))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// work is the buffers for reading a response. They are pooled.
type work struct {
	body    *bufio.Reader
	in, out []int16
}

var works = sync.Pool{New: func() any {
	return &work{body: bufio.NewReaderSize(nil,
		2*int(speechPiece*speechRate/time.Second))}
}}

func speakWAV(ctx context.Context, body io.Reader, rate audio.Rate, yield func([]int16) error) error {
	wav, err := audio.NewWAVReader(body)
	if err != nil || wav.Channels != 1 {
		return rest.Malformed("the server sent a WAV file that is not of one channel of 16-bit PCM: %v", err)
	}
	out, err := newSpoken(wav.Rate, rate, yield)
	if err != nil {
		return err
	}
	pcm := make([]int16, int(speechPiece*time.Duration(wav.Rate)/time.Second))
	for {
		n, err := wav.Read(pcm)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := out.give(ctx, pcm[:n]); err != nil {
			return err
		}
	}
}

// spoken changes the sample rate on the way to yield.
type spoken struct {
	resample *audio.Resampler
	in, out  []int16
	yield    func([]int16) error
}

func newSpoken(from int, to audio.Rate, yield func([]int16) error) (*spoken, error) {
	r, err := audio.NewResampler(from, int(to))
	if err != nil {
		return nil, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	return &spoken{resample: r, yield: yield}, nil
}

// pass takes samples as they are sent: 16-bit little-endian.
func (s *spoken) pass(ctx context.Context, raw []byte) error {
	s.in = s.in[:0]
	for i := 0; i < len(raw); i += 2 {
		s.in = append(s.in, int16(binary.LittleEndian.Uint16(raw[i:])))
	}
	return s.give(ctx, s.in)
}

func (s *spoken) give(ctx context.Context, pcm []int16) error {
	s.out = s.out[:0]
	for n := 0; len(pcm) > 0; pcm = pcm[n:] { // by frames: a resampler keeps as much as it was ever given at once
		n = min(len(pcm), speechRate/50)
		s.out = s.resample.Resample(s.out, pcm[:n])
	}
	if len(s.out) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // what has arrived already is not wanted any more
	}
	if err := s.yield(s.out); err != nil {
		return rest.Refuse(err)
	}
	return nil
}
