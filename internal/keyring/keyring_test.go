package keyring_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/assistant"
	"parley/internal/audio"
	"parley/internal/keyring"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/anthropic/anthropictest"
	"parley/internal/provider/assemblyai"
	"parley/internal/provider/assemblyai/assemblyaitest"
	"parley/internal/provider/cartesia"
	"parley/internal/provider/cartesia/cartesiatest"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/deepgram/deepgramtest"
	"parley/internal/provider/elevenlabs"
	"parley/internal/provider/elevenlabs/elevenlabstest"
	"parley/internal/provider/gemini"
	"parley/internal/provider/gemini/geminitest"
	"parley/internal/provider/openai"
	"parley/internal/provider/xai"
	"parley/internal/provider/xai/xaitest"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func open(t *testing.T, db *store.DB, vendors []*ai.Vendor) *keyring.Ring {
	t.Helper()
	r, err := keyring.Open(t.Context(), db, vendors, "", func(int64, string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// within waits for something that another goroutine does.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("20 s have passed: " + what)
		}
	}
}

// running makes a node notice the others' changes.
func running(t *testing.T, r *keyring.Ring) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
}

// one returns a vendor of a list.
func one(t *testing.T, list []keyring.Vendor, code string) keyring.Vendor {
	t.Helper()
	i := slices.IndexFunc(list, func(v keyring.Vendor) bool { return v.Code == code })
	if i < 0 {
		t.Fatalf("there is no %s in %+v", code, list)
	}
	return list[i]
}

// vendorSet returns vendors whose servers are the test's own, with the keys that they accept.
func vendorSet(t *testing.T) (vendors []*ai.Vendor, keys map[string]string, voices *elevenlabstest.Server) {
	chat := aitest.NewServer(t)
	chat.APIKey, chat.Models = "sk-test-0123456789", []string{"gpt-6-luna"}
	voices = elevenlabstest.New(t)
	return provider.All(
			openai.Declare(&openai.Settings{BaseURL: chat.URL}),
			anthropic.Declare(&anthropic.Settings{BaseURL: anthropictest.New(t).URL, Model: []string{anthropictest.Quick}}),
			gemini.Declare(&gemini.Settings{BaseURL: geminitest.New(t).URL, Model: []string{geminitest.Flash}}),
			elevenlabs.Declare(&elevenlabs.Settings{BaseURL: voices.URL, TTSModel: "eleven_flash_v2_5",
				STTModel: "scribe_v2_realtime"}),
			deepgram.Declare(&deepgram.Settings{BaseURL: deepgramtest.NewServer(t).URL}),
			cartesia.Declare(&cartesia.Settings{BaseURL: cartesiatest.New(t).URL, TTSModel: "sonic-3", STTModel: "ink-whisper"}),
			assemblyai.Declare(&assemblyai.Settings{BaseURL: assemblyaitest.New(t).URL}),
			xai.Declare(&xai.Settings{BaseURL: xaitest.New(t).URL}),
		), map[string]string{openai.Code: chat.APIKey, anthropic.Code: anthropictest.Key, gemini.Code: geminitest.Key,
			elevenlabs.Code: elevenlabstest.Key, deepgram.Code: deepgramtest.Key, cartesia.Code: cartesiatest.Key,
			assemblyai.Code: assemblyaitest.Key, xai.Code: xaitest.Key}, voices
}

// Each vendor's key is tested, stored without being shown, used at once, and removed: both the server's and a user's.
func TestEveryVendor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		vendors, keys, _ := vendorSet(t)
		r := open(t, db, vendors)
		u := storetest.User(t, db, 0)
		for _, v := range r.List(0) {
			if keys[v.Code] == "" {
				continue // a vendor for which there is no test server here
			}
			for _, holder := range []int64{0, u.ID} {
				var refused *parley.Error
				const wrong = "wrong-key-which-nobody-has"
				_, err := r.Set(t.Context(), holder, v.Code, ai.Key{Secret: wrong})
				if !errors.As(err, &refused) || refused.Kind != parley.Invalid {
					t.Errorf("%s: a wrong key: %v", v.Code, err)
					continue
				}
				text, _ := json.Marshal(refused.Fields)
				if !strings.Contains(string(text), v.Name+" refuses this key") || strings.Contains(string(text), wrong) ||
					strings.Contains(string(text), "PARLEY_") {
					t.Errorf("%s: a wrong key is answered with %s", v.Code, text)
				}
				got, err := r.Set(t.Context(), holder, v.Code, ai.Key{Secret: " " + keys[v.Code] + "\n"})
				if err != nil {
					t.Errorf("%s: %v", v.Code, err)
					continue
				}
				if got.Key == nil || got.Key.State != parley.KeyConnected || got.Key.CheckedAt == 0 {
					t.Errorf("%s: %+v", v.Code, got.Key)
				}
				if text, _ := json.Marshal(r.List(holder)); strings.Contains(string(text), keys[v.Code]) {
					t.Errorf("%s: the key is shown: %s", v.Code, text)
				}
				if k, err := r.Test(t.Context(), holder, v.Code, ai.Key{}); err != nil || k.State != parley.KeyConnected {
					t.Errorf("%s: tested again: %+v, %v", v.Code, k, err)
				}
			}
			if got := one(t, r.List(u.ID), v.Code); got.Source != keyring.Own {
				t.Errorf("%s: %+v", v.Code, got)
			}
			if err := r.Remove(t.Context(), u.ID, v.Code); err != nil {
				t.Error(err)
			}
			if got := one(t, r.List(u.ID), v.Code); got.Source != keyring.Server || got.Key != nil {
				t.Errorf("%s: without a key of theirs: %+v", v.Code, got)
			}
			if err := r.Remove(t.Context(), 0, v.Code); err != nil {
				t.Error(err)
			}
			if err := r.Remove(t.Context(), 0, v.Code); !store.IsNotFound(err) {
				t.Errorf("%s: removed twice: %v", v.Code, err)
			}
		}
		rows, err := db.AllVendorKeys(t.Context(), 0)
		if err != nil || len(rows) != 2*len(keys) || rows[0].Sealed != nil {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	})
}

// A user's key is only that user's: the models that it opens, the voices of its account, and where it can't be moved.
func TestOwnKeys(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		vendors, keys, account := vendorSet(t)
		account.Voices = []map[string]any{{"voice_id": "myclone", "name": "My clone", "labels": map[string]string{"gender": "female"}}}
		r := open(t, db, vendors)
		ann, bob := storetest.User(t, db, 0), storetest.User(t, db, 0)
		if _, err := r.Set(t.Context(), ann.ID, elevenlabs.Code, ai.Key{Secret: keys[elevenlabs.Code]}); err != nil {
			t.Fatal(err)
		}
		cloned := func(userID int64) (list []parley.Voice) {
			for _, v := range r.Catalog.For(userID).Voices("pipeline", 1) {
				if v.Code == "myclone" {
					list = append(list, v)
				}
			}
			return list
		}
		mine := cloned(ann.ID)
		if len(mine) != 1 || mine[0].Name != "My clone" || mine[0].PreviewURL != "" || mine[0].ID < 1_000_000_000 {
			t.Fatalf("%+v", mine)
		}
		for _, other := range []int64{bob.ID, 0} {
			c := r.Catalog.For(other)
			if c.Voice(mine[0].ID) != nil || len(cloned(other)) != 0 {
				t.Errorf("%d knows another's voice", other)
			}
			if _, err := r.Providers.For(other).Synthesizer(elevenlabs.Code); ai.KindOf(err) != ai.Config {
				t.Errorf("%d speaks with another's key: %v", other, err)
			}
		}
		say := func(userID int64) error {
			s, err := r.Providers.For(userID).Synthesizer(elevenlabs.Code)
			if err != nil {
				return err
			}
			tally := &ai.Tally{}
			err = ai.Say(ai.Tallied(t.Context(), tally), s, ai.Speech{Voice: elevenlabstest.Voice, Language: "en",
				Rate: audio.Wide, Speed: 1}, "Hello there.", func([]int16) error { return nil })
			if uses := tally.Uses(); err == nil && (len(uses) != 1 || uses[0].Own != (userID == ann.ID)) {
				t.Errorf("%+v", uses)
			}
			return err
		}
		if err := say(ann.ID); err != nil {
			t.Error(err)
		}
		if _, err := r.Set(t.Context(), 0, elevenlabs.Code, ai.Key{Secret: keys[elevenlabs.Code]}); err != nil {
			t.Fatal(err)
		}
		if err := say(bob.ID); err != nil {
			t.Error(err)
		}

		// The voice disappears and returns with the same id, with its account or with its key.
		account.Voices = nil
		if _, err := r.Test(t.Context(), ann.ID, elevenlabs.Code, ai.Key{}); err != nil {
			t.Fatal(err)
		}
		if c := r.Catalog.For(ann.ID); len(cloned(ann.ID)) != 0 || c.Voice(mine[0].ID) == nil || !c.Lost(mine[0].ID) {
			t.Error("a voice that has left the account")
		}
		account.Voices = []map[string]any{{"voice_id": "myclone", "name": "Mine"}}
		if _, err := r.Test(t.Context(), ann.ID, elevenlabs.Code, ai.Key{}); err != nil {
			t.Fatal(err)
		}
		if now := cloned(ann.ID); len(now) != 1 || now[0].ID != mine[0].ID || now[0].Name != "Mine" {
			t.Errorf("%+v", now)
		}
		if err := r.Remove(t.Context(), ann.ID, elevenlabs.Code); err != nil {
			t.Fatal(err)
		}
		if c := r.Catalog.For(ann.ID); len(cloned(ann.ID)) != 0 || !c.Lost(mine[0].ID) || c.VoiceConfigured(mine[0].ID) {
			t.Error("a voice whose key is gone")
		}

		// An encrypted key can't be decrypted in another row.
		rows, err := db.AllVendorKeys(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range rows {
			if k.UserID == 0 {
				if k.UserID = bob.ID; k.Sealed == nil {
					t.Fatal("the server has no key")
				}
				if secret, err := db.VendorSecret(&k); err == nil {
					t.Errorf("the server's key reads as bob's: %q", secret)
				}
			}
		}
	})
}

// The environment's settings have priority, and can't be changed in the product.
func TestEnvironmentFirst(t *testing.T) {
	db := storetest.SQLite(t)
	r := open(t, db, provider.All(deepgram.Declare(&deepgram.Settings{APIKey: "from-the-environment"})))
	u := storetest.User(t, db, 0)
	got := one(t, r.List(0), deepgram.Code)
	if got.Source != keyring.Environment || *got.Setting != "PARLEY_DEEPGRAM_API_KEY" || got.Key.State != parley.KeyUntested {
		t.Errorf("%+v", got)
	}
	var refused *parley.Error
	if _, err := r.Set(t.Context(), 0, deepgram.Code, ai.Key{Secret: "another"}); !errors.As(err, &refused) ||
		refused.Kind != parley.Conflict || !strings.Contains(refused.Error(), *got.Setting) {
		t.Errorf("%v", err)
	}
	if got := one(t, r.List(u.ID), deepgram.Code); got.Source != keyring.Server || got.Key != nil || got.Setting != nil {
		t.Errorf("%+v", got)
	}
	for _, k := range []ai.Key{{}, {Secret: "two words"}, {Secret: "schlüssel"}, {Secret: "ok", BaseURL: "ftp://x"}} {
		if _, err := r.Set(t.Context(), 0, "cartesia", k); !errors.As(err, &refused) || refused.Kind != parley.Invalid {
			t.Errorf("%+v: %v", k, err)
		}
	}
	if _, err := r.Set(t.Context(), 0, "local", ai.Key{Secret: "k"}); !store.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}

// acme is a vendor that counts its open instances.
type acme struct {
	APIKey, BaseURL string `name:"acme-api-key"`
}

func (a *acme) declare(opened, closed *atomic.Int32) *ai.Vendor {
	v := &ai.Vendor{Code: "acme", Name: "Acme", Settings: a}
	v.Models = func() []parley.Model {
		if a.APIKey == "" {
			return nil
		}
		return []parley.Model{{Kind: parley.LLM, Code: "thinker", Name: "thinker"}}
	}
	v.With = ai.Rekeyed(a, func(a *acme) *ai.Vendor { return a.declare(opened, closed) })
	v.Check = func(context.Context) []parley.Finding {
		return []parley.Finding{{State: "ok", What: "acme"}}
	}
	v.Open = func() (*ai.Opened, error) {
		if a.APIKey == "" {
			return &ai.Opened{}, nil
		}
		opened.Add(1)
		return &ai.Opened{Model: func(string) ai.Model { return &aitest.Fake{} }, Close: func() { closed.Add(1) }}, nil
	}
	return v
}

// Another node learns about a key, and about its removal; a conversation under way keeps the vendor that it began
// with, which is closed when the conversation is over.
func TestNodes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var opened, closed [2]atomic.Int32
		var rings [2]*keyring.Ring
		for i := range rings {
			rings[i] = open(t, db, append(provider.All(), (&acme{}).declare(&opened[i], &closed[i])))
		}
		running(t, rings[1])
		there := func(r *keyring.Ring) bool {
			_, err := r.Providers.For(0).Model("acme", "thinker")
			return err == nil
		}
		if there(rings[0]) {
			t.Fatal("a model without a key")
		}
		if _, err := rings[0].Set(t.Context(), 0, "acme", ai.Key{Secret: "first"}); err != nil {
			t.Fatal(err)
		}
		if !there(rings[0]) {
			t.Error("a key doesn't count at once")
		}
		within(t, "the other node has the key", func() bool { return there(rings[1]) })
		if m := rings[1].Catalog.For(0).ModelsOf(parley.LLM); len(m) != 2 || m[0].ID == 0 || m[0].Provider != "acme" {
			t.Errorf("%+v", m)
		}

		call, err := rings[0].Providers.For(0).Model("acme", "thinker")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rings[0].Set(t.Context(), 0, "acme", ai.Key{Secret: "second"}); err != nil {
			t.Fatal(err)
		}
		there(rings[0])
		before := closed[0].Load() // instances that were only opened for a check
		for range 3 {
			runtime.GC()
		}
		if n := closed[0].Load(); n != before {
			t.Errorf("%d were closed under a call", n-before)
		}
		if _, err := call.Generate(t.Context(), ai.Request{Messages: []ai.Message{{Role: ai.User, Text: "hi"}}},
			func(ai.Delta) error { return nil }); err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(call)
		call = nil
		within(t, "the former is closed", func() bool { runtime.GC(); return closed[0].Load() == before+1 })

		if err := rings[0].Remove(t.Context(), 0, "acme"); err != nil {
			t.Fatal(err)
		}
		if there(rings[0]) {
			t.Error("a key that was removed counts")
		}
		within(t, "the other node has no key", func() bool { return !there(rings[1]) })
		within(t, "all is closed", func() bool { runtime.GC(); return closed[0].Load() == opened[0].Load() })
	})
}

// quiet is a sink of replies that does nothing.
type quiet struct{}

func (quiet) Text(string)                 {}
func (quiet) ToolStarted(agent.ToolCall)  {}
func (quiet) ToolFinished(agent.ToolCall) {}

// A user's bad key opens no circuit breaker of another user's, and their new key starts with a new one.
func TestCircuitsAreOwn(t *testing.T) {
	chat := aitest.NewServer(t)
	chat.APIKey, chat.Models = "sk-good-0123456789", []string{"gpt-6-luna"}
	db := storetest.SQLite(t)
	ann, bob := storetest.User(t, db, 0), storetest.User(t, db, 0)
	for user, key := range map[int64]string{ann.ID: "sk-bad-0123456789", bob.ID: chat.APIKey} {
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveVendorKey(ctx, user, &parley.VendorKey{Vendor: openai.Code, State: parley.KeyUntested}, key)
		}); err != nil {
			t.Fatal(err)
		}
	}
	r := open(t, db, provider.All(anthropic.Declare(&anthropic.Settings{}), openai.Declare(&openai.Settings{BaseURL: chat.URL})))
	d := &assistant.Studio{DB: db, Catalog: r.Catalog, Providers: r.Providers,
		Fallback: assistant.Fallback{Models: []string{"local/local"}}}
	think := func(userID int64) (said string, switched []ai.Switch) {
		t.Helper()
		a := &parley.Assistant{ID: 1, UserID: userID, Mode: "pipeline", SystemPrompt: "The sky is blue.", Timezone: "UTC"}
		model := r.Catalog.For(userID).ModelsOf(parley.LLM)[0]
		a.LLMModelID = &model.ID
		ready, err := d.Ready(a, assistant.Occasion{Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		tally := &ai.Tally{Switched: func(s ai.Switch) { switched = append(switched, s) }}
		reply, err := ready.Turn([]ai.Message{{Role: ai.User, Text: "What colour is the sky?"}}, quiet{}).
			Run(ai.Tallied(t.Context(), tally))
		if err != nil {
			t.Fatal(err)
		}
		return reply.Text, switched
	}
	for range 2 {
		if _, switched := think(ann.ID); len(switched) != 1 || switched[0].Why != ai.Config {
			t.Errorf("a bad key: %+v", switched)
		}
		if said, switched := think(bob.ID); len(switched) != 0 || !strings.Contains(said, "You said") {
			t.Errorf("another's good key: %q %+v", said, switched)
		}
	}
	if _, err := r.Set(t.Context(), ann.ID, openai.Code, ai.Key{Secret: chat.APIKey}); err != nil {
		t.Fatal(err)
	}
	if said, switched := think(ann.ID); len(switched) != 0 || !strings.Contains(said, "You said") {
		t.Errorf("a key that was mended: %q %+v", said, switched)
	}
	for _, req := range chat.Requests() {
		if h := req.Header.Get("Authorization"); h != "Bearer "+chat.APIKey && h != "Bearer sk-bad-0123456789" {
			t.Errorf("asked with %q", h)
		}
	}
}

// The doctor of a server that is not running tests the keys that were entered, but the keys of the settings come
// first.
func TestCheckStored(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		vendors, keys, _ := vendorSet(t)
		r := open(t, db, vendors)
		for _, code := range []string{anthropic.Code, deepgram.Code} {
			if _, err := r.Set(t.Context(), 0, code, ai.Key{Secret: keys[code]}); err != nil {
				t.Fatal(err)
			}
		}
		hidden := map[string]bool{}
		look := func(vendors []*ai.Vendor) map[string]keyring.Checked {
			list, err := keyring.CheckStored(t.Context(), db, vendors, func(_ int64, secret string) { hidden[secret] = true })
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]keyring.Checked{}
			for _, v := range list {
				found[v.Code] = v
				for _, f := range v.Findings {
					if strings.Contains(f.Text, keys[deepgram.Code]) || strings.Contains(f.Text, "wrong-key") {
						t.Errorf("a key is told: %s", f.Text)
					}
				}
			}
			return found
		}
		found := look(vendors)
		for _, code := range []string{anthropic.Code, deepgram.Code} {
			if v := found[code]; v.Source != keyring.Entered || v.Findings[0].State != parley.DoctorOK || !hidden[keys[code]] {
				t.Errorf("%+v", v)
			}
		}
		if v := found[cartesia.Code]; v.Source != keyring.None || v.Findings[0].State != parley.DoctorNote {
			t.Errorf("%+v", v)
		}
		i := slices.IndexFunc(vendors, func(v *ai.Vendor) bool { return v.Code == deepgram.Code })
		vendors[i] = vendors[i].With(ai.Key{Secret: "wrong-key"}) // as a setting has it
		if v := look(vendors)[deepgram.Code]; v.Source != keyring.Environment || v.Findings[0].State != parley.DoctorFail {
			t.Errorf("%+v", v)
		}
		if v := r.Check(t.Context(), 0); len(v) != len(vendors) {
			t.Errorf("%d of %d vendors are checked", len(v), len(vendors))
		}
	})
}

// A vendor that hangs does not keep the doctor from checking the others, and the results are reported in order.
func TestCheckAsksAllVendors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := func(state string) []parley.Finding { return []parley.Finding{{State: state}} }
		answers := &ai.Vendor{Check: func(ctx context.Context) []parley.Finding {
			if ctx.Err() != nil {
				return says(parley.DoctorFail)
			}
			return says(parley.DoctorOK)
		}}
		hangs := &ai.Vendor{Check: func(ctx context.Context) []parley.Finding {
			<-ctx.Done()
			return says(parley.DoctorFail)
		}}
		list, err := keyring.CheckStored(t.Context(), nil, []*ai.Vendor{answers, hangs, {}, answers}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var states []string
		for _, v := range list {
			for _, f := range v.Findings {
				states = append(states, f.State)
			}
		}
		if got := strings.Join(states, " "); got != "ok FAIL ok" {
			t.Error(got)
		}
	})
}

// The log is to hide the server's key before it is used, but a user's own only once its vendor took it: the user could have any
// text hidden.
func TestHiddenKeys(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		vendors, keys, _ := vendorSet(t)
		u := storetest.User(t, db, 0)
		var hidden []string
		r, err := keyring.Open(t.Context(), db, vendors, "", func(userID int64, secret string) {
			hidden = append(hidden, map[int64]string{0: "server", u.ID: "user"}[userID]+" "+secret)
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		for _, holder := range []int64{0, u.ID} {
			if _, err := r.Set(t.Context(), holder, deepgram.Code, ai.Key{Secret: "nobody-has-this-key"}); err == nil {
				t.Error("a wrong key is stored")
			}
		}
		if !slices.Equal(hidden, []string{"server nobody-has-this-key"}) {
			t.Errorf("of refused keys are hidden: %q", hidden)
		}
		hidden = nil
		if _, err := r.Set(t.Context(), u.ID, deepgram.Code, ai.Key{Secret: keys[deepgram.Code]}); err != nil ||
			len(hidden) == 0 || hidden[0] != "user "+keys[deepgram.Code] {
			t.Errorf("of a good one: %q, %v", hidden, err)
		}
	})
}
