package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"parley/internal/parley"
)

// FlowFor is how long somebody may take at the issuer, and then to join their account.
const FlowFor = 10 * time.Minute

// flow is what the browser keeps, sealed, while its reader is at the issuer.
type flow struct {
	State, Nonce, Verifier, Back string
	Until                        parley.Time
}

// pending is what it keeps while its reader joins an account: whom the issuer vouched for.
type pending struct {
	Subject, Email, Name, Back string
	Until                      parley.Time
}

// What is sealed for one purpose can't be opened for another.
const (
	flowSeal    = "oidc flow"
	pendingSeal = "oidc identity"
)

var (
	errFlow = parley.Errorf(parley.Refused, "This sign-in was not begun in this browser, or took too long. Try again.")
	errSaid = parley.Errorf(parley.Unauthenticated, "The sign-in at the other server did not succeed. Try again.")
	errMail = parley.Errorf(parley.Unauthenticated,
		"The other server does not say that your email address is verified, so it can't be used to sign in here.")
)

func (i *Issuer) config(p *oidc.Provider, callback string) *oauth2.Config {
	return &oauth2.Config{ClientID: i.ClientID, ClientSecret: i.ClientSecret, Endpoint: p.Endpoint(), RedirectURL: callback,
		Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}
}

// Begin is where the browser is sent, and what it keeps meanwhile. back is where its reader wants to be afterwards.
func (i *Issuer) Begin(ctx context.Context, callback, back string) (to, kept string, err error) {
	p, err := i.provider(ctx)
	if err != nil {
		return "", "", i.unreached(err)
	}
	f := flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), back, parley.Now().Add(FlowFor)}
	if kept, err = i.seal(flowSeal, f); err != nil {
		return "", "", err
	}
	return i.config(p, callback).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), kept, nil
}

// Finish is who comes back from the issuer with these parameters, and where they want to be. kept is what their browser
// kept. A failure that its causer may read is a *parley.Error.
func (i *Issuer) Finish(ctx context.Context, callback, kept string, q url.Values) (who *parley.Identity, back string, err error) {
	var f flow
	if !i.open(flowSeal, kept, &f) || parley.Now() >= f.Until ||
		subtle.ConstantTimeCompare([]byte(f.State), []byte(q.Get("state"))) != 1 {
		return nil, "/", errFlow
	}
	if said := q.Get("error"); said != "" || q.Get("code") == "" {
		return nil, f.Back, refused(fmt.Errorf("the issuer sent the browser back with the error %q", said[:min(len(said), 100)]))
	}
	p, err := i.provider(ctx)
	if err != nil {
		return nil, f.Back, i.unreached(err)
	}
	ctx = i.client(ctx)
	token, err := i.config(p, callback).Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return nil, f.Back, i.failed(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := p.Verifier(&oidc.Config{ClientID: i.ClientID, Now: behind}).Verify(ctx, raw)
	if err != nil {
		return nil, f.Back, i.failed(err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		return nil, f.Back, refused(errors.New("its token has another nonce"))
	}
	who, err = i.identity(id)
	return who, f.Back, err
}

// behind is now on a clock that is slow: a token that has just expired is good.
func behind() time.Time { return time.Now().Add(-clockSkew) }

// identity is who a verified token is about, where they may sign in here.
func (i *Issuer) identity(id *oidc.IDToken) (*parley.Identity, error) {
	var said struct {
		Party    string `json:"azp"`
		Email    string `json:"email"`
		Verified any    `json:"email_verified"` // some say "true"
		Name     string `json:"name"`
	}
	if err := id.Claims(&said); err != nil {
		return nil, refused(err)
	}
	if id.Subject == "" || said.Party != "" && said.Party != i.ClientID {
		return nil, refused(fmt.Errorf("its token is about %q, for %q", id.Subject, said.Party))
	}
	email := strings.ToLower(strings.TrimSpace(said.Email))
	if email == "" || len(email) > 255 || said.Verified != true && said.Verified != "true" {
		return nil, errMail
	}
	domain := email[strings.LastIndexByte(email, '@')+1:]
	if len(i.Domains) > 0 &&
		!slices.ContainsFunc(i.Domains, func(d string) bool { return strings.EqualFold(strings.TrimPrefix(d, "@"), domain) }) {
		return nil, parley.Errorf(parley.Forbidden, "Addresses at %s can't sign in here.", domain)
	}
	name := []rune(strings.TrimSpace(said.Name))
	return &parley.Identity{Issuer: i.URL, Subject: id.Subject, Email: email, Name: string(name[:min(len(name), 255)])}, nil
}

// Keep is what the browser keeps of somebody the issuer has vouched for, who must still join their account.
func (i *Issuer) Keep(who *parley.Identity, back string) (string, error) {
	return i.seal(pendingSeal, pending{who.Subject, who.Email, who.Name, back, parley.Now().Add(FlowFor)})
}

// Kept is what Keep made, nil where it is nothing any more.
func (i *Issuer) Kept(text string) (who *parley.Identity, back string) {
	var p pending
	if !i.open(pendingSeal, text, &p) || parley.Now() >= p.Until {
		return nil, "/"
	}
	return &parley.Identity{Issuer: i.URL, Subject: p.Subject, Email: p.Email, Name: p.Name}, p.Back
}

// seal makes of v what a browser can keep, and neither read nor change.
func (i *Issuer) seal(what string, v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(i.DB.Seal(what, plain)), nil
}

// open reads what seal made. false: it is nothing of ours.
func (i *Issuer) open(what, text string, v any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	plain, err := i.DB.Unseal(what, sealed)
	return err == nil && json.Unmarshal(plain, v) == nil
}
