package main

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/store"
)

// firstEmail is the address of the user that a first start makes.
const firstEmail = "admin@localhost"

// firstStart makes a first user with 100 USD, a key and a ready assistant where there is no user yet, and says once
// how to get in.
func firstStart(t *terminal, s *Settings, db *store.DB, authority *auth.Authority, assistants *assistant.Studio,
	phone *telephone, at net.Addr) error {
	if any, err := db.AnyUser(t); err != nil {
		return err
	} else if any {
		return authority.FirstOperator(t, firstEmail)
	}
	raw := make([]byte, 10)
	rand.Read(raw)
	password := strings.ToLower(base32.StdEncoding.EncodeToString(raw)) // 80 bits, easy to type
	u := &parley.User{Name: "Admin", Email: firstEmail, Timezone: "UTC", ZoneAssumed: true, Plan: "default", Operator: true}
	token, err := authority.First(t, u, password, 100*parley.USD)
	if err != nil || token == "" { // another node was first: its unique address refused ours, or its user is there
		if any, check := db.AnyUser(t); check == nil && any {
			return nil
		}
		return err
	}
	a, err := assistants.Create(t, u.ID, firstAssistant(assistants.Catalog))
	if err != nil {
		return fmt.Errorf("make the first assistant: %w", err)
	}
	var told strings.Builder
	fmt.Fprintf(&told, `
Parley is ready. This is shown once:

  Console    %[1]s
  Sign in    %[2]s  password  %[3]s
  API        %[1]s/api   (reference: %[1]s/api/docs)
  API key    %[4]s
  Assistant  %[5]s, id %[6]d, %[7]s
`, s.urlOf(at), firstEmail, password, token, a.Name, a.ID, a.UUID)
	if at := phone.softphone(s, a.ID); at != "" {
		fmt.Fprintf(&told, "  Softphone  %s   (call it from this machine)\n", at)
	}
	return tell(t.Out, s.Data, told.String()+"\n", inJournal(os.Stdout))
}

// tell shows how to sign in for the first time. systemd's journal keeps what it gets, and others may read it: there, how to sign in goes to
// a file of the server's own instead.
func tell(out io.Writer, dir, text string, journal bool) error {
	if !journal {
		_, err := io.WriteString(out, text)
		return err
	}
	file := filepath.Join(dir, "first-sign-in.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write how to sign in: %w", err)
	}
	_, err := fmt.Fprintf(out, "Parley is ready. How to sign in is in %s: read it as root, and delete it.\n", file)
	return err
}

// inJournal reports whether a file leads to systemd's journal. Programs of a desktop may have the variable without that: it names the
// journal's file (systemd.exec(5)).
func inJournal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

// firstAssistant is an assistant that can talk at once.
func firstAssistant(cat *catalog.Catalog) map[string]any {
	voice := cat.Voices("pipeline", 1)[0]
	model := cat.ModelsOf(parley.LLM)[0]
	return body(map[string]any{
		"name": "Front desk", "type": "inbound", "mode": "pipeline", "status": "active", "timezone": "UTC",
		"record":      true,
		"language_id": voice.LanguageID, "voice_id": voice.ID, "llm_model_id": model.ID,
		"initial_message": "Hello, this is {{company}}. How can I help you?",
		"variables":       map[string]any{"company": "Acme Bakery"},
		"tools":           []any{map[string]any{"type": "end_call"}},
		"system_prompt": `You are the friendly receptionist of {{company}}. Answer in one or two short sentences.
We are open Monday to Saturday from 7 am to 6 pm, and closed on Sundays.
We are at 12 Market Street, next to the town hall. Parking is free behind the shop.
A loaf of sourdough costs 6 dollars, a croissant 3 dollars. Cakes are made to order with two days' notice.
When you don't know something, say so and offer that a colleague calls back.`,
	})
}
