package graph

import (
	"cmp"
	"fmt"
	"strings"
)

// said is what a customer's message holds, by its type.
type said struct {
	Type string `json:"type"`
	Text struct {
		Body string `json:"body"`
	} `json:"text"`
	Image    media `json:"image"`
	Video    media `json:"video"`
	Audio    media `json:"audio"`
	Document media `json:"document"`
	Location struct {
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
		Name      string  `json:"name"`
		Address   string  `json:"address"`
	} `json:"location"`
	Contacts []struct {
		Name struct {
			Formatted string `json:"formatted_name"`
		} `json:"name"`
		Phones []struct {
			Phone string `json:"phone"`
		} `json:"phones"`
	} `json:"contacts"`
	Reaction struct {
		Emoji string `json:"emoji"`
		ID    string `json:"message_id"`
	} `json:"reaction"`
	Edit struct {
		Original string `json:"original_message_id"`
		Message  *said  `json:"message"`
	} `json:"edit"`
	Revoke struct {
		Original string `json:"original_message_id"`
	} `json:"revoke"`
	Context struct {
		ID      string `json:"id"`
		Product struct {
			ID string `json:"product_retailer_id"`
		} `json:"referred_product"`
	} `json:"context"`
	Referral struct {
		URL      string `json:"source_url"`
		Type     string `json:"source_type"` // ad, post
		Headline string `json:"headline"`
		Body     string `json:"body"`
	} `json:"referral"`
	Button struct {
		Text string `json:"text"`
	} `json:"button"`
	Interactive struct {
		Type   string `json:"type"`
		Button choice `json:"button_reply"`
		List   choice `json:"list_reply"`
		Flow   struct {
			Response string `json:"response_json"`
		} `json:"nfm_reply"`
	} `json:"interactive"`
	Order struct {
		Text  string `json:"text"`
		Items []struct {
			ID       string `json:"product_retailer_id"`
			Quantity int    `json:"quantity"`
		} `json:"product_items"`
	} `json:"order"`
}

type media struct {
	Caption  string `json:"caption"`
	Filename string `json:"filename"`
	Voice    bool   `json:"voice"`
}

type choice struct {
	Title       string `json:"title"`
	Description string `json:"description"`
}

// kind is what the customer did, and the message that it is about.
func (s *said) kind() (Kind, string) {
	switch Kind(s.Type) {
	case Reacted:
		return Reacted, s.Reaction.ID
	case Edited:
		return Edited, s.Edit.Original
	case Deleted:
		return Deleted, s.Revoke.Original
	}
	return "", s.Context.ID
}

// words is the message with what the customer came by: an advertisement, or a product.
func (s *said) words() string {
	text := s.content()
	if product := strings.TrimSpace(s.Context.Product.ID); product != "" {
		text = "[About the product " + product + "]\n" + text
	}
	r := s.Referral
	var parts []string
	for _, part := range []string{r.Headline, r.Body, r.URL} {
		if part = strings.Join(strings.Fields(part), " "); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		what := "an advertisement"
		if r.Type == "post" {
			what = "a post"
		}
		text = "[The customer comes from " + what + ": " + strings.Join(parts, " · ") + "]\n" + text
	}
	return text
}

// content is the message as the model reads it: text as it is, everything else named, in brackets, so that an answer
// can speak of it.
func (s *said) content() string {
	switch s.Type {
	case "text":
		if text := strings.TrimSpace(s.Text.Body); text != "" {
			return text
		}
		return "[The customer sent an empty message.]"
	case "image":
		return named("an image", s.Image.Caption)
	case "video":
		return named("a video", s.Video.Caption)
	case "sticker":
		return named("a sticker", "")
	case "audio":
		if s.Audio.Voice {
			return named("a voice message, which can't be played here", "")
		}
		return named("an audio file", "")
	case "document":
		if s.Document.Filename != "" {
			return named("the document "+quoted(s.Document.Filename), s.Document.Caption)
		}
		return named("a document", s.Document.Caption)
	case "location":
		place := fmt.Sprintf("a location: %.6f, %.6f", s.Location.Latitude, s.Location.Longitude)
		for _, more := range []string{s.Location.Name, s.Location.Address} {
			if more != "" {
				place += ", " + more
			}
		}
		return named(place, "")
	case "contacts":
		return named("a contact: "+s.people(), "")
	case "reaction":
		if s.Reaction.Emoji == "" {
			return "[The customer took a reaction back.]"
		}
		return "[The customer reacted with " + s.Reaction.Emoji + "]"
	case "edit":
		if s.Edit.Message != nil && s.Edit.Message.Edit.Message == nil {
			return s.Edit.Message.content()
		}
		return "[The customer edited a message.]"
	case "revoke":
		return "[The customer deleted a message.]"
	case "button":
		return "[The customer pressed the button " + quoted(s.Button.Text) + "]"
	case "interactive":
		return s.chosen()
	case "order":
		return s.ordered()
	case "unsupported", "":
		return named("something that WhatsApp does not pass on", "")
	}
	return named("a message of the type "+s.Type, "")
}

func (s *said) people() string {
	var list []string
	for _, c := range s.Contacts {
		who := c.Name.Formatted
		for _, p := range c.Phones {
			who += " " + p.Phone
		}
		list = append(list, strings.TrimSpace(who))
	}
	return strings.Join(list, "; ")
}

func (s *said) chosen() string {
	c := s.Interactive.Button
	switch s.Interactive.Type {
	case "list_reply":
		c = s.Interactive.List
	case "nfm_reply":
		return "[The customer filled in a form: " + s.Interactive.Flow.Response + "]"
	}
	text := quoted(c.Title)
	if c.Description != "" {
		text += " (" + c.Description + ")"
	}
	return "[The customer chose " + text + "]"
}

func (s *said) ordered() string {
	var items []string
	for _, i := range s.Order.Items {
		items = append(items, fmt.Sprintf("%d x %s", i.Quantity, i.ID))
	}
	return named("an order: "+cmp.Or(strings.Join(items, ", "), "nothing"), s.Order.Text)
}

func named(what, caption string) string {
	text := "[The customer sent " + what + "]"
	if caption = strings.TrimSpace(caption); caption != "" {
		text += " " + caption
	}
	return text
}

func quoted(s string) string { return "\"" + s + "\"" }
