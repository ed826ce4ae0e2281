package audio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// wavHeader is the length of the header that a Recorder writes: RIFF, fmt and the beginning of data.
const wavHeader = 44

// AppendWAVHeader appends the header of a file of 16-bit PCM with so many octets of it. Sizes end at 4 GB: what is
// longer says so much.
func AppendWAVHeader(dst []byte, rate, channels int, size int64) []byte {
	le := binary.LittleEndian
	size = min(size, math.MaxUint32-wavHeader)
	dst = append(dst, "RIFF"...)
	dst = le.AppendUint32(dst, uint32(size+wavHeader-8))
	dst = append(dst, "WAVEfmt "...)
	dst = le.AppendUint32(dst, 16)
	dst = le.AppendUint16(dst, 1) // PCM
	dst = le.AppendUint16(dst, uint16(channels))
	dst = le.AppendUint32(dst, uint32(rate))
	dst = le.AppendUint32(dst, uint32(rate*channels*2))
	dst = le.AppendUint16(dst, uint16(channels*2))
	dst = le.AppendUint16(dst, 16)
	dst = append(dst, "data"...)
	return le.AppendUint32(dst, uint32(size))
}

// Recorder writes a call's recording: 16-bit stereo WAV, the customer left and the assistant right. The header gets
// its sizes at the end; a file whose writer died is mended by RepairRecording and lacks the last half second at most.
type Recorder struct {
	w      io.WriteSeeker
	rate   Rate
	buffer []byte
	size   int64 // of the PCM, what is buffered too
	err    error
}

// NewRecorder writes the header.
func NewRecorder(w io.WriteSeeker, rate Rate) (*Recorder, error) {
	r := &Recorder{w: w, rate: rate, buffer: make([]byte, 0, int(rate)*2)} // half a second
	r.flush(AppendWAVHeader(nil, int(rate), 2, 0))
	return r, r.err
}

// Write adds a frame of both sides. A side that is nil or too short is silent for the rest. After an error it writes
// nothing more and returns that error.
func (r *Recorder) Write(customer, assistant Frame) error {
	n := max(len(customer), len(assistant))
	for i := range n {
		var left, right int16
		if i < len(customer) {
			left = customer[i]
		}
		if i < len(assistant) {
			right = assistant[i]
		}
		r.buffer = append(r.buffer, byte(left), byte(left>>8), byte(right), byte(right>>8))
		if len(r.buffer)+4 > cap(r.buffer) {
			r.flush(r.buffer)
			r.buffer = r.buffer[:0]
		}
	}
	r.size += int64(n) * 4
	return r.err
}

// Size is that of the file so far, in octets.
func (r *Recorder) Size() int64 { return wavHeader + r.size }

// Close writes what is left and the sizes. It doesn't close the file.
func (r *Recorder) Close() error {
	r.flush(r.buffer)
	r.buffer = r.buffer[:0]
	if r.err == nil {
		_, r.err = r.w.Seek(0, io.SeekStart)
	}
	r.flush(AppendWAVHeader(nil, int(r.rate), 2, r.size))
	if r.err == nil {
		_, r.err = r.w.Seek(0, io.SeekEnd)
	}
	return r.err
}

func (r *Recorder) flush(b []byte) {
	if r.err == nil {
		if _, err := r.w.Write(b); err != nil {
			r.err = fmt.Errorf("write recording: %w", err)
		}
	}
}

// RepairRecording sets the sizes in the header of a recording by how long the file is, and drops what is no whole
// sample of both sides. A file that was closed as it should be stays as it is.
func RepairRecording(f interface {
	io.ReadWriteSeeker
	Truncate(size int64) error
}) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("repair recording: %w", err)
	}
	var head [wavHeader]byte
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		_, err = io.ReadFull(f, head[:])
	}
	if err != nil {
		return fmt.Errorf("repair recording: read header: %w", err)
	}
	rate := binary.LittleEndian.Uint32(head[24:])
	if want := AppendWAVHeader(nil, int(rate), 2, 0); !bytes.Equal(head[8:40], want[8:40]) {
		return errors.New("repair recording: it has another header than a recording has")
	}
	whole := (size - wavHeader) / 4 * 4
	if whole+wavHeader != size {
		if err := f.Truncate(whole + wavHeader); err != nil {
			return fmt.Errorf("repair recording: %w", err)
		}
	}
	right := AppendWAVHeader(nil, int(rate), 2, whole)
	if bytes.Equal(head[:], right) {
		return nil
	}
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		_, err = f.Write(right)
	}
	if err != nil {
		return fmt.Errorf("repair recording: write header: %w", err)
	}
	return nil
}

// WAVReader reads 16-bit PCM of one or two channels at 8, 16, 22.05, 24 or 48 kHz. It takes streams whose header
// doesn't know their size (0 or the largest), as synthesizers write them.
type WAVReader struct {
	Rate     int // Hz
	Channels int
	r        io.Reader
	left     int64 // octets of PCM to come
	buffer   []byte
}

// NewWAVReader reads as far as the first sample.
func NewWAVReader(r io.Reader) (*WAVReader, error) {
	w := &WAVReader{r: r}
	le := binary.LittleEndian
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("read WAV header: %w", err)
	}
	if string(head[:4]) != "RIFF" || string(head[8:]) != "WAVE" {
		return nil, errors.New("read WAV header: this is no WAV file")
	}
	for {
		var chunk [8]byte
		if _, err := io.ReadFull(r, chunk[:]); err != nil {
			return nil, fmt.Errorf("read WAV header: no sound in it: %w", err)
		}
		size := int64(le.Uint32(chunk[4:]))
		switch name := string(chunk[:4]); name {
		case "fmt ":
			if size < 16 || size > 1<<10 {
				return nil, fmt.Errorf("read WAV header: a format of %d octets", size)
			}
			format := make([]byte, size+size&1)
			if _, err := io.ReadFull(r, format); err != nil {
				return nil, fmt.Errorf("read WAV header: %w", err)
			}
			tag := le.Uint16(format)
			if tag == 0xFFFE && size >= 26 { // WAVE_FORMAT_EXTENSIBLE: the format proper begins the sub-format's GUID
				tag = le.Uint16(format[24:])
			}
			w.Channels, w.Rate = int(le.Uint16(format[2:])), int(le.Uint32(format[4:]))
			if bits := le.Uint16(format[14:]); tag != 1 || bits != 16 || w.Channels < 1 || w.Channels > 2 {
				return nil, fmt.Errorf("read WAV header: format %d with %d bits and %d channels, want 16-bit PCM, mono or stereo", tag, bits, w.Channels)
			}
			if w.Rate != 8000 && w.Rate != 16000 && w.Rate != 22050 && w.Rate != 24000 && w.Rate != 48000 {
				return nil, fmt.Errorf("read WAV header: %d Hz, want 8000, 16000, 22050, 24000 or 48000", w.Rate)
			}
		case "data":
			if w.Rate == 0 {
				return nil, errors.New("read WAV header: the sound comes before its format")
			}
			if w.left = size; size == 0 || size >= 0x7FFFF000 {
				w.left = math.MaxInt64
			}
			w.buffer = make([]byte, w.Rate/50*2*w.Channels)
			return w, nil
		default:
			if _, err := io.CopyN(io.Discard, r, size+size&1); err != nil {
				return nil, fmt.Errorf("read WAV header: chunk %q: %w", name, err)
			}
		}
	}
}

// Read fills dst with samples, those of two channels taking turns, left first, and returns how many there are: fewer
// only at the end, and only whole ones of all channels. At the end the error is io.EOF. A file that breaks off ends
// there.
func (w *WAVReader) Read(dst []int16) (n int, err error) {
	dst = dst[:len(dst)/w.Channels*w.Channels]
	for n < len(dst) {
		b := w.buffer[:min(int64(len(w.buffer)), int64(2*(len(dst)-n)), w.left)]
		got, err := io.ReadFull(w.r, b)
		w.left -= int64(got)
		for i := range got / (2 * w.Channels) * w.Channels {
			dst[n] = int16(binary.LittleEndian.Uint16(b[2*i:]))
			n++
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || len(b) == 0:
			w.left = 0
			if n == 0 && len(dst) > 0 {
				return 0, io.EOF
			}
			return n, nil
		case err != nil:
			return n, fmt.Errorf("read WAV: %w", err)
		}
	}
	return n, nil
}
