package parley

import "cmp"

// VendorSwitch is that another vendor did a part of a call from a moment on: the one before failed, or answers again.
type VendorSwitch struct {
	AtMS   int64  `json:"at_ms" doc:"Milliseconds since the answer."`
	Part   string `json:"part" enum:"model,voice,recognizer"`
	From   string `json:"from" doc:"The provider, with its model or voice."`
	To     string `json:"to"`
	Reason string `json:"reason" doc:"How the previous one failed, such as stalled or rate limited; empty when the first one answers again."`
}

// VendorUse is what a call used of a vendor. It is for the operator's eyes: what the account is charged is another matter.
type VendorUse struct {
	Part              string  `json:"part" enum:"model,voice,recognizer"`
	Vendor            string  `json:"vendor"`
	Model             string  `json:"model,omitempty"`
	OwnKey            bool    `json:"own_key,omitempty" doc:"It was used with the account's own key, and costs the operator nothing."`
	TokensIn          int64   `json:"tokens_in,omitempty" doc:"Including those that the provider had cached."`
	TokensCached      int64   `json:"tokens_cached,omitempty" doc:"The cached part of tokens_in."`
	TokensOut         int64   `json:"tokens_out,omitempty"`
	AudioTokensIn     int64   `json:"audio_tokens_in,omitempty" doc:"Audio tokens, including those that the provider had cached; not part of tokens_in."`
	AudioTokensCached int64   `json:"audio_tokens_cached,omitempty" doc:"The cached part of audio_tokens_in."`
	AudioTokensOut    int64   `json:"audio_tokens_out,omitempty"`
	SecondsHeard      float64 `json:"seconds_heard,omitempty"`
	CharactersSpoken  int64   `json:"characters_spoken,omitempty"`
	Cost              *Money  `json:"cost,omitempty" doc:"By the operator's prices at the time; absent if they have none."`
}

// VendorPrice is what an operator pays a vendor: USD a million tokens or characters, or a minute heard. What is nil
// costs nothing that is known.
type VendorPrice struct {
	Input, Cached, Output, AudioInput, AudioCached, AudioOutput *Money
	Characters                                                  *Money
	Minute                                                      *Money
}

// Price sets what a use costs.
func (u *VendorUse) Price(p VendorPrice) {
	var sum Money
	priced := false
	add := func(n int64, price *Money, per int64) {
		if price != nil && n > 0 {
			sum += price.MulRatio(n, per)
			priced = true
		}
	}
	const million = 1_000_000
	add(u.TokensIn-u.TokensCached, p.Input, million)
	add(u.TokensCached, cmp.Or(p.Cached, p.Input), million)
	add(u.TokensOut, p.Output, million)
	add(u.AudioTokensIn-u.AudioTokensCached, p.AudioInput, million)
	add(u.AudioTokensCached, cmp.Or(p.AudioCached, p.AudioInput), million)
	add(u.AudioTokensOut, p.AudioOutput, million)
	add(u.CharactersSpoken, p.Characters, million)
	add(int64(u.SecondsHeard*1000), p.Minute, 60_000)
	if u.Cost = nil; priced {
		u.Cost = &sum
	}
}
