package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const (
	campaignNotFound = "Campaign not found"
	campaignRuns     = "status = 'in-progress' AND " + alive
)

// Campaign is one of the user's campaigns.
func (q Query) Campaign(ctx context.Context, userID, id int64) (*parley.Campaign, error) {
	return q.campaign(ctx, q.q.NewSelect(), userID, id)
}

// CampaignForUpdate is Campaign, kept from others until the transaction ends.
func (tx *Tx) CampaignForUpdate(ctx context.Context, userID, id int64) (*parley.Campaign, error) {
	c, err := tx.campaign(ctx, tx.locked(tx.q.NewSelect()), userID, id)
	return c, tx.saw(parley.AuditCampaign, id, c, err)
}

func (q Query) campaign(ctx context.Context, s *bun.SelectQuery, userID, id int64) (*parley.Campaign, error) {
	list := make([]parley.Campaign, 0, 1)
	if err := s.Model(&list).Where("id = ? AND user_id = ?", id, userID).Where(alive).Scan(ctx); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, parley.Errorf(parley.NotFound, campaignNotFound)
	}
	return &list[0], q.addNumbers(ctx, list)
}

// Campaigns are all the user's campaigns, newest first.
func (q Query) Campaigns(ctx context.Context, userID int64) ([]parley.Campaign, error) {
	list := []parley.Campaign{}
	if err := q.q.NewSelect().Model(&list).Where("user_id = ?",
		userID).Where(alive).Order("id DESC").Scan(ctx); err != nil {
		return nil, err
	}
	return list, q.addNumbers(ctx, list)
}

// addNumbers fills in the numbers that some campaigns call from, in one query for all of them.
func (q Query) addNumbers(ctx context.Context, list []parley.Campaign) error {
	at := make(map[int64]*parley.Campaign, len(list))
	ids := make([]int64, len(list))
	for i := range list {
		c := &list[i]
		c.PhoneNumberIDs, at[c.ID], ids[i] = []int64{}, c, c.ID
	}
	if len(list) == 0 {
		return nil
	}
	var rows []struct{ CampaignID, NumberID int64 }
	err := q.q.NewRaw("SELECT campaign_id, number_id FROM campaign_numbers WHERE campaign_id IN (?) ORDER BY campaign_id, position",
		bun.List(ids)).Scan(ctx, &rows)
	for _, r := range rows {
		at[r.CampaignID].PhoneNumberIDs = append(at[r.CampaignID].PhoneNumberIDs, r.NumberID)
	}
	return err
}

// OwnNumbers says which of some ids are numbers of the user's.
func (q Query) OwnNumbers(ctx context.Context, userID int64, ids []int64) (map[int64]bool, error) {
	return q.owned(ctx, "numbers", userID, ids)
}

// CreateCampaign stores a new campaign, a draft.
func (tx *Tx) CreateCampaign(ctx context.Context, userID int64, c *parley.Campaign) error {
	if err := tx.room(ctx, userID, campaignLimit, 1); err != nil {
		return err
	}
	c.ID, c.UserID, c.Status, c.Failing, c.CreatedAt = 0, userID, parley.CampaignDraft, []int64{}, parley.Now()
	c.UpdatedAt = c.CreatedAt
	if _, err := tx.q.NewInsert().Model(c).Exec(ctx); err != nil {
		return err
	}
	return tx.note(userID, parley.AuditCreated, parley.AuditCampaign, c.ID, c, tx.keepNumbers(ctx, c))
}

// campaignSettings are the columns that a user decides on.
var campaignSettings = []string{"name", "assistant_id", "timezone", "max_calls_in_parallel",
	"mark_complete_when_no_leads", "allowed_hours_start_time",
	"allowed_hours_end_time", "allowed_days", "max_retries", "retry_interval", "retry_on_voicemail",
	"retry_on_goal_incomplete", "goal_completion_variable"}

// SaveCampaign stores what a user decides on.
func (tx *Tx) SaveCampaign(ctx context.Context, userID int64, c *parley.Campaign) error {
	c.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(c).Column(campaignSettings...).Column("updated_at").Where(
		"id = ? AND user_id = ?", c.ID, userID).Where(alive).Exec(ctx)
	if err := one(res, err, campaignNotFound); err != nil {
		return err
	}
	if _, err := tx.q.NewRaw("DELETE FROM campaign_numbers WHERE campaign_id = ?", c.ID).Exec(ctx); err != nil {
		return err
	}
	return tx.note(userID, parley.AuditChanged, parley.AuditCampaign, c.ID, c, tx.keepNumbers(ctx, c))
}

func (tx *Tx) keepNumbers(ctx context.Context, c *parley.Campaign) error {
	if len(c.PhoneNumberIDs) == 0 {
		return nil
	}
	type row struct {
		bun.BaseModel `bun:"campaign_numbers"`
		CampaignID    int64
		NumberID      int64
		Position      int
	}
	rows := make([]row, len(c.PhoneNumberIDs))
	for i, id := range c.PhoneNumberIDs {
		rows[i] = row{CampaignID: c.ID, NumberID: id, Position: i}
	}
	_, err := tx.q.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// SaveCampaignRun stores what the running of a campaign changes: its status, its pause, its counts.
func (tx *Tx) SaveCampaignRun(ctx context.Context, userID int64, c *parley.Campaign) error {
	c.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(c).Column("status", "paused_until", "pause_reason", "starts_at", "started_at",
		"completed_at", "updated_at", "failing", "pauses",
		"rotation", "answered", "voicemail", "busy", "no_answer", "failed", "canceled",
		"cost").Where("id = ? AND user_id = ?", c.ID, userID).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, parley.AuditCampaign, c.ID, c, one(res, err, campaignNotFound))
}

// DueCampaigns are campaigns of whatever users whose scheduled start has come, longest due first.
func (q Query) DueCampaigns(ctx context.Context, now parley.Time, limit int) (list []parley.Campaign, err error) {
	err = q.q.NewSelect().Model(&list).Column("id", "user_id").Where("starts_at > 0 AND starts_at <= ?", now).Where(alive).
		Order("starts_at").Limit(int64(limit)).Scan(ctx)
	return list, err
}

// DeleteCampaign hides a campaign: it calls nobody more. Its leads are removed by EmptyCampaigns; its calls stay.
func (tx *Tx) DeleteCampaign(ctx context.Context, userID, id int64) error {
	return tx.drop(ctx, userID, parley.AuditCampaign, id, campaignNotFound,
		"UPDATE campaigns SET deleted_at = ? WHERE id = ? AND user_id = ? AND "+alive+" RETURNING name", parley.Now(), id, userID)
}

// UntidyLeads says whether EmptyCampaigns or WatchedLeads have something to do.
func (q Query) UntidyLeads(ctx context.Context, now parley.Time) (untidy bool, err error) {
	err = q.q.NewRaw(`SELECT EXISTS (SELECT 1 FROM campaigns WHERE deleted_at > 0 AND NOT emptied)
		OR EXISTS (SELECT 1 FROM leads WHERE watch_at > 0 AND watch_at <= ?)`, now).Scan(ctx, &untidy)
	return untidy, err
}

// EmptyCampaigns removes at most limit leads of deleted campaigns, of whatever user, and says whether there may be
// more.
func (tx *Tx) EmptyCampaigns(ctx context.Context, limit int) (more bool, err error) {
	var ids []int64
	err = tx.q.NewRaw("SELECT id FROM campaigns WHERE deleted_at > 0 AND NOT emptied ORDER BY user_id, id LIMIT 1").Scan(ctx,
		&ids)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	removed, err :=
		some(tx.q.NewRaw("DELETE FROM leads WHERE id IN (SELECT id FROM leads WHERE campaign_id = ? LIMIT ?)", ids[0], limit).Exec(ctx))
	if err == nil && !removed {
		_, err = tx.q.NewRaw("UPDATE campaigns SET emptied = TRUE WHERE id = ?", ids[0]).Exec(ctx)
	}
	return true, err
}

// deletedCampaigns are those of the user's whose leads are still there, and hidden with them. There are hardly ever
// any.
func (q Query) deletedCampaigns(ctx context.Context, userID int64) (ids []int64, err error) {
	err = q.q.NewRaw("SELECT id FROM campaigns WHERE user_id = ? AND deleted_at > 0 AND NOT emptied",
		userID).Scan(ctx, &ids)
	return ids, err
}

// LeadCounts is how many leads a campaign of the user's has in each state.
func (q Query) LeadCounts(ctx context.Context, userID, id int64) (map[parley.LeadStatus]int64, error) {
	of, err := q.LeadCountsOf(ctx, userID, []int64{id})
	return of[id], err
}

// LeadCountsOf is LeadCounts of some of the user's campaigns.
func (q Query) LeadCountsOf(ctx context.Context, userID int64, ids []int64) (map[int64]map[parley.LeadStatus]int64,
	error) {
	of := map[int64]map[parley.LeadStatus]int64{}
	if len(ids) == 0 {
		return of, nil
	}
	var rows []struct {
		CampaignID int64
		Status     parley.LeadStatus
		N          int64
	}
	err := q.q.NewRaw(`SELECT campaign_id, status, count(*) AS n FROM leads WHERE campaign_id IN (SELECT id FROM campaigns WHERE user_id = ? AND id IN (?))
		GROUP BY campaign_id, status`, userID, bun.List(ids)).Scan(ctx, &rows)
	for _, r := range rows {
		if of[r.CampaignID] == nil {
			of[r.CampaignID] = map[parley.LeadStatus]int64{}
		}
		of[r.CampaignID][r.Status] = r.N
	}
	return of, err
}

// CampaignCalls are the live calls of a campaign of the user's, the newest first.
func (q Query) CampaignCalls(ctx context.Context, userID, id int64) (list []parley.Call, err error) {
	err = q.calls(&list).Where("c.campaign_id = ? AND c.user_id = ? AND c.ended_at = 0", id,
		userID).OrderExpr("c.id DESC").Scan(ctx)
	return list, err
}

// LeadsLeft says whether a campaign has leads that are still to be called, or being called.
func (q Query) LeadsLeft(ctx context.Context, campaignID int64) (left bool, err error) {
	err = q.q.NewRaw(`SELECT EXISTS (SELECT 1 FROM leads WHERE campaign_id = ? AND due_at > 0)
		OR EXISTS (SELECT 1 FROM leads WHERE campaign_id = ? AND status = 'processing')`, campaignID, campaignID).Scan(ctx, &left)
	return left, err
}

// CampaignState is a running campaign with all that decides whether it may call now. Nothing of it is counted in
// memory.
type CampaignState struct {
	parley.Campaign `bun:",extend"`

	Plan       string       // of its user
	Free       parley.Money // what the user can spend
	Scheduled  int          // leads that are claimed and not yet called
	Processing bool         // a lead is being called or evaluated
	Again      parley.Time  // when the first lead that is tried again can be claimed, 0 for none
	First      parley.Time  // and the first without an attempt
	Live       int          `bun:"-"` // its calls
}

// RunningCampaigns are the campaigns in progress, of all users or of some, with the users' live calls, whatever those
// are for.
func (q Query) RunningCampaigns(ctx context.Context, users ...int64) (list []CampaignState, live map[int64]int,
	err error) {
	now := parley.Now()
	s := q.q.NewSelect().Model(&list).ModelTableExpr("campaigns AS c").ColumnExpr("c.*, u.plan, u.balance AS free").
		ColumnExpr("(SELECT count(*) FROM leads WHERE campaign_id = c.id AND status = 'scheduled' AND due_at > ?) AS scheduled", now).
		ColumnExpr("EXISTS (SELECT 1 FROM leads WHERE campaign_id = c.id AND status = 'processing') AS processing").
		ColumnExpr("coalesce((SELECT due_at FROM leads WHERE campaign_id = c.id AND due_at > 0 AND NOT fresh ORDER BY due_at " +
			"LIMIT 1), 0) AS again").
		ColumnExpr("coalesce((SELECT due_at FROM leads WHERE campaign_id = c.id AND due_at > 0 AND fresh ORDER BY due_at LIMIT 1), 0) AS first").
		Join("JOIN users AS u ON u.id = c.user_id AND u.disabled_at = 0").
		Where("c.status = 'in-progress' AND c.deleted_at = 0").OrderExpr("c.id")
	if len(users) > 0 {
		s.Where("c.user_id IN (?)", bun.List(users))
	}
	if err := s.Scan(ctx); err != nil || len(list) == 0 {
		return nil, nil, err
	}
	live = map[int64]int{}
	byCampaign, err := q.liveCalls(ctx, users, live)
	if err != nil {
		return nil, nil, err
	}
	reserved, err := q.reserved(ctx, users, now)
	for i := range list {
		list[i].Live = byCampaign[list[i].ID]
		list[i].Free -= reserved[list[i].UserID]
	}
	return list, live, err
}

// reserved is what is set aside for some users, or for all.
func (q Query) reserved(ctx context.Context, users []int64, now parley.Time) (map[int64]parley.Money, error) {
	var rows []struct {
		UserID int64
		Amount parley.Money
	}
	s := q.q.NewSelect().TableExpr("reservations").ColumnExpr("user_id, sum(amount) AS amount").Where(
		"expires_at > ?", now).GroupExpr("user_id")
	if len(users) > 0 {
		s.Where("user_id IN (?)", bun.List(users))
	}
	err := s.Scan(ctx, &rows)
	of := make(map[int64]parley.Money, len(rows))
	for _, r := range rows {
		of[r.UserID] = r.Amount
	}
	return of, err
}

// LockCampaign is a campaign in progress, kept from others until the transaction ends; nil where it is in progress no
// more, or another has it just now.
func (tx *Tx) LockCampaign(ctx context.Context, id int64) (*parley.Campaign, error) {
	list := make([]parley.Campaign, 0, 1)
	s := tx.lock(tx.q.NewSelect().Model(&list).Where("id = ?", id).Where(campaignRuns), "UPDATE SKIP LOCKED")
	if err := s.Scan(ctx); err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], tx.addNumbers(ctx, list)
}

// LockRun is a campaign of the user's, in whatever state and without its numbers, kept from others until the
// transaction ends.
func (tx *Tx) LockRun(ctx context.Context, userID, id int64) (*parley.Campaign, error) {
	c := new(parley.Campaign)
	err := tx.locked(tx.q.NewSelect().Model(c).Where("id = ? AND user_id = ?", id, userID)).Scan(ctx)
	return c, notFound(err, campaignNotFound)
}

// CampaignLive is how many calls a campaign has, or is about to have, by the state of this transaction.
func (tx *Tx) CampaignLive(ctx context.Context, c *parley.Campaign, now parley.Time) (n int, err error) {
	if err = tx.q.NewRaw("SELECT count(*) FROM leads WHERE campaign_id = ? AND status = 'scheduled' AND due_at > ?",
		c.ID, now).Scan(ctx, &n); err != nil {
		return 0, err
	}
	live, err := tx.liveCalls(ctx, []int64{c.UserID}, map[int64]int{})
	return n + live[c.ID], err
}

// PauseCampaign keeps a campaign in progress from calling for a while, and says why. Pauses that grow are the
// breaker's (see parley.Campaign.Break); this one is for what the next try may find mended.
func (tx *Tx) PauseCampaign(ctx context.Context, userID, id int64, reason string, until parley.Time) error {
	_, err := tx.q.NewRaw("UPDATE campaigns SET paused_until = ?, pause_reason = ? WHERE id = ? AND user_id = ? "+
		"AND paused_until < ? AND "+campaignRuns,
		until, reason, id, userID, until).Exec(ctx)
	return err
}

// ResumeCampaign says that what a campaign paused for is mended. The breaker's pauses end otherwise.
func (tx *Tx) ResumeCampaign(ctx context.Context, userID, id int64) error {
	_, err := tx.q.NewRaw("UPDATE campaigns SET paused_until = 0, pause_reason = NULL WHERE id = ? AND user_id = ? "+
		"AND pauses = 0 AND pause_reason IS NOT NULL",
		id, userID).Exec(ctx)
	return err
}

// RotateCampaign counts calls that a campaign begins.
func (tx *Tx) RotateCampaign(ctx context.Context, id int64, calls int) error {
	_, err := tx.q.NewRaw("UPDATE campaigns SET rotation = rotation + ? WHERE id = ?", calls, id).Exec(ctx)
	return err
}

// liveCalls counts the live calls of some users, or of all, by campaign, and by user into byUser.
func (q Query) liveCalls(ctx context.Context, users []int64, byUser map[int64]int) (byCampaign map[int64]int,
	err error) {
	var rows []struct {
		UserID     int64
		CampaignID int64
		N          int
	}
	s := q.q.NewSelect().TableExpr("calls").ColumnExpr("user_id, coalesce(campaign_id, 0) AS campaign_id, count(*) AS n").
		Where("ended_at = 0").
		GroupExpr("user_id, campaign_id")
	if len(users) > 0 {
		s.Where("user_id IN (?)", bun.List(users))
	}
	err = s.Scan(ctx, &rows)
	byCampaign = make(map[int64]int, len(rows))
	for _, r := range rows {
		byUser[r.UserID] += r.N
		byCampaign[r.CampaignID] += r.N
	}
	return byCampaign, err
}

// CallExists says whether a call of the user's is still there.
func (q Query) CallExists(ctx context.Context, userID, id int64) (there bool, err error) {
	err = q.q.NewRaw("SELECT EXISTS (SELECT 1 FROM calls WHERE id = ? AND user_id = ?)", id, userID).Scan(ctx, &there)
	return there, err
}
