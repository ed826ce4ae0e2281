package number

import (
	"cmp"
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

// Lay lays what was sent over a trunk. sent says whether the password was among it: null and "" take it away.
type Lay func(t *parley.TrunkInput) (wrong parley.Fields, sent bool)

var errTrunks = parley.Errorf(parley.Forbidden,
	"Your account may not create SIP trunks on this server: ask its operator, who decides who may (PARLEY_TRUNKS).")

// CreateTrunk makes a trunk of a user's; t holds the defaults.
func (d *Pool) CreateTrunk(ctx context.Context, userID int64, t *parley.TrunkInput, lay Lay) error {
	if _, err := d.check(ctx, userID, t, false, lay); err != nil {
		return err
	}
	d.DB.SealPassword(&t.Trunk, t.SIPPassword)
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := notOthers(ctx, tx, userID, &t.Trunk); err != nil {
			return err
		}
		tx.AfterCommit(d.trunksChanged)
		return tx.CreateTrunk(ctx, userID, &t.Trunk)
	})
}

// ChangeTrunk changes one of a user's trunks.
func (d *Pool) ChangeTrunk(ctx context.Context, userID, id int64, lay Lay) (*parley.Trunk, error) {
	now, err := d.DB.Trunk(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	// Names are looked up before the transaction, for that takes a while.
	country, err := d.check(ctx, userID, &parley.TrunkInput{Trunk: *now}, len(now.Sealed) > 0, lay)
	if err != nil {
		return nil, err
	}
	var t *parley.TrunkInput
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		old, err := tx.TrunkForUpdate(ctx, userID, id)
		if err != nil {
			return err
		}
		t = &parley.TrunkInput{Trunk: *old}
		sent, err := d.laid(t, len(old.Sealed) > 0, country, lay)
		if err != nil {
			return err
		}
		if err := notOthers(ctx, tx, userID, &t.Trunk); err != nil {
			return err
		}
		if sent {
			tx.SealPassword(&t.Trunk, t.SIPPassword)
		}
		tx.AfterCommit(d.trunksChanged)
		return tx.SaveTrunk(ctx, userID, old, &t.Trunk)
	})
	if err != nil {
		return nil, err
	}
	return &t.Trunk, nil
}

// DeleteTrunk removes one of a user's trunks and its number.
func (d *Pool) DeleteTrunk(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(d.trunksChanged)
		return tx.DeleteTrunk(ctx, userID, id)
	})
}

// check says what is wrong with a trunk, by all that can be told without a transaction, and returns the account's country.
func (d *Pool) check(ctx context.Context, userID int64, t *parley.TrunkInput, password bool, lay Lay) (string, error) {
	u, err := d.DB.User(ctx, userID)
	if err != nil {
		return "", err
	}
	if !d.Trunks.May(u) {
		return "", errTrunks
	}
	if _, err := d.laid(t, password, u.Country, lay); err != nil || d.Place == nil {
		return u.Country, err
	}
	if err := d.Place(ctx, &t.Trunk); err != nil {
		var wrong parley.Fields
		field := "sip_address"
		if t.OutboundProxy.Address() != "" {
			field = "outbound_proxy"
		}
		wrong.AddText(field, err.Error())
		return "", wrong.Err()
	}
	return u.Country, nil
}

// laid lays what was sent over a trunk, and judges the whole by its own rules. A national number is read as it is dialled
// in the trunk's country, or else in the account's.
func (d *Pool) laid(t *parley.TrunkInput, password bool, country string, lay Lay) (sent bool, err error) {
	var wrong, why parley.Fields
	t.Lay(func() { wrong, sent = lay(t) })
	if !t.Extension() && t.PhoneNumber != "" {
		if n, err := parley.ReadPhone(t.PhoneNumber, cmp.Or(t.CountryCode, country)); err == nil {
			t.PhoneNumber = n
		} else if help := parley.PhoneHelp(err); help != "" {
			why.AddText("phone_number", help)
		}
	}
	for i, text := range t.Numbers {
		t.Numbers[i] = parley.ReadNumber(text, cmp.Or(t.CountryCode, country))
	}
	t.Check(t.SIPPassword != "" || !sent && password, &d.Trunks, &wrong)
	return sent, wrong.Explained(why).Err()
}

// notOthers refuses a user name, or an extension, that is somebody else's phone number: it would be a call's to them
// that a trunk answers to.
func notOthers(ctx context.Context, tx *store.Tx, userID int64, t *parley.Trunk) error {
	var wrong parley.Fields
	check := func(field, name, text string) error {
		others, err := tx.OthersNumber(ctx, userID, t.Meant(name))
		if err == nil && others {
			wrong.AddText(field, text)
		}
		return err
	}
	err := check("sip_username", t.SIPUsername, "The user name is somebody else's phone number on this server.")
	if err == nil && t.Extension() {
		err = check("phone_number", t.PhoneNumber, "The extension is somebody else's phone number on this server.")
	}
	if err != nil {
		return err
	}
	return wrong.Err()
}

func (d *Pool) trunksChanged() {
	if d.TrunksChanged != nil {
		d.TrunksChanged()
	}
}
