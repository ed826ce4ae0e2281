package ai

import (
	"context"
	"net/http"
)

// Server is a server that speaks a vendor's protocol and is neither the vendor's own nor in the settings: an endpoint of
// an account's own.
type Server struct {
	URL, Key, Model string
	// Transport is the way to it: through the guard of tenants' addresses, with the headers that it gets.
	Transport http.RoundTripper
}

// Party is whom a vendor is asked for: a conversation, its assistant and its customer. Endpoints of an account's own are
// told of it. It travels in the context of requests.
type Party struct {
	Of        string // the call ("call 12") or the conversation (its id); "" for none
	Assistant int64
	Customer  string // the telephone number, "" where it is not known
	Language  string // ISO 639-1
	// What a program that answers the turns itself is told when a conversation begins.
	Name      string // of the assistant
	Variables map[string]string
}

type partyKey struct{}

// ForParty is a context in which vendors are asked for a party.
func ForParty(ctx context.Context, p Party) context.Context {
	return context.WithValue(ctx, partyKey{}, p)
}

// PartyOf is the party of a context; a zero one for none.
func PartyOf(ctx context.Context) Party {
	p, _ := ctx.Value(partyKey{}).(Party)
	return p
}
