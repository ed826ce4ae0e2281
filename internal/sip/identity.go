package sip

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
	"parley/internal/stir"
)

// Who calls, and what else an INVITE says of a call. A trunk is believed what it asserts (RFC 3325); a softphone is not.

const (
	maxDiversions = 10
	maxName       = 100 // characters
)

// party is somebody in a header: a name, an address, and parameters.
type party struct {
	name   string
	uri    sipgo.Uri
	params sipgo.HeaderParams
}

// parties are those in all headers of a name, in order. What can't be read is left out.
func parties(req *sipgo.Request, header string) (list []party) {
	for _, h := range req.GetHeaders(header) {
		for _, text := range splitList(h.Value()) {
			p := party{}
			name, err := sipgo.ParseAddressValue(text, &p.uri, &p.params)
			if err != nil || userOf(&p.uri) == "" {
				continue
			}
			p.name = name
			if list = append(list, p); len(list) > 2*maxDiversions {
				return list
			}
		}
	}
	return list
}

// splitList splits a header's value at the commas that are neither in quotes nor in angle brackets.
func splitList(value string) (list []string) {
	quoted, inside, from := false, false, 0
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			inside = true
		case c == '>':
			inside = false
		case c == ',' && !inside:
			list, from = append(list, strings.TrimSpace(value[from:i])), i+1
		}
	}
	return append(list, strings.TrimSpace(value[from:]))
}

// identify finds out who calls and how the call came here.
func (in *Invite) identify() {
	from := in.req.From()
	who := party{name: from.DisplayName, uri: *from.Address.Clone()}
	withheld := anonymous(&who.uri)
	if in.Trunk != nil {
		who, withheld = asserted(in.req, who, withheld)
		in.Signalling.Diversions = in.diversions()
	}
	in.Signalling.Headers = extensions(in.req)
	in.shown = userOf(&who.uri)
	if in.Signalling.Withheld = withheld; withheld {
		return
	}
	in.Signalling.CallInfo = callInfo(in.req)
	user := in.shown
	if strings.EqualFold(user, "unavailable") || strings.EqualFold(user, "anonymous") {
		return
	}
	in.From = in.called(user)
	in.Signalling.CallerName = shownName(who.name)
}

// called is a user part as a number, in the notation of the trunk's country too.
func (in *Invite) called(user string) string {
	if in.Trunk == nil {
		return number(user, "")
	}
	return numberIn(user, in.Trunk.Number, in.Trunk.Country)
}

// asserted is who calls by what a trunk asserts, and whether they want that kept from the person called (RFC 3323).
func asserted(req *sipgo.Request, who party, withheld bool) (party, bool) {
	if list := parties(req, "P-Asserted-Identity"); len(list) > 0 {
		if list[0].name == "" {
			list[0].name = who.name
		}
		who = list[0]
	} else if list := parties(req, "Remote-Party-ID"); len(list) > 0 {
		if role, ok := list[0].params.Get("party"); !ok || strings.EqualFold(role, "calling") {
			who = list[0]
			switch privacy, _ := who.params.Get("privacy"); strings.ToLower(privacy) {
			case "full", "uri", "yes":
				withheld = true
			}
		}
	}
	for _, h := range req.GetHeaders("Privacy") {
		for _, wish := range strings.FieldsFunc(h.Value(), func(c rune) bool { return c == ';' || c == ',' }) {
			switch strings.ToLower(strings.TrimSpace(wish)) {
			case "id", "user":
				return who, true
			}
		}
	}
	return who, withheld
}

// anonymous reports whether an address hides who it is.
func anonymous(u *sipgo.Uri) bool {
	return strings.EqualFold(userOf(u), "anonymous") || strings.EqualFold(u.Host, "anonymous.invalid")
}

// shownName is a display name as people read it.
func shownName(s string) string {
	s = parley.VisitorText(strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s), false)
	if strings.EqualFold(s, "anonymous") {
		return ""
	}
	return string([]rune(s)[:min(len([]rune(s)), maxName)])
}

// causes are what the reasons of History-Info are called in Diversion (RFC 7544, section 5).
var causes = map[string]string{"302": "unconditional", "404": "unknown", "408": "no-answer", "480": "deflection",
	"486": "user-busy", "487": "deflection", "503": "unavailable"}

// diversions are those who sent the call on, the last one first.
func (in *Invite) diversions() (list []parley.Diversion) {
	add := func(p *party, reason string) {
		d := parley.Diversion{Reason: parley.VisitorText(strings.Trim(reason, `"`), false)}
		hidden, _ := p.params.Get("privacy")
		if d.PhoneNumber = in.called(userOf(&p.uri)); anonymous(&p.uri) || hidden == "full" || hidden == "uri" {
			d.PhoneNumber = ""
		}
		if len(list) < maxDiversions && len(d.PhoneNumber)+len(d.Reason) <= 128 {
			list = append(list, d)
		}
	}
	told := parties(in.req, "Diversion") // RFC 5806: the last one comes first
	for i := range told {
		reason, _ := told[i].params.Get("reason")
		add(&told[i], reason)
	}
	if len(list) > 0 {
		return list
	}
	// RFC 7044: everybody who was called, in order. The last one is us, and each tells why the call came there.
	history := parties(in.req, "History-Info")
	for i := len(history) - 2; i >= 0; i-- {
		add(&history[i], whyLeft(&history[i], &history[i+1]))
	}
	return list
}

// whyLeft is why a call went on from one of its history to the next: as the next one's address says (RFC 4458), or as
// the first one's (RFC 7044, section 10.2).
func whyLeft(from, to *party) string {
	if cause, ok := to.uri.UriParams.Get("cause"); ok {
		return causes[cause]
	}
	reason, _ := from.uri.Headers.Get("Reason")
	for part := range strings.SplitSeq(unescape(reason), ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok && strings.EqualFold(name, "cause") {
			return causes[strings.TrimSpace(value)]
		}
	}
	return ""
}

// maxInfo is how many values of Call-Info are kept.
const maxInfo = 5

// callInfo is where an INVITE says that there is more about its caller (RFC 3261, section 20.9; RFC 9795).
func callInfo(req *sipgo.Request) (list []parley.CallInfo) {
	for _, h := range req.GetHeaders("Call-Info") {
		for _, one := range splitList(h.Value()) {
			uri, rest, ok := strings.Cut(strings.TrimPrefix(one, "<"), ">")
			if uri = parley.VisitorText(uri, false); !ok || len(list) == maxInfo || len(uri) > parley.MaxSIPValue ||
				strings.HasPrefix(uri, "data:") {
				continue
			}
			info := parley.CallInfo{URI: uri}
			for p := range strings.SplitSeq(rest, ";") {
				switch name, v, _ := strings.Cut(p, "="); strings.ToLower(strings.TrimSpace(name)) {
				case "purpose":
					info.Purpose = shownName(unquoted(v))
				case "call-reason":
					info.Reason = shownName(unquoted(v))
				}
			}
			list = append(list, info)
		}
	}
	return list
}

// extensions are an INVITE's X- headers. Too many, and too long ones, are left out.
func extensions(req *sipgo.Request) map[string]string {
	all := map[string]string{}
	for _, h := range req.Headers() {
		name := h.Name()
		if !parley.ValidSIPHeader(name) || len(all) == parley.MaxSIPHeaders || len(h.Value()) > parley.MaxSIPValue {
			continue
		}
		if _, twice := all[name]; !twice {
			all[name] = parley.VisitorText(h.Value(), false)
		}
	}
	return all
}

// dress adds to an INVITE what else it says. The network learns who calls, for it must know whom to charge.
func (d *Dialling) dress(invite *sipgo.Request, from sipgo.Uri) {
	d.identity(invite, from)
	if d.Withheld {
		invite.AppendHeader(sipgo.NewHeader("Privacy", "id"))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		if value := parley.VisitorText(d.Headers[name], false); parley.ValidSIPHeader(name) && value != "" {
			invite.AppendHeader(sipgo.NewHeader(name, value))
		}
	}
}

// signature returns what adds to an INVITE a proof of who calls (RFC 8224, section 4.1).
func (d *Dialling) signature(by *stir.Signer) func(*sipgo.Request) error {
	return func(invite *sipgo.Request) error {
		if by == nil || !d.Trunk.Sign || d.Attest == "" {
			return nil
		}
		name := d.Trunk.Name
		if d.Attest != "A" || d.Withheld { // nobody has checked whose it is, or nobody is to know
			name = ""
		}
		text, err := by.Sign(stir.Statement{From: d.From, To: d.To, Attest: d.Attest, Origin: d.Origin, Name: name})
		if err != nil || text == "" {
			return err
		}
		for _, name := range []string{"Date", "Identity"} {
			invite.RemoveHeader(name)
		}
		invite.AppendHeader(sipgo.NewHeader("Date", time.Now().UTC().Format(http.TimeFormat)))
		invite.AppendHeader(sipgo.NewHeader("Identity", text))
		return nil
	}
}

// nobody is who calls where that is withheld (RFC 3323, section 4.1.1.3).
var nobody = sipgo.Uri{Scheme: "sip", User: "anonymous", Host: "anonymous.invalid"}
