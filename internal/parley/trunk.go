package parley

import (
	"cmp"
	"crypto/x509"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
	"github.com/uptrace/bun"
)

// Trunk is a SIP trunk of the user's own: a PBX or a provider that calls come from and go to. It makes its number an
// owned number of type sip. Its password is not here: it is written, never read back (TrunkInput).
type Trunk struct {
	bun.BaseModel `bun:"trunks" json:"-"`

	ID                       int64         `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID                   int64         `json:"-"`
	PhoneNumberID            int64         `json:"phone_number_id" readOnly:"true"`
	Name                     string        `json:"name" maxLength:"255" doc:"By default the nickname, or the number."`
	Nickname                 *string       `json:"nickname" maxLength:"50"`
	PhoneNumber              string        `bun:",scanonly" json:"phone_number" required:"true" maxLength:"32" doc:"E.164, or as it is dialled in the trunk's country or your own; used by no other trunk or number of this server. If the carrier rents it out later, the trunk is no longer used. With sip_trunk_type extension: 1 to 15 characters, as the telephone system knows it."`
	SIPTrunkType             string        `bun:"sip_trunk_type" json:"sip_trunk_type" default:"number" enum:"number,extension" doc:"number: the trunk has a telephone number; extension: it is an extension of a telephone system."`
	Numbers                  []string      `bun:"numbers,type:json" json:"numbers" maxItems:"1000" maxLength:"64" doc:"Further numbers of the trunk, E.164, or ranges such as +4930901820-+4930901829 or, in short, +4930901820-29: each becomes one of your numbers, 1,000 in all."`
	CountryCode              string        `json:"country_code" maxLength:"2" doc:"ISO 3166-1 alpha-2: how numbers in national form are read and written; by default the number's country."`
	SIPAddress               string        `bun:"sip_address" json:"sip_address" required:"true" maxLength:"255" doc:"host[:port]; private addresses are allowed, unless the operator forbids them (PARLEY_TRUNK_PRIVATE). Not this server's own carrier."`
	SIPUsername              string        `bun:"sip_username" json:"sip_username" maxLength:"255" pattern:"^[^\\s\"<>]*$" must:"not contain spaces, quotes or angle brackets" doc:"Required with register. Not somebody else's phone number."`
	Transport                string        `json:"transport" default:"udp" enum:"udp,tcp,tls" doc:"tls: the trunk's certificate must be valid for the host of sip_address, or of outbound_proxy."`
	TLSCA                    string        `bun:"tls_ca" json:"tls_ca" maxLength:"65536" doc:"Certificates (PEM) of the authorities that signed the trunk's, or the trunk's own; empty: the system's authorities."`
	SRTP                     string        `bun:"srtp" json:"srtp" default:"off" enum:"off,optional,required,dtls" doc:"Encryption of sound. optional: SDES is offered; SDES and DTLS-SRTP are accepted. required: calls without encryption are refused, both ways. dtls: required, with DTLS-SRTP only."`
	Codecs                   []string      `bun:"codecs,type:json" json:"codecs" enum:"G722,PCMU,PCMA,opus" maxItems:"4" uniqueItems:"true" doc:"The codecs that calls over the trunk use, the preferred one first; empty: G722, PCMU and PCMA in outgoing calls, and as the trunk prefers in incoming ones, opus too."`
	Register                 bool          `json:"register" default:"false" doc:"Register with the trunk, to receive its calls."`
	Registered               bool          `bun:"-" json:"registered" readOnly:"true"`
	PasswordSet              bool          `bun:"-" json:"secret_set" readOnly:"true" doc:"Whether there is a sip_password."`
	InboundAuthorizationType string        `json:"inbound_authorization_type" default:"auth" enum:"auth,ip" doc:"auth: the trunk authenticates with the password; ip: its address is enough."`
	AllowedInboundIPs        []string      `bun:"allowed_inbound_ips,type:json" json:"allowed_inbound_ips" maxItems:"100" maxLength:"64" doc:"Addresses or networks (CIDR) of /24 or more bits, IPv6 /48 (PARLEY_TRUNK_NETWORKS); required with ip."`
	OutboundProxy            *ProxyAddress `bun:"-" json:"outbound_proxy" maxLength:"255" doc:"host[:port]; false for none. true is taken too and changes nothing: calls leave from this server's address anyway."`
	HideCallerID             bool          `bun:"hide_caller_id" json:"hide_caller_id" default:"false" doc:"Calls over the trunk hide the calling number, unless the call says otherwise; the trunk itself receives it."`
	// rendered when a call is made
	SIPHeaders map[string]string `bun:"sip_headers,type:json" json:"sip_headers" maxProperties:"20" doc:"X- headers that every call over the trunk sends; {{name}} stands for the call's variables."`
	TrunkManners
	CreatedAt Time `json:"created_at" readOnly:"true"`
	UpdatedAt Time `json:"updated_at" readOnly:"true"`

	// its number is rented from the carrier now, by whomever: the trunk is not used
	Rented bool    `bun:",scanonly" json:"-"`
	Sealed []byte  `bun:"sip_password" json:"-"`   // the password as it is stored; empty for none
	Proxy  *string `bun:"outbound_proxy" json:"-"` // OutboundProxy as it is stored
}

// For is the trunk as somebody with a role may see it: headers may hold tokens, and are for those who may change them.
func (t *Trunk) For(role Role) *Trunk {
	if role.Includes(RoleEditor) || len(t.SIPHeaders) == 0 {
		return t
	}
	b := *t
	b.SIPHeaders = make(map[string]string, len(t.SIPHeaders))
	for name := range t.SIPHeaders {
		b.SIPHeaders[name] = ""
	}
	return &b
}

// TrunkInput is a trunk as it is written.
type TrunkInput struct {
	Trunk
	SIPPassword string `json:"sip_password" maxLength:"255" trim:"off" doc:"Kept encrypted, never shown."`
}

// TrunkRules are what the operator of a server allows of trunks.
type TrunkRules struct {
	// who may make them: plans, and accounts by their e-mail address; everybody where there are none, or "all" is among them
	Makers     []string
	IPv4, IPv6 int    // of networks that calls are let in from, the least bits
	Carrier    string // host[:port] of the operator's own, where trunks must not point; "" for none
}

// May says whether a user may make trunks, and change them.
func (r *TrunkRules) May(u *User) bool {
	return len(r.Makers) == 0 || u.Among(r.Makers)
}

// Wide says whether a network is larger than one that calls may be let in from.
func (r *TrunkRules) Wide(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return p.Bits() < r.IPv4
	}
	return p.Bits() < r.IPv6
}

// carriers says whether host[:port] is the carrier's. On a machine's own address the port says whose it is.
func (r *TrunkRules) carriers(s string) bool {
	host, port := splitHost(s)
	carrier, at := splitHost(r.Carrier)
	a, err := netip.ParseAddr(host)
	own := host == "localhost" || err == nil && a.Unmap().IsLoopback()
	return r.Carrier != "" && host == carrier && (!own || port == at)
}

// splitHost is the host of host[:port] as names are compared, and the port.
func splitHost(s string) (host, port string) {
	if host, port = s, "5060"; strings.Count(s, ":") == 1 || strings.HasPrefix(s, "[") && !strings.HasSuffix(s, "]") {
		i := strings.LastIndexByte(s, ':')
		host, port = s[:i], s[i+1:]
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	}
	return host, port
}

// Check adds what the fields' own rules can't see. password says whether the trunk has one.
func (t *Trunk) Check(password bool, r *TrunkRules, f *Fields) {
	t.checkNumbers(f)
	t.TrunkManners.check(f)
	t.Complete()
	if !f.Has("sip_address") && !ValidHostPort(t.SIPAddress) {
		f.Add("sip_address", "must be a host name or IP address, with a port after a colon if it is not the usual one.")
	}
	if p := t.OutboundProxy.Address(); p != "" && !f.Has("outbound_proxy") && !ValidHostPort(p) {
		f.Add("outbound_proxy", "must be a host name or IP address, with a port after a colon if it is not the usual one.")
	}
	if !f.Has("sip_address") && r.carriers(t.SIPAddress) {
		f.AddText("sip_address", CarrierTrunk)
	}
	if p := t.OutboundProxy.Address(); p != "" && !f.Has("outbound_proxy") && r.carriers(p) {
		f.AddText("outbound_proxy", CarrierTrunk)
	}
	if t.TLSCA != "" && !f.Has("tls_ca") && !x509.NewCertPool().AppendCertsFromPEM([]byte(t.TLSCA)) {
		f.Add("tls_ca", "must hold certificates in PEM format.")
	}
	CheckSIPHeaders("sip_headers", t.SIPHeaders, f)
	if t.Register && t.SIPUsername == "" && !f.Has("sip_username") {
		f.Add("sip_username", "is required when register is true.")
	}
	if t.Register && !password && !f.Has("sip_password") {
		f.Add("sip_password", "is required when register is true.")
	}
	for i, text := range t.AllowedInboundIPs {
		name := "allowed_inbound_ips." + strconv.Itoa(i)
		if f.Has(name) {
			continue
		}
		if p, ok := ParseNetwork(text); !ok {
			f.Add(name, "must be an IP address or a network such as 192.0.2.0/24.")
		} else if r.Wide(p) {
			f.AddText(name, "The network "+text+" is too wide: use networks of /"+strconv.Itoa(r.IPv4)+
				" or narrower (IPv6: /"+strconv.Itoa(r.IPv6)+"), or single addresses.")
		}
	}
	if t.InboundAuthorizationType == "ip" && len(t.AllowedInboundIPs)+len(t.InboundHosts) == 0 && !f.Has("allowed_inbound_ips") {
		f.Add("allowed_inbound_ips", "is required when inbound_authorization_type is ip.")
	}
}

// CarrierTrunk is what is said of a trunk that points at the operator's own carrier.
const CarrierTrunk = "This is the address of this server's own carrier: rent a number to call over it, or use a provider of your own."

// Meant are the phone numbers that a name of the trunk's, its user name or its extension, may be read as, E.164.
func (t *Trunk) Meant(name string) (list []string) {
	user, _, _ := strings.Cut(name, "@")
	if n, err := phonenumbers.Parse(user, cmp.Or(t.CountryCode, PhoneCountry(t.PhoneNumber))); err == nil && phonenumbers.IsValidNumber(n) {
		list = append(list, phonenumbers.Format(n, phonenumbers.E164))
	}
	for _, s := range []string{user, "+" + user} {
		if n, ok := NormalizePhone(s); ok && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}
