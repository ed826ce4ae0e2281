package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/channel/whatsapp/graph/graphtest"
)

// tells sends a webhook as the platform does: again and again until the answer is 200.
func (p *program) tells(t *testing.T, body []byte) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/webhooks/whatsapp", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Hub-Signature-256", graph.Sign(graphtest.AppSecret, body))
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode == 200 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the webhook is not taken: %v %v", res, err)
		}
	}
}

// command runs an operator's command on the program's data.
func (p *program) command(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), p.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// waits polls until ok returns true.
func waits(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick, hang := time.NewTicker(20*time.Millisecond), time.After(2*patience)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-hang:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// A program that is killed in the middle of a customer's message answers it once after its restart and charges it
// once, though the platform sends the webhook again. When it is killed while the reply is on its way, the platform's
// status keeps the reply from being sent twice.
func TestWhatsAppKilled(t *testing.T) {
	share(t, call)
	platform := graphtest.New(t)
	platform.Set([]graphtest.Object{graphtest.Number("111", "+1 631-555-8151", "Acme", "CONNECTED", "GREEN",
		"TIER_1K")}, nil)
	p, model := thinking(t, "PARLEY_WHATSAPP_TOKEN="+graphtest.Token, "PARLEY_WHATSAPP_BUSINESS_ID="+
		graphtest.BusinessID, "PARLEY_WHATSAPP_BASE_URL="+platform.URL,
		"PARLEY_WHATSAPP_APP_SECRET="+graphtest.AppSecret, "PARLEY_WHATSAPP_VERIFY_TOKEN="+graphtest.VerifyToken)
	if out := p.command(t, "whatsapp", "assign", "--sender", "+16315558151", "--user",
		p.Email); out != "+16315558151 (Acme) belongs to "+p.Email+"\n" {
		t.Errorf("assign printed %q", out)
	}
	if out := p.command(t, "doctor"); !strings.Contains(out, "1 senders; the webhook is") {
		t.Errorf("doctor: %s", out)
	}
	var list struct{ Data []struct{ ID int64 } }
	if status := p.call(t, "GET", "/user/whatsapp/senders", nil, &list); status != 200 || len(list.Data) != 1 {
		t.Fatalf("%d %+v", status, list)
	}
	if status := p.call(t, "PUT", fmt.Sprintf("/user/whatsapp/senders/%d", list.Data[0].ID),
		map[string]any{"assistant_id": p.Assistant}, nil); status != 200 {
		t.Fatal(status)
	}
	before := p.balance(t)

	gate := make(chan struct{})
	defer close(gate)
	model.Script(aitest.Behaviour{Text: "Never heard.", Gate: gate})
	body := graphtest.Text("111", "14155552671", "wamid.1", "Are you open?")
	p.tells(t, body)
	waits(t, "the model to be asked", func() bool { return model.Count() == 1 })
	p.kill(t)
	taken := make(chan graphtest.Sent, 1)
	platform.Script(graphtest.Behaviour{Gate: gate, Taken: taken})
	p.restart(t)
	for range 3 {
		p.tells(t, body)
	}
	var reply graphtest.Sent
	select {
	case reply = <-taken:
	case <-time.After(2 * patience):
		t.Fatal("no reply was sent after the restart")
	}
	if !strings.HasPrefix(reply.Text, "You said: Are you open?") || reply.To != "14155552671" {
		t.Errorf("sent %+v", reply)
	}
	p.kill(t) // the platform has the reply, but its answer is lost
	p.restart(t)
	p.tells(t, graphtest.Status("111", reply.ID, "delivered", reply.Opaque))
	p.tells(t, body)

	var conversations struct{ Data []struct{ ID string } }
	p.call(t, "GET", "/user/conversations?type=whatsapp", nil, &conversations)
	if len(conversations.Data) != 1 {
		t.Fatalf("%+v", conversations)
	}
	var h history
	p.call(t, "GET", "/user/conversations/"+conversations.Data[0].ID, nil, &h)
	if len(h.History) != 2 || h.History[1].Content != reply.Text {
		t.Errorf("history %+v", h)
	}
	// The next message is answered at once, in its turn, and nothing is sent twice.
	p.tells(t, graphtest.Text("111", "14155552671", "wamid.2", "Thanks"))
	waits(t, "the second reply", func() bool { return len(platform.Sent()) == 2 })
	waits(t, "its charge", func() bool { return before-p.balance(t) > 0.0199 })
	if got := before - p.balance(t); got > 0.0201 {
		t.Errorf("two messages cost %f", got)
	}
	if log := p.log.String(); strings.Contains(log, graphtest.Token) ||
		strings.Contains(log, graphtest.AppSecret) || strings.Contains(log, graphtest.VerifyToken) {
		t.Errorf("a secret is in the log:\n%s", log)
	}
}
