package ai

import (
	"errors"
	"fmt"
	"net/http"
)

// Redirect is the CheckRedirect of the clients that ask vendors. A redirect is followed to the same server only, with
// the method that was asked with: elsewhere it would carry the key away, and a POST that becomes a GET asks for
// something else. The error is an *Error.
func Redirect(req *http.Request, via []*http.Request) error {
	first, code := via[0], 0
	if req.Response != nil {
		code = req.Response.StatusCode
	}
	same := req.URL.Host == first.URL.Host && req.URL.Scheme == first.URL.Scheme
	if same && req.Method == first.Method && len(via) <= 5 {
		return nil
	}
	to := req.URL.Scheme + "://" + req.URL.Host
	return &Error{Kind: Config, Err: fmt.Errorf("the server redirects (%d) to %s: %w", code, to, errRedirected),
		Mend: fmt.Sprintf("The provider's address is not the right one: it redirects (%d). Ask this server's operator to "+
			"set the base URL to the address that answers by itself.", code)}
}

var errRedirected = errors.New("set the base URL to the address that answers by itself")
