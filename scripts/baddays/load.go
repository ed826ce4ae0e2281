package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"mime/multipart"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load are the clients: they chat, upload, send text messages and have calls made, while a campaign runs.
type load struct {
	w       *world
	cancel  context.CancelFunc
	working sync.WaitGroup
	serial  atomic.Int64

	mu            sync.Mutex
	answers       map[string]map[string]int // by kind and status
	wordless      []string                  // answers without words, or without when to ask again
	conversations []string
	replied       map[string]bool // marks of messages whose reply a client has
	documents     []int64         // that were taken
	texts         map[string]bool // bodies of text messages that were taken
	calls         map[string]bool // numbers of calls that were taken

	campaign int64

	maxDocuments  int // a client deletes the oldest beyond these; 0: none
	maxRemembered int // conversations that are judged: the last ones; 0: all
}

func newLoad(w *world) *load {
	return &load{w: w, answers: map[string]map[string]int{}, replied: map[string]bool{}, texts: map[string]bool{}, calls: map[string]bool{}}
}

// start has the clients begin, crowd of each kind and one that uploads. Their choices are of a seed.
func (l *load) start(seed uint64, crowd int) {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	type client struct {
		do    func(ctx context.Context, random *rand.Rand)
		pause time.Duration
	}
	clients := []client{{l.upload, 400 * time.Millisecond}}
	for range crowd {
		clients = append(clients, client{l.chat, 100 * time.Millisecond}, client{l.chat, 300 * time.Millisecond},
			client{l.text, 300 * time.Millisecond}, client{l.call, 500 * time.Millisecond})
	}
	for i, c := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		l.working.Go(func() {
			for ctx.Err() == nil {
				c.do(ctx, random)
				rest(ctx, c.pause/2+time.Duration(random.Int64N(int64(c.pause))))
			}
		})
	}
	if err := l.begins(); err != nil {
		l.mu.Lock()
		l.wordless = append(l.wordless, err.Error())
		l.mu.Unlock()
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// stop ends the clients; what the program has taken goes on. A campaign claims no more.
func (l *load) stop() {
	l.cancel()
	l.working.Wait()
	for range 100 {
		if l.w.must("POST", "/user/campaigns/update-status", map[string]any{"campaign_id": l.campaign, "action": "stop"}, nil) == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// heard counts an answer, judges its words, and says whether it is final: the same request would be answered alike.
func (l *load) heard(kind string, a answer) (done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers[kind] == nil {
		l.answers[kind] = map[string]int{}
	}
	if a.err != nil {
		l.answers[kind]["none"]++
		return false
	}
	l.answers[kind][fmt.Sprint(a.status)]++
	if a.status < 500 {
		return true
	}
	var said struct{ Message, Error string }
	json.Unmarshal(a.body, &said)
	switch {
	case a.status == 500:
		l.wordless = append(l.wordless, fmt.Sprintf("%s is answered 500: %.200s", kind, a.body))
	case said.Message+said.Error == "":
		l.wordless = append(l.wordless, fmt.Sprintf("%s is answered %d without words: %.200s", kind, a.status, a.body))
	case a.status == 503 && a.header.Get("Retry-After") == "":
		l.wordless = append(l.wordless, fmt.Sprintf("%s is answered 503 without Retry-After: %.200s", kind, a.body))
	}
	return false
}

func (l *load) post(kind, path string, body any, header ...string) answer {
	raw, _ := json.Marshal(body)
	a := l.w.ask("POST", path, "application/json", raw, header...)
	l.heard(kind, a)
	return a
}

// insist repeats a request under one Idempotency-Key until its answer is final.
func (l *load) insist(ctx context.Context, kind, path string, body any) (a answer) {
	key := fmt.Sprintf("%s-%d", kind, l.serial.Add(1))
	for ctx.Err() == nil {
		if a = l.post(kind, path, body, "Idempotency-Key", key); a.err == nil && a.status < 500 {
			return a
		}
		rest(ctx, 200*time.Millisecond)
	}
	return a
}

// chat holds a conversation of two messages.
func (l *load) chat(ctx context.Context, random *rand.Rand) {
	a := l.post("conversation", "/conversations", map[string]any{"assistant_id": l.w.uuid})
	var made struct {
		ID string `json:"conversation_id"`
	}
	if a.err != nil || a.status != 200 || json.Unmarshal(a.body, &made) != nil {
		return
	}
	l.mu.Lock()
	l.conversations = append(l.conversations, made.ID)
	if n := len(l.conversations) - l.maxRemembered; l.maxRemembered > 0 && n > 0 {
		l.conversations = l.conversations[n:]
	}
	l.mu.Unlock()
	for range 2 {
		m := fmt.Sprintf("mark-%d-", l.serial.Add(1))
		text := m + strings.Repeat(" and so on", random.IntN(50))
		a := l.post("message", "/conversations/"+made.ID+"/messages", map[string]any{"message": text})
		var reply struct{ Message *string }
		if a.err != nil || a.status != 200 {
			return
		}
		if json.Unmarshal(a.body, &reply) == nil && reply.Message != nil {
			l.mu.Lock()
			l.replied[m] = true
			l.mu.Unlock()
		}
	}
}

// upload adds a document, and deletes the oldest where there are too many.
func (l *load) upload(_ context.Context, random *rand.Rand) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	name := fmt.Sprintf("page %d", l.serial.Add(1))
	w.WriteField("name", name)
	w.WriteField("type", "txt")
	part, _ := w.CreateFormFile("file", name+".txt")
	part.Write(bytes.Repeat([]byte("We bake bread from Monday to Saturday. "), 10+random.IntN(500)))
	w.Close()
	a := l.w.ask("POST", l.w.documents, w.FormDataContentType(), b.Bytes())
	l.heard("document", a)
	var made struct{ Data struct{ ID int64 } }
	if a.err == nil && a.status == 201 && json.Unmarshal(a.body, &made) == nil {
		l.mu.Lock()
		l.documents = append(l.documents, made.Data.ID)
		var old int64
		if l.maxDocuments > 0 && len(l.documents) > l.maxDocuments {
			old, l.documents = l.documents[0], l.documents[1:]
		}
		l.mu.Unlock()
		if old > 0 {
			l.heard("deletion", l.w.ask("DELETE", fmt.Sprintf("%s/%d", l.w.documents, old), "", nil))
		}
	}
}

// text sends a text message.
func (l *load) text(ctx context.Context, _ *rand.Rand) {
	body := fmt.Sprintf("text %d", l.serial.Add(1))
	a := l.insist(ctx, "sms", "/user/sms", map[string]any{"from": l.w.number, "to": "+12025550777", "body": body})
	if a.err == nil && a.status < 300 {
		l.mu.Lock()
		l.texts[body] = true
		l.mu.Unlock()
	}
}

// call has a number called that nobody else calls.
func (l *load) call(ctx context.Context, _ *rand.Rand) {
	to := numbered("call", int(l.serial.Add(1)))
	a := l.insist(ctx, "call", "/user/make_call", map[string]any{"phone_number": to, "assistant_id": l.w.caller})
	if a.err == nil && a.status == 200 {
		l.mu.Lock()
		l.calls[to] = true
		l.mu.Unlock()
	}
}

// leads are as many as no run comes to the end of.
const leads = 20_000

// begins has a campaign call its leads.
func (l *load) begins() error {
	var made struct{ Data struct{ ID int64 } }
	if err := l.w.must("POST", "/user/campaigns", map[string]any{"name": "Bad days", "assistant_id": l.w.caller, "max_calls_in_parallel": 2},
		&made); err != nil {
		return err
	}
	l.campaign = made.Data.ID
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	w.WriteField("campaign_id", fmt.Sprint(l.campaign))
	part, _ := w.CreateFormFile("file", "list.csv")
	fmt.Fprintln(part, "phone_number")
	for i := range leads {
		fmt.Fprintln(part, numbered("lead", i))
	}
	w.Close()
	if a := l.w.ask("POST", "/user/leads/import", w.FormDataContentType(), b.Bytes()); a.err != nil || a.status != 200 {
		return fmt.Errorf("import leads: %d %.300s %w", a.status, a.body, a.err)
	}
	return l.w.must("POST", "/user/campaigns/update-status", map[string]any{"campaign_id": l.campaign, "action": "start"}, nil)
}

// summary says what the clients were answered.
func (l *load) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(l.answers)) {
		fmt.Fprintf(&b, "  %-12s answered", kind)
		for _, status := range slices.Sorted(maps.Keys(l.answers[kind])) {
			fmt.Fprintf(&b, "  %s: %d", status, l.answers[kind][status])
		}
		b.WriteString("\n")
	}
	return b.String()
}
