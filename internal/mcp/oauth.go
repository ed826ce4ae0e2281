package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"parley/internal/egress"
)

const (
	maxGrants   = 1000
	maxMetadata = 64 << 10
)

// refusal is why there is no token, in words.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

func refuse(format string, args ...any) *refusal { return &refusal{fmt.Sprintf(format, args...)} }

// grant is the token of one client at one server, which all sessions with it share.
type grant struct {
	http   *http.Client
	server Server
	turn   chan struct{} // held by who reads and renews it
	now    *oauth2.Token
	at     string // where tokens are given; "" until it is found
	scopes []string
}

// grantOf is the grant for a server.
func (c *Client) grantOf(s Server) *grant {
	key := Server{URL: s.URL, OAuth: s.OAuth}.key()
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.grants[key]
	if g == nil {
		if len(c.grants) >= maxGrants { // tokens are had again
			clear(c.grants)
		}
		follow := *c.http
		follow.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		g = &grant{http: &follow, server: s, turn: make(chan struct{}, 1), at: s.OAuth.TokenURL, scopes: strings.Fields(s.OAuth.Scope)}
		c.grants[key] = g
	}
	return g
}

func (g *grant) hold(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// token is the token to be sent; "" while it is not known who gives one.
func (g *grant) token(ctx context.Context) (string, error) {
	if err := g.hold(ctx); err != nil {
		return "", err
	}
	defer func() { <-g.turn }()
	if !g.now.Valid() && g.at != "" {
		if err := g.fetch(ctx); err != nil {
			return "", err
		}
	}
	if !g.now.Valid() {
		return "", nil
	}
	return g.now.AccessToken, nil
}

// renew is another token than one that was refused with these challenges.
func (g *grant) renew(ctx context.Context, refused string, challenges []string) (string, error) {
	if err := g.hold(ctx); err != nil {
		return "", err
	}
	defer func() { <-g.turn }()
	if g.now.Valid() && g.now.AccessToken != refused { // somebody else has renewed it
		return g.now.AccessToken, nil
	}
	if g.server.OAuth.TokenURL == "" {
		if err := g.discover(ctx, challenges); err != nil {
			return "", err
		}
	}
	if err := g.fetch(ctx); err != nil {
		return "", err
	}
	return g.now.AccessToken, nil
}

func (g *grant) fetch(ctx context.Context) error {
	conf := clientcredentials.Config{ClientID: g.server.OAuth.ClientID, ClientSecret: g.server.OAuth.Secret, TokenURL: g.at,
		Scopes: g.scopes, EndpointParams: url.Values{"resource": {g.server.URL}}}
	token, err := conf.Token(context.WithValue(ctx, oauth2.HTTPClient, g.http))
	g.now = nil
	told, isTold := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isTold && told.ErrorCode != "":
		return refuse("the token server refuses the client's credentials (%.100q)", told.ErrorCode)
	case isTold && told.Response != nil:
		return refuse("the token server answers with HTTP status %d", told.Response.StatusCode)
	case err != nil:
		return refuse("no token could be had: %s", egress.Explain(err))
	case !strings.EqualFold(token.Type(), "Bearer"):
		return refuse("the token server gives tokens of a type that MCP doesn't use")
	}
	g.now = token
	return nil
}

// discover finds who gives tokens: by the server's protected-resource metadata (RFC 9728), and the metadata of the
// authorization server that it names (RFC 8414).
func (g *grant) discover(ctx context.Context, challenges []string) error {
	list, err := oauthex.ParseWWWAuthenticate(challenges)
	if err != nil {
		list = nil // it is looked for where it usually is
	}
	var told string
	scopes := strings.Fields(g.server.OAuth.Scope)
	for _, c := range list {
		if told == "" {
			told = c.Params["resource_metadata"]
		}
		if c.Scheme == "bearer" && len(scopes) == 0 {
			scopes = strings.Fields(c.Params["scope"])
		}
	}
	of, err := g.resource(ctx, told)
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		scopes = of.ScopesSupported
	}
	if g.at, err = g.tokenURL(ctx, of.AuthorizationServers[0]); err == nil {
		g.scopes = scopes
	}
	return err
}

// resource is the metadata of the server, at the place that it told or where it usually is.
func (g *grant) resource(ctx context.Context, told string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(g.server.URL)
	if err != nil {
		return nil, refuse("the URL can't be read")
	}
	root := &url.URL{Scheme: u.Scheme, Host: u.Host}
	const known = "/.well-known/oauth-protected-resource"
	places := [][2]string{{root.String() + known + u.EscapedPath(), g.server.URL}, {root.String() + known, root.String()}}
	if told != "" {
		places = append([][2]string{{told, g.server.URL}}, places...)
	}
	var last error
	for _, p := range places {
		of, err := oauthex.GetProtectedResourceMetadata(ctx, p[0], p[1], g.http)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && len(of.AuthorizationServers) > 0 {
			return of, nil
		}
		if refused, ok := errors.AsType[*egress.Refused](err); ok {
			last = refused
		}
	}
	if last != nil {
		return nil, refuse("the server's OAuth metadata can't be read: %s", egress.Explain(last))
	}
	return nil, refuse("the server wants a token and doesn't say who gives one: enter the token URL")
}

// tokenURL is where an authorization server gives tokens.
func (g *grant) tokenURL(ctx context.Context, issuer string) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return "", refuse("the authorization server's address can't be read")
	}
	root, path := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), strings.Trim(u.EscapedPath(), "/")
	places := []string{root + "/.well-known/oauth-authorization-server/" + path, root + "/.well-known/openid-configuration/" + path,
		root + "/" + path + "/.well-known/openid-configuration"}
	why := "it has no metadata"
	for _, p := range places {
		var meta struct {
			Issuer string `json:"issuer"`
			Token  string `json:"token_endpoint"`
		}
		switch err := g.read(ctx, strings.TrimSuffix(p, "/"), &meta); {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			if refused, ok := errors.AsType[*egress.Refused](err); ok {
				why = refused.Reason
			}
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			why = "its metadata is another's"
		case meta.Token == "":
			why = "its metadata names no token endpoint"
		case strings.HasPrefix(g.server.URL, "https:") && !strings.HasPrefix(meta.Token, "https:"):
			why = "its token endpoint is not https"
		default:
			return meta.Token, nil
		}
	}
	return "", refuse("the authorization server can't be used: %s; enter the token URL", why)
}

func (g *grant) read(ctx context.Context, place string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := g.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, more, err := egress.Read(resp.Body, maxMetadata)
	if err != nil || more || resp.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New("there is no metadata"))
	}
	return json.Unmarshal(raw, v)
}
