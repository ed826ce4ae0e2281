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
	"strings"
	"time"

	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/catalog"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
)

// Settings are all settings; decisions 13 lists them. A setting without a default is off.
type Settings struct {
	Data      string     `default:"./data" help:"Data directory."`
	Database  string     `help:"postgres://… instead of the embedded SQLite."`
	Blob      string     `help:"Directory, or s3://KEY:SECRET@BUCKET/PREFIX?endpoint=https://HOST&region=REGION, for uploads and recordings (blobs in the data directory)."`
	SecretKey string     `help:"Encrypts secrets at rest; 16 characters or more, the same on all nodes. Made in the data directory when absent."`
	Prices    string     `help:"Path of a prices and plans file (embedded defaults; print them with 'parley prices')."`
	LogLevel  slog.Level `default:"info" help:"debug, info, warn or error."`

	Listen            string         `default:"127.0.0.1:8080" help:"Address of the HTTP server."`
	PublicURL         string         `name:"public-url" help:"What links to this server start with, such as https://voice.example.com (the address that a client used)."`
	TLSCert           string         `name:"tls-cert" help:"Certificate file; with it the server speaks HTTPS."`
	TLSKey            string         `name:"tls-key" help:"Key file of the certificate."`
	TrustedProxies    []netip.Prefix `help:"CIDRs of proxies whose X-Forwarded-For and -Proto are believed."`
	EgressAllow       []netip.Prefix `help:"CIDRs that tenants' URLs (tools, webhooks, websites) may reach although not public."`
	Signup            string         `default:"off" enum:"on,off" help:"POST /api/register makes accounts."`
	SessionFor        time.Duration  `default:"720h" help:"How long a session lives."`
	KeepConversations int            `help:"Days that conversations are kept after the last message (0: for ever)."`
	KeepRecordings    int            `help:"Days that recordings are kept after the call (0: for ever)."`
	KeepCalls         int            `help:"Days that calls, with what was said, are kept (0: for ever)."`
	Drain             time.Duration  `default:"1h" help:"How long a stopping server waits for what is live; a second signal cuts."`

	SIPListen            string     `name:"sip-listen" default:"127.0.0.1:5060" help:"Address of the telephone, for UDP and TCP; off for none."`
	RTPPorts             string     `name:"rtp-ports" default:"10000-19999" help:"UDP ports that the sound of calls comes and goes by."`
	WebRTCListen         string     `name:"webrtc-listen" default:"127.0.0.1:8189" help:"Address of calls from browsers, UDP; off for none."`
	ExternalIP           netip.Addr `name:"external-ip" help:"Address that trunks and browsers reach this server by, where a router stands between (NAT)."`
	Softphone            string     `default:"on" enum:"on,off" help:"A softphone on this machine reaches assistants at sip:ASSISTANT_ID@HOST."`
	CarrierSIPAddress    string     `name:"carrier-sip-address" help:"SIP trunk of the carrier, host[:port]: rented numbers call and are called over it."`
	CarrierSIPUsername   string     `name:"carrier-sip-username" help:"What it asks for."`
	CarrierSIPPassword   string     `name:"carrier-sip-password" help:"Likewise."`
	CarrierSIPAllowedIPs []string   `name:"carrier-sip-allowed-ips" help:"Addresses and networks that the carrier's calls come from."`
	CallPrefixes         []string   `default:"US,CA,GB,IE,DE,AT,CH,FR,BE,NL,LU,DK,SE,NO,FI,ES,PT,IT,PL,CZ,AU,NZ,IL" help:"Where calls may go: countries (US), prefixes (+49; + is everywhere), and prefixes that they may not (!+1900). Premium rate numbers and satellites are never called."`
	CallDailySpend       string     `default:"50" help:"USD that an account's outgoing calls may cost a day (UTC); 0: no limit."`

	RateAPI      auth.Rate `name:"rate-api" default:"200/s" help:"Requests per key: N/s, N/min or off."`
	RateLogin    auth.Rate `default:"10/min" help:"Login attempts per address and email; six times that per address."`
	RateCreate   auth.Rate `default:"30/min" help:"Public conversations made per address."`
	RateMessage  auth.Rate `default:"60/min" help:"Public messages per conversation."`
	RateReply    auth.Rate `default:"60/min" help:"generate-reply per key."`
	RateWhatsApp auth.Rate `name:"rate-whatsapp" default:"5/s" help:"WhatsApp messages sent per key."`
	RatePublic   string    `default:"on" enum:"on,off" help:"off turns RATE_CREATE and RATE_MESSAGE off."`

	OpenAIAPIKey         string        `name:"openai-api-key" help:"OpenAI, or any server that speaks its API."`
	OpenAIBaseURL        string        `name:"openai-base-url" help:"With /v1 (https://api.openai.com/v1)."`
	OpenAIChatModel      []string      `name:"openai-chat-model" help:"Chat models, comma-separated (gpt-4.1-mini)."`
	OpenAIEmbeddingModel string        `name:"openai-embedding-model" help:"Embedding model: documents are also found by meaning."`
	OpenAITTSModel       string        `name:"openai-tts-model" help:"Speech model."`
	OpenAISTTModel       string        `name:"openai-stt-model" help:"Transcription model."`
	OpenAIRealtimeModel  string        `name:"openai-realtime-model" help:"Realtime model."`
	OpenAIStall          time.Duration `name:"openai-stall" default:"30s" help:"How long the server may send nothing before it counts as gone."`

	TwilioAccountSID string `name:"twilio-account-sid" help:"Twilio account for numbers and SMS; without one the sandbox carrier serves."`
	TwilioAuthToken  string `name:"twilio-auth-token" help:"Its auth token; also proves that webhooks are Twilio's."`
	TwilioTrunkSID   string `name:"twilio-trunk-sid" help:"Elastic SIP Trunk (TK…) that bought numbers' calls go to: its origination is this server."`
	TwilioBaseURL    string `name:"twilio-base-url" help:"Where Twilio is (https://api.twilio.com)."`

	WhatsAppToken       string `name:"whatsapp-token" help:"Access token of a WhatsApp Business account; without one there are no senders."`
	WhatsAppBusinessID  string `name:"whatsapp-business-id" help:"The account's id."`
	WhatsAppAppSecret   string `name:"whatsapp-app-secret" help:"The app's secret, which proves that webhooks are Meta's."`
	WhatsAppVerifyToken string `name:"whatsapp-verify-token" help:"A word of yours that Meta repeats when the webhook is set up."`
	WhatsAppBaseURL     string `name:"whatsapp-base-url" help:"Where the Graph API is, with or without a version (https://graph.facebook.com)."`
}

// openAI says whether an OpenAI-compatible server is configured.
func (s *Settings) openAI() bool { return s.OpenAIAPIKey != "" || s.OpenAIBaseURL != "" }

// chatModels are the chat models that the OpenAI-compatible server is asked for.
func (s *Settings) chatModels() []string {
	switch {
	case !s.openAI():
		return nil
	case len(s.OpenAIChatModel) == 0:
		return []string{"gpt-4.1-mini"}
	}
	return s.OpenAIChatModel
}

// providers opens what these settings let the server think with.
func (s *Settings) providers() (*provider.Set, error) {
	c := provider.Config{TTSModel: s.OpenAITTSModel, STTModel: s.OpenAISTTModel}
	if s.openAI() {
		c.OpenAI = &openai.Config{BaseURL: s.OpenAIBaseURL, APIKey: s.OpenAIAPIKey, Stall: s.OpenAIStall}
	}
	return provider.Open(c)
}

// catalog is what these settings let assistants choose from.
func (s *Settings) catalog() *catalog.Catalog {
	c := catalog.Config{PublicURL: s.PublicURL}
	if s.openAI() {
		c.OpenAI = catalog.OpenAIModels{Chat: s.chatModels(), Realtime: s.OpenAIRealtimeModel, TTS: s.OpenAITTSModel, STT: s.OpenAISTTModel}
	}
	return catalog.New(c)
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
			return nil, fmt.Errorf("read the secret key: %w", err)
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
	return store.Options{Path: filepath.Join(s.Data, "parley.db"), Postgres: s.Database, Secret: secret}, err
}

// open opens the database and brings its schema up to date.
func (s *Settings) open(ctx context.Context) (*store.DB, error) {
	o, err := s.dbOptions()
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (s *Settings) prices() (*billing.Prices, error) { return billing.ReadPrices(s.Prices) }
