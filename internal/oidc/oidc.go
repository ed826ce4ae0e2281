// Package oidc signs people in by OpenID Connect: the operator names an issuer, which says who somebody is.
// It uses the code flow with PKCE, a state and a nonce.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/store"
)

// Issuer is the server that vouches for people. Its methods may be called from any goroutine.
type Issuer struct {
	URL, ClientID, ClientSecret string
	Domains                     []string // of the addresses that may sign in; none: all
	DB                          *store.DB
	Guard                       *egress.Guard

	mu    sync.Mutex
	known *oidc.Provider // what it said of itself
	away  error          // why it did not
	until time.Time      // when it is asked again
}

// Open makes an issuer of the settings, nil where there is none.
func Open(db *store.DB, guard *egress.Guard, issuer, id, secret string, domains []string) (*Issuer, error) {
	if issuer == "" {
		return nil, nil
	}
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("PARLEY_OIDC_ISSUER: %q is not a URL such as https://accounts.example.com", issuer)
	}
	if id == "" {
		return nil, errors.New("PARLEY_OIDC_ISSUER needs PARLEY_OIDC_CLIENT_ID, under which the issuer knows this server")
	}
	return &Issuer{URL: issuer, ClientID: id, ClientSecret: secret, Domains: domains, DB: db, Guard: guard}, nil
}

// Name is what the issuer is called: its host.
func (i *Issuer) Name() string {
	u, err := url.Parse(i.URL)
	if err != nil {
		return i.URL
	}
	return u.Host
}

const (
	patience  = 10 * time.Second // for each request to the issuer
	knownFor  = time.Hour        // then it is asked again where it has its pages
	awayFor   = 5 * time.Second  // after which it is asked again: those who come meanwhile don't wait in line
	clockSkew = time.Minute      // by which its clock may be behind ours
)

// client asks nobody but the issuer: what is redirected is refused, since it may carry a secret.
func (i *Issuer) client(ctx context.Context) context.Context {
	c := i.Guard.Client(0)
	c.Timeout = patience
	return oidc.ClientContext(ctx, c)
}

// provider is what the issuer says of itself.
func (i *Issuer) provider(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := time.Now(); now.After(i.until) {
		// without the request's end, which all who wait would share
		p, err := oidc.NewProvider(i.client(context.WithoutCancel(ctx)), i.URL)
		if err == nil {
			i.known, i.away, i.until = p, nil, now.Add(knownFor)
		} else {
			i.away, i.until = err, time.Now().Add(awayFor)
		}
	}
	if i.known == nil {
		return nil, fmt.Errorf("read the OpenID Connect issuer's configuration: %w", i.away)
	}
	return i.known, nil
}

// Check says whether the issuer answers.
func (i *Issuer) Check(ctx context.Context) parley.Finding {
	const what = "sign-in"
	if i == nil {
		return parley.Finding{State: parley.DoctorOK, What: what, Text: "by password"}
	}
	p, err := oidc.NewProvider(i.client(ctx), i.URL)
	if err != nil {
		why := err.Error() // may hold a whole page
		return parley.Finding{State: parley.DoctorFail, What: what, Text: fmt.Sprintf(
			"the OpenID Connect issuer %s does not answer as it should: %s. Check PARLEY_OIDC_ISSUER", i.URL, why[:min(len(why), 300)])}
	}
	text := "by password, and by OpenID Connect at " + p.Endpoint().AuthURL
	if strings.HasPrefix(i.URL, "http:") {
		return parley.Finding{State: parley.DoctorNote, What: what, Text: text + ", without TLS: only for a network that can be trusted"}
	}
	return parley.Finding{State: parley.DoctorOK, What: what, Text: text}
}

// refusal is a sign-in that failed for a reason that the log has, and its reader needs not.
type refusal struct {
	why  error
	says *parley.Error
}

func (r *refusal) Error() string { return "OpenID Connect: " + r.why.Error() }
func (r *refusal) Unwrap() error { return r.says }

func refused(why error) error { return &refusal{why, errSaid} }

// failed is what came of a request to the issuer.
func (i *Issuer) failed(err error) error {
	if errors.As(err, new(*url.Error)) {
		return i.unreached(err)
	}
	return refused(err)
}

// unreached is a failure to reach the issuer.
func (i *Issuer) unreached(why error) error {
	return &refusal{why, parley.Errorf(parley.Upstream, "%s does not answer. Sign in with your password, or try again later.", i.Name())}
}
