package api

import (
	"errors"

	"parley"
	"parley/internal/auth"
)

// stands says whether the credential that began a stream still counts, and its holder's role is what it was. Whoever
// has a lesser role now comes back, and is judged by that.
func (a *API) stands(r *request) bool {
	if r.Who == nil {
		return true
	}
	who, err := a.Auth.Authenticate(r.Context(), auth.BearerToken(r.Header.Get("Authorization")), parley.APIKey,
		parley.Session)
	if err != nil {
		return !errors.Is(err, auth.ErrUnauthenticated) // a database that does not answer says nothing about it
	}
	return who.Role().Includes(r.Who.Role())
}
