package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"
	sample "github.com/pion/webrtc/v4/pkg/media"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

// benchBrowser measures what people see first. Goals: the widget at most 15 KB compressed; the console's first page
// with all that it loads at most 120 KB; the server's time for a page p99 20 ms with 100,000 calls, 10,000
// conversations and 1,000 assistants stored, 200 ms where transcripts are searched; a web call
// connected within 500 ms on loopback. The floor of the pages is a bare server that answers with as many bytes.
func benchBrowser(b *bench) error {
	v := &vendor{hears: "Yes.", hear: 100 * time.Millisecond, think: 100 * time.Millisecond,
		voiced: 100 * time.Millisecond}
	if err := b.vendor(v); err != nil {
		return err
	}
	reply := shortReply
	v.reply.Store(&reply)
	var a *parley.Assistant
	p, err := b.serve(func(ctx context.Context, db *store.DB, u *parley.User, data string) (err error) {
		a, err = browserSeed(ctx, db, u, data)
		return err
	}, "PARLEY_OPENAI_BASE_URL="+v.url, "PARLEY_OPENAI_CHAT_MODEL=bench", "PARLEY_OPENAI_TTS_MODEL=bench",
		"PARLEY_OPENAI_STT_MODEL=bench", "PARLEY_WEBRTC_LISTEN=127.0.0.1:0", "PARLEY_DRAIN=1s")
	if err != nil {
		return err
	}
	jar, _ := cookiejar.New(nil)
	c := &visitor{http.Client{Jar: jar, Transport: &http.Transport{DisableCompression: true}}, "http://" + p.addr}
	if err := c.sizes(); err != nil {
		return err
	}
	if err := c.pages(b); err != nil {
		return err
	}
	return c.calls(p, a)
}

// Searches in transcripts, by words of browserSeed.
const (
	frequentWord = "/calls?search=w1x"
	severalWords = "/calls?search=w1x+w2x+w40x+w300x"
	rareWord     = "/calls?search=w9000x"
)

// What is stored before the console's pages are measured.
const (
	storedCalls         = 100_000
	storedConversations = 10_000
	storedAssistants    = 1_000
	storedDays          = 90 // over which the calls are spread
)

// browserSeed stores assistants, conversations, and calls with a charge and a transcript of some 60 words each, counted
// for analytics and indexed for the search. The words are made up: few are frequent and most are rare, as in speech
// (Zipf's law). The first assistant is the one that the web calls are made to.
func browserSeed(ctx context.Context, db *store.DB, u *parley.User, data string) (first *parley.Assistant, err error) {
	assistants := make([]*parley.Assistant, storedAssistants)
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		for i := range assistants {
			a := &parley.Assistant{}
			form.Defaults(a)
			a.Name, a.Type, a.Mode, a.Status, a.Timezone, a.VoiceID, a.LanguageID = fmt.Sprintf("Bench %d", i), "inbound",
				"pipeline", "active", "UTC", 1001, 1
			a.SystemPrompt, a.InitialMessage, a.PostCallEvaluation = "Take the order.",
				"Good evening, how can I help you?", false
			if err := tx.CreateAssistant(ctx, u.ID, a); err != nil {
				return err
			}
			assistants[i] = a
		}
		return nil
	})
	words := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.2, 8, 20_000)
	say := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "w%dx ", words.Uint64())
		}
		return b.String()
	}
	inSteps := func(n int, one func(ctx context.Context, tx *store.Tx, i int) error) {
		for from := 0; err == nil && from < n; from += 1000 {
			err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
				for i := from; i < from+1000; i++ {
					if err := one(ctx, tx, i); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	inSteps(storedCalls, func(ctx context.Context, tx *store.Tx, i int) error {
		phone := fmt.Sprintf("+1202%07d", i)
		c := &parley.Call{AssistantID: assistants[i*i%storedAssistants].ID, Type: parley.CallInbound, Status: parley.CallInProgress,
			CustomerPhone: &phone, AnsweredAt: parley.DateTime(parley.Now().Add(-time.Minute)), MaxDuration: 600, AssistantRate: 50_000}
		for n := range 6 {
			c.Turns = append(c.Turns, parley.CallTurn{Speaker: []string{parley.SpeakerAssistant, parley.SpeakerCustomer}[n%2],
				Text: say(10), StartedAtMS: int64(n) * 3000})
		}
		c.End([]parley.EndedReason{parley.CustomerHangup, parley.AssistantHangup, parley.NoAnswer}[i%3], parley.Now())
		if err := tx.CreateCall(ctx, u.ID, c); err != nil {
			return err
		}
		_, err := tx.Post(ctx, u.ID,
			&parley.LedgerEntry{Kind: parley.CallCharge, Amount: -10_000, Reference: fmt.Sprintf("bench:%d", i), Description: "Call"})
		return err
	})
	inSteps(storedConversations, func(ctx context.Context, tx *store.Tx, i int) error {
		c := &parley.Conversation{UserID: u.ID, AssistantID: assistants[i%storedAssistants].ID, Type: parley.WidgetConversation,
			Variables: map[string]string{}}
		return tx.CreateConversation(ctx, c, say(20))
	})
	if err != nil {
		return nil, err
	}
	if err := spread(data); err != nil {
		return nil, err
	}
	if err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CountAgain(ctx) }); err != nil {
		return nil, err
	}
	if err := db.CountLeft(ctx); err != nil {
		return nil, err
	}
	return assistants[0], search.IndexTranscripts(ctx, db)
}

// spread gives calls and charges times over the past days: the store itself knows no time but now.
func spread(data string) error {
	db, postgres, err := openRaw(data, "")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range []string{
		"UPDATE calls SET created_at = created_at - %[1]s, updated_at = updated_at - %[1]s",
		"UPDATE ledger SET created_at = created_at - %[1]s",
	} {
		ago := fmt.Sprintf("(id * 7919 %% %d) * 1000000", storedDays*24*3600)
		if _, err := db.Exec(fmt.Sprintf(statement, ago)); err != nil {
			return err
		}
	}
	if postgres { // what autovacuum does within a minute
		_, err = db.Exec("VACUUM ANALYZE")
	}
	return err
}

// visitor is a browser that is signed in.
type visitor struct {
	http.Client
	base string
}

// get reads a page as it is sent, compressed.
func (c *visitor) get(path string) (sent, plain []byte, err error) {
	r, err := http.NewRequest("GET", c.base+path, nil)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	res, err := c.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	sent, err = io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
		return sent, sent, err
	}
	z, err := gzip.NewReader(bytes.NewReader(sent))
	if err != nil {
		return nil, nil, err
	}
	plain, err = io.ReadAll(z)
	return sent, plain, err
}

// sizes prints how much a first visit loads.
func (c *visitor) sizes() error {
	script, _, err := c.get("/embed.js")
	if err != nil {
		return err
	}
	module, _, err := c.get("/web-call.js")
	if err != nil {
		return err
	}
	res, err := c.PostForm(c.base+"/signin", url.Values{"email": {"bench@example.com"}, "password": {password}})
	if err != nil {
		return err
	}
	res.Body.Close()
	total, plain, err := c.get("/")
	if err != nil {
		return err
	}
	size := len(total)
	for _, m := range slices.Compact(slices.Sorted(slices.Values(
		regexp.MustCompile(`/assets/[^"]+`).FindAllString(string(plain), -1)))) {
		asset, _, err := c.get(m)
		if err != nil {
			return err
		}
		size += len(asset)
	}
	fmt.Printf("  widget %.1f KB, and %.1f KB for calls (goal 15); the console's first page with all it loads %.1f KB (goal 120)\n",
		float64(len(script))/1024, float64(len(module))/1024, float64(size)/1024)
	return nil
}

// pages prints how long the server takes for the console's pages.
func (c *visitor) pages(b *bench) error {
	at, _ := url.Parse(c.base)
	cookies := []string{}
	for _, k := range c.Jar.Cookies(at) {
		cookies = append(cookies, k.Name+"="+k.Value)
	}
	fmt.Printf("  %d calls, %d conversations and %d assistants are stored; pages, with a goal of 20 ms:\n", storedCalls, storedConversations,
		storedAssistants)
	for _, path := range []string{"/", "/analytics?range=30d", "/analytics?range=90d", "/assistants", "/assistants/1", "/calls",
		"/calls?page=2000",
		"/calls?status=no-answer", "/calls?assistant_id=1", "/calls/50000", "/conversations", "/ledger", frequentWord, severalWords, rareWord} {
		_, plain, err := c.get(path)
		if err != nil {
			return err
		}
		request := func(int64) []byte {
			return []byte("GET " + path + " HTTP/1.1\r\nHost: " + at.Host + "\r\nCookie: " +
				strings.Join(cookies, "; ") + "\r\n\r\n")
		}
		bare, err := b.floor(len(plain))
		if err != nil {
			return err
		}
		low, err := load(bare, 1, time.Second, http.StatusOK, request)
		if err != nil {
			return err
		}
		got, err := load(at.Host, 1, 3*time.Second, http.StatusOK, request)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		note := ""
		switch path {
		case frequentWord:
			note = ", a word of most calls (goal 200)"
		case severalWords:
			note = ", four words (goal 200)"
		case rareWord:
			note = ", a rare word (goal 200)"
		}
		fmt.Printf("  %-28s p50 %5.1f ms, p99 %5.1f ms, floor %.1f and %.1f%s\n", path, ms(got.p50), ms(got.p99), ms(low.p50), ms(low.p99), note)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// calls prints how long web calls take to connect, one after the other, and what several at once cost.
func (c *visitor) calls(p *program, a *parley.Assistant) error {
	var connected, heard []time.Duration
	for range 20 {
		w, err := c.dial(a.UUID)
		if err != nil {
			return err
		}
		connected, heard = append(connected, w.connected), append(heard, w.heard)
		w.Close()
	}
	slices.Sort(connected)
	slices.Sort(heard)
	fmt.Printf("  a web call is connected after p50 %.0f ms, p99 %.0f ms (goal 500), the greeting is heard after p50 %.0f ms, p99 %.0f ms\n",
		ms(quantile(connected, .5)), ms(quantile(connected, .99)), ms(quantile(heard, .5)), ms(quantile(heard, .99)))

	const n = 8 // of the ten that the plan allows
	before, err := memory(p.pid)
	if err != nil {
		return err
	}
	var calls []*webCaller
	for range n {
		w, err := c.dial(a.UUID)
		if err != nil {
			return err
		}
		calls = append(calls, w)
	}
	cpu, began := cpuTime(p.pid), time.Now()
	time.Sleep(10 * time.Second)
	used := time.Duration(float64(cpuTime(p.pid)-cpu) / time.Since(began).Seconds() / n)
	after, err := memory(p.pid)
	if err != nil {
		return err
	}
	for _, w := range calls {
		w.Close()
	}
	fmt.Printf("  %d at once, nobody speaking: %.1f ms of CPU a call-second, %d KB a call\n", n, ms(used),
		(after-before)/n)
	return nil
}

// webCaller is a browser on a call.
type webCaller struct {
	*webrtc.PeerConnection
	connected, heard time.Duration // since the button was pressed
	stop             context.CancelFunc
	speaking         sync.WaitGroup
}

// quiet is 20 ms of silence in Opus, as browsers send it: one byte of wide-band SILK, and nothing in it.
var quiet = []byte{0x48, 0x00, 0x00}

func (c *visitor) dial(uuid string) (*webCaller, error) {
	began := time.Now()
	var e webrtc.SettingEngine
	e.SetIncludeLoopbackCandidate(true)
	e.LoggerFactory = &logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled}
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(e)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &webCaller{PeerConnection: pc, stop: stop}
	live, sound := make(chan time.Duration, 1), make(chan time.Duration, 1)
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		if s == webrtc.PeerConnectionStateConnected {
			live <- time.Since(began)
		}
	})
	pc.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		buf := make([]byte, 1500)
		for first := true; ; {
			n, _, err := t.Read(buf)
			if err != nil {
				return
			}
			// the marker: somebody begins to speak
			if first && n > 12 && slices.ContainsFunc(buf[12:n], func(b byte) bool { return b != buf[12] }) &&
				buf[1]&0x80 != 0 {
				sound <- time.Since(began)
				first = false
			}
		}
	})
	mic, err := webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus,
		ClockRate: 48000, Channels: 2}, "mic", "mic")
	if err == nil {
		_, err = pc.AddTrack(mic)
	}
	var offer webrtc.SessionDescription
	if err == nil {
		offer, err = pc.CreateOffer(nil)
	}
	if err == nil {
		err = pc.SetLocalDescription(offer)
	}
	if err != nil {
		return nil, err
	}
	res, err := c.Post(c.base+"/api/web-calls/"+uuid, "application/sdp", strings.NewReader(offer.SDP))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusCreated {
		err = fmt.Errorf("a web call is answered %s: %s", res.Status, answer)
	}
	if err == nil {
		err = pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: string(answer)})
	}
	if err != nil {
		return nil, err
	}
	patience := time.After(20 * time.Second)
	select {
	case w.connected = <-live:
	case <-patience:
		return nil, fmt.Errorf("a web call does not connect")
	}
	w.speaking.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				mic.WriteSample(sample.Sample{Data: quiet, Duration: 20 * time.Millisecond})
			}
		}
	})
	select {
	case w.heard = <-sound:
		return w, nil
	case <-patience:
		return nil, fmt.Errorf("a web call's greeting is not heard")
	}
}

// Close hangs up.
func (w *webCaller) Close() {
	w.stop()
	w.speaking.Wait()
	w.GracefulClose()
}
