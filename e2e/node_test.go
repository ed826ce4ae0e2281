package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/store/storetest"
	"parley/internal/testenv"
)

// join runs one more node on another node's database until the test ends.
func (p *program) join(t *testing.T) *program {
	t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", testenv.Ports(t, 1))
	node := &program{URL: "http://" + at, Email: p.Email, Password: p.Password, Key: p.Key, Assistant: p.Assistant,
		AssistantUUID: p.AssistantUUID,
		log:           &logBuffer{}, env: append(append([]string{}, p.env...), "PARLEY_DATA="+t.TempDir(),
			"PARLEY_LISTEN="+at)}
	node.run(t, func(string) {})
	t.Cleanup(func() { node.stop(t) })
	node.ready(t)
	return node
}

// Two processes on one PostgreSQL keep one conversation in order, and when one is killed in the middle of a reply the
// other one gives the reply.
func TestTwoNodes(t *testing.T) {
	share(t, call)
	one, model := thinking(t, "PARLEY_DATABASE="+storetest.Postgres(t), "PARLEY_SECRET_KEY=the same on all nodes")
	two := one.join(t)
	id := one.converse(t)
	nodes := []*program{one, two}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			text := fmt.Sprintf("message %d", i)
			if status, r := nodes[i%2].say(t, id, text); status != 200 ||
				!strings.HasPrefix(*r.Message, "You said: "+text+" ") {
				t.Errorf("%s: %d %+v", text, status, r)
			}
		})
	}
	wg.Wait()
	var h history
	two.call(t, "GET", "/conversations/"+id, nil, &h)
	for i := 1; i+1 < len(h.History); i += 2 {
		if !strings.Contains(h.History[i+1].Content, h.History[i].Content+" ") {
			t.Errorf("%q is followed by %q", h.History[i].Content, h.History[i+1].Content)
		}
	}
	if len(h.History) != 21 || two.balance(t) != 99.9 {
		t.Errorf("%d messages, balance %v", len(h.History), two.balance(t))
	}

	gate := make(chan struct{})
	defer close(gate)
	asked := model.Count()
	model.Script(aitest.Behaviour{Text: "Never to be heard.", Gate: gate})
	var cut sync.WaitGroup
	cut.Go(func() { one.sendAndForget(id, "last words") })
	look, hang := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer look.Stop()
	wait := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			select {
			case <-look.C:
			case <-hang:
				t.Fatalf("waited for %s in vain", what)
			}
		}
	}
	wait("the model to be asked", func() bool { return model.Count() > asked })
	one.kill(t)
	cut.Wait()
	wait("the other node's reply", func() bool {
		h = history{}
		two.call(t, "GET", "/conversations/"+id, nil, &h)
		return len(h.History) == 23
	})
	if got := h.History[22].Content; !strings.HasPrefix(got, "You said: last words") || two.balance(t) != 99.89 {
		t.Errorf("%q, balance %v", got, two.balance(t))
	}
}
