package graph

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// number is a phone number of the account.
type number struct {
	ID             string `json:"id"`
	Display        string `json:"display_phone_number"`
	Name           string `json:"verified_name"`
	Quality        string `json:"quality_rating"`
	Status         string `json:"status"`
	PortfolioLimit string `json:"whatsapp_business_manager_messaging_limit"`
	NumberLimit    string `json:"messaging_limit_tier"` // before limits were the portfolio's
}

// Senders are the account's numbers.
func (c *Client) Senders(ctx context.Context) ([]parley.WhatsAppSender, error) {
	numbers, err := list[number](ctx, c, "phone_numbers",
		"id,display_phone_number,verified_name,quality_rating,status,whatsapp_business_manager_messaging_limit,messaging_limit_tier")
	senders := make([]parley.WhatsAppSender, 0, len(numbers))
	for _, n := range numbers {
		if n.ID != "" && Phone(n.Display) != "" {
			senders = append(senders, n.sender())
		}
	}
	return senders, err
}

func (n number) sender() parley.WhatsAppSender {
	s := parley.WhatsAppSender{GraphID: n.ID, PhoneNumber: Phone(n.Display), DisplayName: n.Name,
		Status:        parley.SenderOffline,
		QualityRating: "GREEN", MessagingLimit: tier(cmp.Or(n.PortfolioLimit, n.NumberLimit))}
	switch n.Status { // the others send nothing at all; these answer customers at least
	case "CONNECTED", "FLAGGED", "RESTRICTED", "RATE_LIMITED":
		s.Status = parley.SenderOnline
	}
	if n.Quality == "YELLOW" || n.Quality == "RED" { // a new number is NA or UNKNOWN: nothing is held against it
		s.QualityRating = n.Quality
	}
	return s
}

// newLimit is what the platform lets those send whose limit it does not tell: they are new.
const newLimit = 250

// tier reads TIER_250, TIER_2K, TIER_UNLIMITED.
func tier(text string) *int64 {
	text = strings.TrimPrefix(text, "TIER_")
	if text == "UNLIMITED" {
		return nil
	}
	limit := int64(newLimit)
	digits, thousands := strings.CutSuffix(text, "K")
	if n, err := strconv.ParseInt(digits, 10, 32); err == nil && n > 0 {
		limit = n
		if thousands {
			limit *= 1000
		}
	}
	return &limit
}

// userID is a business-scoped user id: a country, a dot and letters and digits.
var userID = regexp.MustCompile(`^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$`)

// UserID is a text that is a business-scoped user id, by which the platform names a customer whose phone number it keeps
// back; "" for another.
func UserID(text string) string {
	if text = strings.TrimSpace(text); userID.MatchString(text) {
		return text
	}
	return ""
}

// Phone is the E.164 form of a number as the platform writes it: for people, or as digits alone. "" when it is none.
func Phone(text string) string {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
	if len(digits) < 5 || len(digits) > 20 {
		return ""
	}
	if phone, ok := parley.NormalizePhone("+" + digits); ok {
		return phone
	}
	return "+" + digits // the platform's test numbers are none that a telephone network would know
}

// template is a message template of the account.
type template struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Language   string      `json:"language"`
	Category   string      `json:"category"`
	Status     string      `json:"status"`
	Format     string      `json:"parameter_format"` // POSITIONAL, NAMED
	Components []component `json:"components"`
}

type component struct {
	Type    string `json:"type"`   // HEADER, BODY, FOOTER, BUTTONS
	Format  string `json:"format"` // of a header: TEXT, IMAGE, VIDEO, DOCUMENT
	Text    string `json:"text"`
	Buttons []struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	} `json:"buttons"`
}

// Templates are the account's message templates, whatever their status.
func (c *Client) Templates(ctx context.Context) ([]parley.WhatsAppTemplate, error) {
	found, err := list[template](ctx, c, "message_templates",
		"id,name,language,category,status,parameter_format,components")
	templates := make([]parley.WhatsAppTemplate, 0, len(found))
	for _, t := range found {
		if t.ID != "" && t.Name != "" {
			templates = append(templates, t.ours())
		}
	}
	return templates, err
}

// gap is a placeholder: {{1}} or {{first_name}}.
var gap = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_]+)\s*\}\}`)

// ours names the template's gaps. The body's keep the names that they have in the text; a positional one elsewhere
// would be mistaken for one of them and is called header_1, and button_1 for the first button.
func (t template) ours() parley.WhatsAppTemplate {
	out := parley.WhatsAppTemplate{GraphID: t.ID, Name: t.Name, Language: t.Language, Category: t.Category,
		Status: t.Status, Slots: []parley.TemplateSlot{}}
	named := t.Format == "NAMED"
	for _, part := range t.Components {
		switch part.Type {
		case "HEADER":
			out.Slots = append(out.Slots, header(part, named)...)
		case "BODY":
			out.BodyText = part.Text
			for _, name := range gaps(part.Text) {
				s := parley.TemplateSlot{Variable: name, Component: "body", Kind: "text"}
				if named {
					s.Name = name
				}
				out.Slots = append(out.Slots, s)
			}
		case "BUTTONS":
			for i, b := range part.Buttons {
				s := parley.TemplateSlot{Variable: "button_" + strconv.Itoa(i+1), Component: "button", Index: i,
					Kind: "url"}
				switch {
				case b.Type == "COPY_CODE":
					s.Kind = "copy_code"
				case b.Type != "URL" || !gap.MatchString(b.URL):
					continue
				case t.Category == "AUTHENTICATION": // its button copies the code that the body shows
					s.Variable = "1"
				}
				out.Slots = append(out.Slots, s)
			}
		}
	}
	return out
}

func header(part component, named bool) (slots []parley.TemplateSlot) {
	switch part.Format {
	case "IMAGE", "VIDEO", "DOCUMENT":
		return []parley.TemplateSlot{{Variable: "header_url", Component: "header", Kind: strings.ToLower(part.Format)}}
	}
	for _, name := range gaps(part.Text) {
		s := parley.TemplateSlot{Variable: "header_" + name, Component: "header", Kind: "text"}
		if named {
			s.Variable, s.Name = name, name
		}
		slots = append(slots, s)
	}
	return slots
}

// gaps are the placeholders of a text, each once: positional ones by number, named ones as they come.
func gaps(text string) (names []string) {
	seen := map[string]bool{}
	highest := 0
	for _, m := range gap.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && n <= 100 {
			highest = max(highest, n)
		}
		if !seen[m[1]] {
			names = append(names, m[1])
		}
		seen[m[1]] = true
	}
	if highest == 0 {
		return names
	}
	names = names[:0]
	for n := 1; n <= highest; n++ { // values go by position, so every position has one
		names = append(names, strconv.Itoa(n))
	}
	return names
}

// fill is a template with its values, as it is sent.
func fill(t *parley.WhatsAppTemplate, values map[string]string) map[string]any {
	type object = map[string]any
	var components []object
	at := map[string]int{}
	for _, s := range t.Slots {
		key := s.Component
		if s.Component == "button" {
			key += strconv.Itoa(s.Index)
		}
		i, there := at[key]
		if !there {
			i = len(components)
			at[key] = i
			c := object{"type": s.Component, "parameters": []object{}}
			if s.Component == "button" {
				c["sub_type"], c["index"] = s.Kind, strconv.Itoa(s.Index)
			}
			components = append(components, c)
		}
		value := values[s.Variable]
		p := object{"type": "text", "text": value}
		switch s.Kind {
		case "image", "video", "document":
			p = object{"type": s.Kind, s.Kind: object{"link": value}}
		case "copy_code":
			p = object{"type": "coupon_code", "coupon_code": value}
		}
		if s.Name != "" {
			p["parameter_name"] = s.Name
		}
		components[i]["parameters"] = append(components[i]["parameters"].([]object), p)
	}
	out := object{"name": t.Name, "language": object{"code": t.Language}}
	if len(components) > 0 {
		out["components"] = components
	}
	return out
}
