// Package oidc signs people in by OpenID Connect: the operator names an issuer, which says whose address an e-mail is.
// It uses the code flow with PKCE, a state and a nonce.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"parley"
	"parley/internal/store"
)

// Issuer is the server that vouches for people. Its methods may be called from any goroutine.
type Issuer struct {
	URL, ClientID, ClientSecret string
	Domains                     []string // of the addresses that may sign in; none: all
	DB                          *store.DB

	mu    sync.Mutex
	known *oidc.Provider // once it has answered
}

// Open makes an issuer of the settings, nil where there is none.
func Open(db *store.DB, issuer, id, secret string, domains []string) (*Issuer, error) {
	if issuer == "" {
		return nil, nil
	}
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("PARLEY_OIDC_ISSUER: %q is no URL such as https://accounts.example.com", issuer)
	}
	if id == "" {
		return nil, errors.New("PARLEY_OIDC_ISSUER needs PARLEY_OIDC_CLIENT_ID, under which the issuer knows this server")
	}
	return &Issuer{URL: issuer, ClientID: id, ClientSecret: secret, Domains: domains, DB: db}, nil
}

// Name is what the issuer is called: its host.
func (i *Issuer) Name() string {
	u, err := url.Parse(i.URL)
	if err != nil {
		return i.URL
	}
	return u.Host
}

// patience bounds each request to the issuer.
const patience = 10 * time.Second

func (i *Issuer) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, &http.Client{Timeout: patience})
}

// provider is what the issuer says of itself. It is asked until it has answered.
func (i *Issuer) provider(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known == nil {
		// it keeps the context, to read the issuer's keys when they change
		p, err := oidc.NewProvider(i.context(context.WithoutCancel(ctx)), i.URL)
		if err != nil {
			return nil, fmt.Errorf("read the OpenID Connect issuer's configuration: %w", err)
		}
		i.known = p
	}
	return i.known, nil
}

// Check says whether the issuer answers.
func (i *Issuer) Check(ctx context.Context) parley.Finding {
	const what = "sign-in"
	if i == nil {
		return parley.Finding{State: parley.DoctorOK, What: what, Text: "by password"}
	}
	p, err := oidc.NewProvider(i.context(ctx), i.URL)
	if err != nil {
		return parley.Finding{State: parley.DoctorFail, What: what,
			Text: fmt.Sprintf("the OpenID Connect issuer %s does not answer as it should: %v. Check PARLEY_OIDC_ISSUER", i.URL, err)}
	}
	return parley.Finding{State: parley.DoctorOK, What: what,
		Text: "by password, and by OpenID Connect at " + p.Endpoint().AuthURL}
}

// flow is what the browser keeps, sealed, while its reader is at the issuer.
type flow struct {
	State, Nonce, Verifier, Back string
	Until                        parley.Time
}

// FlowFor is how long somebody may take at the issuer.
const FlowFor = 10 * time.Minute

const flowSeal = "oidc flow"

func (i *Issuer) client(p *oidc.Provider, callback string) *oauth2.Config {
	return &oauth2.Config{ClientID: i.ClientID, ClientSecret: i.ClientSecret, Endpoint: p.Endpoint(), RedirectURL: callback,
		Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}
}

// Begin is where the browser is sent, and what it keeps meanwhile. back is where its reader wants to be afterwards.
func (i *Issuer) Begin(ctx context.Context, callback, back string) (to, kept string, err error) {
	p, err := i.provider(ctx)
	if err != nil {
		return "", "", err
	}
	f := flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), back, parley.Now().Add(FlowFor)}
	plain, err := json.Marshal(f)
	if err != nil {
		return "", "", err
	}
	to = i.client(p, callback).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	return to, base64.RawURLEncoding.EncodeToString(i.DB.Seal(flowSeal, plain)), nil
}

// Person is somebody whom the issuer vouches for.
type Person struct{ Email, Name string }

var (
	errFlow = parley.Errorf(parley.Refused, "This sign-in was not begun in this browser, or took too long. Try again.")
	errSaid = parley.Errorf(parley.Unauthenticated, "The sign-in at the other server did not succeed. Try again.")
	errMail = parley.Errorf(parley.Unauthenticated,
		"The other server does not say that your email address is verified, so it can't be used to sign in here.")
)

// Finish is who comes back from the issuer with these parameters, and where they want to be. kept is what their browser
// kept. A failure that its causer may read is a *parley.Error.
func (i *Issuer) Finish(ctx context.Context, callback, kept string, q url.Values) (who *Person, back string, err error) {
	f, err := i.open(kept)
	if err != nil || subtle.ConstantTimeCompare([]byte(f.State), []byte(q.Get("state"))) != 1 {
		return nil, "/", errFlow
	}
	if q.Get("error") != "" || q.Get("code") == "" {
		return nil, f.Back, errSaid
	}
	p, err := i.provider(ctx)
	if err != nil {
		return nil, f.Back, err
	}
	ctx = i.context(ctx)
	token, err := i.client(p, callback).Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return nil, f.Back, refused(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := p.VerifierContext(ctx, &oidc.Config{ClientID: i.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, f.Back, refused(err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		return nil, f.Back, refused(errors.New("its token has another nonce"))
	}
	var said struct {
		Email    string `json:"email"`
		Verified any    `json:"email_verified"` // some say "true"
		Name     string `json:"name"`
	}
	if err := id.Claims(&said); err != nil {
		return nil, f.Back, refused(err)
	}
	if said.Email == "" || said.Verified != true && said.Verified != "true" {
		return nil, f.Back, errMail
	}
	who = &Person{strings.ToLower(said.Email), said.Name}
	if _, domain, _ := strings.Cut(who.Email, "@"); len(i.Domains) > 0 &&
		!slices.ContainsFunc(i.Domains, func(d string) bool { return strings.EqualFold(strings.TrimPrefix(d, "@"), domain) }) {
		return nil, f.Back, parley.Errorf(parley.Forbidden, "Addresses at %s can't sign in here.", domain)
	}
	return who, f.Back, nil
}

// refused is a sign-in that failed for a reason that the log has, and its reader needs not.
type refusal struct{ why error }

func (r *refusal) Error() string { return "OpenID Connect: " + r.why.Error() }
func (r *refusal) Unwrap() error { return errSaid }

func refused(why error) error { return &refusal{why} }

func (i *Issuer) open(kept string) (f flow, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(kept)
	if err != nil {
		return f, err
	}
	plain, err := i.DB.Unseal(flowSeal, sealed)
	if err == nil {
		err = json.Unmarshal(plain, &f)
	}
	if err == nil && parley.Now() >= f.Until {
		err = errFlow
	}
	return f, err
}
