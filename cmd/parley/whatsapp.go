package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/internal/channel/whatsapp"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/store"
)

// whatsApp is the WhatsApp account that is configured. close lets its connections go.
func (s *Settings) whatsApp(db *store.DB) (w *whatsapp.Channel, close func(), err error) {
	w = &whatsapp.Channel{DB: db, AppSecret: s.WhatsAppAppSecret, VerifyToken: s.WhatsAppVerifyToken}
	if s.WhatsAppToken == "" {
		return w, func() {}, nil
	}
	if s.WhatsAppBusinessID == "" {
		return nil, nil, errors.New("PARLEY_WHATSAPP_TOKEN needs PARLEY_WHATSAPP_BUSINESS_ID: the id of the WhatsApp Business account")
	}
	w.Graph = graph.New(graph.Config{BaseURL: s.WhatsAppBaseURL, Token: s.WhatsAppToken, BusinessID: s.WhatsAppBusinessID})
	return w, w.Graph.Close, nil
}

type whatsAppCmd struct {
	Assign whatsAppAssign `cmd:"" help:"Give a sender of the WhatsApp account to a user."`
}

type whatsAppAssign struct {
	Sender string `required:"" help:"The sender's phone number."`
	User   string `required:"" help:"The account's address."`
}

func (c *whatsAppAssign) Run(s *Settings, t *terminal) (err error) {
	db, err := s.open(t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, closeGraph, err := s.whatsApp(db)
	if err != nil {
		return err
	}
	defer closeGraph()
	u, err := db.UserByEmail(t, strings.ToLower(c.User))
	if err != nil {
		return err
	}
	sender, err := w.Assign(t, c.Sender, u.ID)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s (%s) belongs to %s\n", sender.PhoneNumber, sender.DisplayName, u.Email)
	return nil
}

func checkWhatsApp(ctx context.Context, s *Settings) finding {
	w, closeGraph, err := s.whatsApp(nil)
	if err != nil {
		return finding{"FAIL", "whatsapp", err.Error()}
	}
	defer closeGraph()
	if w.Graph == nil {
		return finding{"note", "whatsapp", "none: set PARLEY_WHATSAPP_TOKEN and PARLEY_WHATSAPP_BUSINESS_ID of a WhatsApp Business account (docs/whatsapp.md)"}
	}
	senders, err := w.Graph.Senders(ctx)
	switch {
	case err != nil:
		return finding{"FAIL", "whatsapp", fmt.Sprintf("%v: check PARLEY_WHATSAPP_TOKEN, PARLEY_WHATSAPP_BUSINESS_ID and PARLEY_WHATSAPP_BASE_URL", err)}
	case s.WhatsAppAppSecret == "" || s.WhatsAppVerifyToken == "":
		return finding{"note", "whatsapp", fmt.Sprintf("%d senders; no messages come in: set PARLEY_WHATSAPP_APP_SECRET and PARLEY_WHATSAPP_VERIFY_TOKEN", len(senders))}
	}
	return finding{"ok", "whatsapp", fmt.Sprintf("%d senders; the webhook is %s/webhooks/whatsapp", len(senders), s.publicURL())}
}
