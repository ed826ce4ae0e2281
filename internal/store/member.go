package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
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

// MembersByEmail are the members who sign in with an address (lower case), whoever's, also those who are disabled: one, or none.
func (q Query) MembersByEmail(ctx context.Context, email string) (list []parley.Member, err error) {
	err = q.q.NewSelect().Model(&list).Where("email = ?", email).Scan(ctx)
	return list, err
}

// CreateMember stores a new member.
func (tx *Tx) CreateMember(ctx context.Context, m *parley.Member) error {
	if err := tx.memberEmailFree(ctx, m); err != nil {
		return err
	}
	m.CreatedAt = parley.Now()
	m.UpdatedAt = m.CreatedAt
	_, err := tx.q.NewInsert().Model(m).Exec(ctx)
	return tx.note(m.UserID, parley.AuditCreated, parley.AuditMember, m.ID, m, emailOnce(err))
}

// SaveMember stores a changed member.
func (tx *Tx) SaveMember(ctx context.Context, m *parley.Member) error {
	if err := tx.memberEmailFree(ctx, m); err != nil {
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

// lockEmail has who takes the same address at the same time wait.
func (tx *Tx) lockEmail(ctx context.Context, email string) error {
	if tx.sqlite {
		return nil
	}
	_, err := tx.q.NewRaw("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", email).Exec(ctx)
	return err
}

// emailFree refuses an address to an account (0: a new one) where a member has proven that it is theirs. Among accounts an index does;
// but an account that has not proven an address gives it up to one that has.
func (tx *Tx) emailFree(ctx context.Context, email string, proven bool, userID int64) error {
	if err := tx.lockEmail(ctx, email); err != nil {
		return err
	}
	taken, err := tx.q.NewSelect().Table("members").Where("email = ? AND email_proven_at > 0", email).Exists(ctx)
	switch {
	case err != nil:
		return err
	case taken:
		return errEmailTaken
	case !proven:
		return nil
	}
	return tx.giveUpEmail(ctx, email, userID, 0)
}

// giveUpEmail takes an address from the account and the member who have it and have not proven it, unless these are userID and memberID.
func (tx *Tx) giveUpEmail(ctx context.Context, email string, userID, memberID int64) error {
	_, err := tx.q.NewRaw("UPDATE users SET email = 'unconfirmed-' || id || '@invalid' WHERE email = ? AND email_proven_at = 0 AND id <> ?",
		email, userID).Exec(ctx)
	if err == nil {
		_, err = tx.q.NewRaw("UPDATE members SET email = 'unconfirmed-member-' || id || '@invalid' WHERE email = ? "+
			"AND email_proven_at = 0 AND id <> ?",
			email, memberID).Exec(ctx)
	}
	return err
}

// memberEmailFree refuses an address that somebody else has proven, and that of the member's own account. A member who has not proven
// theirs gives it up to whoever does.
func (tx *Tx) memberEmailFree(ctx context.Context, m *parley.Member) error {
	if err := tx.lockEmail(ctx, m.Email); err != nil {
		return err
	}
	if m.EmailProvenAt > 0 {
		if err := tx.giveUpEmail(ctx, m.Email, m.UserID, m.ID); err != nil {
			return err
		}
	} else if m.ID != 0 { // who keeps an address keeps it, whoever has proven it since
		kept, err := tx.q.NewSelect().Table("members").Where("id = ? AND email = ?", m.ID, m.Email).Exists(ctx)
		if err != nil || kept {
			return err
		}
	}
	return tx.unproven(ctx, m.Email, m.UserID, m.ID)
}

// unproven refuses an address that somebody has proven, but for a member (0: none), and that of the account itself.
func (tx *Tx) unproven(ctx context.Context, email string, userID, memberID int64) error {
	var taken bool
	err := tx.q.NewRaw(`SELECT EXISTS (SELECT 1 FROM users WHERE email = ? AND (email_proven_at > 0 OR id = ?))
		OR EXISTS (SELECT 1 FROM members WHERE email = ? AND email_proven_at > 0 AND id <> ?)`, email, userID, email, memberID).Scan(ctx, &taken)
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
	if n >= parley.MaxMembers {
		return parley.Errorf(parley.Forbidden, "An account can have %d members and invitations. Remove those that you no longer need.",
			parley.MaxMembers)
	}
	if err := tx.unproven(ctx, i.Email, i.UserID, 0); err != nil {
		return err
	}
	joined, err := tx.q.NewSelect().Table("members").Where("user_id = ? AND email = ?", i.UserID, i.Email).Exists(ctx)
	if err != nil {
		return err
	}
	if joined {
		return errEmailTaken
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
