package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
)

// stack is a program with this API that people run themselves.
type stack struct {
	name string
	// how a model comes to be there, with its name for %s; "": the server has the one that it was started with, under any name
	fetch   string
	tools   string   // what lets its models take tools
	listens string   // what lets it transcribe at the usual path
	voices  []string // those of ours that it knows; none: it is not known which
	mute    string   // why it can't be used at all
}

// The stacks that are recognized. What is said of them is from their own documents and sources.
var (
	ollama = &stack{name: "Ollama", fetch: "'ollama pull %s' fetches it",
		tools: "choose a model that Ollama lists with \"tools\" ('ollama show MODEL')"}
	llamaCPP = &stack{name: "llama.cpp", tools: "start llama-server with --jinja"}
	vLLM     = &stack{name: "vLLM", fetch: "'vllm serve %s' serves it",
		tools: "start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model"}
	lmStudio  = &stack{name: "LM Studio", fetch: "'lms get %s' fetches it", tools: "choose a model that LM Studio marks as trained for tools"}
	localAI   = &stack{name: "LocalAI", fetch: "'local-ai models install %s' fetches it", tools: "choose another model of LocalAI's gallery"}
	speaches  = &stack{name: "speaches", fetch: "'uvx speaches-cli model download %s' fetches it"}
	whisperCP = &stack{name: "whisper.cpp", listens: "start whisper-server with --inference-path /v1/audio/transcriptions"}
	kokoro    = &stack{name: "Kokoro-FastAPI", voices: []string{"alloy", "ash", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer"}}
	piper     = &stack{name: "Piper's HTTP server",
		mute: "it does not have OpenAI's API: put a server that has in front of it, such as LocalAI with its Piper backend"}
)

// owners are the stacks that say who they are as the owner of their models.
var owners = map[string]*stack{"library": ollama, "llamacpp": llamaCPP, "vllm": vLLM, "organization_owner": lmStudio, "kokoro": kokoro}

// recognize says which stack has answered a request for its models; nil where the answer doesn't tell.
func recognize(h http.Header, body []byte) *stack {
	switch h.Get("Server") {
	case "llama.cpp":
		return llamaCPP
	case "whisper.cpp":
		return whisperCP
	}
	if bytes.Contains(body, []byte("Unexpected endpoint or method.")) {
		return lmStudio
	}
	var all struct {
		Data []struct {
			Owner string `json:"owned_by"`
			Task  string `json:"task"`
		} `json:"data"`
	}
	_ = json.Unmarshal(body, &all)
	for _, m := range all.Data {
		if s := owners[m.Owner]; s != nil {
			return s
		}
		if m.Task == "automatic-speech-recognition" || m.Task == "text-to-speech" {
			return speaches
		}
	}
	return nil
}

// identify asks a server that has not said who it is for what only one stack has.
func identify(ctx context.Context, base string) *stack {
	root := strings.TrimSuffix(base, "/v1")
	get := func(path string) map[string]json.RawMessage {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, root+path, nil)
		if err != nil {
			return nil
		}
		res, err := http.DefaultClient.Do(req) // without the key: this is not what it is for
		if err != nil {
			return nil
		}
		defer res.Body.Close()
		var has map[string]json.RawMessage
		if body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20)); err != nil || res.StatusCode != http.StatusOK ||
			json.Unmarshal(body, &has) != nil {
			return nil
		}
		return has
	}
	switch {
	case len(get("/.well-known/localai.json")) > 0:
		return localAI
	case get("/api/version")["version"] != nil:
		return ollama
	case get("/props")["default_generation_settings"] != nil:
		return llamaCPP
	case get("/version")["version"] != nil:
		return vLLM
	}
	for _, voice := range get("/voices") {
		if bytes.Contains(voice, []byte(`"espeak"`)) || bytes.Contains(voice, []byte(`"sample_rate"`)) {
			return piper
		}
	}
	return nil
}

// has says whether a model is among those that the server lists.
func (a answer) has(model string) bool {
	return slices.Contains(a.models, model) || a.stack == ollama && slices.Contains(a.models, model+":latest")
}

// missing tells of a model that a server doesn't list, with the setting to change.
func (s *stack) missing(base, model string, listed []string, setting string) (state, text string) {
	switch {
	case s == nil:
		return parley.DoctorNote, fmt.Sprintf("%s does not list %s (%s); it lists %s", base, model, setting, short(listed))
	case s.fetch == "":
		return parley.DoctorNote, fmt.Sprintf("%s does not list %s: %s answers with %s under any name", base, model, s.name, short(listed))
	}
	return parley.DoctorFail, fmt.Sprintf("%s (%s) does not have %s: set %s to one that it has (%s), or %s", base, s.name, model, setting,
		short(listed), fmt.Sprintf(s.fetch, model))
}

// tried has a stack do what the models are for, and tells how it went. setting begins the names of its settings; model is the one of these.
func (s *stack) tried(ctx context.Context, at server, part ai.Part, models []string, setting, model string) (state, text string) {
	if len(models) == 0 {
		return parley.DoctorOK, fmt.Sprintf("%s (%s) answers", at.base, s.name)
	}
	wrong, dead := "", false
	switch part {
	case ai.TheVoice:
		wrong, dead = s.trySpeech(ctx, at, models[0])
	case ai.TheRecognizer:
		wrong, dead = s.tryHearing(ctx, at, models[0])
	default:
		wrong, dead = s.tryChat(ctx, at, models[0])
	}
	answers := fmt.Sprintf("%s (%s) answers, with %s", at.base, s.name, strings.Join(models, ", "))
	switch {
	case dead:
		return parley.DoctorFail, fmt.Sprintf("%s, but %s (%s, %sBASE_URL)", answers, wrong, model, setting)
	case wrong != "":
		return parley.DoctorNote, answers + ", but " + wrong
	case len(s.voices) > 0 && part == ai.TheVoice:
		return parley.DoctorOK, answers + ". Of OpenAI's voices it knows " + strings.Join(s.voices, ", ")
	}
	return parley.DoctorOK, answers
}

// tryFor is how long the doctor waits for what it tries: a model that is loaded first may take longer.
const tryFor = 8 * time.Second

// try makes a request of a stack, and returns the answer's status, type and first bytes. It may take tryFor.
func try(ctx context.Context, at server, path, kind string, body []byte) (status int, answers string, head []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	req.Header.Set("Content-Type", kind)
	if at.key != "" {
		req.Header.Set("Authorization", "Bearer "+at.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer res.Body.Close()
	head, err = io.ReadAll(io.LimitReader(res.Body, 64<<10))
	return res.StatusCode, res.Header.Get("Content-Type"), head, err
}

// tryChat has a model of a stack say a word with a tool at hand, and says what it doesn't do; "" where it does all. dead says that it
// can't be used.
func (s *stack) tryChat(ctx context.Context, at server, model string) (wrong string, dead bool) {
	body, err := json.Marshal(map[string]any{"model": model, "stream": true, "max_tokens": 8,
		"messages": []any{map[string]string{"role": "user", "content": "Say yes."}},
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "hang_up",
			"description": "Ends the call.", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}}}})
	if err != nil {
		return err.Error(), true
	}
	status, kind, head, err := try(ctx, at, "/chat/completions", "application/json", body)
	switch said := parse(head); {
	case err != nil && status == 0:
		return fmt.Sprintf("%s has not answered within %s: it may be loading, so ask the doctor again; if it stays, use a smaller model",
			model, tryFor), false
	case status >= 400 && (&badRequest{said.Param, said.Message}).about(toolsPart):
		return fmt.Sprintf("%s takes no tools (%s): they are told to it as text, which works less well; %s", model, said.Message, s.tools), false
	case status == http.StatusNotFound && s.fetch != "":
		return fmt.Sprintf("%s is not there (%s): "+s.fetch, model, said.Message, model), true
	case status >= 400:
		return fmt.Sprintf("%s refuses a conversation (status %d): %s", model, status, said.Message), true
	case !strings.HasPrefix(kind, "text/event-stream"):
		return fmt.Sprintf("%s does not stream (it answers %s): callers wait for whole replies. "+
			"If a proxy stands between, switch its buffering off", model, kind), false
	}
	return "", false
}

// trySpeech has a stack speak a word, and says what is wrong with the sound; "" where nothing is. dead says that it can't be used.
func (s *stack) trySpeech(ctx context.Context, at server, model string) (wrong string, dead bool) {
	body, err := json.Marshal(speechRequest{Model: model, Input: "Yes.", Voice: "alloy", Format: "pcm"})
	if err != nil {
		return err.Error(), true
	}
	status, kind, head, err := try(ctx, at, "/audio/speech", "application/json", body)
	switch said := parse(head); {
	case err != nil && status == 0:
		return fmt.Sprintf("%s has said nothing within %s: it may be loading, so ask the doctor again", model, tryFor), false
	case status >= 400:
		return fmt.Sprintf("%s does not speak with the voice alloy (status %d): %s", model, status, said.Message), true
	case bytes.HasPrefix(head, []byte("RIFF")):
		return fmt.Sprintf("%s sends WAV in place of PCM: it is understood, but a server that makes a whole file first begins to speak late",
			model), false
	case strings.Contains(kind, "mpeg") || strings.Contains(kind, "mp3") || strings.Contains(kind, "opus") || strings.Contains(kind, "ogg"):
		return fmt.Sprintf("%s sends %s, and Parley takes PCM or WAV: change the server's response_format", model, kind), true
	}
	return "", false
}

// tryHearing has a stack transcribe a moment of silence, and says what is wrong; "" where nothing is.
func (s *stack) tryHearing(ctx context.Context, at server, model string) (wrong string, dead bool) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	const octets = 16000 // half a second
	file, err := w.CreateFormFile("file", "silence.wav")
	if err == nil {
		_, err = file.Write(append(audio.AppendWAVHeader(nil, int(audio.Wide), 1, octets), make([]byte, octets)...))
	}
	for _, f := range [][2]string{{"model", model}, {"response_format", "json"}} {
		if err == nil {
			err = w.WriteField(f[0], f[1])
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return err.Error(), true
	}
	status, _, head, err := try(ctx, at, "/audio/transcriptions", w.FormDataContentType(), form.Bytes())
	switch said := parse(head); {
	case err != nil && status == 0:
		return fmt.Sprintf("%s has not answered within %s: it may be loading, so ask the doctor again", model, tryFor), false
	case status == http.StatusNotFound && s.listens != "":
		return s.listens, true
	case status >= 400:
		return fmt.Sprintf("%s does not transcribe (status %d): %s", model, status, said.Message), true
	}
	return "", false
}
