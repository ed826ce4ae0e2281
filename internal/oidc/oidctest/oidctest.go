// Package oidctest is, for tests, an OpenID Connect issuer that speaks the code flow: discovery, keys, PKCE, signed tokens.
// It keeps what the protocol asks of it, and lies where a test wants it to.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The client that the issuer knows.
const (
	ClientID     = "parley"
	ClientSecret = "client secret"
)

// Issuer is a running issuer.
type Issuer struct {
	*httptest.Server
	Key   *rsa.PrivateKey
	Alter func(claims map[string]any) // changes what the next tokens say; nil: nothing
	Sign  *rsa.PrivateKey             // signs in place of Key
	Away  string                      // a path that is answered with 503

	mu    sync.Mutex
	keyID string
	asked map[string]int        // how often each path was
	codes map[string]url.Values // what was asked for with each code
}

// Rotate has the issuer sign with another key from now on, the only one that it shows.
func (i *Issuer) Rotate(t testing.TB) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Key, i.keyID = key, rand.Text()
}

// Asked is how often a path was.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// New starts an issuer that vouches for one person.
func New(t testing.TB, email, name string) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{Key: key, keyID: "one", codes: map[string]url.Values{}, asked: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize",
			"token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "response_types_supported": []string{"code"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": i.keyID,
			"n": text(i.Key.N.Bytes()), "e": text(big.NewInt(int64(i.Key.E)).Bytes())}}})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		code := rand.Text()
		i.mu.Lock()
		i.codes[code] = q
		i.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) { i.token(w, r, email, name) })
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.asked[r.URL.Path]++
		i.mu.Unlock()
		if r.URL.Path == i.Away {
			http.Error(w, "back soon", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request, email, name string) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else {
		secret, _ = url.QueryUnescape(secret) // RFC 6749, 2.3.1
	}
	i.mu.Lock()
	asked, there := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code")) // a code counts once
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != ClientID || secret != ClientSecret:
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	case !there || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") || text(sum[:]) != asked.Get("code_challenge"):
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	now := time.Now().Unix()
	claims := map[string]any{"iss": i.URL, "aud": ClientID, "sub": "person-1", "iat": now, "exp": now + 300,
		"nonce": asked.Get("nonce"), "email": email, "email_verified": true, "name": name}
	if i.Alter != nil {
		i.Alter(claims)
	}
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300,
		"id_token": i.sign(claims)})
}

// sign makes a JWT (RFC 7515).
func (i *Issuer) sign(claims map[string]any) string {
	i.mu.Lock()
	key, id := i.Key, i.keyID
	i.mu.Unlock()
	if i.Sign != nil {
		key = i.Sign
	}
	head, _ := json.Marshal(map[string]any{"alg": "RS256", "typ": "JWT", "kid": id})
	body, _ := json.Marshal(claims)
	signed := text(head) + "." + text(body)
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // with our own key
	}
	return signed + "." + text(sig)
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
