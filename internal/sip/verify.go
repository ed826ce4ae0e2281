package sip

import (
	"cmp"
	"strings"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
	"parley/internal/stir"
)

// verify finds out whether the caller may use the number that is shown: by the Identity headers of the call, and where
// they decide nothing by what the trunk's provider says. It takes a second at most.
func (in *Invite) verify() {
	if in.Trunk == nil {
		return
	}
	verdict := in.proved()
	if carrier := in.carrierSays(); carrier != nil {
		if verdict == nil || verdict.Result == parley.Unverified && carrier.Result != parley.Unverified {
			verdict = carrier
		} else {
			verdict.Carrier = carrier.Carrier
		}
	}
	if verdict != nil && in.Signalling.Withheld {
		verdict.CallerName, verdict.CardURL = "", ""
	}
	in.Signalling.Verification = verdict
	if verdict.Verified() && verdict.CallerName != "" && !in.Signalling.Withheld {
		in.Signalling.CallerName = verdict.CallerName
	}
}

// proved is what the Identity headers of the call prove; nil where nobody looks, or there are none.
func (in *Invite) proved() *parley.CallVerification {
	v := in.server.config.Verifier
	if v == nil {
		return nil
	}
	c := stir.Call{ID: in.req.CallID().Value(), From: in.named(in.shown, &in.req.From().Address)}
	for _, name := range []string{"Identity", "y"} {
		for _, h := range in.req.GetHeaders(name) {
			c.Identities = append(c.Identities, h.Value())
		}
	}
	if h := in.req.GetHeader("Date"); h != nil {
		c.Date = h.Value()
	}
	// To alone is no proof: the caller has written it, and may have the token of a call to there
	c.To = append(c.To, in.named(userOf(&in.req.Recipient), &in.req.Recipient), in.To)
	return v.Verify(in.ctx, c)
}

// named is somebody as tokens are compared with them: a number in full, or an address.
func (in *Invite) named(user string, at *sipgo.Uri) string {
	if n := in.called(user); n != "" && n[0] == '+' {
		return n
	}
	return "sip:" + user + "@" + at.Host
}

// carrierSays is what the trunk's provider says about the caller; nil for nothing, and for anybody else.
func (in *Invite) carrierSays() *parley.CallVerification {
	if !in.server.index.Load().from(in.Trunk, in.from) {
		return nil
	}
	if word := verstatOf(in.req); word != "" {
		return stir.Carrier(word)
	}
	for _, name := range stir.CarrierHeaders {
		if h := in.req.GetHeader(name); h != nil {
			return stir.Carrier(h.Value())
		}
	}
	return nil
}

// verstatOf is the parameter verstat of who calls (3GPP TS 24.229, section 7.2A.20): of the number or, as some write it, of
// the address or the header.
func verstatOf(req *sipgo.Request) string {
	who := parties(req, "P-Asserted-Identity")
	if from := req.From(); len(who) == 0 { // else it is the caller's own word
		who = append(who, party{uri: from.Address, params: from.Params})
	}
	for i := range who {
		for part := range strings.SplitSeq(cmp.Or(who[i].uri.User, who[i].uri.Raw()), ";") {
			if name, v, _ := strings.Cut(part, "="); strings.EqualFold(name, "verstat") && v != "" {
				return v
			}
		}
		for _, all := range []sipgo.HeaderParams{who[i].uri.UriParams, who[i].params} {
			if v, ok := all.Get("verstat"); ok && v != "" {
				return v
			}
		}
	}
	return ""
}
