// Package endpoint holds the endpoints of accounts: servers of their own that think, speak, listen or answer for their assistants.
// It makes, changes and tests them, and opens them as vendors.
package endpoint

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/crash"
	"parley/internal/egress"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/custom"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/gemini"
	"parley/internal/provider/openai"
	"parley/internal/store"
)

// Code is the vendor in records of what endpoints did.
const Code = "endpoint"

// protocols open a server by what it speaks.
var protocols = map[parley.EndpointProtocol]func(ai.Server) (*ai.Opened, error){
	parley.EndpointOpenAI:     openai.At,
	parley.EndpointAnthropic:  anthropic.At,
	parley.EndpointGemini:     gemini.At,
	parley.EndpointDeepgram:   deepgram.At,
	parley.EndpointElevenLabs: elevenlabs.At,
	parley.EndpointCartesia:   cartesia.At,
	parley.EndpointParley:     custom.At,
}

// Book has the endpoints of all accounts. It is safe for concurrent use. A nil Book has none.
type Book struct {
	db     *store.DB
	guard  *egress.Guard
	server *provider.Set
	reach  string
	hide   func(userID int64, secret string)

	ctx  context.Context // of what goes on in the background
	stop context.CancelFunc
	wait sync.WaitGroup

	mu   sync.Mutex
	open map[int64]*opened // by the endpoint
}

// opened is an endpoint that can be asked.
type opened struct {
	as     parley.Endpoint // as it was then
	set    *provider.Set
	vendor *ai.Opened
}

// maxOpen are kept; others are opened anew.
const maxOpen = 1000

// What accounts may set, by PARLEY_USER_ENDPOINTS.
const (
	Off     = "off"     // no endpoints
	Public  = "public"  // those at public addresses
	Private = "private" // those at private addresses too
)

// New makes a book of the endpoints that accounts may have by reach. Requests go out through the guard. server has the vendors
// of the server's settings; hide is told each secret and whose it is before it is used, so that no
// log shows it.
func New(db *store.DB, guard *egress.Guard, server *provider.Set, reach string, hide func(userID int64, secret string)) *Book {
	b := &Book{db: db, guard: guard, server: server, reach: reach, hide: hide, open: map[int64]*opened{}}
	if reach == Private {
		b.guard = guard.Private()
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// Close ends what goes on in the background. Endpoints are closed with the server's vendors.
func (b *Book) Close() {
	b.stop()
	b.wait.Wait()
	if b.reach == Private {
		b.guard.Close()
	}
}

// warmTime is how long it may take to connect an endpoint before it is needed.
const warmTime = 10 * time.Second

// Background does something for endpoints that nobody waits for.
func (b *Book) Background(do func(ctx context.Context)) {
	crash.Go(&b.wait, func() {
		ctx, cancel := context.WithTimeout(b.ctx, warmTime)
		defer cancel()
		do(ctx)
	}, crash.Log("the connection to an endpoint"))
}

var errOff = parley.Errorf(parley.Forbidden,
	"Accounts have no endpoints of their own on this server: its operator can let them (PARLEY_USER_ENDPOINTS).")

// May says whether accounts may use endpoints of their own.
func (b *Book) May() bool { return b != nil && b.reach != Off }

// Create makes an endpoint from the fields of a request body. The error names every field that fails.
func (b *Book) Create(ctx context.Context, userID int64, body map[string]any) (*parley.Endpoint, error) {
	if !b.May() {
		return nil, errOff
	}
	e := &parley.Endpoint{}
	form.Defaults(e)
	if err := lay(body, e, true); err != nil {
		return nil, err
	}
	return e, b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateEndpoint(ctx, userID, e) })
}

// Change changes the fields that body names; the whole must be valid afterwards. Conversations that are under way go on
// with the endpoint as it was. A body that changes nothing writes nothing.
func (b *Book) Change(ctx context.Context, userID, id int64, body map[string]any) (e *parley.Endpoint, err error) {
	if !b.May() {
		return nil, errOff
	}
	err = b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if e, err = tx.EndpointForUpdate(ctx, userID, id); err != nil {
			return err
		}
		old := *e
		if err := lay(body, e, false); err != nil || reflect.DeepEqual(old, *e) {
			return err
		}
		return tx.SaveEndpoint(ctx, userID, e)
	})
	return e, err
}

// Delete removes an endpoint, and takes it from its assistants.
func (b *Book) Delete(ctx context.Context, userID, id int64) error {
	err := b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteEndpoint(ctx, userID, id) })
	if err == nil {
		b.mu.Lock()
		delete(b.open, id)
		b.mu.Unlock()
	}
	return err
}

// lay lays a body over an endpoint. Secrets that are sent empty, as they are shown, stay as they were, unless the endpoint is
// at another server now: they go to the one that they were entered for.
func lay(body map[string]any, e *parley.Endpoint, whole bool) error {
	old := *e
	fields := form.Bind(body, e, whole)
	key, _ := body["api_key"].(string)
	_, cleared := body["api_key"]
	cleared = cleared && body["api_key"] == nil
	switch {
	case !sameHost(old.URL, e.URL):
		e.Key = key
	case key == "" && !cleared:
		e.Key = old.Key
	}
	_, sent := body["headers"]
	e.Headers, e.Voices = slices.Clone(e.Headers), slices.Clone(e.Voices) // those that were there are compared with them
	for i := range e.Headers {
		h := &e.Headers[i]
		at := slices.IndexFunc(old.Headers, func(o parley.ToolHeader) bool { return o.Name == h.Name })
		switch {
		case !sent && !sameHost(old.URL, e.URL):
			h.Value = ""
		case sent && h.Value == "" && at >= 0 && sameHost(old.URL, e.URL):
			h.Value = old.Headers[at].Value
		}
	}
	for i := range e.Voices {
		v := &e.Voices[i]
		if v.Language = strings.ToLower(v.Language); v.Language != "" && catalog.LanguageID(v.Language) == 0 {
			fields.Add("voices."+strconv.Itoa(i)+".language",
				"must be the ISO 639-1 code of a language that assistants speak, such as en, or empty for every language.")
		}
	}
	e.Check(&fields)
	return fields.Err()
}

// Vendors are an endpoint as a vendor, by which it is asked. The errors are *ai.Error.
type Vendors struct {
	Endpoint *parley.Endpoint
	set      *provider.Set
	vendor   *ai.Opened
}

// Open is an endpoint that can be asked, without contacting it.
func (b *Book) Open(e *parley.Endpoint) (*Vendors, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.open[e.ID]
	if o == nil || !sameServer(&o.as, e) {
		var err error
		if o, err = b.make(e); err != nil {
			return nil, &ai.Error{Kind: ai.Config, Err: err}
		}
		if len(b.open) >= maxOpen {
			b.open = map[int64]*opened{}
		}
		b.open[e.ID] = o
	}
	return &Vendors{e, o.set, o.vendor}, nil
}

// make opens an endpoint.
func (b *Book) make(e *parley.Endpoint) (*opened, error) {
	for _, secret := range credentials(e) {
		b.hide(e.UserID, secret)
	}
	vendor, err := protocols[e.Protocol](ai.Server{URL: e.URL, Key: e.Key, Model: e.Model, Transport: b.door(e)})
	if err != nil {
		return nil, err
	}
	own, yes := parley.Provider{Code: Code, Name: e.Name}, func() bool { return true }
	inner := *vendor
	if vendor.Model != nil {
		inner.Model = func(string) ai.Model { return vendor.Model(e.Model) }
	}
	v := &ai.Vendor{Code: Code, Name: e.Name, Endpoint: true, Open: func() (*ai.Opened, error) { return &inner, nil }}
	switch e.Kind {
	case parley.EndpointLLM, parley.EndpointAgent:
		v.Models = func() []parley.Model { return []parley.Model{{Kind: parley.LLM, Code: e.Name, Name: e.Name}} }
	case parley.EndpointTTS:
		v.Speakers = []ai.Speaker{{Provider: own, Configured: yes, Model: func() string { return e.Name }}}
	case parley.EndpointSTT:
		v.Listeners = []ai.Listener{{Provider: own, Configured: yes}}
	}
	set, err := b.server.Own([]*ai.Vendor{v}, nil)
	if err != nil {
		return nil, err
	}
	return &opened{*e, set, vendor}, nil
}

// Model is the endpoint as a language model.
func (v *Vendors) Model() (ai.Model, error) { return v.set.Model(Code, v.Endpoint.Name) }

// Synthesizer is the endpoint as a voice.
func (v *Vendors) Synthesizer() (ai.Synthesizer, error) { return v.set.Synthesizer(Code) }

// Recognizer is the endpoint as a recognizer.
func (v *Vendors) Recognizer() (ai.Recognizer, error) { return v.set.Recognizer(Code) }

// Warm begins what an endpoint keeps for the context's conversation, if it keeps anything.
func (v *Vendors) Warm(ctx context.Context) {
	if v.vendor.Warm != nil {
		v.vendor.Warm(ctx)
	}
}

// Over says that a conversation is over.
func (b *Book) Over(of string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	var tell []func(string)
	for _, o := range b.open {
		if o.vendor.Over != nil {
			tell = append(tell, o.vendor.Over)
		}
	}
	b.mu.Unlock()
	for _, over := range tell {
		over(of)
	}
}

// sameServer says whether two states of an endpoint are asked in the same way.
func sameServer(a, b *parley.Endpoint) bool {
	return a.UserID == b.UserID && a.Kind == b.Kind && a.Protocol == b.Protocol && a.URL == b.URL && a.Key == b.Key && a.Model == b.Model &&
		a.Name == b.Name && slices.Equal(a.Headers, b.Headers)
}

// credential is the name of a header that holds one.
var credential = regexp.MustCompile(`(?i)auth|key|token|secret|password|cookie`)

// credentials are the secrets of an endpoint that no line of the log may show. The values of other headers are the account's
// choice: an ordinary word would be blanked in everybody's lines.
func credentials(e *parley.Endpoint) (list []string) {
	for _, h := range e.Headers {
		if credential.MatchString(h.Name) {
			list = append(list, h.Value)
		}
	}
	return append(list, e.Key)
}

// secrets are what of an endpoint nobody may see.
func secrets(e *parley.Endpoint) (list []string) {
	for _, h := range e.Headers {
		list = append(list, h.Value)
	}
	return slices.DeleteFunc(append(list, e.Key), func(s string) bool { return s == "" })
}
