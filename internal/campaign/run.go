package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/call"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	lease    = 30 * time.Second // of a claim: longer than a call takes to begin
	burst    = 64               // calls that one round begins, so that rounds stay short
	claimers = 8                // campaigns that are claimed from at a time
	scarce   = 2 * burst        // room below which users are weighed against each other, not looked at alone
	pauseFor = time.Minute      // until what kept a campaign from calling is tried again
)

// Runner has the leads of campaigns called. One Run at a time in a process; several processes share a database.
type Runner struct {
	*Roster
	Start func(context.Context, call.Order) (*parley.Call, error) // begins a call, or refuses it (see call.Center)
	// how many calls this process can begin now; nil for no bound
	Room func() int
	// how often what other processes did is looked for; nil is once a second
	Poll func() time.Duration
}

// Run calls the leads of running campaigns, of all users, until ctx ends. Then it claims nothing more, and what it
// has claimed and not called waits again; calls that are live are none of its concern.
func (d *Runner) Run(ctx context.Context) error {
	var all time.Time // when everything was last looked at
	for ctx.Err() == nil {
		users := d.toLookAt()
		room := d.room()
		if time.Since(all) >= d.poll() || room < scarce {
			users, all = nil, time.Now()
		}
		wait := d.poll()
		if users != nil && len(users) == 0 {
			wait = max(0, d.poll()-time.Since(all))
		} else {
			began, again, err := d.round(ctx, users, room)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				slog.Error("look at the campaigns", "error", err)
			case began >= burst:
				wait = 0
			default:
				wait = min(d.poll()-time.Since(all), time.Until(again))
			}
		}
		d.rest(ctx, wait)
	}
	err := d.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.GiveUpAll(ctx, d.node, parley.Now())
	})
	if err != nil {
		return fmt.Errorf("give up the leads that were claimed: %w", err)
	}
	return nil
}

// rest waits for a while, or until somebody's campaigns are to be looked at.
func (d *Runner) rest(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.wake:
	case <-ctx.Done():
	}
}

// toLookAt are the users whose campaigns somebody wants looked at.
func (d *Runner) toLookAt() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	users := slices.AppendSeq(make([]int64, 0, len(d.woken)), maps.Keys(d.woken))
	clear(d.woken)
	return users
}

func (d *Runner) poll() time.Duration {
	if d.Poll == nil {
		return time.Second
	}
	return d.Poll()
}

func (d *Runner) room() int {
	if d.Room == nil {
		return math.MaxInt
	}
	return d.Room()
}

// round looks at the campaigns of some users, or with nil at all, and has them do what they are to do now. began is
// how many calls it began, again when the next round is due though nothing happens.
func (d *Runner) round(ctx context.Context, users []int64, room int) (began int, again time.Time, err error) {
	if users == nil {
		if err := d.tidy(ctx); err != nil {
			return 0, again, fmt.Errorf("tidy the leads: %w", err)
		}
		if err := d.beginDue(ctx); err != nil {
			return 0, again, fmt.Errorf("look for scheduled starts: %w", err)
		}
	}
	states, live, err := d.DB.RunningCampaigns(ctx, users...)
	if err != nil {
		return 0, again, fmt.Errorf("read the running campaigns: %w", err)
	}
	// what rows say is by the database's clock, what is waited for by this process's own
	now, ours := parley.Now().Time(), time.Now()
	again = ours.Add(d.poll())
	list := make([]State, len(states))
	for i := range states {
		list[i] = d.state(&states[i])
		live[states[i].UserID] += states[i].Scheduled
	}
	var todo sync.WaitGroup
	var calls atomic.Int64
	slot := make(chan struct{}, claimers)
	for i, step := range Plan(now, list, live, min(room, burst)) {
		if at := ours.Add(step.Again.Sub(now)); !step.Again.IsZero() && at.Before(again) {
			again = at
		}
		if step.Calls == 0 && !step.Complete && !step.Broke {
			continue
		}
		slot <- struct{}{}
		todo.Go(func() {
			defer func() { <-slot }()
			n := 0
			err := crash.Run(func() (err error) { n, err = d.do(ctx, &states[i], step); return err })
			calls.Add(int64(n))
			if err != nil && ctx.Err() == nil {
				slog.Error("run a campaign", "campaign", step.ID, "user", step.User, "error", err)
			}
		})
	}
	todo.Wait()
	return int(calls.Load()), again, nil
}

// state is what the planner needs to know of a campaign.
func (d *Runner) state(c *store.CampaignState) State {
	plan := d.Prices.Plan(c.Plan)
	s := State{ID: c.ID, User: c.UserID, Hours: HoursOf(&c.Campaign),
		Limit: int(min(c.MaxCallsInParallel, int64(plan.ParallelCalls))), Account: plan.ParallelCalls,
		Live: c.Live + c.Scheduled, Paused: c.PausedUntil.Time(), Probing: c.Probing(), Broke: c.Free <= 0,
		Left: c.Processing || c.Again != 0 || c.First != 0, Ends: c.MarkCompleteWhenNoLeads}
	due := c.Again
	if due == 0 || c.First != 0 && c.First < due {
		due = c.First
	}
	s.Due = due.Time()
	return s
}

// do has a campaign do its step, and says how many calls it began.
func (d *Runner) do(ctx context.Context, c *store.CampaignState, step Step) (int, error) {
	switch {
	case step.Complete:
		return 0, d.complete(ctx, c.UserID, c.ID)
	case step.Broke:
		return 0, d.pause(ctx, c.UserID, c.ID, "The balance is used up.")
	}
	leads, numbers, err := d.claim(ctx, c.ID, step.Calls)
	if err != nil {
		return 0, fmt.Errorf("claim leads: %w", err)
	}
	var calls sync.WaitGroup
	var begun atomic.Int64
	for i := range leads {
		calls.Go(func() {
			ok := false
			err := crash.Run(func() (err error) { ok, err = d.dial(ctx, c, &leads[i], numbers[i]); return err })
			if err != nil {
				slog.Error("call a lead", "lead", leads[i].ID, "campaign", c.ID, "user", c.UserID, "error", err)
			}
			if ok {
				begun.Add(1)
			}
		})
	}
	calls.Wait()
	return int(begun.Load()), nil
}

// claim takes at most n leads of a campaign, and says which number each is called from; 0 is the assistant's own.
func (d *Runner) claim(ctx context.Context, id int64, n int) (leads []parley.Lead, numbers []int64, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		leads, numbers = nil, nil
		c, err := tx.LockCampaign(ctx, id)
		now := parley.Now()
		if err != nil || c == nil || c.PausedUntil > now {
			return err
		}
		live, err := tx.CampaignLive(ctx, c, now)
		if err != nil {
			return err
		}
		most := int(c.MaxCallsInParallel)
		if c.Probing() {
			most = 1
		}
		if n = min(n, most-live); n <= 0 {
			return nil
		}
		claimed, err := tx.ClaimLeads(ctx, id, n, d.node, now, now.Add(lease))
		if err != nil {
			return err
		}
		if leads, err = d.allowed(ctx, tx, c.UserID, claimed, now); err != nil {
			return err
		}
		numbers = make([]int64, len(leads))
		for i := range leads {
			if n := int64(len(c.PhoneNumberIDs)); n > 0 {
				numbers[i] = c.PhoneNumberIDs[(c.Rotation+int64(i))%n]
			}
		}
		return tx.RotateCampaign(ctx, id, len(leads))
	})
	return leads, numbers, err
}

// allowed are the claimed leads whose number is not on the blacklist; the others are called no more.
func (d *Runner) allowed(ctx context.Context, tx *store.Tx, userID int64, claimed []parley.Lead,
	now parley.Time) (leads []parley.Lead, err error) {
	var numbers []string
	for i := range claimed {
		numbers = append(numbers, claimed[i].Numbers()...)
	}
	on, err := tx.Blacklisted(ctx, userID, numbers)
	if err != nil || len(on) == 0 {
		return claimed, err
	}
	var blocked []int64
	for _, l := range claimed {
		was := l.Contact
		if !l.Reach(on) {
			blocked = append(blocked, l.ID)
			continue
		}
		if l.Contact != was {
			if err := tx.SaveLead(ctx, userID, &l); err != nil {
				return nil, err
			}
		}
		leads = append(leads, l)
	}
	return leads, tx.BlockLeads(ctx, blocked, now)
}

// errGone ends the making of a call whose lead is to be called no more.
var errGone = errors.New("the lead is to be called no more")

// dial has a claimed lead called, and says whether there is a call.
func (d *Runner) dial(ctx context.Context, c *store.CampaignState, l *parley.Lead, number int64) (bool, error) {
	phone, vars := l.Target()
	o := call.Order{UserID: l.UserID, AssistantID: c.AssistantID, To: phone, Variables: vars, NumberID: number,
		CampaignID: c.ID, LeadID: l.ID,
		Attempt: l.Serial + 1}
	o.Also = func(ctx context.Context, tx *store.Tx, made *parley.Call) error {
		now := parley.Now()
		ok, err := tx.DialLead(ctx, l, made.ID, now, now.Add(watch), func(fresh *parley.Campaign) bool {
			h := HoursOf(fresh)
			return h.Open(now.Time()) && fresh.AssistantID == o.AssistantID
		})
		if err == nil && !ok {
			err = errGone
		}
		return err
	}
	err := errGone
	if ctx.Err() == nil {
		_, err = d.Start(ctx, o)
	}
	if err != nil {
		return false, d.refused(context.WithoutCancel(ctx), c, l, err)
	}
	if c.PauseReason != nil && !c.Probing() { // what it waited for is mended
		err = d.DB.Write(ctx, func(ctx context.Context,
			tx *store.Tx) error {
			return tx.ResumeCampaign(ctx, c.UserID, c.ID)
		})
	}
	return true, err
}

// refusal is why a call was not begun, and what that means for the campaign.
type refusal struct {
	meaning
	reason string // for the campaign's user
}

type meaning int

const (
	gone  meaning = iota // the lead is to be called no more
	full                 // no line is free just now: the end of a call will tell
	pause                // the campaign can't call for now: no money, no number, no active assistant
	never                // this number is not called from here
)

// refusalOf says what an error of Start's means. ours is true for what the server's operator has to mend.
func refusalOf(err error) (r refusal, ours bool) {
	var e *parley.Error
	var barred *call.Barred
	switch {
	case errors.Is(err, errGone):
		return refusal{gone, ""}, false
	case errors.Is(err, call.ErrFull), errors.Is(err, call.ErrStopping), errors.Is(err, call.ErrBehind):
		return refusal{full, err.Error()}, false
	case errors.As(err, &barred):
		return refusal{never, err.Error()}, false
	case errors.Is(err, store.Insufficient):
		return refusal{pause, "The balance does not cover another call."}, false
	case errors.As(err, &e):
		return refusal{pause, e.Message}, false
	}
	return refusal{pause, "A failure of this server keeps the campaign from calling. Its operator can find it in the log."}, true
}

// refused has a lead wait again whose call was not begun, or gives it up. It returns why when that is ours to mend.
func (d *Runner) refused(ctx context.Context, c *store.CampaignState, l *parley.Lead, why error) error {
	r, ours := refusalOf(why)
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		now := parley.Now()
		if r.meaning == never {
			return d.neverCall(ctx, tx, l, now)
		}
		if err := tx.GiveUpLead(ctx, l, now); err != nil || r.meaning != pause {
			return err
		}
		return tx.PauseCampaign(ctx, c.UserID, c.ID, r.reason, now.Add(pauseFor))
	})
	if err != nil || !ours {
		return err
	}
	return why
}

// neverCall ends a lead whose number can't be called from here at all.
func (d *Runner) neverCall(ctx context.Context, tx *store.Tx, l *parley.Lead, now parley.Time) error {
	fresh, err := tx.LockLead(ctx, l.UserID, l.ID)
	if err != nil || fresh.Owner != l.Owner || fresh.Serial != l.Serial {
		return ignoreMissing(err)
	}
	failed := parley.OutcomeFailed
	fresh.Outcome = &failed
	to := parley.LeadExhaust
	if fresh.NextContact(parley.LeadExhausted) {
		to = parley.LeadGiveUp // and is called at its next number
	}
	if !fresh.Move(to, now) {
		return nil
	}
	return tx.SaveLead(ctx, l.UserID, fresh)
}

func ignoreMissing(err error) error {
	if store.IsNotFound(err) {
		return nil
	}
	return err
}

func (d *Runner) pause(ctx context.Context, userID, id int64, reason string) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.PauseCampaign(ctx, userID, id, reason, parley.Now().Add(pauseFor))
	})
}

// complete ends a campaign that has no lead left, and tells the account's endpoint.
func (d *Runner) complete(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.LockCampaign(ctx, id)
		if err != nil || c == nil || !c.MarkCompleteWhenNoLeads {
			return err
		}
		if left, err := tx.LeadsLeft(ctx, id); err != nil || left {
			return err
		}
		to, ok := parley.CampaignMoves[c.Status][parley.CampaignComplete]
		if !ok {
			return nil
		}
		c.Status, c.CompletedAt, c.PausedUntil, c.PauseReason, c.Failing, c.Pauses = to, parley.Now(), 0, nil,
			[]int64{}, 0
		if err := tx.SaveCampaignRun(ctx, userID, c); err != nil {
			return err
		}
		return d.tellCompleted(ctx, tx, c)
	})
}

func (d *Runner) tellCompleted(ctx context.Context, tx *store.Tx, c *parley.Campaign) error {
	u, err := tx.User(ctx, c.UserID)
	if err != nil || u.WebhookURL == "" {
		return err
	}
	leads, err := tx.LeadCounts(ctx, c.UserID, c.ID)
	if err != nil {
		return err
	}
	stats := c.Stats(leads)
	e := parley.CampaignCompleted{CampaignID: c.ID, Name: c.Name, Status: string(c.Status), Stats: stats.Map(),
		CompletedAt: c.CompletedAt}
	return tx.EnqueueDelivery(ctx, c.UserID, e.Delivery(u.WebhookURL))
}
