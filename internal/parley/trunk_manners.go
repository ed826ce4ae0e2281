package parley

import (
	"strconv"
	"strings"
)

// TrunkManners is how a trunk's provider wants to be talked to.
type TrunkManners struct {
	SIPCallingFormat string   `bun:"sip_calling_format" json:"sip_calling_format" default:"+e164" enum:"+e164,e164,national" doc:"How numbers are written in what leaves: +4930901820, 4930901820, or as dialled in country_code."`
	Prefix           string   `json:"prefix" maxLength:"16" pattern:"^[0-9*#+]*$" must:"contain only digits and the characters * # +" doc:"Put before each number that is called."`
	FromUser         string   `json:"from_user" default:"number" maxLength:"64" pattern:"^[A-Za-z0-9_.!~*'()+-]+$" must:"be number, username, or a text of letters, digits and the characters - _ . ! ~ * ' ( ) +" doc:"Who From names: number, the calling number; username, sip_username; or this text."`
	AuthUsername     string   `bun:"auth_username" json:"auth_username" maxLength:"255" pattern:"^[^\\s\"<>]*$" must:"not contain spaces, quotes or angle brackets" doc:"The user name in answers to a challenge (digest), where the provider wants another one there than sip_username; empty: sip_username. Callers who prove the password give it, too."`
	EarlyMedia       string   `bun:"early_media" json:"early_media" default:"play" enum:"play,ignore" doc:"What somebody who waits while the trunk is called hears before the answer: play, the trunk's own sound (183), as soon as there is some; ignore, what this server plays."`
	FromDomain       *string  `json:"from_domain" maxLength:"253" doc:"The host in From, when registering too; by default that of sip_address."`
	ContactDomain    *string  `json:"contact_domain" maxLength:"253" doc:"The host in Contact; by default this server's address."`
	UserPhone        bool     `json:"user_phone" default:"false" doc:"Add user=phone to addresses that hold numbers."`
	IdentityHeader   string   `json:"identity_header" default:"pai" enum:"pai,ppi,rpid,none" doc:"Which header tells the calling number: P-Asserted-Identity, P-Preferred-Identity, Remote-Party-ID or none."`
	Privacy          string   `json:"privacy" default:"anonymous" enum:"anonymous,id" doc:"How a call hides its number: anonymous, From and Contact name nobody; id, From stays as from_user says. Both add Privacy: id."`
	CallerName       string   `bun:"caller_name" json:"caller_name" maxLength:"64" pattern:"^[^\"<>\\\\\\x00-\\x1f\\x7f]*$" must:"be one line without quotes, backslashes and angle brackets" doc:"The name that calls over the trunk show beside the number; empty: none. Many networks show the name that they know instead."`
	SignCalls        bool     `bun:"sign_calls" json:"sign_calls" default:"false" doc:"Sign calls over the trunk with the operator's certificate (STIR/SHAKEN; PARLEY_STIR_CERT): A where the number shown is proved to be yours (Numbers, Caller ID), B where it is the trunk's, C where it is a customer's. Without a certificate it changes nothing."`
	CalledNumberFrom []string `bun:"called_number_from,type:json" json:"called_number_from" maxItems:"4" uniqueItems:"true" enum:"request_uri,to,p-called-party-id,diversion" doc:"Where incoming calls name the number called, in the order to look; empty: the Request-URI, and To if that has no full number."`
	InboundHosts     []string `bun:"inbound_hosts,type:json" json:"inbound_hosts" maxItems:"20" maxLength:"253" doc:"Names whose addresses calls come from, beside allowed_inbound_ips; they are looked up again every minute."`
	RTPSource        *string  `bun:"rtp_source" json:"rtp_source" enum:"signalled,any" doc:"Where sound may come from: signalled, the addresses that the signalling names; any, any address, where no other comes. null: as this server does it (PARLEY_RTP_SOURCE)."`
	Options          bool     `json:"options" default:"true" doc:"false: the trunk is never sent OPTIONS, so its check tells less."`
	Preset           *string  `json:"preset" enum:"1und1,3cx,airtel,asterisk,avaya,bandwidth,cisco,easybell,exotel,freepbx,freeswitch,fritzbox,fusionpbx,mitel,ovh,plivo,sipgate,swisscom,teams,telekom,telnyx,twilio,voipms,vonage,whatsapp,zadarma" doc:"Whose trunk it is. Naming another one fills in the settings that its documents want, where neither this request nor an earlier one says otherwise (GET /user/phone-numbers/sip-trunks/presets)."`
}

// check adds what the fields' own rules can't see.
func (m *TrunkManners) check(f *Fields) {
	if m.FromUser == "" {
		m.FromUser = "number"
	}
	host := func(name string, s *string) {
		if s != nil && !f.Has(name) && !validHost(*s) {
			f.Add(name, "must be a host name or an IPv4 address, without a port.")
		}
	}
	host("from_domain", m.FromDomain)
	host("contact_domain", m.ContactDomain)
	for i := range m.InboundHosts {
		host("inbound_hosts."+strconv.Itoa(i), &m.InboundHosts[i])
	}
}

// validHost says whether s is a name or an IPv4 address, without a port.
func validHost(s string) bool { return !strings.ContainsAny(s, ":[]") && ValidHostPort(s) }
