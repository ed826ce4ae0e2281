package api

import (
	"errors"

	"parley/internal/auth"
	"parley/internal/parley"
)

// stands says whether the credential that began a stream still counts, and its holder's role is what it was. Whoever
// has a lesser role now comes back, and is judged by that. A request from inside has no credential: it counts for as
// long as the account may be used. A database that does not answer says nothing about either.
func (a *API) stands(r *request) bool {
	if r.Who == nil {
		return true
	}
	if inside(r.Context()) {
		u, err := a.DB.User(r.Context(), r.UserID())
		if e, ok := errors.AsType[*parley.Error](err); ok && e.Kind == parley.NotFound {
			return false
		}
		return err != nil || u.DisabledAt == 0
	}
	who, err := a.Auth.Authenticate(r.Context(), auth.BearerToken(r.Header.Get("Authorization")), parley.APIKey,
		parley.Session)
	if err != nil {
		return !errors.Is(err, auth.ErrUnauthenticated)
	}
	return who.Role().Covers(r.Who.Role())
}
