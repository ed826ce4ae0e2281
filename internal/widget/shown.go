package widget

import (
	"encoding/json"

	"parley/internal/parley"
)

// Looks is WidgetSettings without what is nobody's business on a website.
type Looks struct {
	Theme         string                `json:"theme"`
	Color         string                `json:"color"`
	Position      string                `json:"position"`
	Mode          string                `json:"mode"`
	Title         string                `json:"title"`
	Subtitle      string                `json:"subtitle"`
	Placeholder   string                `json:"placeholder"`
	AutoOpen      bool                  `json:"auto_open"`
	AvatarURL     *string               `json:"avatar_url"`
	PreChatFields []parley.PreChatField `json:"pre_chat_fields"`
}

// Shown is what a website's script is told of an assistant.
type Shown struct {
	Status         bool            `json:"status"`
	AssistantID    string          `json:"assistant_id"`
	Name           string          `json:"name"`
	Language       string          `json:"language" doc:"ISO 639-1."`
	Direction      string          `json:"direction" doc:"ltr or rtl."`
	InitialMessage string          `json:"initial_message" doc:"As a conversation begins, with the variables of the header Parley-Variables (JSON, percent-encoded)."`
	Calls          bool            `json:"calls" doc:"This server takes calls from browsers."`
	WidgetSettings Looks           `json:"widget_settings"`
	Texts          json.RawMessage `json:"texts" doc:"The widget's own words in the assistant's language."`
}

// Show is an assistant's widget in a language, English for "", with the first words as they are said.
func Show(a *parley.Assistant, iso, greeting string, calls bool) *Shown {
	if iso == "" {
		iso = "en"
	}
	w := a.WidgetSettings
	s := &Shown{Status: true, AssistantID: a.UUID, Name: a.Name, Language: iso, Direction: "ltr", Calls: calls,
		Texts: Texts(iso), InitialMessage: greeting,
		WidgetSettings: Looks{w.Theme, w.Color, w.Position, w.Mode, w.Title, w.Subtitle, w.Placeholder,
			w.AutoOpen, w.AvatarURL, append([]parley.PreChatField{}, w.PreChatFields...)}}
	if RightToLeft(iso) {
		s.Direction = "rtl"
	}
	return s
}
