package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// vendor is a server that speaks OpenAI's API as cheaply as it can: it hears always the same, thinks what it is told
// to, and says it as a tone, each after a delay that is known. What a turn takes beyond those delays is Parley's. In a
// realtime session (converse.go) the delays are the same.
type vendor struct {
	url                 string
	hears               string // what every utterance means
	reply               atomic.Pointer[string]
	hear, think, voiced time.Duration // the delays
	heard, asked, spoke atomic.Int64  // how often
	refuses             atomic.Bool   // whoever asks for a thought

	mu      sync.Mutex
	talkers []*talker // its realtime sessions
}

// speechTime is how long the vendor takes to say a text: 60 ms a character.
func speechTime(text string) time.Duration { return time.Duration(len(text)) * 60 * time.Millisecond }

func (b *bench) vendor(v *vendor) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	v.url = "http://" + l.Addr().String() + "/v1"
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", v.chat)
	mux.HandleFunc("POST /v1/audio/speech", v.speech)
	mux.HandleFunc("POST /v1/audio/transcriptions", func(w http.ResponseWriter, r *http.Request) {
		v.heard.Add(1)
		io.Copy(io.Discard, r.Body)
		time.Sleep(v.hear)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"text": v.hears})
	})
	mux.HandleFunc("GET /v1/realtime", v.converse)
	srv := &http.Server{Handler: mux}
	go srv.Serve(l)
	b.undo = append(b.undo, func() { srv.Close() })
	return nil
}

func (v *vendor) chat(w http.ResponseWriter, r *http.Request) {
	v.asked.Add(1)
	io.Copy(io.Discard, r.Body)
	if v.refuses.Load() {
		http.Error(w, `{"error":{"message":"overloaded","type":"server_error"}}`, http.StatusServiceUnavailable)
		return
	}
	time.Sleep(v.think)
	text, _ := json.Marshal(*v.reply.Load())
	w.Header().Set("Content-Type", "text/event-stream")
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench",` +
		`"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
	fmt.Fprintf(w, chunk, `{"role":"assistant","content":`+string(text)+`}`, "null")
	fmt.Fprintf(w, chunk, "{}", `"stop"`)
	io.WriteString(w, "data: [DONE]\n\n")
}

// hum is a minute of a tone of 24 kHz, 16 bits.
var hum = func() []byte {
	pcm := make([]byte, 60*24000*2)
	for i := range len(pcm) / 2 {
		s := int16(8000 * math.Sin(2*math.Pi*440*float64(i)/24000))
		pcm[2*i], pcm[2*i+1] = byte(s), byte(s>>8)
	}
	return pcm
}()

func (v *vendor) speech(w http.ResponseWriter, r *http.Request) {
	v.spoke.Add(1)
	var in struct{ Input string }
	json.NewDecoder(r.Body).Decode(&in)
	time.Sleep(v.voiced)
	w.Header().Set("Content-Type", "audio/pcm")
	w.Write(hum[:min(len(hum), int(speechTime(in.Input)*48000/time.Second)&^1)])
}
