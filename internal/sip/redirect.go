package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

// A trunk may answer a call with other places where it should be tried (3xx, RFC 3261, section 8.1.3.4). They are tried
// one after the other, as far as the rules of destinations allow them.

const (
	maxPlaces    = 5  // that one call is sent on to
	maxSuggested = 16 // that are looked at in one answer
)

// elsewhere is where a call is sent on to.
type elsewhere struct {
	uri sipgo.Uri
	q   float64
}

// placesOf lists the places in an answer, those that the far end prefers first.
func placesOf(res *sipgo.Response) (list []elsewhere) {
	for _, h := range res.GetHeaders("Contact") {
		c, ok := h.(*sipgo.ContactHeader)
		if !ok || c.Address.Wildcard || len(list) == maxSuggested {
			continue
		}
		p := elsewhere{uri: *c.Address.Clone(), q: 1}
		if text, has := c.Params.Get("q"); has {
			if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v <= 1 {
				p.q = v
			}
		}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b elsewhere) int { return cmp.Compare(b.q, a.q) })
	return list
}

// onward is the places that a call of ours was sent on to.
type onward struct {
	list []sipgo.Uri
	seen []string // the call was there, or is to go there
}

// sentOn notes where a 3xx sends the call, and returns the error for when nobody is reached there.
func (a *attempt) sentOn(res *sipgo.Response) error {
	err := error(refusedBy(res))
	var barred string
	for _, p := range placesOf(res) {
		uri, bad := a.mayGo(&p.uri)
		if bad != nil {
			barred = cmp.Or(barred, p.uri.String()+": "+bad.Error())
			continue
		}
		if key := strings.ToLower(uri.String()); len(a.onward.seen) <= maxPlaces && !slices.Contains(a.onward.seen, key) {
			a.onward.seen = append(a.onward.seen, key)
			a.onward.list = append(a.onward.list, uri)
		}
	}
	if barred != "" && len(a.onward.list) == 0 {
		return because(err, "The trunk sent the call on to where it may not go (%d): %s.", res.StatusCode, barred)
	}
	return err
}

var errElsewhere = errors.New("it is another number, and calls over the carrier stay with the one that was called")

// mayGo reports whether the call may be sent on to an address, and what of it is used: the person, the host and the
// transport. Everything else in it would be the far end's, in a message of ours.
func (a *attempt) mayGo(u *sipgo.Uri) (to sipgo.Uri, err error) {
	t, user := a.leg.trunk, userOf(u)
	to = sipgo.Uri{Scheme: "sip", User: escape(user), Host: u.Host, Port: u.Port}
	switch {
	case u.Scheme == "tel":
		to.Host, to.Port, _ = hostPort(t.Address)
	case u.Scheme == "sips":
		to.Scheme = "sips"
		fallthrough
	case u.Scheme == "sip":
		if v, ok := u.UriParams.Get("transport"); ok {
			if _, known := wayOf(v); !known {
				return to, fmt.Errorf("transport %s is not spoken here", v)
			}
			to.UriParams.Add("transport", strings.ToLower(v))
		}
	default:
		return to, errors.New("it is no telephone")
	}
	if user == "" || to.Host == "" {
		return to, errors.New("it names nobody")
	}
	target := numberIn(user, t.Number, t.Country)
	switch e164 := strings.HasPrefix(target, "+"); {
	case t.Number == "" && target != a.called: // its price was agreed on
		return to, errElsewhere
	case a.may == nil:
		return to, errors.New("calls are not sent on here")
	case !e164:
		target = "sip:" + user + "@" + net.JoinHostPort(to.Host, strconv.Itoa(cmp.Or(to.Port, sipgo.DefaultUdpPort)))
	}
	return to, a.may(target)
}

// goOn turns the INVITE to the next place that the call was sent on to; it is false if there is none left.
func (a *attempt) goOn(ctx context.Context, from hop) (hop, bool) {
	for len(a.onward.list) > 0 && ctx.Err() == nil {
		uri := a.onward.list[0]
		a.onward.list = a.onward.list[1:]
		h, err := a.hopTo(ctx, &uri, from)
		if err != nil {
			continue
		}
		a.direct(uri, h)
		a.patience = 0
		if len(a.onward.list) > 0 {
			a.patience = a.leg.server.passing
		}
		for _, name := range []string{"Authorization", "Proxy-Authorization"} {
			for a.invite.RemoveHeader(name) {
			}
		}
		a.invite.CSeq().SeqNo = a.leg.number()
		return h, true
	}
	return hop{}, false
}

// direct has the INVITE go to an address.
func (a *attempt) direct(uri sipgo.Uri, h hop) {
	l := a.leg
	if host, port, _ := hostPort(l.trunk.Address); h.addr != a.home && (!strings.EqualFold(uri.Host, host) || uri.Port != port) {
		l.login = login{} // the trunk's password is nobody else's business
	}
	l.login.asked = nil // proofs are for one address: whoever asked before asks again
	l.mu.Lock()
	l.target, l.hop, l.forks = uri, h, nil
	l.mu.Unlock()
	l.contact = l.server.contactOf(l.trunk, l.contact.User, h)
	a.invite.Recipient = *uri.Clone()
	a.invite.RemoveHeader("Contact")
	a.invite.AppendHeader(&sipgo.ContactHeader{Address: *l.contact.Clone()})
}

// hopTo is where an address is reached: by way of the trunk's proxy if it has one, otherwise where a trunk may be. A
// trunk outside can't send a call into our own network, nor one inside out of it.
func (a *attempt) hopTo(ctx context.Context, u *sipgo.Uri, from hop) (hop, error) {
	l := a.leg
	s, t := l.server, l.trunk
	if t.Proxy != "" {
		return from, nil
	}
	w := from.way
	if v, ok := u.UriParams.Get("transport"); ok && w != overTLS { // what began encrypted stays so
		w, _ = wayOf(v)
	}
	if u.Scheme == "sips" {
		w = overTLS
	}
	at := strings.Trim(u.Host, "[]")
	if u.Port != 0 {
		at = net.JoinHostPort(at, strconv.Itoa(u.Port))
	}
	list, err := s.resolve(ctx, at, w)
	if err != nil {
		return hop{}, err
	}
	i := slices.IndexFunc(list, func(to netip.AddrPort) bool {
		return inside(to.Addr()) == inside(from.addr.Addr()) && s.allowed(t, to) == nil
	})
	if i < 0 {
		return hop{}, fmt.Errorf("%w: the call was sent on to %s, which is not allowed", parley.Unreachable, at)
	}
	return hop{list[i], w, strings.Trim(u.Host, "[]"), t.CA}, nil
}
