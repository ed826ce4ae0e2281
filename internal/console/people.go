package console

import (
	"cmp"
	"reflect"

	"parley/internal/auth"
	"parley/internal/parley"
)

// people is the page of those who work in the account.
type people struct {
	owner   *parley.User
	members []parley.Member
	invited []parley.Invitation
	invite  *fields
	fresh   *auth.Invited // was just made: its link is shown once
	reset   *auth.Reset   // likewise
}

var roleOptions = enum("viewer=Viewer: reads", "agent=Agent: talks with customers", "editor=Editor: changes assistants",
	"administrator=Administrator: all but owners and payments", "billing=Billing: ledger and payments",
	"auditor=Auditor: reads all, changes nothing", "owner=Owner: everything")

func (c *Console) peoplePage(r *request) (*answer, error) { return c.people(r, &people{}) }

func (c *Console) people(r *request, p *people) (*answer, error) {
	var err error
	if p.members, err = c.DB.Members(r.Context(), r.UserID()); err != nil {
		return nil, err
	}
	if p.invited, err = c.DB.Invitations(r.Context(), r.UserID(), parley.Now()); err != nil {
		return nil, err
	}
	p.owner = r.who.User
	if p.invite != nil {
		return invalid("People", peoplePage(p)), nil
	}
	p.invite = fieldsOf[parley.InvitationInput](map[string]any{"role": "agent"}, nil)
	return show("People", peoplePage(p)), nil
}

// personInvite makes an invitation, and shows its link.
func (c *Console) personInvite(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.InvitationInput]())
	i, err := c.Auth.Invite(r.Context(), r.who, c.Front.Base(r.Request), tree)
	if wrong, ok := fieldErrors(err); ok {
		return c.people(r, &people{invite: fieldsOf[parley.InvitationInput](tree, wrong)})
	}
	if err != nil {
		return nil, err
	}
	return c.people(r, &people{fresh: i})
}

func (c *Console) personSave(r *request) (*answer, error) {
	tree := decode(r.PostForm, reflect.TypeFor[parley.MemberChange]())
	if _, err := c.Auth.ChangeMember(r.Context(), r.who, r.id("id"), tree); err != nil {
		return nil, err
	}
	return see("/people", "saved"), nil
}

func (c *Console) personDelete(r *request) (*answer, error) {
	if err := c.Auth.RemoveMember(r.Context(), r.who, r.id("id")); err != nil {
		return nil, err
	}
	return see("/people", "gone"), nil
}

// personReset makes a link for a new password, and shows it.
func (c *Console) personReset(r *request) (*answer, error) {
	link, err := c.Auth.ResetPassword(r.Context(), r.who, r.id("id"), c.Front.Base(r.Request))
	if err != nil {
		return nil, err
	}
	return c.people(r, &people{reset: link})
}

func (c *Console) personSecondOff(r *request) (*answer, error) {
	if err := c.Auth.DropMemberTwoFactor(r.Context(), r.who, r.id("id")); err != nil {
		return nil, err
	}
	return see("/people", "second-gone"), nil
}

func (c *Console) invitationDelete(r *request) (*answer, error) {
	if err := c.Auth.Withdraw(r.Context(), r.who, r.id("id")); err != nil {
		return nil, err
	}
	return see("/people", "withdrawn"), nil
}

// joinPage is where the link of an invitation leads.
func (c *Console) joinPage(r *request) (*answer, error) {
	i, u, err := c.Auth.Invited(r.Context(), r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	f := fieldsOf[auth.Acceptance](map[string]any{"name": i.Name, "timezone": cmp.Or(browserZone(r.Request), u.Timezone)}, nil)
	return show("Join "+u.Name, c.joinForm(r, i, u, f)), nil
}

// join makes the member, and signs them in.
func (c *Console) join(r *request) (*answer, error) {
	token, tree := r.PathValue("token"), decode(r.PostForm, reflect.TypeFor[auth.Acceptance]())
	_, session, err := c.Auth.Join(r.Context(), c.Front.Address(r.Request), token, tree, parley.Console)
	if wrong, ok := passwordErrors(c.tooMany(r, err), "password"); ok {
		i, u, err := c.Auth.Invited(r.Context(), token)
		if err != nil {
			return nil, err
		}
		delete(tree, "password") // it does not go back into the page
		return invalid("Join "+u.Name, c.joinForm(r, i, u, fieldsOf[auth.Acceptance](tree, wrong))), nil
	}
	if err != nil {
		return nil, err
	}
	c.setCookie(r, session)
	return see("/"), nil
}

func (c *Console) joinForm(r *request, i *parley.Invitation, u *parley.User, f *fields) component {
	return joinPage(i, u, f, "/join/"+r.PathValue("token"))
}

// forgottenPassword is the form of somebody who has forgotten theirs.
type forgottenPassword struct {
	Password string `json:"password" required:"true" minLength:"8" maxLength:"1024" trim:"off"`
}

// resetPage is where the link for a new password leads.
func (c *Console) resetPage(r *request) (*answer, error) {
	who, err := c.Auth.Resetting(r.Context(), r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	return show(resetTitle, resetForm(who, fieldsOf[forgottenPassword](nil, nil), r.PathValue("token"))), nil
}

// reset sets the password that was chosen. Its member signs in with it, and with the second factor that they may have.
func (c *Console) reset(r *request) (*answer, error) {
	token := r.PathValue("token")
	err := c.Auth.SetForgotten(r.Context(), c.Front.Address(r.Request), token, r.PostFormValue("password"))
	if wrong, ok := passwordErrors(c.tooMany(r, err), "password"); ok {
		who, err := c.Auth.Resetting(r.Context(), token)
		if err != nil {
			return nil, err
		}
		return invalid(resetTitle, resetForm(who, fieldsOf[forgottenPassword](nil, wrong), token)), nil
	}
	if err != nil {
		return nil, err
	}
	return see("/signin", "reset"), nil
}

const resetTitle = "Choose a new password"
