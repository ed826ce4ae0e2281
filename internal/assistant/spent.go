package assistant

import (
	"slices"
	"time"

	"parley/internal/ai"
	"parley/internal/parley"
)

// Uses adds what a tally counted to what was used of vendors before, with what it cost by the operator's prices.
func Uses(before []parley.VendorUse, t *ai.Tally,
	price func(vendor, model string) parley.VendorPrice) []parley.VendorUse {
	list := slices.Clone(before)
	for _, one := range t.Uses() {
		i := slices.IndexFunc(list, func(o parley.VendorUse) bool {
			return o.Part == string(one.Part) && o.Vendor == one.Vendor && o.Model == one.Model &&
				o.OwnKey == one.Own
		})
		if i < 0 {
			i = len(list)
			list = append(list, parley.VendorUse{Part: string(one.Part), Vendor: one.Vendor, Model: one.Model,
				OwnKey: one.Own})
		}
		u := &list[i]
		u.TokensIn += int64(one.In)
		u.TokensCached += int64(one.Cached)
		u.TokensOut += int64(one.Out)
		u.AudioTokensIn += int64(one.AudioIn)
		u.AudioTokensCached += int64(one.AudioCached)
		u.AudioTokensOut += int64(one.AudioOut)
		u.SecondsHeard += one.Heard.Round(10 * time.Millisecond).Seconds()
		u.CharactersSpoken += int64(one.Spoken)
		if !u.OwnKey {
			u.Price(price(u.Vendor, u.Model))
		}
	}
	return list
}

// SwitchOf is a switch of vendors as the record of a conversation shows it that began then; 0 for one that hasn't yet.
func SwitchOf(s ai.Switch, began parley.Time) parley.VendorSwitch {
	w := parley.VendorSwitch{Part: string(s.Part), From: s.From, To: s.To, Reason: string(s.Why)}
	if began != 0 {
		w.AtMS = max(s.At.Sub(began.Time()).Milliseconds(), 0)
	}
	return w
}
