package api

import (
	"context"
	"strings"

	"parley/internal/auth"
	"parley/internal/parley"
)

func (a *API) memberRoutes() {
	const tag, missing, gone = "People", "Member not found", "Invitation not found"
	handle(a, op{Method: "GET", Path: "/user/members", Name: "listMembers", Tag: tag,
		Summary: "The members of the account, without its owner"}, a.listMembers)
	handle(a, op{Method: "PUT", Path: "/user/members/{id}", Name: "updateMember", Tag: tag, NotFound: missing,
		Body: parley.MemberChange{}, Partial: true, Summary: "Change a member's role, or whether they may sign in"}, a.updateMember)
	handle(a, op{Method: "DELETE", Path: "/user/members/{id}", Name: "deleteMember", Tag: tag, NotFound: missing,
		Summary: "Remove a member: their sessions and keys end at once"}, a.deleteMember)
	handle(a, op{Method: "POST", Path: "/user/members/{id}/reset-password", Name: "resetMemberPassword", Tag: tag, NotFound: missing,
		Status: 201, Summary: "Make a link with which a member chooses a new password; it is shown once"}, a.resetMemberPassword)
	handle(a, op{Method: "DELETE", Path: "/user/members/{id}/two-factor", Name: "dropMemberTwoFactor", Tag: tag, NotFound: missing,
		Summary: "Turn off the two-factor sign-in of a member who has lost their device and codes"}, a.dropMemberTwoFactor)
	handle(a, op{Method: "GET", Path: "/user/invitations", Name: "listInvitations", Tag: tag,
		Summary: "Invitations that nobody has accepted yet, newest first"}, a.listInvitations)
	handle(a, op{Method: "POST", Path: "/user/invitations", Name: "createInvitation", Tag: tag, Status: 201,
		Body: parley.InvitationInput{}, Summary: "Invite somebody; the token is shown once"}, a.createInvitation)
	handle(a, op{Method: "DELETE", Path: "/user/invitations/{id}", Name: "deleteInvitation", Tag: tag, NotFound: gone,
		Summary: "Withdraw an invitation"}, a.deleteInvitation)
	handle(a, op{Method: "POST", Path: "/invitations/accept", Name: "acceptInvitation", Tag: tag, Access: anybody, Status: 201,
		Summary: "Accept an invitation, and sign in"}, a.acceptInvitation)
	handle(a, op{Method: "POST", Path: "/password/reset", Name: "setForgottenPassword", Tag: tag, Access: anybody,
		Summary: "Choose a new password with the token of a link; sign in with it afterwards"}, a.setForgottenPassword)
}

func (a *API) listMembers(ctx context.Context, r *request, _ *none) ([]parley.Member, error) {
	return a.DB.Members(ctx, r.UserID())
}

func (a *API) updateMember(ctx context.Context, r *request, in *byID) (*messageData[*parley.Member], error) {
	m, err := a.Auth.ChangeMember(ctx, r.Who, in.ID, r.Body)
	return &messageData[*parley.Member]{"Member updated successfully", m}, err
}

func (a *API) deleteMember(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Member deleted successfully"}, a.Auth.RemoveMember(ctx, r.Who, in.ID)
}

func (a *API) listInvitations(ctx context.Context, r *request, _ *none) ([]parley.Invitation, error) {
	return a.DB.Invitations(ctx, r.UserID(), parley.Now())
}

// invited is an invitation with what its bearer needs.
type invited struct {
	*parley.Invitation
	Token   string `json:"token" doc:"What POST /invitations/accept takes."`
	Link    string `json:"link" doc:"The page where it is accepted."`
	Emailed bool   `json:"emailed" doc:"Whether the link is being e-mailed. Otherwise pass it on yourself."`
}

func (a *API) createInvitation(ctx context.Context, r *request, _ *none) (*messageData[invited], error) {
	i, err := a.Auth.Invite(ctx, r.Who, a.Front.Base(r.Request), r.Body)
	if err != nil {
		return nil, err
	}
	return &messageData[invited]{"Invitation created successfully", invited{i.Invitation, i.Token, i.Link, i.Sent}}, nil
}

func (a *API) deleteInvitation(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Invitation deleted successfully"}, a.Auth.Withdraw(ctx, r.Who, in.ID)
}

type acceptance struct {
	Body struct {
		Token string `json:"token" required:"true" maxLength:"255"`
		auth.Acceptance
	}
}

func (a *API) acceptInvitation(ctx context.Context, r *request, in *acceptance) (*session, error) {
	token := strings.TrimSpace(in.Body.Token)
	who, s, err := a.Auth.Accept(ctx, a.Front.Address(r.Request), token, &in.Body.Acceptance, parley.Session)
	if err != nil {
		return nil, err
	}
	return &session{"Invitation accepted successfully.", accountOf(who), s}, nil
}

// resetLink is a link with what its bearer needs.
type resetLink struct {
	Token     string      `json:"token" doc:"What POST /password/reset takes."`
	Link      string      `json:"link" doc:"The page on which the password is chosen."`
	Emailed   bool        `json:"emailed" doc:"It is being sent to the member. Otherwise pass the link on."`
	ExpiresAt parley.Time `json:"expires_at"`
}

func (a *API) resetMemberPassword(ctx context.Context, r *request, in *byID) (*messageData[resetLink], error) {
	l, err := a.Auth.ResetPassword(ctx, r.Who, in.ID, a.Front.Base(r.Request))
	if err != nil {
		return nil, err
	}
	return &messageData[resetLink]{"Link created successfully", resetLink{l.Token, l.Link, l.Sent, l.ExpiresAt}}, nil
}

func (a *API) dropMemberTwoFactor(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Two-factor sign-in turned off successfully"}, a.Auth.DropMemberTwoFactor(ctx, r.Who, in.ID)
}

type forgotten struct {
	Body struct {
		Token    string `json:"token" required:"true" maxLength:"255"`
		Password string `json:"password" required:"true" minLength:"8" maxLength:"1024" trim:"off"`
	}
}

func (a *API) setForgottenPassword(ctx context.Context, r *request, in *forgotten) (*notice, error) {
	err := a.Auth.SetForgotten(ctx, a.Front.Address(r.Request), strings.TrimSpace(in.Body.Token), in.Body.Password)
	return &notice{"Password changed successfully"}, err
}
