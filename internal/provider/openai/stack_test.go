package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/internal/audio"
)

// program is a server that answers as one of the stacks does, by its documents and sources.
type program struct {
	name    string            // of its Server header; "": none
	owner   string            // of its models
	models  []string          // that it lists below /v1
	task    string            // that speaches adds to each
	pages   map[string]string // JSON at its root, by path
	wrongOK bool              // with status 200

	toolless string // what it says to tools
	whole    bool   // it doesn't stream
	sound    string // content type of speech
	voices   []string
	hears    string // path of transcription
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.name != "" {
		w.Header().Set("Server", p.name)
	}
	answer := func(status int, kind, body string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
	refuse := func(status int, message string) {
		raw, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}})
		answer(status, "application/json", string(raw))
	}
	var in struct {
		Model, Voice string
		Stream       bool
		Tools        []any
	}
	if strings.Contains(r.Header.Get("Content-Type"), "json") {
		json.NewDecoder(r.Body).Decode(&in)
	}
	switch path := r.Method + " " + r.URL.Path; {
	case path == "GET /v1/models" && p.models != nil:
		var data []map[string]any
		for _, m := range p.models {
			one := map[string]any{"id": m, "object": "model"}
			if p.owner != "" {
				one["owned_by"] = p.owner
			}
			if p.task != "" {
				one["task"] = p.task
			}
			data = append(data, one)
		}
		raw, _ := json.Marshal(map[string]any{"object": "list", "data": data})
		answer(200, "application/json", string(raw))
	case r.Method == "GET" && p.pages[r.URL.Path] != "":
		answer(200, "application/json", p.pages[r.URL.Path])
	case path == "POST /v1/chat/completions" && !slices.Contains(p.models, in.Model) && !slices.Contains(p.models, in.Model+":latest"):
		refuse(404, fmt.Sprintf("model %q not found", in.Model))
	case path == "POST /v1/chat/completions" && p.toolless != "" && len(in.Tools) > 0:
		refuse(400, p.toolless)
	case path == "POST /v1/chat/completions" && (p.whole || !in.Stream):
		answer(200, "application/json", `{"choices":[{"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	case path == "POST /v1/chat/completions":
		answer(200, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"Yes.\"}}]}\n\ndata: [DONE]\n\n")
	case path == "POST /v1/audio/speech" && p.sound != "" && p.voices != nil && !slices.Contains(p.voices, in.Voice):
		answer(400, "application/json", fmt.Sprintf(`{"detail":{"error":"validation_error","message":"Voice '%s' not found."}}`, in.Voice))
	case path == "POST /v1/audio/speech" && p.sound == "audio/wav":
		answer(200, p.sound, string(append(audio.AppendWAVHeader(nil, 22050, 1, 4), 0, 0, 0, 0)))
	case path == "POST /v1/audio/speech" && p.sound != "":
		answer(200, p.sound, "\x00\x00\x01\x00")
	case r.Method == "POST" && p.hears != "" && r.URL.Path == p.hears:
		if f, _, err := r.FormFile("file"); err != nil {
			refuse(400, "no 'file' field in the request")
		} else {
			f.Close()
			answer(200, "application/json", `{"text":""}`)
		}
	case p.wrongOK:
		answer(200, "application/json", fmt.Sprintf(`{"error":"Unexpected endpoint or method. (%s)"}`, path))
	default:
		answer(404, "text/plain", "404 page not found")
	}
}

// The doctor recognizes each stack by its answers, and names what to change.
func TestDoctorKnowsStacks(t *testing.T) {
	chat := func(s *Settings, url string) { s.BaseURL, s.ChatModel = url, []string{"qwen3"} }
	speech := func(s *Settings, url string) { s.TTSBaseURL, s.TTSModel = url, "kokoro" }
	hearing := func(s *Settings, url string) { s.STTBaseURL, s.STTModel = url, "whisper" }
	ollama := program{owner: "library", models: []string{"qwen3:latest", "gemma3:4b"},
		pages: map[string]string{"/api/version": `{"version":"0.12.6"}`}}
	llama := program{name: "llama.cpp", owner: "llamacpp", models: []string{"qwen3"},
		pages: map[string]string{"/props": `{"default_generation_settings":{}}`}}
	vllm := program{owner: "vllm", models: []string{"qwen3"}, pages: map[string]string{"/version": `{"version":"0.11.0"}`}}
	studio := program{owner: "organization_owner", models: []string{"qwen3"}, wrongOK: true}
	local := program{models: []string{"qwen3"},
		pages: map[string]string{"/.well-known/localai.json": `{"version":"v4","endpoints":{}}`, "/api/version": `{"version":"0.9"}`}}
	speak := program{owner: "speaches-ai", models: []string{"kokoro"}, task: "text-to-speech", sound: "audio/pcm"}
	kokoro := program{owner: "kokoro", models: []string{"tts-1", "kokoro"}, sound: "audio/pcm", voices: []string{"alloy", "ash"}}
	whisper := program{name: "whisper.cpp", hears: "/inference"}
	for name, c := range map[string]struct {
		of     program
		change func(*program)
		ask    func(s *Settings, url string)
		path   string // of the base URL
		want   string // the state, what it is about, and parts of the text
	}{
		"Ollama":             {ollama, nil, chat, "/v1", "ok|language model|(Ollama) answers, with qwen3"},
		"Ollama without /v1": {ollama, nil, chat, "", "FAIL|language model|/v1 has: set PARLEY_OPENAI_BASE_URL"},
		"Ollama without it": {ollama, func(p *program) { p.models = p.models[1:] }, chat, "/v1",
			"FAIL|language model|set PARLEY_OPENAI_CHAT_MODEL to one that it has (gemma3:4b), or 'ollama pull qwen3'"},
		"Ollama with nothing": {ollama, func(p *program) { p.models = []string{} }, chat, "/v1",
			"FAIL|language model|qwen3 is not there|'ollama pull qwen3'|PARLEY_OPENAI_CHAT_MODEL"},
		"Ollama without tools": {ollama, func(p *program) { p.toolless = "registry.ollama.ai/library/qwen3:latest does not support tools" }, chat,
			"/v1", "note|language model|takes no tools|ollama show"},
		"llama.cpp":        {llama, nil, chat, "/v1", "ok|language model|(llama.cpp) answers"},
		"llama.cpp of old": {llama, func(p *program) { p.name, p.owner = "", "" }, chat, "/v1", "ok|language model|(llama.cpp) answers"},
		"llama.cpp without jinja": {llama, func(p *program) { p.toolless = "tools param requires --jinja flag" }, chat, "/v1",
			"note|language model|--jinja"},
		"llama.cpp, another name": {llama, func(p *program) { p.models = []string{"model.gguf"} }, chat, "/v1",
			"note|language model|answers with model.gguf under any name"},
		"vLLM": {vllm, nil, chat, "/v1", "ok|language model|(vLLM) answers"},
		"vLLM without tools": {vllm, func(p *program) {
			p.toolless = `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`
		}, chat, "/v1", "note|language model|start vLLM with --enable-auto-tool-choice"},
		"vLLM behind a proxy":   {vllm, func(p *program) { p.whole = true }, chat, "/v1", "note|language model|does not stream"},
		"LM Studio":             {studio, nil, chat, "/v1", "ok|language model|(LM Studio) answers"},
		"LM Studio without /v1": {studio, nil, chat, "", "FAIL|language model|/v1 has: set PARLEY_OPENAI_BASE_URL"},
		"LocalAI":               {local, nil, chat, "/v1", "ok|language model|(LocalAI) answers"},
		"LocalAI without it": {local, func(p *program) { p.models = []string{"other"} }, chat, "/v1",
			"FAIL|language model|local-ai models install qwen3"},
		"speaches speaks": {speak, nil, speech, "/v1", "ok|speech model|(speaches) answers"},
		"speaches without it": {speak, func(p *program) { p.models = []string{"piper"} }, speech, "/v1",
			"FAIL|speech model|set PARLEY_OPENAI_TTS_MODEL to one that it has (piper), or 'uvx speaches-cli model download kokoro'"},
		"Kokoro": {kokoro, nil, speech, "/v1", "ok|speech model|(Kokoro-FastAPI) answers|voices it knows alloy, ash"},
		"Kokoro without a voice": {kokoro, func(p *program) { p.voices = []string{"af_sky"} }, speech, "/v1",
			"FAIL|speech model|voice alloy|Voice 'alloy' not found"},
		"Kokoro with WAV alone": {kokoro, func(p *program) { p.sound = "audio/wav" }, speech, "/v1", "note|speech model|WAV in place of PCM"},
		"Kokoro with MP3": {kokoro, func(p *program) { p.sound = "audio/mpeg" }, speech, "/v1",
			"FAIL|speech model|response_format|PARLEY_OPENAI_TTS_BASE_URL"},
		"whisper.cpp as it comes": {whisper, nil, hearing, "/v1", "FAIL|transcription|--inference-path /v1/audio/transcriptions"},
		"whisper.cpp": {whisper, func(p *program) { p.hears = "/v1/audio/transcriptions" }, hearing, "/v1",
			"ok|transcription|(whisper.cpp) answers"},
		"Piper": {
			program{pages: map[string]string{"/voices": `{"en_US-lessac-medium":{"audio":{"sample_rate":22050},"espeak":{"voice":"en-us"}}}`}}, nil,
			speech, "", "FAIL|speech model|Piper's HTTP server|does not have OpenAI's API"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change(&c.of)
			}
			srv := httptest.NewServer(&c.of)
			defer srv.Close()
			var s Settings
			c.ask(&s, srv.URL+c.path)
			want := strings.Split(c.want, "|")
			for _, f := range Declare(&s).Check(t.Context()) {
				if f.What != want[1] {
					continue
				}
				for _, part := range want[2:] {
					if f.State != want[0] || !strings.Contains(f.Text, part) {
						t.Errorf("got %s %s, want %q", f.State, f.Text, c.want)
					}
				}
				return
			}
			t.Errorf("nothing is said of the %s", want[1])
		})
	}
}

// The card for a server of one's own knows them too, and names its own setting.
func TestCompatibleKnowsStacks(t *testing.T) {
	p := &program{owner: "library", models: []string{"gemma3:4b"}, toolless: "registry.ollama.ai/library/gemma3:4b does not support tools"}
	srv := httptest.NewServer(p)
	defer srv.Close()
	for model, want := range map[string]string{"gemma3:4b": "takes no tools",
		"qwen3": "set PARLEY_COMPATIBLE_MODEL to one that it has (gemma3:4b)"} {
		got := DeclareCompatible(&CompatibleSettings{BaseURL: srv.URL + "/v1", Model: []string{model}}).Check(t.Context())
		if len(got) != 1 || !strings.Contains(got[0].Text, want) {
			t.Errorf("%s: got %+v, want %q", model, got, want)
		}
	}
}
