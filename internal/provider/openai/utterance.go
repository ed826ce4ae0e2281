package openai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"mime/multipart"
	"sync"

	"parley/internal/ai"
	"parley/internal/audio"
)

// chunkSize is a quarter of a second at 8 kHz.
const chunkSize = 2000

type chunk [chunkSize]int16

// Chunks are pooled for all recognizers. A recognizer that hears nothing holds none.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// sound is the audio of an utterance while it is collected.
type sound struct {
	chunks []*chunk
	n      int // samples
}

func (s *sound) add(pcm []int16) {
	for len(pcm) > 0 {
		if s.n%chunkSize == 0 {
			s.chunks = append(s.chunks, chunks.Get().(*chunk))
		}
		n := copy(s.chunks[len(s.chunks)-1][s.n%chunkSize:], pcm)
		s.n, pcm = s.n+n, pcm[n:]
	}
}

// piece returns the contiguous sound from a sample on.
func (s *sound) piece(at int) []int16 {
	first := at % chunkSize
	return s.chunks[at/chunkSize][first:min(chunkSize, first+s.n-at)]
}

// window fills dst with the sound from a sample on. Before its beginning and after its end there is silence.
func (s *sound) window(dst []int16, at int) {
	clear(dst)
	if at < 0 {
		dst, at = dst[-at:], 0
	}
	for len(dst) > 0 && at < s.n {
		n := copy(dst, s.piece(at))
		dst, at = dst[n:], at+n
	}
}

// drop releases the sound.
func (s *sound) drop() {
	for _, c := range s.chunks {
		chunks.Put(c)
	}
	clear(s.chunks)
	s.chunks, s.n = s.chunks[:0], 0
}

// silent reports whether there is nothing to be heard.
func (s *sound) silent() bool {
	for at := 0; at < s.n; {
		p := s.piece(at)
		for _, v := range p {
			if v > faint || v < -faint {
				return false
			}
		}
		at += len(p)
	}
	return true
}

// upload is the body of POST /audio/transcriptions: a form with an utterance as a mono WAV file at 16 kHz. It is
// written while it is sent.
type upload struct {
	kind       string // its content type
	head, tail []byte
	pcm        int // octets of sound between them
	double     bool

	mu    sync.Mutex // the transport may go on reading after the answer
	sound *sound     // nil once it is given up
}

func (r *recognizer) upload(h ai.Hearing, s *sound) *upload {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	field := func(name, value string) {
		if value != "" && !r.refuses(name) {
			_ = w.WriteField(name, value) // into memory
		}
	}
	field("model", r.model)
	lists := takesHints(r.model)
	if lists && !r.refuses("languages") {
		for _, l := range append([]string{h.Language}, h.Others...) {
			field("languages[]", l)
		}
	} else {
		field("language", h.Language)
	}
	if lists && !r.refuses("keywords") {
		for _, k := range terms(h.Keywords) {
			field("keywords[]", k)
		}
	} else {
		field("prompt", prompt(h.Keywords))
	}
	if r.model == tellsNoSpeech && !r.refuses("response_format") {
		field("response_format", "verbose_json") // it can't be streamed
	} else {
		field("response_format", "json")
		field("stream", "true")
	}
	_, _ = w.CreateFormFile("file", "utterance.wav")
	n := b.Len()
	_ = w.Close()
	u := &upload{kind: w.FormDataContentType(), tail: b.Bytes()[n:], pcm: 2 * s.n * int(audio.Wide/h.Rate),
		double: h.Rate == audio.Narrow, sound: s}
	u.head = audio.AppendWAVHeader(b.Bytes()[:n:n], int(audio.Wide), 1, int64(u.pcm))
	return u
}

func (u *upload) size() int64 { return int64(len(u.head) + u.pcm + len(u.tail)) }

// open starts a reader at the beginning.
func (u *upload) open() io.ReadCloser { return &file{upload: u, out: u.head} }

// close ends all reading.
func (u *upload) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sound = nil
}

// file is an upload that is being read.
type file struct {
	*upload
	at    int // sample of the sound
	ended bool
	out   []byte // what is read next
	raw   []byte
}

var errGone = errors.New("the utterance was given up")

// Read implements io.Reader.
func (f *file) Read(p []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sound == nil {
		return 0, errGone
	}
	for n < len(p) && f.more() {
		k := copy(p[n:], f.out)
		n, f.out = n+k, f.out[k:]
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// more makes sure that there is something to read. It returns false at the end.
func (f *file) more() bool {
	for len(f.out) == 0 {
		switch {
		case f.at < f.sound.n:
			f.encode()
		case !f.ended:
			f.ended, f.out = true, f.tail
		default:
			return false
		}
	}
	return true
}

// encode produces the next 20 ms, or less.
func (f *file) encode() {
	var line [2*reach - 1 + audio.MaxFrame]int16
	n := min(f.sound.n-f.at, audio.MaxFrame)
	f.sound.window(line[:2*reach-1+n], f.at-reach+1)
	f.at += n
	f.raw = f.raw[:0]
	for i := range n {
		x := (*[2 * reach]int16)(line[i:])
		f.raw = binary.LittleEndian.AppendUint16(f.raw, uint16(x[reach-1]))
		if !f.double {
			continue
		}
		sum := 1 << 15
		for k, c := range between {
			sum += c * (int(x[reach-1-k]) + int(x[reach+k]))
		}
		f.raw = binary.LittleEndian.AppendUint16(f.raw, uint16(min(max(sum>>16, math.MinInt16), math.MaxInt16)))
	}
	f.out = f.raw
}

// reach is how many samples on either side have a part in what is between two.
const reach = 12

// between is what each has, in 65536ths: a half-band filter, a sinc under a Kaiser window. What is below 3.3 kHz
// stays as it is, and its mirror image, above 4.7 kHz, is 68 dB down. A telephone has next to nothing above;
// audio.Resampler, which parts that too, takes four times as long.
var between = func() (c [reach]int) {
	bessel := func(x float64) float64 { // I0
		sum, term := 1.0, 1.0
		for k := 1.0; term > sum*1e-12; k++ {
			term *= x / 2 / k * (x / 2 / k)
			sum += term
		}
		return sum
	}
	rest := 1 << 15
	for k := reach - 1; k >= 0; k-- {
		x := float64(k) + 0.5
		c[k] = int(math.Round(65536 * math.Sin(math.Pi*x) / (math.Pi * x) * bessel(
			6.5*math.Sqrt(1-x*x/reach/reach)) / bessel(6.5)))
		rest -= c[k]
	}
	c[0] += rest // a constant stays one
	return c
}()

// Close implements io.Closer.
func (f *file) Close() error { return nil }
