package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/audio"
)

// talker is a realtime session of the vendor's, as OpenAI's protocol has it: it does just what a call needs. Its voice
// is a tone of its own, by which a telephone's call is found.
type talker struct {
	v      *vendor
	ws     *websocket.Conn
	ctx    context.Context
	pitch  float64
	sound  []byte // a reply, µ-law
	writes bool

	mu      sync.Mutex
	items   int
	replied []time.Time // when the first sound of each reply was sent
	stop    context.CancelFunc
}

const (
	lowestPitch = 460.0 // Hz, of the first session; a voice that speaks for others hums at 440
	pitchStep   = 40.0  // to the next
	pieceTime   = 100 * time.Millisecond
)

// converse is GET /v1/realtime.
func (v *vendor) converse(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ws.SetReadLimit(16 << 20)
	v.mu.Lock()
	t := &talker{v: v, ws: ws, ctx: r.Context(), pitch: lowestPitch + pitchStep*float64(len(v.talkers))}
	v.talkers = append(v.talkers, t)
	v.mu.Unlock()
	pcm := make([]int16, int(speechTime(*v.reply.Load())*8000/time.Second))
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*t.pitch*float64(i)/8000))
	}
	t.sound = audio.EncodeULaw(nil, pcm)
	t.send(`{"type":"session.created","session":{"type":"realtime","id":"s"}}`)
	for {
		_, raw, err := ws.Read(t.ctx)
		if err != nil {
			return
		}
		if !strings.HasPrefix(string(raw[:min(len(raw), 40)]), `{"type":"input_audio_buffer.append"`) {
			t.take(raw)
		}
	}
}

func (t *talker) send(format string, args ...any) {
	_ = t.ws.Write(t.ctx, websocket.MessageText, fmt.Appendf(nil, format, args...)) // who left is read
}

// take does what a message asks for.
func (t *talker) take(raw []byte) {
	var in struct {
		Type    string
		Session struct {
			Modalities []string `json:"output_modalities"`
		}
		Item     struct{ ID string }
		Response struct{ Metadata json.RawMessage }
	}
	if json.Unmarshal(raw, &in) != nil {
		return
	}
	switch in.Type {
	case "session.update":
		t.writes = len(in.Session.Modalities) == 1 && in.Session.Modalities[0] == "text"
		t.send(`{"type":"session.updated","session":{}}`)
	case "input_audio_buffer.commit":
		id := t.item("heard")
		t.send(`{"type":"input_audio_buffer.committed","item_id":%q}`, id)
		t.added(id)
		t.v.heard.Add(1)
		time.AfterFunc(t.v.hear, func() {
			t.send(`{"type":"conversation.item.input_audio_transcription.completed","item_id":%q,"content_index":0,"transcript":%q}`, id, t.v.hears)
		})
	case "conversation.item.create":
		t.added(in.Item.ID)
	case "response.create":
		t.v.asked.Add(1)
		ctx, cancel := context.WithCancel(t.ctx)
		t.mu.Lock()
		t.stop = cancel
		t.mu.Unlock()
		go t.respond(ctx, t.item("resp"), in.Response.Metadata)
	case "response.cancel":
		t.mu.Lock()
		if t.stop != nil {
			t.stop()
		}
		t.mu.Unlock()
	}
}

func (t *talker) item(kind string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items++
	return fmt.Sprintf("%s_%d", kind, t.items)
}

func (t *talker) added(id string) {
	t.send(`{"type":"conversation.item.added","previous_item_id":null,"item":{"id":%q,"type":"message"}}`, id)
}

// respond sends the reply, all at once after the delay: in sound or in text.
func (t *talker) respond(ctx context.Context, id string, metadata json.RawMessage) {
	t.send(`{"type":"response.created","response":{"id":%q,"status":"in_progress","metadata":%s}}`, id, metadata)
	status := "completed"
	select {
	case <-time.After(t.v.think):
		it := t.item("said")
		t.send(`{"type":"response.output_item.added","response_id":%q,"output_index":0,"item":{"id":%q,"type":"message"}}`, id, it)
		t.added(it)
		t.say(ctx, id, it)
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		status = "cancelled"
	}
	t.send(`{"type":"response.done","response":{"id":%q,"status":%q,"metadata":%s,"usage":{"input_tokens":10,"output_tokens":10}}}`, id,
		status, metadata)
}

func (t *talker) say(ctx context.Context, id, it string) {
	delta := func(kind, delta string) {
		t.send(`{"type":"response.%s.delta","response_id":%q,"item_id":%q,"output_index":0,"content_index":0,"delta":%q}`,
			kind, id, it, delta)
	}
	text := *t.v.reply.Load()
	t.mu.Lock()
	t.replied = append(t.replied, time.Now())
	t.mu.Unlock()
	if t.writes {
		delta("output_text", text)
		return
	}
	n := int(pieceTime * 8000 / time.Second)
	for at := 0; at < len(t.sound) && ctx.Err() == nil; at += n {
		delta("output_audio", base64.StdEncoding.EncodeToString(t.sound[at:min(at+n, len(t.sound))]))
		if at == 0 {
			delta("output_audio_transcript", text)
		}
	}
}

// of finds the session whose tone a sound is.
func (v *vendor) of(pcm []int16, rate int) *talker {
	v.mu.Lock()
	defer v.mu.Unlock()
	var best *talker
	most := 0.0
	for _, t := range v.talkers {
		var re, im float64
		for i, s := range pcm {
			sin, cos := math.Sincos(2 * math.Pi * t.pitch * float64(i) / float64(rate))
			re, im = re+float64(s)*cos, im+float64(s)*sin
		}
		if e := re*re + im*im; e > most {
			best, most = t, e
		}
	}
	return best
}
