package auth_test

import (
	"errors"
	"testing"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Owners are owners' business: an administrator invites anybody but them, and can't change, remove, reset or key one, nor become one.
func TestOwnersAndAdministrators(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		first := &auth.Who{User: u}
		owner := &auth.Who{User: u, Member: member(t, d, u, "owner@example.com", parley.RoleOwner)}
		admin := &auth.Who{User: u, Member: member(t, d, u, "admin@example.com", parley.RoleAdministrator)}
		refused := func(what string, err error) {
			t.Helper()
			var e *parley.Error
			if !errors.As(err, &e) || e.Kind != parley.Forbidden {
				t.Errorf("%s: %v", what, err)
			}
		}
		fine := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		invite := func(by *auth.Who, role, email string) (*auth.Invited, error) {
			return d.Invite(t.Context(), by, "", map[string]any{"name": "X", "role": role, "email": email})
		}
		_, err := invite(admin, "owner", "a@example.com")
		refused("an administrator invites an owner", err)
		for _, role := range []string{"administrator", "editor", "agent", "viewer", "billing", "auditor"} {
			_, err := invite(admin, role, role+"@example.org")
			fine("an administrator invites "+role, err)
		}
		pending, err := invite(owner, "owner", "b@example.com")
		fine("an owner invites an owner", err)
		refused("an administrator withdraws an owner's invitation", d.Withdraw(t.Context(), admin, pending.ID))
		change := func(by *auth.Who, id int64, body map[string]any) error {
			_, err := d.ChangeMember(t.Context(), by, id, body)
			return err
		}
		refused("an administrator demotes an owner", change(admin, owner.Member.ID, map[string]any{"role": "viewer"}))
		refused("an administrator disables an owner", change(admin, owner.Member.ID, map[string]any{"disabled": true}))
		refused("an administrator makes themselves an owner", change(admin, admin.Member.ID, map[string]any{"role": "owner"}))
		refused("an administrator removes an owner", d.RemoveMember(t.Context(), admin, owner.Member.ID))
		_, err = d.ResetPassword(t.Context(), admin, owner.Member.ID, "")
		refused("an administrator gets a link for an owner's password", err)
		refused("an administrator turns an owner's second factor off", d.DropMemberTwoFactor(t.Context(), admin, owner.Member.ID))
		for name, c := range map[string]struct {
			by   *auth.Who
			in   auth.KeyInput
			want parley.Role
		}{
			"an owner's":                         {owner, auth.KeyInput{}, parley.RoleOwner},
			"an administrator's, of the account": {admin, auth.KeyInput{}, parley.RoleAdministrator},
			"as owner":                           {admin, auth.KeyInput{Scope: parley.RoleOwner}, parley.RoleAdministrator},
			"for an owner":                       {admin, auth.KeyInput{MemberID: owner.Member.ID}, parley.RoleAdministrator},
			"as billing":                         {admin, auth.KeyInput{Scope: parley.RoleBilling}, "none"},
			"as viewer":                          {admin, auth.KeyInput{Scope: parley.RoleViewer}, parley.RoleViewer},
		} {
			c.in.Name = "k"
			_, token, err := d.MakeKey(t.Context(), c.by, &c.in)
			if err != nil {
				t.Fatal(err)
			}
			who, err := d.Authenticate(t.Context(), token, parley.APIKey)
			if err != nil || who.Role() != c.want {
				t.Errorf("a key %s has the role %s, %v", name, who.Role(), err)
			}
		}
		fine("an owner demotes another", change(first, owner.Member.ID, map[string]any{"role": "viewer"}))
		fine("the first owner stays", change(first, admin.Member.ID, map[string]any{"role": "owner"}))
		if first.Role() != parley.RoleOwner {
			t.Error("there is no owner")
		}
	})
}

// What an administrator has prepared for a member is worth no more once an owner makes the member an owner.
func TestPreparedPromotion(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		admin := &auth.Who{User: u, Member: member(t, d, u, "admin@example.com", parley.RoleAdministrator)}
		editor := member(t, d, u, "editor@example.com", parley.RoleEditor)
		_, key, err := d.MakeKey(t.Context(), admin, &auth.KeyInput{Name: "k", MemberID: editor.ID})
		if err != nil {
			t.Fatal(err)
		}
		_, own, err := d.MakeKey(t.Context(), &auth.Who{User: u}, &auth.KeyInput{Name: "k", MemberID: editor.ID})
		if err != nil {
			t.Fatal(err)
		}
		link, err := d.ResetPassword(t.Context(), admin, editor.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		role := func(token string) parley.Role {
			who, err := d.Authenticate(t.Context(), token, parley.APIKey)
			if err != nil {
				t.Fatal(err)
			}
			return who.Role()
		}
		change := func(role string) {
			if _, err := d.ChangeMember(t.Context(), &auth.Who{User: u}, editor.ID, map[string]any{"role": role}); err != nil {
				t.Fatal(err)
			}
		}
		change("agent")
		if _, err := d.Resetting(t.Context(), link.Token); err != nil || role(key) != parley.RoleAgent {
			t.Errorf("of an agent: the link %v, the key %s", err, role(key))
		}
		change("owner")
		if _, err := d.Resetting(t.Context(), link.Token); err == nil {
			t.Error("the link for an agent's password is good for an owner's")
		}
		if role(key) != parley.RoleAdministrator || role(own) != parley.RoleOwner {
			t.Errorf("of an owner: an administrator's key for an agent is %s's, an owner's %s's", role(key), role(own))
		}
	})
}
