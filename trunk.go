package parley

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// Trunk is a SIP trunk of the user's own: a PBX or a provider that calls come from and go to. It makes its number an owned number of
// type sip. Its password is not here: it is written, never read back (TrunkInput).
type Trunk struct {
	bun.BaseModel `bun:"trunks" json:"-"`

	ID                       int64    `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID                   int64    `json:"-"`
	PhoneNumberID            int64    `json:"phone_number_id" readOnly:"true"`
	Name                     string   `json:"name" required:"true" maxLength:"255"`
	PhoneNumber              string   `bun:",scanonly" json:"phone_number" required:"true" maxLength:"32" doc:"E.164; on no other trunk or number of this server."`
	SIPAddress               string   `bun:"sip_address" json:"sip_address" required:"true" maxLength:"255" doc:"host[:port]; private addresses are allowed."`
	SIPUsername              string   `bun:"sip_username" json:"sip_username" maxLength:"255" pattern:"^[^\\s\"<>]*$" must:"not contain spaces, quotes or angle brackets" doc:"Required with register."`
	Transport                string   `json:"transport" default:"udp" enum:"udp,tcp,tls"`
	SRTP                     string   `bun:"srtp" json:"srtp" default:"off" enum:"off,optional,required"`
	Register                 bool     `json:"register" default:"false" doc:"Register with the trunk, so that its calls find us."`
	Registered               bool     `bun:"-" json:"registered" readOnly:"true"`
	InboundAuthorizationType string   `json:"inbound_authorization_type" default:"auth" enum:"auth,ip" doc:"auth: callers prove that they know the password; ip: their address is enough."`
	AllowedInboundIPs        []string `bun:"allowed_inbound_ips,type:json" json:"allowed_inbound_ips" maxItems:"100" maxLength:"64" doc:"Addresses or networks (CIDR); required with ip."`
	OutboundProxy            *string  `json:"outbound_proxy" maxLength:"255" doc:"host[:port]"`
	CreatedAt                Time     `json:"created_at" readOnly:"true"`
	UpdatedAt                Time     `json:"updated_at" readOnly:"true"`

	Sealed []byte `bun:"sip_password" json:"-"` // the password as it is stored; empty for none
}

// TrunkInput is a trunk as it is written.
type TrunkInput struct {
	Trunk
	SIPPassword string `json:"sip_password" maxLength:"255" trim:"off" doc:"Kept encrypted, never shown."`
}

// Check adds what the fields' own rules can't see. password says whether the trunk has one.
func (t *Trunk) Check(password bool, f *Fields) {
	if n, ok := NormalizePhone(t.PhoneNumber); ok {
		t.PhoneNumber = n
	} else if !f.Has("phone_number") {
		f.Add("phone_number", "must be a phone number in international format.")
	}
	if !f.Has("sip_address") && !ValidHostPort(t.SIPAddress) {
		f.Add("sip_address", "must be a host name or IP address, with a port after a colon where it is not the usual one.")
	}
	if p := t.OutboundProxy; p != nil && !f.Has("outbound_proxy") && !ValidHostPort(*p) {
		f.Add("outbound_proxy", "must be a host name or IP address, with a port after a colon where it is not the usual one.")
	}
	if t.Register && t.SIPUsername == "" && !f.Has("sip_username") {
		f.Add("sip_username", "is required when register is true.")
	}
	if t.Register && !password && !f.Has("sip_password") {
		f.Add("sip_password", "is required when register is true.")
	}
	for i, text := range t.AllowedInboundIPs {
		if name := "allowed_inbound_ips." + strconv.Itoa(i); !f.Has(name) && !validNetwork(text) {
			f.Add(name, "must be an IP address or a network such as 192.0.2.0/24.")
		}
	}
	if t.InboundAuthorizationType == "ip" && len(t.AllowedInboundIPs) == 0 && !f.Has("allowed_inbound_ips") {
		f.Add("allowed_inbound_ips", "is required when inbound_authorization_type is ip.")
	}
}

var hostName = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?$`)

// ValidHostPort says whether s is host[:port]: a name, an IPv4 address or an IPv6 address (in brackets where a port follows).
func ValidHostPort(s string) bool {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Zone() == "" && !a.IsUnspecified()
	}
	host := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		port, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || port == 0 {
			return false
		}
		host = s[:i]
	}
	if inside, ok := strings.CutPrefix(host, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inside, "]"))
		return strings.HasSuffix(inside, "]") && err == nil && a.Is6() && a.Zone() == "" && !a.IsUnspecified()
	}
	if len(host) > 253 || !hostName.MatchString(host) {
		return false
	}
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	if strings.Trim(last, "0123456789.") == "" { // no name ends in digits alone: it is meant as an IPv4 address
		a, err := netip.ParseAddr(host)
		return err == nil && !a.IsUnspecified()
	}
	return true
}

func validNetwork(s string) bool {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Zone() == ""
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}
