package endpoint_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/endpoint"
	"parley/internal/parley"
	"parley/internal/provider/anthropic/anthropictest"
	"parley/internal/provider/cartesia/cartesiatest"
	"parley/internal/provider/deepgram/deepgramtest"
	"parley/internal/provider/elevenlabs/elevenlabstest"
	"parley/internal/provider/failover"
	"parley/internal/provider/gemini/geminitest"
)

const ownKey = "the-key-of-openai-and-custom"

// vendor is a server that speaks a protocol: its base URL, the header that has its key and the key there, and what an endpoint of it
// is told.
type vendor struct {
	url, header, key string
	model, voice     string
}

// vendors start the server of each protocol.
var vendors = map[parley.EndpointProtocol]func(t *testing.T, kind parley.EndpointKind) vendor{
	parley.EndpointOpenAI: func(t *testing.T, kind parley.EndpointKind) vendor {
		s := aitest.NewServer(t)
		s.APIKey = ownKey
		return vendor{s.URL, "Authorization", "Bearer " + ownKey, map[parley.EndpointKind]string{parley.EndpointLLM: aitest.ModelName,
			parley.EndpointTTS: aitest.SpeechModel, parley.EndpointSTT: aitest.TranscriptionModel}[kind], "alloy"}
	},
	parley.EndpointAnthropic: func(t *testing.T, _ parley.EndpointKind) vendor {
		return vendor{anthropictest.New(t).URL, "X-Api-Key", anthropictest.Key, anthropictest.Quick, ""}
	},
	parley.EndpointGemini: func(t *testing.T, _ parley.EndpointKind) vendor {
		return vendor{geminitest.New(t).URL, "X-Goog-Api-Key", geminitest.Key, geminitest.Lite, ""}
	},
	parley.EndpointDeepgram: func(t *testing.T, kind parley.EndpointKind) vendor {
		voice := map[parley.EndpointKind]string{parley.EndpointTTS: "aura-2-thalia-en"}[kind]
		return vendor{deepgramtest.NewServer(t).URL, "Authorization", "Token " + deepgramtest.Key, "", voice}
	},
	parley.EndpointElevenLabs: func(t *testing.T, _ parley.EndpointKind) vendor {
		return vendor{elevenlabstest.New(t).URL, "Xi-Api-Key", elevenlabstest.Key, "eleven_flash_v2_5", elevenlabstest.Voice}
	},
	parley.EndpointCartesia: func(t *testing.T, _ parley.EndpointKind) vendor {
		return vendor{cartesiatest.New(t).URL, "X-API-Key", cartesiatest.Key, "sonic-3", cartesiatest.Voice}
	},
	parley.EndpointParley: func(t *testing.T, _ parley.EndpointKind) vendor {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"type\":\"say\",\"text\":\"Yes.\"}\n\ndata: {\"type\":\"done\"}\n\n")
		}))
		t.Cleanup(s.Close)
		return vendor{s.URL, "Authorization", "Bearer " + ownKey, "", ""}
	},
}

// way is what stands before a vendor's server: it remembers who asked it, or is out of order.
type way struct {
	*httptest.Server
	mu    sync.Mutex
	asked []http.Header
}

func newWay(t *testing.T, to string, broken bool) *way {
	far, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy, w := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: far.Scheme, Host: far.Host}), &way{}
	proxy.Transport = &http.Transport{DisableKeepAlives: true} // the usual one is closed by whatever other server of a test ends
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.Header.Clone())
		w.mu.Unlock()
		if broken {
			out.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(out, r)
	}))
	w.URL += far.Path
	t.Cleanup(w.Close)
	return w
}

// other takes over when an endpoint fails, and notes that it was asked.
type other struct {
	aitest.Fake
	aitest.Synthesizer
	aitest.Recognizer
}

// use has an endpoint do its work, with another behind it as an assistant has.
func use(ctx context.Context, v *endpoint.Vendors, o *other) error {
	mine, theirs := &failover.Circuit{}, &failover.Circuit{}
	switch v.Endpoint.Kind {
	case parley.EndpointLLM, parley.EndpointAgent:
		m, err := v.Model()
		if err != nil {
			return err
		}
		list := failover.Model{Links: []failover.Link[ai.Model]{{Name: "mine", Circuit: mine, Do: m},
			{Name: "other", Circuit: theirs, Do: &o.Fake}},
			Budget: 20 * time.Second}
		reply, err := list.Generate(ctx, ai.Request{Messages: []ai.Message{{Role: ai.User, Text: "Hello"}}}, func(ai.Delta) error { return nil })
		if err == nil && reply.Text == "" {
			err = errors.New("no word")
		}
		return err
	case parley.EndpointTTS:
		s, err := v.Synthesizer()
		if err != nil {
			return err
		}
		list := failover.NewSynthesizer(20*time.Second,
			failover.Link[failover.Speaker]{Name: "mine", Circuit: mine, Do: failover.Speaker{Synthesizer: s, Voice: v.Endpoint.Voices[0].Code}},
			failover.Link[failover.Speaker]{Name: "other", Circuit: theirs, Do: failover.Speaker{Synthesizer: &o.Synthesizer, Voice: "theirs"}})
		samples := 0
		as := ai.Speech{Voice: v.Endpoint.Voices[0].Code, Language: "en", Rate: audio.Narrow}
		err = ai.Say(ctx, list, as, "Good morning.", func(pcm []int16) error {
			samples += len(pcm)
			return nil
		})
		if err == nil && samples == 0 {
			err = errors.New("no sound")
		}
		return err
	}
	r, err := v.Recognizer()
	if err != nil {
		return err
	}
	list := failover.Recognizer{Links: []failover.Link[ai.Recognizer]{{Name: "mine", Circuit: mine, Do: r},
		{Name: "other", Circuit: theirs, Do: &o.Recognizer}},
		Budget: 20 * time.Second}
	recognition, err := list.Listen(ctx, ai.Hearing{Language: "en", Rate: audio.Narrow})
	if err != nil {
		return err
	}
	defer recognition.Close()
	var pcm []int16
	if err := ai.Say(ctx, &aitest.Synthesizer{}, ai.Speech{Rate: audio.Narrow}, "Good morning.", func(p []int16) error {
		pcm = append(pcm, p...)
		return nil
	}); err != nil {
		return err
	}
	recognition.Write(pcm)
	recognition.End()
	for said := range recognition.Transcripts() {
		if said.Final {
			return said.Err
		}
	}
	return errors.New("no text")
}

// Every protocol that an endpoint may have, for each of its kinds: the vendor's server is asked at the account's URL, with its key and
// headers, and is told whom it is asked for; when it is out of order, another does the same.
func TestProtocols(t *testing.T) {
	for kind, list := range parley.EndpointProtocols {
		for _, protocol := range list {
			t.Run(string(kind)+" "+string(protocol), func(t *testing.T) { protocolOf(t, kind, protocol) })
		}
	}
}

func protocolOf(t *testing.T, kind parley.EndpointKind, protocol parley.EndpointProtocol) {
	far := vendors[protocol](t, kind)
	key := far.key[strings.LastIndexByte(far.key, ' ')+1:]
	b, user := book(t)
	voices := []any{}
	if far.voice != "" {
		voices = append(voices, map[string]any{"code": far.voice})
	}
	for name, broken := range map[string]bool{"mine": false, "out of order": true} {
		to := newWay(t, far.url, broken)
		e, err := b.Create(t.Context(), user.ID, map[string]any{"name": name, "kind": string(kind), "protocol": string(protocol), "url": to.URL,
			"api_key": key, "model": far.model, "voices": voices, "headers": []any{map[string]any{"name": "X-Team", "value": "bakery"}}})
		if err != nil {
			t.Fatal(err)
		}
		v, err := b.Open(e)
		if err != nil {
			t.Fatal(err)
		}
		tally := &ai.Tally{}
		ctx, cancel := context.WithTimeout(ai.Tallied(t.Context(), tally), 30*time.Second)
		defer cancel()
		err = use(ai.ForParty(ctx, ai.Party{Of: "call 12", Assistant: 7, Customer: "+4930123456"}), v, &other{})
		if switched := len(tally.Switches()) > 0; err != nil || switched != broken {
			t.Errorf("%s: %v, and %v", name, err, tally.Switches())
		}
		b.Over("call 12")
		to.mu.Lock()
		defer to.mu.Unlock()
		if len(to.asked) == 0 {
			t.Errorf("%s: the endpoint was not asked", name)
		}
		for _, h := range to.asked {
			for header, want := range map[string]string{far.header: far.key, "X-Team": "bakery", "X-Parley-Call": "12", "X-Parley-Assistant": "7",
				"X-Parley-Customer": "+4930123456", "X-Parley-Conversation": ""} {
				if h.Get(header) != want {
					t.Errorf("%s: %s is %q, want %q", name, header, h.Get(header), want)
				}
			}
		}
	}
}
