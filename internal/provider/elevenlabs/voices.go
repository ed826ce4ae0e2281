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

// voicesOf lists the voices of an account that not every account has: its own, cloned, designed and saved ones. They
// have no numbers yet.
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

// spoken returns the languages that a voice can be chosen for: all of the model's languages, beginning with those that
// ElevenLabs has verified for the voice.
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

// gender returns male or female: clients know no other.
func gender(labels map[string]string) string {
	if strings.EqualFold(labels["gender"], "male") {
		return "male"
	}
	return "female"
}
