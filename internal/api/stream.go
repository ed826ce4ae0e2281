package api

import (
	"errors"

	"parley"
	"parley/internal/auth"
)

// stands says whether the credential that began a stream still counts.
func (a *API) stands(r *request) bool {
	if r.Who == nil {
		return true
	}
	_, err := a.Auth.Authenticate(r.Context(), auth.BearerToken(r.Header.Get("Authorization")), parley.APIKey,
		parley.Session)
	return !errors.Is(err, auth.ErrUnauthenticated) // a database that does not answer says nothing about it
}
