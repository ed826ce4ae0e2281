package console

import (
	"reflect"
	"strconv"

	"parley/internal/form"
	"parley/internal/parley"
)

// senders is the page of the WhatsApp senders.
type senders struct {
	list       []parley.WhatsAppSender
	assistants map[int64]string // names by id
	configured bool             // the server has a WhatsApp account
}

func (c *Console) senderList(r *request) (*answer, error) {
	list, err := c.WhatsApp.Senders(r.Context(), r.UserID(), "")
	if err != nil {
		return nil, err
	}
	s := &senders{list: list, assistants: map[int64]string{}, configured: c.WhatsApp.Graph != nil}
	all, err := c.Assistants.All(r.Context(), r.UserID(), "")
	for _, a := range all {
		s.assistants[a.ID] = a.Name
	}
	return show("WhatsApp", senderList(s)), err
}

// senderInput is what may change about a sender: the API's field.
type senderInput struct {
	AssistantID *int64 `json:"assistant_id"`
}

// senderForm is the page of a sender.
type senderForm struct {
	*fields
	*parley.WhatsAppSender
	assistants []option
	templates  []parley.WhatsAppTemplate
	base       string // of the API
}

func (s *senderForm) path() string { return "/whatsapp/" + strconv.FormatInt(s.ID, 10) }

// limit is how many people the sender may write to first.
func (s *senderForm) limit() string {
	if s.MessagingLimit == nil {
		return "No limit"
	}
	digits := strconv.FormatInt(*s.MessagingLimit, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " people in 24 hours"
}

func (c *Console) senderForm(r *request, s *parley.WhatsAppSender, f *fields) (*senderForm, error) {
	out := &senderForm{fields: f, WhatsAppSender: s, assistants: []option{{value: "", label: "Nobody"}},
		base: c.base(r)}
	all, err := c.Assistants.All(r.Context(), r.UserID(), "")
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		out.assistants = append(out.assistants, option{value: strconv.FormatInt(a.ID, 10), label: a.Name})
	}
	out.templates, err = c.DB.WhatsAppTemplates(r.Context(), "")
	return out, err
}

func (c *Console) senderPage(r *request) (*answer, error) {
	s, err := c.WhatsApp.Sender(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	f, err := c.senderForm(r, s, fieldsOf[senderInput](treeOf(senderInput{s.AssistantID}), nil))
	if err != nil {
		return nil, err
	}
	return show(s.DisplayName, senderPage(f)), nil
}

func (c *Console) senderSave(r *request) (*answer, error) {
	s, err := c.WhatsApp.Sender(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	tree := decode(r.PostForm, reflect.TypeFor[senderInput]())
	var in senderInput
	wrong := form.Bind(tree, &in, false)
	if _, sent := tree["assistant_id"]; !sent {
		wrong.Add("assistant_id", "is required.")
	}
	err = wrong.Err()
	if err == nil {
		_, err = c.WhatsApp.SetAssistant(r.Context(), r.UserID(), s.ID, in.AssistantID)
	}
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see("/whatsapp/"+r.PathValue("id"), "saved"), nil
	case !ok:
		return nil, err
	}
	f, err := c.senderForm(r, s, fieldsOf[senderInput](tree, wrong))
	if err != nil {
		return nil, err
	}
	return invalid(s.DisplayName, senderPage(f)), nil
}
