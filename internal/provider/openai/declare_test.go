package openai

import (
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// Each ability uses its own server, and one server's key is never sent to another.
func TestServers(t *testing.T) {
	const own, general = "http://own/v1", "http://general/v1"
	for name, c := range map[string]struct {
		set  Settings
		want server
	}{
		"none":                            {Settings{}, server{}},
		"the general one":                 {Settings{BaseURL: general + "/", APIKey: "g"}, server{general, "g"}},
		"OpenAI":                          {Settings{APIKey: "g"}, server{DefaultBaseURL, "g"}},
		"its own, which asks for no key":  {Settings{APIKey: "g", TTSBaseURL: own}, server{own, ""}},
		"its own, with a key":             {Settings{APIKey: "g", TTSBaseURL: own + "/", TTSAPIKey: "t"}, server{own, "t"}},
		"its own alone":                   {Settings{TTSBaseURL: own}, server{own, ""}},
		"its own key at the general one":  {Settings{BaseURL: general, APIKey: "g", TTSAPIKey: "t"}, server{general, "t"}},
		"its own key alone":               {Settings{TTSAPIKey: "t"}, server{DefaultBaseURL, "t"}},
		"the general one, named again":    {Settings{BaseURL: general, APIKey: "g", TTSBaseURL: general + "/"}, server{general, "g"}},
		"OpenAI, beside a general server": {Settings{BaseURL: general, APIKey: "g", TTSBaseURL: DefaultBaseURL}, server{DefaultBaseURL, ""}},
	} {
		if got := c.set.tts(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// Four servers, each with its own key: each gets the requests for its ability, and never sees another's key.
func TestOpensServers(t *testing.T) {
	list := map[string]*aitest.Server{}
	for _, key := range []string{"think-key", "embed-key", "speak-key", "hear-key"} {
		list[key] = aitest.NewServer(t)
		list[key].APIKey = key
	}
	think, embed, speak, hear := list["think-key"], list["embed-key"], list["speak-key"], list["hear-key"]
	o, err := Declare(&Settings{BaseURL: think.URL, APIKey: "think-key",
		EmbeddingBaseURL: embed.URL, EmbeddingAPIKey: "embed-key", EmbeddingModel: aitest.EmbeddingModel,
		TTSBaseURL: speak.URL, TTSAPIKey: "speak-key", TTSModel: aitest.SpeechModel,
		STTBaseURL: hear.URL, STTAPIKey: "hear-key", STTModel: aitest.TranscriptionModel}).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Model(aitest.ModelName).Generate(t.Context(), ask("x"), ignore); err != nil {
		t.Error(err)
	}
	if e, err := o.Embedder(); err != nil {
		t.Error(err)
	} else if _, err := e.Embed(t.Context(), []string{"x"}); err != nil {
		t.Error(err)
	}
	if v, err := o.Synthesizer(Code); err != nil {
		t.Error(err)
	} else if err := ai.Say(t.Context(), v, ai.Speech{Voice: "alloy", Language: "en", Rate: audio.Narrow}, "Hello",
		func([]int16) error { return nil }); err != nil {
		t.Error(err)
	}
	recognizer, err := o.Recognizer(Code)
	if err != nil {
		t.Fatal(err)
	}
	e, err := recognizer.Listen(t.Context(), ai.Hearing{Language: "en", Rate: audio.Narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	loud := make([]int16, 8000)
	for i := range loud {
		loud[i] = int16(i%100) * 100
	}
	e.Write(loud)
	e.End()
	if got := <-e.Transcripts(); got.Err != nil {
		t.Error(got.Err)
	}
	if think.Count() != 1 || embed.Count()+speak.Count()+hear.Count() != 0 || len(speak.Speeches()) != 1 ||
		len(hear.Utterances()) != 1 {
		t.Error("another server was asked")
	}
}
