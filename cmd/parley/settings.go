package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"parley/internal/ai"
	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/channel"
	"parley/internal/egress"
	"parley/internal/oidc"
	"parley/internal/parley"
	"parley/internal/payment"
	"parley/internal/store"
)

// Settings are all settings; decisions 13 lists them. A setting without a default is off.
type Settings struct {
	Data      string     `default:"./data" help:"Directory of the database, uploads and generated keys."`
	Database  string     `help:"PostgreSQL URL (postgres://…). Embedded SQLite when absent."`
	Blob      string     `help:"Where uploads and recordings are stored: a directory, or s3://KEY:SECRET@BUCKET/PREFIX?endpoint=https://HOST&region=REGION (blobs in the data directory)."`
	SecretKey string     `help:"Key that encrypts secrets at rest: 16 characters or more, the same on all nodes. Generated in the data directory when absent."`
	Prices    string     `help:"Path of the prices and plans file (built-in defaults; 'parley prices' prints them)."`
	LogLevel  slog.Level `default:"info" help:"debug, info, warn or error."`
	LogFormat string     `default:"text" enum:"text,json" help:"Log format: text or json."`
	AccessLog string     `default:"off" enum:"on,off" help:"Log each HTTP request."`

	Roles             []string       `default:"api,calls" enum:"api,calls" help:"What this node does: api serves the API, the console, the widget and webhooks; calls takes, makes and holds calls and registers with trunks."`
	Listen            string         `default:"127.0.0.1:8080" help:"Address of the HTTP server."`
	PublicURL         string         `name:"public-url" help:"Public base URL of this server, such as https://voice.example.com (the address that the client used)."`
	TLSCert           string         `name:"tls-cert" help:"TLS certificate file. Enables HTTPS."`
	TLSKey            string         `name:"tls-key" help:"Private key file of the certificate."`
	TrustedProxies    []netip.Prefix `help:"Networks (CIDR) of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted."`
	EgressAllow       []netip.Prefix `help:"Private networks (CIDR) that tenants' URLs (tools, webhooks, websites) may reach."`
	UserEndpoints     string         `default:"public" enum:"off,public,private" help:"What accounts may set as endpoints of their own, a model, a voice, a recognizer or a program: none (off), those at public addresses, or those at private addresses too."`
	Signup            string         `default:"off" enum:"on,off" help:"Let anybody create an account with POST /api/register, on the trial plan until its first credit."`
	OIDCIssuer        string         `name:"oidc-issuer" help:"OpenID Connect issuer that signs people in to the console, such as https://accounts.example.com."`
	OIDCClientID      string         `name:"oidc-client-id" help:"Client id of this server at that issuer. Its redirect URI is PUBLIC_URL/signin/oidc/callback."`
	OIDCClientSecret  string         `name:"oidc-client-secret" help:"Client secret of this server at that issuer."`
	OIDCDomains       []string       `name:"oidc-domains" help:"Domains of the email addresses that may sign in that way (all)."`
	SessionFor        time.Duration  `default:"720h" help:"Lifetime of a sign-in session."`
	KeepConversations int            `help:"Days to keep conversations after the last message (0: forever)."`
	KeepRecordings    int            `help:"Days to keep recordings after the call (0: forever)."`
	KeepCalls         int            `help:"Days to keep calls and their transcripts (0: forever)."`
	KeepAudit         int            `default:"365" help:"Days to keep the audit log of who changed what (0: forever)."`
	SMTPURL           string         `name:"smtp-url" help:"Mail server for alerts and invitations: smtp://USER:PASSWORD@HOST:587 (STARTTLS) or smtps://…:465; ?tls=off for one on a trusted network. No e-mail when absent."`
	SMTPFrom          string         `name:"smtp-from" help:"Address that e-mail comes from, such as Parley <parley@example.com>."`
	Drain             time.Duration  `default:"1h" help:"How long a stopping server waits for live calls and requests. A second signal stops it at once."`

	SIPListen            string     `name:"sip-listen" default:"127.0.0.1:5060" help:"Listen address of SIP, UDP and TCP; off disables telephony."`
	SIPTLSListen         string     `name:"sip-tls-listen" default:"off" help:"Listen address of SIP over TLS, such as 0.0.0.0:5061; off for none."`
	SIPTLSCert           string     `name:"sip-tls-cert" help:"Certificate file of SIP over TLS (that of PARLEY_TLS_CERT)."`
	SIPTLSKey            string     `name:"sip-tls-key" help:"Private key file of that certificate (that of PARLEY_TLS_KEY)."`
	SIPTLSClientCA       string     `name:"sip-tls-client-ca" help:"File of certificate authorities (PEM). Clients of SIP over TLS must then present a certificate that one of them signed."`
	RTPPorts             string     `name:"rtp-ports" default:"10000-19999" help:"UDP port range for call audio (RTP)."`
	WebRTCListen         string     `name:"webrtc-listen" default:"127.0.0.1:8189" help:"Listen address for calls from browsers (WebRTC), UDP and TCP; off disables them."`
	TURN                 []string   `name:"turn" help:"Your own TURN servers for browsers that reach neither this server's WebRTC port nor its HTTPS port by TURN, such as turns:turn.example.com:443?transport=tcp; or off: the HTTPS port does not relay calls either."`
	TURNUser             string     `name:"turn-user" help:"User name at these servers, with a password."`
	TURNPassword         string     `name:"turn-password" help:"Password of that user: every browser that calls is told it."`
	TURNSecret           string     `name:"turn-secret" help:"Or the secret that these servers share with this one (coturn's static-auth-secret): each call gets a name that expires."`
	ExternalIP           netip.Addr `name:"external-ip" help:"Public IP to advertise to trunks and browsers when this server is behind NAT."`
	Softphone            string     `default:"on" enum:"on,off" help:"Let a softphone on this machine call assistants at sip:ASSISTANT_ID@HOST."`
	CarrierSIPAddress    string     `name:"carrier-sip-address" help:"SIP trunk of the carrier, host[:port], for calls from and to rented numbers."`
	CarrierSIPUsername   string     `name:"carrier-sip-username" help:"User name for the carrier's SIP trunk."`
	CarrierSIPPassword   string     `name:"carrier-sip-password" help:"Password for the carrier's SIP trunk."`
	CarrierSIPSign       string     `name:"carrier-sip-sign" default:"off" enum:"on,off" help:"Sign calls over the carrier's SIP trunk with the certificate of PARLEY_STIR_CERT."`
	CarrierSIPAllowedIPs []string   `name:"carrier-sip-allowed-ips" help:"Addresses and networks from which the carrier sends calls."`
	CallPrefixes         []string   `default:"US,CA,GB,IE,DE,AT,CH,FR,BE,NL,LU,DK,SE,NO,FI,ES,PT,IT,PL,CZ,AU,NZ,IL" help:"Allowed destinations of calls and text messages: countries (US), prefixes (+49; + allows all), and excluded prefixes (!+1900). Premium-rate and satellite numbers are never called."`
	CallDailySpend       string     `default:"50" help:"Maximum that an account's outgoing calls and text messages may cost per day (UTC), in USD; 0: no limit."`

	PublicDailySpend string `default:"20" help:"Maximum that visitors may cost an account per day (UTC), in USD, by the widget and by calls from browsers; 0: no limit."`

	SIPSession    int           `name:"sip-session" default:"1800" help:"SIP session timer in seconds (RFC 4028): a call whose session is not refreshed in time ends; 0 requests no timer."`
	RTPSource     string        `name:"rtp-source" default:"signalled" enum:"signalled,any" help:"Where a call's RTP may come from: signalled, only the addresses that its signalling names; any, any address, for unusual NATs."`
	MaxLate       time.Duration `name:"max-late" default:"60ms" help:"How late sound may be sent. While more than 1 % of it is later, new calls are refused (503); 0 refuses none."`
	Trunks        []string      `default:"all" help:"Who may create SIP trunks: all, none, or a list of plans and accounts (e-mail addresses)."`
	TrunkPrivate  string        `default:"on" enum:"on,off" help:"Trunks may use private addresses, such as a PBX in the local network."`
	TrunkNetworks string        `default:"24,48" help:"Shortest prefix of the networks that a trunk may accept calls from, for IPv4 and IPv6."`
	NumberProof   string        `default:"off" enum:"on,off" help:"on: calls to a trunk's number are answered only once its owner has proved that it is theirs, by the code of a text message (Numbers, Caller ID)."`
	TrunkCallerID string        `name:"trunk-caller-id" default:"any" enum:"any,verified" help:"Calls over a trunk may show its number: any; or only once its owner has verified it: verified (Numbers, Caller ID)."`

	STIRVerify    string `name:"stir-verify" default:"on" enum:"on,off" help:"Verify who calls by the Identity of calls over trunks (STIR/SHAKEN), with certificates that are fetched from where the calls say."`
	STIRRoots     string `name:"stir-roots" help:"File of the certificate authorities (PEM) whose certificates may sign calls, such as the STI-PA's list. Without it no caller counts as verified."`
	STIRClockSkew int    `name:"stir-clock-skew" default:"10" help:"By how many seconds the clocks of those who sign calls may differ from this server's, 0 to 300."`
	STIRCert      string `name:"stir-cert" help:"The https address at which others fetch the certificate that outgoing calls are signed with."`
	STIRKey       string `name:"stir-key" help:"Private key file of that certificate (PEM, P-256)."`

	MetricsToken  string `help:"Bearer token with which /metrics is read. Without it and PARLEY_METRICS_LISTEN, only this machine may read it, and not through a proxy."`
	MetricsListen string `help:"Listen address of its own for /metrics, such as 10.0.0.5:9100; it is then not on the server's own port."`

	ConnectionsPerAddress int `default:"500" help:"Maximum connections at once per client address (IPv6: per /64); trusted proxies have no limit. 0: no limit."`
	StreamsPerAddress     int `default:"100" help:"Maximum live event streams at once per client address; 0: no limit."`

	FallbackModels           []string      `help:"Models that take over, in this order, when an assistant's own fails or is late: VENDOR/MODEL (none)."`
	FallbackModelAfter       time.Duration `default:"2.5s" help:"How long a model may take until its first word before the next one is asked too."`
	FallbackVoices           []string      `help:"Text-to-speech providers that take over, in this order, when an assistant's own voice fails or is late, with a voice of the same language and, if possible, gender (none)."`
	FallbackVoiceAfter       time.Duration `default:"1s" help:"How long a voice may take until its first sound before the next one is asked too."`
	FallbackTranscribers     []string      `help:"Speech-to-text providers that take over, in this order, when an assistant's own transcriber fails or is late (none)."`
	FallbackTranscriberAfter time.Duration `default:"3s" help:"How long a transcriber may take to return the text before the next one is tried."`

	ThinkAhead      string `default:"off" enum:"on,off" help:"Begin replies in calls before the customer's turn is known to be over. Replies come sooner, and about one in eight is paid for in vain."`
	TurnDetectorURL string `name:"turn-detector-url" help:"URL of an external detector of the end of a customer's turn, such as http://127.0.0.1:9000/turn (the model in the program alone)."`
	TurnDetectorKey string `name:"turn-detector-key" help:"Key that it is sent as a bearer token (none)."`

	RateAPI      auth.Rate `name:"rate-api" default:"200/s" help:"API requests per key: N/s, N/min or off."`
	RateLogin    auth.Rate `default:"10/min" help:"Login attempts per address and email, in the API and the console together. Six times as many per address, and six times as many failed ones per account."`
	RateCreate   auth.Rate `default:"30/min" help:"New public conversations per address."`
	RateMessage  auth.Rate `default:"60/min" help:"Public messages per conversation."`
	RateReply    auth.Rate `default:"60/min" help:"generate-reply per key."`
	RateWhatsApp auth.Rate `name:"rate-whatsapp" default:"5/s" help:"WhatsApp messages sent per key."`
	RatePublic   string    `default:"on" enum:"on,off" help:"off turns RATE_CREATE and RATE_MESSAGE off."`

	Declared kong.Plugins `embed:""` // the settings of vendors and channels

	entered  *entered // secrets beside those of the settings
	vendors  []*ai.Vendor
	channels []*channel.Declaration

	TwilioAccountSID string `name:"twilio-account-sid" help:"Twilio account for numbers and SMS. Without it, the sandbox carrier is used."`
	TwilioAuthToken  string `name:"twilio-auth-token" help:"Auth token of the Twilio account; also used to verify its webhooks."`
	TwilioTrunkSID   string `name:"twilio-trunk-sid" help:"Elastic SIP Trunk (TK…) that rented numbers are attached to; its origination URI must be this server."`
	TwilioBaseURL    string `name:"twilio-base-url" help:"Base URL of Twilio's API (https://api.twilio.com)."`

	StripeSecretKey     string `help:"Secret key of the Stripe account with which users pay by card. Nobody can pay when absent."`
	StripeWebhookSecret string `help:"Signing secret (whsec_…) of Stripe's webhook endpoint PUBLIC_URL/webhooks/stripe. Without it, payments are found within ten minutes."`
	StripeBaseURL       string `name:"stripe-base-url" help:"Base URL of Stripe's API (https://api.stripe.com)."`
}

// settingsOf are the settings of a program with these vendors and channels.
func settingsOf(vendors []*ai.Vendor, channels []*channel.Declaration) Settings {
	s := Settings{entered: &entered{}, vendors: vendors, channels: channels}
	for _, v := range vendors {
		if v.Settings != nil {
			s.Declared = append(s.Declared, v.Settings)
		}
	}
	for _, c := range channels {
		if c.Settings != nil {
			s.Declared = append(s.Declared, c.Settings)
		}
	}
	return s
}

// secret is the key that encrypts at rest: the setting's, or one made once in the data directory.
func (s *Settings) secret() ([]byte, error) {
	text := s.SecretKey
	if text == "" {
		path := filepath.Join(s.Data, "secret.key")
		raw, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			raw, err = makeSecret(path)
		}
		if err != nil {
			return nil, fmt.Errorf("the data directory %s must be a directory that this user can write to; "+
				"choose another with --data or PARLEY_DATA: %w",
				s.Data, err)
		}
		text = strings.TrimSpace(string(raw))
	}
	if len(text) < 16 {
		return nil, errors.New("PARLEY_SECRET_KEY is too short: use 16 characters or more, such as the output of 'openssl rand -base64 32'")
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:], nil
}

// makeSecret writes a new key, or reads the one that another process has written meanwhile.
func makeSecret(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	raw := make([]byte, 32)
	rand.Read(raw)
	text := []byte(base64.StdEncoding.EncodeToString(raw) + "\n")
	tmp, err := os.CreateTemp(filepath.Dir(path), "secret-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, err
	}
	// A link, not a rename: the first of two processes wins, and the file is never seen half written.
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

// dbOptions say where the database is.
func (s *Settings) dbOptions() (store.Options, error) {
	secret, err := s.secret()
	info, _ := debug.ReadBuildInfo()
	return store.Options{Path: filepath.Join(s.Data, "parley.db"), Postgres: s.Database, Secret: secret, Version: release(version, info)}, err
}

// open opens the database for the operator, whom no rules bind, and brings its schema up to date.
func (s *Settings) open(ctx context.Context) (*store.DB, error) {
	return s.openUnder(ctx, store.Rules{}, 0)
}

// openUnder is open under rules, and waits for a PostgreSQL that does not answer yet.
func (s *Settings) openUnder(ctx context.Context, rules store.Rules, wait time.Duration) (*store.DB, error) {
	o, err := s.dbOptions()
	if err != nil {
		return nil, err
	}
	o.Rules, o.Wait = rules, wait
	db, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// issuer is the OpenID Connect issuer that signs people in, nil where there is none.
func (s *Settings) issuer(db *store.DB, guard *egress.Guard) (*oidc.Issuer, error) {
	return oidc.Open(db, guard, s.OIDCIssuer, s.OIDCClientID, s.OIDCClientSecret, s.OIDCDomains)
}

// payments is who takes payments by card, nil where nobody does.
func (s *Settings) payments(db *store.DB) (*payment.Till, error) {
	return payment.New(db, s.StripeSecretKey, s.StripeWebhookSecret, s.StripeBaseURL)
}

// publicBudget is what strangers may cost an account a day.
func (s *Settings) publicBudget() (parley.Money, error) {
	m, err := parley.ParseMoney(s.PublicDailySpend)
	if err != nil || m < 0 {
		return 0, fmt.Errorf("PARLEY_PUBLIC_DAILY_SPEND: %q is not an amount of USD such as 20; 0 sets no limit",
			s.PublicDailySpend)
	}
	return m, nil
}

func (s *Settings) prices() (*billing.Prices, error) { return billing.ReadPrices(s.Prices) }
