package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/blob"
	calling "parley/internal/call"
	"parley/internal/parley"
	"parley/internal/rtc"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// tones is a voice that speaks in tones, and a recognizer that hears nothing.
type tones struct{}

func (tones) Synthesizer(string) (ai.Synthesizer, error) { return new(aitest.Synthesizer), nil }
func (tones) Recognizer(string) (ai.Recognizer, error)   { return new(aitest.Recognizer), nil }
func (tones) Realtime(_, model string) (ai.RealtimeModel, error) {
	return nil, ai.NotConfigured("realtime model", model, "it is not")
}

// ringing is a house that takes calls from browsers.
func ringing(t *testing.T, db *store.DB, change func(*api.Config)) *harness {
	t.Helper()
	h, _ := talking(t, db, func(c *api.Config) {
		blobs, err := blob.OpenDir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		calls := calling.New(calling.Config{DB: db, Assistants: c.Assistants, Speech: tones{}, Prices: c.Prices,
			Hub: c.Hub, Blobs: blobs, Dir: t.TempDir(), Secret: []byte("secret")})
		c.Calls, c.Browsers = calls, rtc.New(rtc.Config{Listen: "127.0.0.1:0", MaxCalls: 1, Connect: 5 * time.Second})
		if err := c.Browsers.Listen(); err != nil {
			t.Fatal(err)
		}
		browsers := c.Browsers
		t.Cleanup(func() {
			browsers.Close()
			calls.Stop(context.Background())
		})
		if change != nil {
			change(c)
		}
	})
	return h
}

// caller is a browser's half of a call, with the messages that it got.
func caller(t *testing.T) (pc *webrtc.PeerConnection, offer string, told chan map[string]any) {
	t.Helper()
	var e webrtc.SettingEngine
	e.SetIncludeLoopbackCandidate(true)
	e.LoggerFactory = &logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled}
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(e)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.GracefulClose() })
	told = make(chan map[string]any, 100)
	channel, err := pc.CreateDataChannel(rtc.ChannelLabel, nil)
	if err == nil {
		_, err = pc.AddTransceiverFromKind(webrtc.RTPCodecTypeAudio)
	}
	if err != nil {
		t.Fatal(err)
	}
	channel.OnMessage(func(m webrtc.DataChannelMessage) {
		var v map[string]any
		if json.Unmarshal(m.Data, &v) == nil {
			told <- v
		}
	})
	o, err := pc.CreateOffer(nil)
	if err == nil {
		err = pc.SetLocalDescription(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pc, o.SDP, told
}

// dial posts an offer as a browser does.
func (h *harness) dial(uuid, offer string, headers ...string) (*http.Response, string) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), "POST", h.url+"/api/web-calls/"+uuid, strings.NewReader(offer))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/sdp")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}
	return res, string(body)
}

func TestWebCall(t *testing.T) {
	each(t, func(t *testing.T, base *harness) {
		h := ringing(t, base.db, nil)
		_, uuid := h.active(nil)
		pc, offer, told := caller(t)
		res, answer := h.dial(uuid, offer, "Origin", "https://shop.example.com", "Parley-Variables",
			"%7B%22who%22%3A%22Ana%22%7D")
		place := res.Header.Get("Location")
		if res.StatusCode != 201 || res.Header.Get("Content-Type") != "application/sdp" ||
			!strings.HasPrefix(place, h.url+"/api/web-calls/"+uuid+"/") ||
			res.Header.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.Contains(res.Header.Get("Access-Control-Expose-Headers"), "Location") {
			t.Fatalf("%d %v\n%s", res.StatusCode, res.Header, answer)
		}
		if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer,
			SDP: answer}); err != nil {
			t.Fatal(err)
		}
		var list []any
		live := func() map[string]any {
			list = h.get("/user/calls?type=web&status=in-progress", status(200)).json()["data"].([]any)
			if len(list) == 0 {
				return nil
			}
			return list[0].(map[string]any)
		}
		for deadline := time.Now().Add(20 * time.Second); live() == nil; {
			if time.Now().After(deadline) {
				t.Fatal("no call is under way")
			}
		}
		// There is only one line.
		_, second, _ := caller(t)
		if res, body := h.dial(uuid, second); res.StatusCode != 503 || !strings.Contains(body, `"status":false`) {
			t.Errorf("a second call is answered %d %s", res.StatusCode, body)
		}
		id := live()["id"]
		if vars := live()["input_variables"]; fmt.Sprint(vars) != "map[who:Ana]" {
			t.Errorf("variables %v", vars)
		}
		for patience := time.After(20 * time.Second); ; { // the page gets what is said
			select {
			case v := <-told:
				if v["type"] != "turn" {
					continue
				}
				if v["speaker"] != "assistant" || v["text"] != "Hello Ana." {
					t.Errorf("told %v", v)
				}
			case <-patience:
				t.Fatal("nothing is told")
			}
			break
		}
		r, _ := http.NewRequestWithContext(t.Context(), "DELETE", place, nil)
		gone, err := http.DefaultClient.Do(r)
		if err != nil || gone.StatusCode != 200 {
			t.Fatalf("hanging up: %v %v", gone, err)
		}
		gone.Body.Close()
		h.delete("/web-calls/"+uuid+"/nobody", anonymous, status(404)).is(`{"status":false,"error":"Call not found"}`)
		var c map[string]any
		for deadline := time.Now().Add(20 * time.Second); ; {
			if c = h.get(fmt.Sprintf("/user/calls/%v", id), status(200)).json(); c["status"] == "completed" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("it does not end: %v", c)
			}
		}
		if c["ended_reason"] != string(parley.CustomerHangup) || c["type"] != "web" || c["client_phone_number"] != nil {
			t.Errorf("call %v", c)
		}
	})
}

// A browser connects its call anew, and is told which servers help it.
func TestWebCallReconnects(t *testing.T) {
	h := ringing(t, lite(t, nil).db, func(c *api.Config) {
		own := c.Browsers.Config
		c.Browsers.Close()
		own.Relays, own.TURN = true, rtc.TURN{URLs: []string{"turn:a.example.com", "stun:b.example.com"}, User: "u", Password: "p"}
		c.Browsers = rtc.New(own)
		if err := c.Browsers.Listen(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Browsers.Close() })
		c.Front.PublicURL = "https://voice.example.com/sub"
	})
	_, uuid := h.active(nil)
	pc, offer, _ := caller(t)
	res, answer := h.dial(uuid, offer)
	links := res.Header.Values("Link")
	if len(links) != 3 || !strings.HasPrefix(links[0], `<turns:voice.example.com:443?transport=tcp>; rel="ice-server"; username="`) ||
		links[1] != `<turn:a.example.com>; rel="ice-server"; username="u"; credential="p"; credential-type="password"` ||
		!strings.HasPrefix(links[2], `<stun:b.example.com>; rel="ice-server"`) {
		t.Errorf("the browser is helped by %q", links)
	}
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		t.Fatal(err)
	}
	place := strings.Replace(res.Header.Get("Location"), "https://voice.example.com/sub", h.url, 1)
	patch := func(fragment, kind, match string) (*http.Response, string) {
		r, _ := http.NewRequestWithContext(t.Context(), "PATCH", place, strings.NewReader(fragment))
		r.Header.Set("Content-Type", kind)
		if match != "" {
			r.Header.Set("If-Match", match)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res, string(body)
	}
	const kind = "application/trickle-ice-sdpfrag"
	first := res.Header.Get("ETag")
	same, err := rtc.ReadFragment(offer)
	if err != nil {
		t.Fatal(err)
	}
	other := rtc.Fragment{Name: "other", Password: strings.Repeat("x", 24)}
	if res, _ := patch(same.String(), kind, first); res.StatusCode != 204 {
		t.Errorf("candidates are answered %d", res.StatusCode)
	}
	if res, body := patch(other.String(), kind, `"another"`); res.StatusCode != 412 || !strings.Contains(body, "If-Match: *") {
		t.Errorf("another connection is answered %d %s", res.StatusCode, body)
	}
	if res, body := patch(other.String(), "text/plain", "*"); res.StatusCode != 415 {
		t.Errorf("another type is answered %d %s", res.StatusCode, body)
	}
	if res, body := patch("a=ice-ufrag:ab", kind, "*"); res.StatusCode != 422 {
		t.Errorf("nonsense is answered %d %s", res.StatusCode, body)
	}
	got, text := patch(other.String(), kind, "*")
	ours, err := rtc.ReadFragment(text)
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != kind || err != nil || got.Header.Get("ETag") != ours.Tag() ||
		ours.Tag() == first || len(ours.Candidates) == 0 || got.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v %v\n%s", got.StatusCode, got.Header, err, text)
	}
	if res, body := patch(other.String(), kind, first); res.StatusCode != 412 {
		t.Errorf("the first connection is answered %d %s", res.StatusCode, body)
	}
	place += "x"
	if res, body := patch(other.String(), kind, "*"); res.StatusCode != 404 {
		t.Errorf("nobody's call is answered %d %s", res.StatusCode, body)
	}
}

// Offers that nobody takes up hold no line and no money, and leave no calls behind. An address may have only so many of
// them.
func TestOffersThatNobodyTakesUp(t *testing.T) {
	each(t, func(t *testing.T, base *harness) {
		h := ringing(t, base.db, func(c *api.Config) {
			c.Rates.Create = auth.Rate{}
			c.Browsers.Connect = time.Minute
		})
		_, uuid := h.active(nil)
		var places []string
		refused := 0
		for range 10 {
			_, offer, _ := caller(t)
			switch res, body := h.dial(uuid, offer); res.StatusCode {
			case 201:
				places = append(places, res.Header.Get("Location"))
			case 429:
				if refused++; res.Header.Get("Retry-After") == "" {
					t.Errorf("refused without saying for how long: %s", body)
				}
			default:
				t.Errorf("answered %d %s", res.StatusCode, body)
			}
		}
		if len(places) != 6 || refused != 4 {
			t.Errorf("%d offers are answered, %d refused", len(places), refused)
		}
		if n := h.get("/user/calls", status(200)).json()["total"]; n != json.Number("0") {
			t.Errorf("they made %v calls", n)
		}
		for _, place := range places {
			r, _ := http.NewRequestWithContext(t.Context(), "DELETE", place, nil)
			res, err := http.DefaultClient.Do(r)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%v %v", res, err)
			}
			res.Body.Close()
		}
		pc, offer, _ := caller(t)
		var res *http.Response
		var answer string
		for deadline := time.Now().Add(20 * time.Second); ; { // those that were given up are gone in a moment
			if res, answer = h.dial(uuid, offer); res.StatusCode == 201 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("who means it is answered %d %s", res.StatusCode, answer)
			}
		}
		if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer,
			SDP: answer}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); h.get("/user/calls?status=in-progress",
			status(200)).json()["total"] != json.Number("1"); {
			if time.Now().After(deadline) {
				t.Fatal("no call is under way")
			}
		}
	})
}

// A caller who connects after somebody else took the last line is told so.
func TestLastLineIsGone(t *testing.T) {
	h := ringing(t, storetest.SQLite(t, rules), nil)
	_, uuid := h.active(nil)
	pc, offer, told := caller(t)
	res, answer := h.dial(uuid, offer)
	if res.StatusCode != 201 {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	h.write(func(ctx context.Context, tx *store.Tx) error {
		free, err := tx.Free(ctx, h.user.ID)
		if err == nil {
			_, err = tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: -free,
				Reference: "drain"})
		}
		return err
	})
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		t.Fatal(err)
	}
	select {
	case v := <-told:
		if v["type"] != "refused" || v["status"] != 402.0 {
			t.Errorf("told %v", v)
		}
	case <-time.After(20 * time.Second):
		t.Error("nothing is told")
	}
}

func TestWebCallRefusals(t *testing.T) {
	each(t, func(t *testing.T, base *harness) {
		h := ringing(t, base.db, nil)
		_, uuid := h.active(map[string]any{"widget_settings": map[string]any{
			"allowed_origins": []string{"https://shop.example.com"}}})
		_, offer, _ := caller(t)
		_, sleeping := h.active(map[string]any{"status": "inactive"})
		for _, c := range []struct {
			name, uuid, offer string
			headers           []string
			status            int
			want              string
		}{
			{"another origin", uuid, offer, []string{"Origin", "https://evil.example"}, 403, "allowed_origins"},
			{"no origin", uuid, offer, nil, 403, "allowed_origins"},
			{"unknown", "00000000-0000-0000-0000-000000000000", offer, nil, 404, "Assistant not found"},
			{"no uuid", "1", offer, nil, 404, "Assistant not found"},
			{"inactive", sleeping, offer, nil, 404, "Assistant not found"},
			{"JSON", uuid, "{}", []string{"Content-Type", "application/json"}, 415, "application/sdp"},
			{"too large", uuid, strings.Repeat("x", 70_000), nil, 413, "too large"},
			{"no SDP", uuid, "hello", nil, 422, "can't be answered"},
			{"bad variables", uuid, offer, []string{"Parley-Variables", "%7B%22who%22%3A%5B%5D%7D"}, 422,
				"Parley-Variables"},
		} {
			headers := append([]string{}, c.headers...)
			if c.status > 404 || c.name == "inactive" {
				headers = append(headers, "Origin", "https://shop.example.com")
			}
			if res, body := h.dial(c.uuid, c.offer, headers...); res.StatusCode != c.status ||
				!strings.Contains(body, c.want) || !strings.HasPrefix(body, `{"status":false`) {
				t.Errorf("%s: %d %s", c.name, res.StatusCode, body)
			}
		}
		poor := h.stranger()
		_, theirs := poor.active(nil)
		if res, body := h.dial(theirs, offer); res.StatusCode != 402 || !strings.HasPrefix(body, `{"status":false`) {
			t.Errorf("without a balance: %d %s", res.StatusCode, body)
		}
		if n := h.get("/user/calls", status(200)).json()["total"]; n != json.Number("0") {
			t.Errorf("refusals left %v calls", n)
		}

		deaf := ringing(t, base.db, func(c *api.Config) { c.Browsers = nil })
		if res, body := deaf.dial(uuid, offer, "Origin", "https://shop.example.com"); res.StatusCode != 503 ||
			!strings.Contains(body, "does not accept calls from browsers") {
			t.Errorf("a server without the port: %d %s", res.StatusCode, body)
		}
		if got := deaf.get("/widgets/"+uuid, anonymous).json()["calls"]; got != false {
			t.Errorf("its widgets offer calls: %v", got)
		}
		if got := h.get("/widgets/"+uuid, anonymous).json()["calls"]; got != true {
			t.Errorf("widgets offer no calls: %v", got)
		}
	})
}

// Through a share link a browser calls the draft of an inactive assistant. This is a test call, which costs nothing.
func TestSharedWebCall(t *testing.T) {
	h := ringing(t, storetest.SQLite(t, rules), nil)
	a := h.assistant(map[string]any{"initial_message": "Live hello."})
	one := fmt.Sprintf("/user/assistants/%d", a)
	h.put(one+"/draft", map[string]any{"initial_message": "Draft hello."}, status(200))
	link := h.post(one+"/share-links", nil, status(201)).json()["data"].(map[string]any)["url"].(string)
	token := link[strings.LastIndex(link, "/")+1:]
	pc, offer, told := caller(t)
	res, answer := h.dial(token, offer)
	place := res.Header.Get("Location")
	if res.StatusCode != 201 || !strings.HasPrefix(place, h.url+"/api/web-calls/"+token+"/") {
		t.Fatalf("%d %v\n%s", res.StatusCode, res.Header, answer)
	}
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		t.Fatal(err)
	}
	for patience := time.After(20 * time.Second); ; {
		select {
		case v := <-told:
			if v["type"] != "turn" {
				continue
			}
			if v["text"] != "Draft hello." {
				t.Errorf("told %v", v)
			}
		case <-patience:
			t.Fatal("nothing is told")
		}
		break
	}
	r, _ := http.NewRequestWithContext(t.Context(), "DELETE", place, nil)
	gone, err := http.DefaultClient.Do(r)
	if err != nil || gone.StatusCode != 200 {
		t.Fatalf("hanging up: %v %v", gone, err)
	}
	gone.Body.Close()
	for deadline := time.Now().Add(20 * time.Second); ; {
		list := h.get("/user/calls?type=web&status=completed", status(200)).json()["data"].([]any)
		if len(list) == 1 {
			if c := list[0].(map[string]any); c["test"] != true {
				t.Errorf("the call is %v", c)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
	if me, err := h.db.User(t.Context(), h.user.ID); err != nil || me.Balance != 5*parley.USD {
		t.Errorf("the balance is %v, %v", me.Balance, err)
	}
	h.delete(one+"/share-links", status(200))
	if res, _ := h.dial(token, offer); res.StatusCode != 404 {
		t.Errorf("by a revoked link it is answered %d", res.StatusCode)
	}
}
