package elevenlabs

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"parley/internal/ai"
)

const (
	voicePage = 100 // the most that a page can have
	maxVoices = 2000
)

// page is a page of GET /v2/voices.
type page struct {
	Voices []struct {
		ID       string            `json:"voice_id"`
		Name     string            `json:"name"`
		Labels   map[string]string `json:"labels"`
		Verified []struct {
			Language string `json:"language"`
		} `json:"verified_languages"`
	} `json:"voices"`
	More bool   `json:"has_more"`
	Next string `json:"next_page_token"`
}

// voicesOf lists the voices of a key's account that ElevenLabs does not give to everybody: its own, cloned, designed
// and saved ones. They have no numbers.
func (c *client) voicesOf(ctx context.Context, key string) ([]ai.Voice, error) {
	var list []ai.Voice
	seen := map[string]bool{}
	q := url.Values{"voice_type": {"non-default"}, "page_size": {fmt.Sprint(voicePage)},
		"include_total_count": {"false"}, "sort": {"name"}, "sort_direction": {"asc"}}
	for len(list) < maxVoices {
		var p page
		if err := c.ask(ctx, "/v2/voices?"+q.Encode(), key, &p); err != nil {
			return nil, err
		}
		fresh := false
		for _, v := range p.Voices {
			if v.ID == "" || seen[v.ID] {
				continue
			}
			fresh, seen[v.ID] = true, true
			var languages []string
			for _, l := range v.Verified {
				languages = append(languages, l.Language)
			}
			list = append(list, ai.Voice{Code: v.ID, Name: v.Name, Languages: spoken(languages), Gender: gender(v.Labels),
				Accent: v.Labels["accent"], Age: strings.ReplaceAll(v.Labels["age"], "_", "-")})
		}
		if !p.More || p.Next == "" || !fresh { // pages that go round are no pages
			break
		}
		q.Set("next_page_token", p.Next)
	}
	return list, nil
}

// spoken are the languages that a voice can be chosen for: every one of the model's. Those that the vendor has
// verified come first.
func spoken(verified []string) string {
	var first []string
	all := strings.Fields(flash)
	for _, code := range verified {
		for _, known := range all {
			if code == known && !strings.Contains(" "+strings.Join(first, " ")+" ", " "+code+" ") {
				first = append(first, code)
			}
		}
	}
	for _, known := range all {
		if !strings.Contains(" "+strings.Join(first, " ")+" ", " "+known+" ") {
			first = append(first, known)
		}
	}
	return strings.Join(first, " ")
}

func gender(labels map[string]string) string {
	switch g := strings.ToLower(labels["gender"]); g {
	case "male", "female":
		return g
	}
	return ""
}
