package geminitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// setup is what a connection was set up with.
type setup struct {
	terms         map[string]any
	model, handle string
	system        string
	tools         []ai.Tool
	writes, hears bool
	says          bool // what it speaks is transcribed
	resumes       bool
	rate          int
}

// read takes the first message. What is wrong is said as Google says it, with the code that it closes with.
func (u *setup) read(raw []byte) (code int, wrong string) {
	var in struct {
		Setup *struct {
			Model  string `json:"model"`
			Config struct {
				Modalities []string `json:"responseModalities"`
				Speech     *struct {
					Voice struct {
						Prebuilt struct {
							Name string `json:"voiceName"`
						} `json:"prebuiltVoiceConfig"`
					} `json:"voiceConfig"`
				} `json:"speechConfig"`
			} `json:"generationConfig"`
			System *content `json:"systemInstruction"`
			Tools  []struct {
				Functions []struct {
					function
					Behavior string `json:"behavior"`
				} `json:"functionDeclarations"`
			} `json:"tools"`
			Input *struct {
				Detection struct {
					Disabled bool `json:"disabled"`
				} `json:"automaticActivityDetection"`
			} `json:"realtimeInputConfig"`
			Hears *struct {
				Languages  []string `json:"languageCodes"`
				Vocabulary []string `json:"customVocabulary"`
			} `json:"inputAudioTranscription"`
			Says   *struct{} `json:"outputAudioTranscription"`
			Resume *struct {
				Handle string `json:"handle"`
			} `json:"sessionResumption"`
			Compression *struct {
				Window struct{} `json:"slidingWindow"`
			} `json:"contextWindowCompression"`
		} `json:"setup"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return 1007, "Invalid JSON payload received. " + err.Error()
	}
	if in.Setup == nil {
		return 1007, "setup must be the first message and only the first"
	}
	s := in.Setup
	var all map[string]map[string]any
	_ = json.Unmarshal(raw, &all)
	u.terms = all["setup"]
	u.model, _ = strings.CutPrefix(s.Model, "models/")
	if u.model != Live && u.model != Writing || u.model == s.Model {
		return 1008, s.Model + " is not found for API version v1beta, or is not supported for bidiGenerateContent. Call Li"
	}
	switch u.writes = slices.Equal(s.Config.Modalities, []string{"TEXT"}); {
	case !u.writes && !slices.Equal(s.Config.Modalities, []string{"AUDIO"}):
		return 1007, "At most one response modality can be specified in the setup request."
	case u.writes && u.model == Live:
		return 1007, "Request contains an invalid argument."
	case u.writes && s.Config.Speech != nil:
		return 1007, "Cannot extract voices from a non-audio request."
	case s.Config.Speech != nil && !slices.Contains(Voices, s.Config.Speech.Voice.Prebuilt.Name):
		return 1007, fmt.Sprintf("Requested voice api_name '%s' is not available for model models/%s",
			s.Config.Speech.Voice.Prebuilt.Name, u.model)
	case s.Input == nil || !s.Input.Detection.Disabled:
		return 1007, "this server finds no turns by itself"
	case s.Compression == nil:
		return 1007, "this server ends sessions that are not compressed"
	}
	if s.System != nil {
		for _, p := range s.System.Parts {
			u.system += p.Text
		}
	}
	for _, t := range s.Tools {
		for i, f := range t.Functions {
			if !functionName.MatchString(f.Name) || f.Behavior != "BLOCKING" {
				return 1007, fmt.Sprintf("Invalid function in tools[0].function_declarations[%d].", i)
			}
			u.tools = append(u.tools, ai.Tool{Name: f.Name, Description: f.Description, Schema: f.Parameters})
		}
	}
	u.hears, u.says = s.Hears != nil, s.Says != nil
	if s.Resume != nil {
		u.resumes, u.handle = true, s.Resume.Handle
	}
	return 0, ""
}

// clientMessage is any other message of a client.
type clientMessage struct {
	Content *struct {
		Turns    []content `json:"turns"`
		Complete bool      `json:"turnComplete"`
	} `json:"clientContent"`
	Input *struct {
		Audio *struct {
			Data []byte `json:"data"`
			Type string `json:"mimeType"`
		} `json:"audio"`
		Start *struct{} `json:"activityStart"`
		End   *struct{} `json:"activityEnd"`
	} `json:"realtimeInput"`
	Response *struct {
		Functions []struct {
			ID       string          `json:"id"`
			Name     string          `json:"name"`
			Response json.RawMessage `json:"response"`
		} `json:"functionResponses"`
	} `json:"toolResponse"`
}

// take takes a message.
func (c *session) take(raw []byte) (code int, wrong string) {
	var m clientMessage
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return 1007, "Invalid JSON payload received. " + err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Content != nil:
		return c.told(m.Content.Turns, m.Content.Complete)
	case m.Input != nil && m.Input.Audio != nil:
		return c.sound(m.Input.Audio.Data, m.Input.Audio.Type)
	case m.Input != nil && m.Input.Start != nil:
		if c.activity {
			return 1007, "Precondition check failed: an activity is under way."
		}
		c.activity, c.heard = true, ""
		c.interrupt()
		c.abandon()
	case m.Input != nil && m.Input.End != nil:
		if !c.activity {
			return 1007, "Precondition check failed: no activity is under way."
		}
		c.transcribe()
		c.activity = false
		c.add(aitest.RealtimeItem{Type: "message", Role: "user", Text: c.heard})
		c.generate()
	case m.Response != nil:
		return c.results(&m)
	default:
		return 1007, "Request contains an invalid argument."
	}
	return 0, ""
}

// told takes what is put into the conversation. It interrupts what is being said.
func (c *session) told(turns []content, complete bool) (code int, wrong string) {
	c.interrupt()
	c.abandon()
	for _, t := range turns {
		role := map[string]string{"user": "user", "model": "assistant"}[t.Role]
		if role == "" || len(t.Parts) == 0 {
			return 1007, "Please use a valid role: user, model."
		}
		text := ""
		for _, p := range t.Parts {
			if p.Text == "" {
				return 1007, "Request contains an invalid argument."
			}
			text += p.Text
		}
		if role == "assistant" && len(c.state.items) == 0 {
			return 1007, "Please ensure that multiturn requests begin with a user turn."
		}
		c.add(aitest.RealtimeItem{Type: "message", Role: role, Text: text})
	}
	if !complete {
		c.wg.Go(c.resumable)
		return 0, ""
	}
	if len(turns) == 0 || turns[len(turns)-1].Role != "user" {
		return 1007, "Request contains an invalid argument."
	}
	c.generate()
	return 0, ""
}

func (c *session) sound(data []byte, kind string) (code int, wrong string) {
	rate := 0
	if n, err := fmt.Sscanf(kind, "audio/pcm;rate=%d", &rate); n != 1 || err != nil || len(data)%2 != 0 {
		return 1007, "Request contains an invalid argument: " + kind
	}
	if !c.activity {
		return 1007, "Precondition check failed: sound outside of an activity."
	}
	c.setup.rate = rate
	for i := 0; i < len(data); i += 2 {
		c.audio = append(c.audio, int16(data[i])|int16(data[i+1])<<8)
	}
	c.sounds++
	if n := c.sounds; !c.s.lives.Late {
		c.wg.Go(func() {
			if !c.sleep(c.ctx, recognitionTime) {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.sounds == n && c.activity {
				c.transcribe()
			}
		})
	}
	return 0, ""
}

// results takes those of calls. When all are there the reply goes on.
func (c *session) results(m *clientMessage) (code int, wrong string) {
	for _, f := range m.Response.Functions {
		i := slices.Index(c.owed, f.ID)
		if i < 0 {
			return 1008, "Requested entity was not found."
		}
		c.owed = slices.Delete(c.owed, i, i+1)
		var r struct {
			Output any `json:"output"`
		}
		if json.Unmarshal(f.Response, &r) != nil {
			return 1007, "function_response.response must be an object"
		}
		text, ok := r.Output.(string)
		if !ok {
			out, _ := json.Marshal(r.Output) // it was JSON
			text = string(out)
		}
		c.add(aitest.RealtimeItem{Type: "function_call_output", Text: text, Call: ai.ToolCall{ID: f.ID}})
	}
	if len(c.owed) == 0 {
		c.generate()
	}
	return 0, ""
}
