package number

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/internal/carrier"
	"parley/internal/parley"
	"parley/internal/store"
)

// Offer is a number that can be rented.
type Offer struct {
	PhoneNumber         string       `json:"phone_number"`
	Formatted           string       `json:"phone_number_formatted"`
	CountryCode         string       `json:"country_code"`
	Price               parley.Money `json:"price"` // a month
	StripePriceID       string       `json:"stripe_price_id"`
	AddressRequirements string       `json:"address_requirements" enum:"none,local,foreign,inventory"`
	SMSCapable          bool         `json:"sms_capable"`
}

const (
	maxOffers = 30
	offerFor  = 24 * time.Hour // how long a price that was shown is kept
)

// Search finds numbers in a country that contain some digits. The user may buy what it shows.
func (d *Pool) Search(ctx context.Context, userID int64, country, contains string) ([]Offer, error) {
	price, ok := d.Prices.Numbers[country]
	if !ok {
		return nil, fmt.Errorf("there is no price of numbers in %s", country)
	}
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Meter(ctx, userID, parley.Now(), parley.LimitNumberRate)
	})
	if err != nil {
		return nil, err
	}
	found, err := d.Carrier.Search(ctx, country, contains)
	if err != nil {
		return nil, fmt.Errorf("search numbers in %s: %w", country, err)
	}
	names := make([]string, len(found))
	for i, n := range found {
		names[i] = n.PhoneNumber
	}
	taken, err := d.DB.TakenNumbers(ctx, names)
	if err != nil {
		return nil, err
	}
	list, shown := []Offer{}, []parley.NumberOffer{}
	now := parley.Now()
	for _, n := range spread(found, taken) {
		list = append(list, Offer{n.PhoneNumber, parley.FormatPhone(n.PhoneNumber), n.CountryCode, price.Rent,
			price.StripePriceID, n.AddressRequirements, n.SMSCapable})
		shown = append(shown, parley.NumberOffer{PhoneNumber: n.PhoneNumber, CountryCode: n.CountryCode,
			SMSCapable: n.SMSCapable, Rent: price.Rent, CreatedAt: now})
	}
	return list, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.OfferNumbers(ctx, userID, shown, now.Add(-offerFor))
	})
}

// spread picks the numbers to show, from all over the list: a carrier lists them by kind and place.
func spread(found []carrier.Number, taken map[string]bool) (list []carrier.Number) {
	var free []carrier.Number
	seen := map[string]bool{}
	for _, n := range found {
		if !taken[n.PhoneNumber] && !seen[n.PhoneNumber] {
			free = append(free, n)
		}
		seen[n.PhoneNumber] = true
	}
	if len(free) <= maxOffers {
		return free
	}
	for i := range maxOffers {
		list = append(list, free[i*len(free)/maxOffers])
	}
	return list
}

// Buy rents a number for a user and charges the first month.
func (d *Pool) Buy(ctx context.Context, userID int64, number string) (*parley.Number, error) {
	ctx = context.WithoutCancel(ctx) // a buyer who leaves has bought all the same
	notAvailable := parley.Errorf(parley.Refused, "The phone number %s is not available. Search for numbers and choose one of those.", number)
	e164, ok := parley.NormalizePhone(number)
	if !ok {
		return nil, notAvailable
	}
	if err := d.lookUp(ctx, userID, e164); err != nil {
		return nil, err
	}
	o := &parley.NumberOrder{PhoneNumber: e164}
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		offer, err := tx.NumberOffer(ctx, userID, e164, parley.Now().Add(-offerFor))
		if store.IsNotFound(err) {
			return notAvailable
		}
		if err != nil {
			return err
		}
		o.CountryCode, o.SMSCapable, o.Rent = offer.CountryCode, offer.SMSCapable, offer.Rent
		if err := tx.CreateOrder(ctx, userID, o); err != nil {
			return err
		}
		return tx.Reserve(ctx, userID, orderReference(o.ID), o.Rent, parley.Now().Add(hold))
	})
	var e *parley.Error
	if errors.As(err, &e) && e.Kind == parley.Conflict { // another buys it at this moment
		return nil, notAvailable
	}
	if err != nil {
		return nil, err
	}
	n, err := d.finishOrder(ctx, o)
	if refused := carrier.Refusal(err); refused != nil {
		if refused.Taken {
			return nil, &parley.Undone{Err: notAvailable}
		}
		return nil, &parley.Undone{Err: &parley.Error{Kind: parley.Internal,
			Message: "Failed to purchase the phone number: " + refused.Message}}
	}
	return n, err
}

// lookUp asks the carrier for a number that the user was not shown, and so offers it, where it is for rent. A number
// that isn't is no error: the order finds that out.
func (d *Pool) lookUp(ctx context.Context, userID int64, e164 string) error {
	_, err := d.DB.NumberOffer(ctx, userID, e164, parley.Now().Add(-offerFor))
	if !store.IsNotFound(err) {
		return err
	}
	country := parley.PhoneCountry(e164)
	price, ok := d.Prices.Numbers[country]
	if !ok {
		return nil
	}
	const most = 10 // digits, of a search
	digits := strings.TrimPrefix(e164, "+")
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	found, err := d.Carrier.Search(ctx, country, digits[max(0, len(digits)-most):])
	if err != nil {
		return fmt.Errorf("look the number up: %w", err)
	}
	for _, n := range found {
		if n.PhoneNumber != e164 {
			continue
		}
		taken, err := d.DB.TakenNumbers(ctx, []string{e164})
		if err != nil || taken[e164] {
			return err
		}
		now := parley.Now()
		offer := []parley.NumberOffer{{PhoneNumber: e164, CountryCode: n.CountryCode, SMSCapable: n.SMSCapable,
			Rent: price.Rent, CreatedAt: now}}
		return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			return tx.OfferNumbers(ctx, userID, offer, now.Add(-offerFor))
		})
	}
	return nil
}

// lookUpTime is how long the carrier may take to say whether it has a number.
const lookUpTime = 30 * time.Second

// finishOrder has the carrier sell what was ordered, and makes it the user's or, when it is not to be had, ends the
// order. Where the outcome is not known the order is cancelled: what the carrier may have sold goes back.
func (d *Pool) finishOrder(ctx context.Context, o *parley.NumberOrder) (*parley.Number, error) {
	err := d.Carrier.Buy(ctx, o.PhoneNumber)
	if err == nil {
		var n *parley.Number
		if n, err = d.own(ctx, o); err == nil {
			return n, nil
		}
	}
	again := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Release(ctx, o.UserID, orderReference(o.ID)); err != nil {
			return err
		}
		if carrier.Refusal(err) != nil {
			_, err := tx.EndOrder(ctx, o.UserID, o.ID, false)
			return err
		}
		return tx.CancelOrder(ctx, o.UserID, o.ID)
	})
	if again != nil { // the sweep will, and buys what it can: the carrier's refusal is not the last word
		return nil, fmt.Errorf("end the order of %s: %w", o.PhoneNumber, errors.Join(again, errors.New(err.Error())))
	}
	return nil, err
}

// own makes what the carrier has sold the user's, and charges the first month, in the transaction that ends the order.
func (d *Pool) own(ctx context.Context, o *parley.NumberOrder) (*parley.Number, error) {
	var n *parley.Number
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		open, err := tx.EndOrder(ctx, o.UserID, o.ID, false)
		if err != nil {
			return err
		}
		if !open {
			return fmt.Errorf("the order of %s was ended by another", o.PhoneNumber)
		}
		tx.AfterCommit(d.trunksChanged) // one that has claimed the number is not used any more
		n = &parley.Number{PhoneNumber: o.PhoneNumber, CountryCode: o.CountryCode, Type: parley.NumberNormal,
			SMSCapable: o.SMSCapable, Rent: o.Rent, CreatedAt: parley.Now()}
		begins := n.CreatedAt
		n.PaidUntil = n.NextRent(begins)
		if err := tx.CreateNumber(ctx, o.UserID, n); err != nil {
			return err
		}
		if err := tx.Release(ctx, o.UserID, orderReference(o.ID)); err != nil {
			return err
		}
		_, err = tx.Post(ctx, o.UserID, rentEntry(n, begins))
		return err
	})
	return n, err
}

func rentEntry(n *parley.Number, from parley.Time) *parley.LedgerEntry {
	return &parley.LedgerEntry{Kind: parley.RentCharge, Amount: -n.Rent, Reference: rentReference(n.ID, from),
		Description: fmt.Sprintf("Phone number %s, a month from %s", n.PhoneNumber, from.Time().Format(time.DateOnly))}
}

// endOrder ends an order that nobody works on any more: one whose buyer was told of a failure is undone, one whose
// server died is finished.
func (d *Pool) endOrder(ctx context.Context, userID, id int64) error {
	o, err := d.DB.Order(ctx, userID, id)
	if err != nil || o == nil {
		return err
	}
	if !o.Cancelled {
		_, err := d.finishOrder(ctx, o)
		if carrier.Refusal(err) != nil {
			slog.WarnContext(ctx, "an order that a crash had cut off was refused", "number", o.PhoneNumber, "error",
				err)
			return nil
		}
		return err
	}
	if err := d.Carrier.Release(ctx, o.PhoneNumber); err != nil {
		return fmt.Errorf("give back %s: %w", o.PhoneNumber, err)
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.EndOrder(ctx, userID, id, true)
		return err
	})
}

// Rename gives a number a nickname, or (nil) none.
func (d *Pool) Rename(ctx context.Context, userID, id int64, nickname *string) (n *parley.Number, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = rename(ctx, tx, userID, id, nickname)
		return err
	})
	return n, err
}

func rename(ctx context.Context, tx *store.Tx, userID, id int64, nickname *string) (*parley.Number, error) {
	n, err := tx.NumberForUpdate(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	n.Nickname = nickname
	return n, tx.SaveNumber(ctx, userID, n)
}

// Give gives a number up: a rented one when its paid month ends, others at once.
func (d *Pool) Give(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.NumberForUpdate(ctx, userID, id)
		switch {
		case err != nil:
			return err
		case n.Type != parley.NumberNormal:
			tx.AfterCommit(d.trunksChanged)
			return tx.DeleteNumber(ctx, userID, id)
		case n.ReleasedAt != 0:
			return parley.Errorf(parley.Refused, "The phone number is already released; it is yours until %s.",
				n.PaidUntil.Time().Format(time.DateOnly))
		}
		n.ReleasedAt = parley.Now()
		return tx.SaveNumber(ctx, userID, n)
	})
}

// grace is how long a number is kept whose rent the balance doesn't cover. It sends nothing meanwhile.
const grace = 7 * 24 * time.Hour

// CollectRent charges the months that have begun by now, and gives back the numbers that were given up or whose rent
// stays unpaid.
func (d *Pool) CollectRent(ctx context.Context, now parley.Time) error {
	var failed []error
	for after := int64(0); ; {
		list, err := d.DB.NumbersDue(ctx, now, after, 100)
		if err != nil || len(list) == 0 {
			return errors.Join(append(failed, err)...)
		}
		for _, n := range list {
			after = n.ID
			if err := d.collect(ctx, n.UserID, n.ID, now); err != nil {
				failed = append(failed, fmt.Errorf("rent of number %d: %w", n.ID, err))
			}
		}
	}
}

// collect charges one number's months, each once, or gives it back.
func (d *Pool) collect(ctx context.Context, userID, id int64, now parley.Time) error {
	var n *parley.Number
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if n, err = tx.NumberForUpdate(ctx, userID, id); err != nil || n.ReleasedAt != 0 {
			return err
		}
		for n.PaidUntil <= now {
			_, err := tx.Post(ctx, userID, rentEntry(n, n.PaidUntil))
			if errors.Is(err, store.Insufficient) {
				break
			}
			if err != nil {
				return err
			}
			n.PaidUntil = n.NextRent(n.PaidUntil)
		}
		if n.PaidUntil <= now && now.Sub(n.PaidUntil) >= grace {
			n.ReleasedAt = now // a payment comes too late from here on: the carrier may not have it any more
		}
		return tx.SaveNumber(ctx, userID, n)
	})
	switch {
	case store.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case n.PaidUntil > now || n.ReleasedAt == 0:
		return nil
	}
	if err := d.Carrier.Release(ctx, n.PhoneNumber); err != nil {
		return fmt.Errorf("give back %s: %w", n.PhoneNumber, err)
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		err := tx.DeleteNumber(ctx, userID, id)
		if store.IsNotFound(err) {
			return nil
		}
		return err
	})
}
