package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// Somebody who is called into a live call is a leg with a row of its own. The most that it can cost is set aside in the
// transaction that makes the row, and its cost is charged in the one that ends it: by its call while that goes on, or
// together with it. A leg that has ended is not charged again.

// purposes say in the ledger what somebody was called for.
var purposes = map[parley.LegKind]string{parley.LegTransfer: "a transfer", parley.LegSupervisor: "a supervisor",
	parley.LegGuest: "a conference", parley.LegRing: "a number's telephones"}

func legReference(l *parley.CallLeg) string { return fmt.Sprintf("call:%d:leg:%d", l.CallID, l.ID) }

// target is the way to whoever a transfer names, by the rules that hold for all of the user's calls.
func (l *live) target(ctx context.Context, t *parley.AssistantTool) (Route, error) {
	id := t.OutboundPhoneID
	for _, other := range []*int64{l.call.NumberID, l.a.PhoneNumberID} {
		if id == nil {
			id = other
		}
	}
	if id == nil {
		return Route{}, parley.Errorf(parley.Invalid, "There is no phone number to call from: choose one of yours.")
	}
	r, err := l.line(ctx, l.a.UserID, *id)
	if err != nil {
		return r, err
	}
	to, number, ok := parley.TransferTarget(t.SupervisorPhone)
	switch {
	case !ok:
		return r, parley.Errorf(parley.Invalid, "%q is neither a phone number, an extension, nor a sip: address.",
			t.SupervisorPhone)
	case number != "" && !l.Destinations.Allow(number):
		return r, &Barred{to}
	case number != to && r.Trunk == nil:
		return r, parley.Errorf(parley.Invalid, "%s can only be reached over your own SIP trunk, and %s has none.", to,
			r.Number.PhoneNumber)
	case number != "":
		r.To = number
	default:
		user, host, sip := strings.Cut(strings.TrimPrefix(to, "sip:"), "@")
		if sip && host != r.Trunk.SIPAddress {
			return r, parley.Errorf(parley.Invalid, "%s is not at the trunk's own address.", to)
		}
		r.To = user
	}
	r.From = r.Number.PhoneNumber
	if t.CallerIDMode == "customer_number" && l.mayShow(r) {
		r.From = *l.call.CustomerPhone
	}
	return r, nil
}

// mayShow reports whether a leg may show the customer's number. Over a trunk that is its owner's business, unless the
// operator asks for verified numbers; over the operator's carrier the number must be one that the carrier itself has
// reached or reported.
func (l *live) mayShow(r Route) bool {
	if n := l.call.CustomerPhone; n == nil || !strings.HasPrefix(*n, "+") {
		return false
	}
	if r.Trunk != nil {
		return !l.Verified
	}
	return !l.house
}

// callIn stores a leg before it is dialled, or says why it may not be.
func (l *live) callIn(ctx context.Context, kind parley.LegKind, mode parley.LegMode, r Route) (*parley.CallLeg, error) {
	if l.call.Test {
		return nil, fmt.Errorf("%w: %w", parley.Unreachable, errTest)
	}
	leg := &parley.CallLeg{Kind: kind, Mode: mode, PhoneNumber: r.To, CallerID: r.From,
		Rate: l.carrierRate(parley.CallOutbound, &r.Number, r.To)}
	return leg, l.enroll(ctx, leg)
}

// enroll stores a leg that begins, and sets aside what it may cost.
func (l *live) enroll(ctx context.Context, leg *parley.CallLeg) error {
	leg.CallID, leg.Status, leg.MaxDuration = l.id, parley.LegDialing, l.a.MaxDuration
	leg.Reserved = leg.Possible()
	err := l.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		userID := l.a.UserID
		if err := tx.LockUser(ctx, userID); err != nil {
			return err
		}
		u, err := tx.User(ctx, userID)
		if err != nil {
			return err
		}
		if u.DisabledAt != 0 {
			return errDisabled
		}
		c, err := tx.CallForUpdate(ctx, l.id)
		if err != nil {
			return err
		}
		if c.EndedAt != 0 || c.Node != l.node {
			return parley.Canceled
		}
		now := parley.Now()
		if err := l.spend(ctx, tx, userID, leg.Reserved, now); err != nil {
			return err
		}
		if err := tx.CreateLeg(ctx, userID, leg); err != nil {
			return err
		}
		return tx.Reserve(ctx, userID, legReference(leg), leg.Reserved, now.Add(hold))
	})
	if err == nil {
		l.tellLeg(leg)
	}
	return err
}

// keepLeg stores how far a leg is, and tells those who follow the call.
func (l *live) keepLeg(leg *parley.CallLeg) {
	err := l.write(context.WithoutCancel(l.ctx), func(ctx context.Context, tx *store.Tx) error {
		return tx.KeepLeg(ctx, leg)
	})
	if err != nil { // it is stored with its end
		slog.ErrorContext(l.ctx, "store how far a leg is", "call", l.id, "leg", leg.ID, "error", err)
	}
	l.rememberLeg(leg)
	l.tellLeg(leg)
}

// rememberLeg keeps a leg as it stands, whether or not it could be stored.
func (l *live) rememberLeg(leg *parley.CallLeg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.legs[leg.ID] = *leg
}

func (l *live) tellLeg(leg *parley.CallLeg) {
	l.Hub.Tell(Topic(l.id), event.Event{Kind: Leg, Data: *leg})
}

// endLeg ends a leg while its call goes on. What can't be stored now is ended with the call.
func (l *live) endLeg(leg *parley.CallLeg, reason parley.EndedReason) {
	err := l.write(context.WithoutCancel(l.ctx), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.LockUser(ctx, l.a.UserID); err != nil {
			return err
		}
		return l.closeLeg(ctx, tx, leg, l.a.Name, reason, parley.Now())
	})
	if err != nil {
		slog.ErrorContext(l.ctx, "end a leg", "call", l.id, "leg", leg.ID, "error", err)
		leg.End(reason, parley.Now()) // if the transaction could not even begin
	}
	l.rememberLeg(leg)
	l.tellLeg(leg)
}

// closeLeg ends a leg and charges it, once.
func (d *Center) closeLeg(ctx context.Context, tx *store.Tx, leg *parley.CallLeg, who string,
	reason parley.EndedReason, at parley.Time) error {
	leg.End(reason, at)
	e := &parley.LedgerEntry{Kind: parley.CarrierCharge, Amount: -leg.Cost, Reference: legReference(leg),
		Description: fmt.Sprintf("Call of %s: %d min to %s for %s", who, leg.Minutes(), leg.PhoneNumber,
			purposes[leg.Kind])}
	if _, err := tx.Post(ctx, leg.UserID, e); errors.Is(err, store.Insufficient) {
		slog.Error("a leg can't be charged: the balance is gone", "call", leg.CallID, "leg", leg.ID, "amount", leg.Cost)
		leg.Cost = 0
	} else if err != nil {
		return err
	}
	ended, err := tx.EndLeg(ctx, leg)
	if err != nil || !ended {
		return err
	}
	if err := tx.Release(ctx, leg.UserID, legReference(leg)); err != nil {
		return err
	}
	return tx.CorrectSpend(ctx, leg.UserID, parley.Time(leg.CreatedAt), leg.Cost-leg.Reserved)
}

// closeLegs ends the legs of a call that ends, and adds up what all of them cost. What its process knows of a leg stands over
// the row, which may be behind.
func (d *Center) closeLegs(ctx context.Context, tx *store.Tx, c *parley.Call) error {
	legs, err := tx.CallLegs(ctx, c.UserID, c.ID)
	if err != nil {
		return err
	}
	var known map[int64]parley.CallLeg
	if l := d.here(c.ID); l != nil {
		l.mu.Lock()
		known = maps.Clone(l.legs)
		l.mu.Unlock()
	}
	c.LegCost = 0
	for _, leg := range legs {
		if leg.EndedAt == 0 {
			if mine, ok := known[leg.ID]; ok {
				leg = mine
			}
			reason, at := c.EndedReason, c.EndedAt
			if leg.EndedAt != 0 {
				reason, at = leg.EndedReason, min(leg.EndedAt, at)
			}
			if err := d.closeLeg(ctx, tx, &leg, c.AssistantName, reason, parley.Time(at)); err != nil {
				return err
			}
		}
		c.LegCost += leg.Cost
	}
	return nil
}
