package whatsapp

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/channel"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/parley"
)

// Settings are what the operator sets of it.
type Settings struct {
	Token       string `name:"whatsapp-token" help:"Access token of a WhatsApp Business account (no senders)."`
	BusinessID  string `name:"whatsapp-business-id" help:"ID of the WhatsApp Business account."`
	AppSecret   string `name:"whatsapp-app-secret" help:"App secret, used to verify Meta's webhooks (nothing comes in)."`
	VerifyToken string `name:"whatsapp-verify-token" help:"Verify token of your choice, entered at Meta when setting up the webhook (nothing comes in)."`
	BaseURL     string `name:"whatsapp-base-url" help:"Base URL of the Graph API, with or without a version (https://graph.facebook.com)."`
}

// Declare declares the channel.
func Declare(s *Settings) *channel.Declaration {
	return &channel.Declaration{Code: "whatsapp", Settings: s, Check: s.check,
		Open: func(h channel.House) (channel.Channel, error) {
			graph, err := s.graph()
			if err != nil {
				return nil, err
			}
			return &Channel{DB: h.DB, Prices: h.Prices, Chat: h.Chat, Graph: graph, AppSecret: s.AppSecret,
				VerifyToken: s.VerifyToken}, nil
		}}
}

// graph is the configured account, nil where none is.
func (s *Settings) graph() (*graph.Client, error) {
	switch {
	case s.Token == "":
		return nil, nil
	case s.BusinessID == "":
		return nil, errors.New("PARLEY_WHATSAPP_TOKEN needs PARLEY_WHATSAPP_BUSINESS_ID: the id of the WhatsApp Business account")
	}
	return graph.New(graph.Config{BaseURL: s.BaseURL, Token: s.Token, BusinessID: s.BusinessID}), nil
}

// check asks for the senders, which costs nothing.
func (s *Settings) check(ctx context.Context, publicURL string) []parley.Finding {
	found := func(state, format string, a ...any) []parley.Finding {
		return []parley.Finding{{State: state, What: "whatsapp", Text: fmt.Sprintf(format, a...)}}
	}
	g, err := s.graph()
	if err != nil {
		return found("FAIL", "%v", err)
	}
	if g == nil {
		return found("note", "none: set PARLEY_WHATSAPP_TOKEN and PARLEY_WHATSAPP_BUSINESS_ID of a WhatsApp Business account (docs/whatsapp.md)")
	}
	defer g.Close()
	senders, err := g.Senders(ctx)
	switch {
	case err != nil:
		return found("FAIL", "%v: check PARLEY_WHATSAPP_TOKEN, PARLEY_WHATSAPP_BUSINESS_ID and PARLEY_WHATSAPP_BASE_URL", err)
	case s.AppSecret == "" || s.VerifyToken == "":
		return found("note", "%d senders; no messages come in: set PARLEY_WHATSAPP_APP_SECRET and PARLEY_WHATSAPP_VERIFY_TOKEN", len(senders))
	}
	return found("ok", "%d senders; the webhook is %s/webhooks/whatsapp", len(senders), publicURL)
}

// Close lets the connections to the platform go.
func (w *Channel) Close() {
	if w.Graph != nil {
		w.Graph.Close()
	}
}
