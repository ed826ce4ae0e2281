package audio

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// webrtc is WebRTC's voice activity detector, for comparison: that of Debian's libwebrtc-audio-processing1. It says of
// 20 ms whether there is speech, and goes on saying so for a few frames after the end. Nothing else is added to it.
type webrtc struct {
	lib *webrtcLibrary
	id  uint16
	run int
}

// webrtcLibrary is a Python process that has loaded the library. Each message begins with a detector's number and a mode;
// what is no mode is a frame of 160 samples, which is answered with a byte.
type webrtcLibrary struct {
	in   io.Writer
	out  *bufio.Reader
	made uint16
}

const (
	webrtcFrame   = 255
	webrtcProgram = `
import ctypes, struct, sys
lib, pointer = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p
lib.WebRtcVad_Create.restype = pointer
lib.WebRtcVad_Init.argtypes = [pointer]
lib.WebRtcVad_set_mode.argtypes = [pointer, ctypes.c_int]
lib.WebRtcVad_Process.argtypes = [pointer, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
vads, read, write = {}, sys.stdin.buffer.read, sys.stdout.buffer
while len(head := read(3)) == 3:
    n, mode = struct.unpack("<HB", head)
    if mode < 255:
        vads[n] = vad = lib.WebRtcVad_Create()
        if not vad or lib.WebRtcVad_Init(vad) or lib.WebRtcVad_set_mode(vad, mode):
            sys.exit("WebRTC's detector can't be made")
        continue
    said = lib.WebRtcVad_Process(vads[n], 8000, read(320), 160)
    if said < 0:
        sys.exit("WebRTC's detector refuses a frame")
    write.write(bytes([said]))
    write.flush()
`
)

// openWebRTC returns nil where the library is not installed. The process ends with the tests, as its input does.
var openWebRTC = sync.OnceValue(func() *webrtcLibrary {
	found, _ := filepath.Glob("/usr/lib/*/libwebrtc_audio_processing.so.1")
	if len(found) == 0 {
		return nil
	}
	cmd := exec.Command("python3", "-c", webrtcProgram, found[0])
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return &webrtcLibrary{in: in, out: bufio.NewReader(out)}
})

func newWebRTC(mode byte) *webrtc {
	lib := openWebRTC()
	lib.made++
	d := &webrtc{lib: lib, id: lib.made}
	d.send(mode, nil)
	return d
}

func (d *webrtc) send(what byte, pcm []int16) {
	b := append(binary.LittleEndian.AppendUint16(nil, d.id), what)
	for _, x := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(x))
	}
	if _, err := d.lib.in.Write(b); err != nil {
		panic(err)
	}
}

func (d *webrtc) Detect(f Frame) (speech, voiced bool) {
	d.send(webrtcFrame, f)
	said, err := d.lib.out.ReadByte()
	if err != nil {
		panic(err)
	}
	if said == 0 {
		d.run = 0
		return false, false
	}
	d.run++
	return true, true
}

// Sure is after 60 ms without a break.
func (d *webrtc) Sure() bool { return d.run >= 3 }
