package auth

import (
	"parley/internal/parley"
)

var errOwners = parley.Errorf(parley.Forbidden, "Only an owner of the account may invite, change or remove owners.")

// manages refuses what concerns somebody of a role, or the giving of that role, to whoever may not: owners are owners' business. The
// account's first owner is the account itself, so that there always is one: nobody can remove or demote them.
func (w *Who) manages(role parley.Role) error {
	if role == parley.RoleOwner && w.Role() != parley.RoleOwner {
		return errOwners
	}
	return nil
}
