package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"parley/internal/audio"
)

// A recorded message for voicemails is sent as a form, read back, and removed; what is no message fails its field.
func TestVoicemailRecording(t *testing.T) {
	eachPhone(t, func(t *testing.T, p *phones) {
		path := fmt.Sprintf("/user/assistant/%d/voicemail-recording", p.to)
		wav := append(audio.AppendWAVHeader(nil, 16000, 1, 32000), make([]byte, 32000)...)
		file := func() option { return multi("file", bytes.NewReader(wav)) }
		p.get(path, status(404))
		p.put(path, nil, status(422))
		p.put(path, nil, multi("file", bytes.NewReader([]byte("no sound"))), status(422))
		got := p.put(path, nil, file(), status(200)).json()
		data, _ := got["data"].(map[string]any)
		if fmt.Sprint(data["duration_ms"]) != "1000" || fmt.Sprint(data["assistant_id"]) != fmt.Sprint(p.to) {
			t.Errorf("kept %v", got)
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/api"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+p.token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if back, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(back, wav) || res.Header.Get("Content-Type") != "audio/wav" {
			t.Errorf("%d bytes came back, %v: %v", len(back), res.Header, err)
		}
		p.get("/user/assistant/999999/voicemail-recording", status(404))
		p.put("/user/assistant/999999/voicemail-recording", nil, file(), status(404))
		p.delete(path, status(200))
		p.delete(path, status(404))
		p.get(path, status(404))
	})
}
