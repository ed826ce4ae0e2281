package number

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strconv"
	"time"

	"parley/internal/auth"
	"parley/internal/carrier"
	"parley/internal/parley"
	"parley/internal/store"
)

// codeFor is how long a verification code holds.
const codeFor = 10 * time.Minute

// codeRate is how many codes a user may have sent: ten an hour.
var codeRate = auth.Rate{PerSecond: 10.0 / 3600, Burst: 10}

// AskCallerID sends a code to a number that a user wants to show on outgoing calls. It costs what a text message
// there costs.
func (d *Pool) AskCallerID(ctx context.Context, userID int64, phone string) (*parley.CallerID, error) {
	ctx = context.WithoutCancel(ctx) // the code is sent and paid, even if its user leaves
	number, ok := parley.NormalizePhone(phone)
	if !ok {
		var f parley.Fields
		f.Add("phone_number", "must be a phone number in international format.")
		return nil, f.Err()
	}
	if _, err := d.codes.Take(strconv.FormatInt(userID, 10), time.Now()); err != nil {
		return nil, err
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return nil, err
	}
	if err := d.Limits.Allowed(number); err != nil {
		return nil, err
	}
	price := d.Prices.Segment(parley.PhoneCountry(number))
	c := &parley.CallerID{PhoneNumber: number, Code: fmt.Sprintf("%06d", n), ExpiresAt: parley.Now().Add(codeFor)}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if own, err := tx.ProvedNumber(ctx, userID, number); err != nil || own {
			return refuseOwn(err, number)
		}
		if err := d.Limits.Spend(ctx, tx, userID, price); err != nil {
			return err
		}
		if err := tx.AskCallerID(ctx, userID, c); err != nil {
			return err
		}
		return tx.Reserve(ctx, userID, codeReference(c.ID), price, c.ExpiresAt)
	})
	if err != nil {
		return nil, err
	}
	from, err := d.sender(ctx, userID)
	if err == nil {
		_, err = d.Carrier.Send(ctx, carrier.SMS{UserID: userID, Reference: codeReference(c.ID), From: from, To: number,
			Body: fmt.Sprintf("%s is your code to show this number on calls. It holds for 10 minutes. "+
				"If you did not ask for it, ignore it.", c.Code)})
	}
	if err == nil {
		return c, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Settle(ctx, userID, &parley.LedgerEntry{Kind: parley.SMSCharge, Amount: -price,
				Reference: codeReference(c.ID), Description: "Code to " + number})
			return err
		})
	}
	drop := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CorrectSpend(ctx, userID, c.CreatedAt, -price); err != nil {
			return err
		}
		return errors.Join(tx.DropCallerID(ctx, userID, c.ID), tx.Release(ctx, userID, codeReference(c.ID)))
	})
	if drop != nil {
		slog.ErrorContext(ctx, "forget a caller id", "error", drop) // it expires
	}
	if refused := carrier.Refusal(err); refused != nil {
		return nil, &parley.Undone{Err: &parley.Error{Kind: parley.Internal, Message: "Failed to send the code: " +
			refused.Message}}
	}
	return nil, fmt.Errorf("send the code of caller id %d: %w", c.ID, err)
}

// codeReference is what the carrier and the ledger call a code.
func codeReference(id int64) string { return "caller-id:" + strconv.FormatInt(id, 10) }

func refuseOwn(err error, number string) error {
	if err != nil {
		return err
	}
	return parley.Errorf(parley.Refused, "The phone number %s is already yours.", number)
}

// sender is a number of the user's that can send text messages; "" leaves the choice to the carrier.
func (d *Pool) sender(ctx context.Context, userID int64) (string, error) {
	list, err := d.DB.Numbers(ctx, userID)
	for _, n := range list {
		if n.SMSCapable && n.Subscribed(parley.Now()) {
			return n.PhoneNumber, nil
		}
	}
	return "", err
}

// VerifyCallerID makes a number a caller id of the user's when the code is right. A code may be guessed five times.
func (d *Pool) VerifyCallerID(ctx context.Context, userID, id int64, code string) (*parley.Number, error) {
	var wrong parley.Fields
	n := &parley.Number{Type: parley.NumberCallerID}
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		wrong = nil
		c, err := tx.CallerIDForUpdate(ctx, userID, id)
		switch {
		case err != nil:
			return err
		case c.ExpiresAt <= parley.Now():
			wrong.AddText("code", "The code has expired. Request a new one.")
			return nil
		case c.Tries >= parley.CallerIDTries:
			wrong.AddText("code", "The code was entered wrong too often. Request a new one.")
			return nil
		case subtle.ConstantTimeCompare([]byte(c.Code), []byte(code)) != 1:
			wrong.AddText("code", "The code is wrong.")
			return tx.CallerIDTried(ctx, userID, id) // committed: the answer is no error of the transaction
		}
		if own, err := tx.ProvedNumber(ctx, userID, c.PhoneNumber); err != nil || own {
			return refuseOwn(err, c.PhoneNumber)
		}
		n.PhoneNumber, n.CountryCode = c.PhoneNumber, parley.PhoneCountry(c.PhoneNumber)
		if err := tx.CreateNumber(ctx, userID, n); err != nil {
			return err
		}
		return tx.DropCallerID(ctx, userID, id)
	})
	if err == nil {
		err = wrong.Err()
	}
	return n, err
}
