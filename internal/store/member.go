package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley"
)

const (
	memberNotFound     = "Member not found"
	invitationNotFound = "Invitation not found"
)

// Members are the people who work in the user's account, oldest first.
func (q Query) Members(ctx context.Context, userID int64) ([]parley.Member, error) {
	list := []parley.Member{}
	return list, withTwoFactor(q.q.NewSelect().Model(&list)).Where("user_id = ?", userID).Order("id").Scan(ctx)
}

// withTwoFactor reads members with whether they have a second factor.
func withTwoFactor(s *bun.SelectQuery) *bun.SelectQuery {
	return s.ColumnExpr("member.*").ColumnExpr(`EXISTS (SELECT 1 FROM two_factors f WHERE f.user_id = member.user_id
		AND f.member_id = member.id AND f.confirmed_at > 0) AS two_factor`)
}

// Member is one of them.
func (q Query) Member(ctx context.Context, userID, id int64) (*parley.Member, error) {
	return q.member(ctx, userID, id, false)
}

// MemberForUpdate is Member, kept from others until the transaction ends.
func (tx *Tx) MemberForUpdate(ctx context.Context, userID, id int64) (*parley.Member, error) {
	m, err := tx.member(ctx, userID, id, true)
	return m, tx.saw(parley.AuditMember, id, m, err)
}

func (q Query) member(ctx context.Context, userID, id int64, lock bool) (*parley.Member, error) {
	m := new(parley.Member)
	s := withTwoFactor(q.q.NewSelect().Model(m)).Where("id = ? AND user_id = ?", id, userID)
	if lock {
		s = q.locked(s)
	}
	return m, notFound(s.Scan(ctx), memberNotFound)
}

// MemberByEmail is the member with that address (lower case), whoever's, also one who is disabled.
func (q Query) MemberByEmail(ctx context.Context, email string) (*parley.Member, error) {
	m := new(parley.Member)
	err := q.q.NewSelect().Model(m).Where("email = ?", email).Scan(ctx)
	return m, notFound(err, "no member has the email address "+email)
}

// CreateMember stores a new member.
func (tx *Tx) CreateMember(ctx context.Context, m *parley.Member) error {
	if err := tx.emailFree(ctx, m.Email, "users"); err != nil {
		return err
	}
	m.CreatedAt = parley.Now()
	m.UpdatedAt = m.CreatedAt
	_, err := tx.q.NewInsert().Model(m).Exec(ctx)
	return tx.note(m.UserID, parley.AuditCreated, parley.AuditMember, m.ID, m, emailOnce(err))
}

// SaveMember stores a changed member.
func (tx *Tx) SaveMember(ctx context.Context, m *parley.Member) error {
	if err := tx.emailFree(ctx, m.Email, "users"); err != nil {
		return err
	}
	m.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(m).ExcludeColumn("id", "user_id", "created_at", "last_seen_at").
		Where("id = ? AND user_id = ?", m.ID, m.UserID).Exec(ctx)
	return tx.note(m.UserID, parley.AuditChanged, parley.AuditMember, m.ID, m, one(res, emailOnce(err), memberNotFound))
}

// DeleteMember removes a member with all their sessions and keys, their second factor, and their identities at issuers.
func (tx *Tx) DeleteMember(ctx context.Context, userID, id int64) error {
	err := tx.drop(ctx, userID, parley.AuditMember, id, memberNotFound,
		"DELETE FROM members WHERE id = ? AND user_id = ? RETURNING name", id, userID)
	if err != nil {
		return err
	}
	for _, row := range []any{(*parley.Key)(nil), (*parley.TwoFactor)(nil), (*parley.Identity)(nil)} {
		_, err := tx.q.NewDelete().Model(row).Where("user_id = ? AND member_id = ?", userID, id).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// emailFree refuses an address with which somebody in the other table of people signs in. Within a table an index
// does.
func (tx *Tx) emailFree(ctx context.Context, email, table string) error {
	if !tx.sqlite { // who takes the same address at the same time waits
		if _, err := tx.q.NewRaw("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", email).Exec(ctx); err != nil {
			return err
		}
	}
	taken, err := tx.q.NewSelect().Table(table).Where("email = ?", email).Exists(ctx)
	if err == nil && taken {
		err = errEmailTaken
	}
	return err
}

// Invitations are the user's invitations that nobody has accepted yet, newest first.
func (q Query) Invitations(ctx context.Context, userID int64, now parley.Time) ([]parley.Invitation, error) {
	list := []parley.Invitation{}
	return list, q.q.NewSelect().Model(&list).Where("user_id = ? AND expires_at > ?", userID, now).Order("id DESC").Scan(ctx)
}

// InvitationByID is an invitation of whoever's: its bearer must still prove that they know its secret.
func (q Query) InvitationByID(ctx context.Context, id int64) (*parley.Invitation, error) {
	i := new(parley.Invitation)
	err := q.q.NewSelect().Model(i).Where("id = ?", id).Scan(ctx)
	return i, notFound(err, invitationNotFound)
}

// CreateInvitation stores an invitation, in place of a former one to the same address.
func (tx *Tx) CreateInvitation(ctx context.Context, i *parley.Invitation) error {
	if err := tx.LockUser(ctx, i.UserID); err != nil {
		return err
	}
	_, err := tx.q.NewRaw("DELETE FROM invitations WHERE user_id = ? AND (email = ? OR expires_at < ?)", i.UserID, i.Email,
		parley.Now()).Exec(ctx)
	if err != nil {
		return err
	}
	var n int
	err = tx.q.NewRaw(`SELECT (SELECT count(*) FROM members WHERE user_id = ?) +
		(SELECT count(*) FROM invitations WHERE user_id = ?)`, i.UserID, i.UserID).Scan(ctx, &n)
	if err != nil {
		return err
	}
	if n >= parley.MostMembers {
		return parley.Errorf(parley.Forbidden, "An account can have %d members and invitations. Remove those that you no longer need.",
			parley.MostMembers)
	}
	for _, table := range []string{"users", "members"} {
		if err := tx.emailFree(ctx, i.Email, table); err != nil {
			return err
		}
	}
	i.CreatedAt = parley.Now()
	_, err = tx.q.NewInsert().Model(i).Exec(ctx)
	return tx.note(i.UserID, parley.AuditCreated, parley.AuditInvitation, i.ID, i, err)
}

// DeleteInvitation withdraws an invitation.
func (tx *Tx) DeleteInvitation(ctx context.Context, userID, id int64) error {
	return tx.drop(ctx, userID, parley.AuditInvitation, id, invitationNotFound,
		"DELETE FROM invitations WHERE id = ? AND user_id = ? RETURNING email", id, userID)
}
