package search

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestTranscripts: what was said is found, by its owner alone, in any of its words' forms, until it is deleted.
func TestTranscripts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		write := func(fn func(ctx context.Context, tx *store.Tx) error) {
			t.Helper()
			if err := db.Write(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
		held := func(userID int64, ended parley.DateTime, said ...string) *parley.Call {
			t.Helper()
			a := &parley.Assistant{UUID: uuid.NewString(), Name: "Anna", Type: "outbound", Status: "active",
				Mode: "pipeline", Timezone: "UTC", LanguageID: 1, VoiceID: 1001}
			c := &parley.Call{Type: parley.CallWeb, Status: parley.CallCompleted, EndedAt: ended}
			for _, s := range said {
				c.Turns = append(c.Turns, parley.CallTurn{Speaker: parley.SpeakerCustomer, Text: s})
			}
			write(func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateAssistant(ctx, userID, a); err != nil {
					return err
				}
				c.AssistantID = a.ID
				return tx.CreateCall(ctx, userID, c)
			})
			return c
		}
		now := parley.DateTime(parley.Now())
		first := held(u.ID, now, "I want my deliveries sooner, s'il vous plaît.", "It's the café's invoice; \"O'Neill\" & co.")
		second := held(u.ID, now, "No delivery, 日本語 please.")
		held(u.ID, 0, "A live delivery")
		held(other.ID, now, "Their delivery")
		conv := &parley.Conversation{UserID: u.ID, AssistantID: first.AssistantID, Type: parley.WidgetConversation,
			Variables: map[string]string{}}
		write(func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateConversation(ctx, conv, "Hello, how may I help?")
		})
		index := func() {
			t.Helper()
			if err := IndexTranscripts(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			if left, err := db.TranscriptsLeft(t.Context()); left || err != nil {
				t.Error("something is left", err)
			}
		}
		index()
		find := func(text string, want ...int64) {
			t.Helper()
			list, total, err := db.Calls(t.Context(), u.ID, store.CallFilter{Words: Query(u.ID, text)}, store.Page{Number: 1, Size: 10})
			if err != nil || total != len(want) || len(list) != len(want) {
				t.Errorf("%q finds %d of %d: %v", text, len(list), total, err)
				return
			}
			for i := range list {
				if list[i].ID != want[i] {
					t.Errorf("%q finds %d, not %d", text, list[i].ID, want[i])
				}
			}
		}
		find("delivery", second.ID, first.ID)
		find("DELIVERIES invoices", first.ID)
		find("cafe plait", first.ID)
		find("O'Neill", first.ID)
		find("日本", second.ID)
		find("delivery elephant")
		find("!!!")
		find(`" OR tokens MATCH 'x' & | ! :*`)
		find("their")

		chats := func(text string) int {
			t.Helper()
			_, total, err := db.Conversations(t.Context(), u.ID, store.ConversationFilter{Words: Query(u.ID, text)}, store.Page{Number: 1, Size: 10})
			if err != nil {
				t.Fatal(err)
			}
			return total
		}
		if chats("help") != 1 || chats("refund") != 0 {
			t.Error("the greeting is not found, or what nobody said is")
		}
		write(func(ctx context.Context, tx *store.Tx) error {
			return tx.AddMessage(ctx,
				&parley.Message{ConversationID: conv.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer, Content: "A refund!"}, 0, 0)
		})
		index()
		if chats("refund help") != 1 {
			t.Error("what was said later is not found")
		}
		write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteConversation(ctx, u.ID, conv.ID) })
		write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.DeleteCall(ctx, u.ID, first.ID)
			return err
		})
		find("delivery", second.ID)
		table, key := "call_tokens", "id"
		if db.SQLite() {
			key = "rowid"
		}
		var n int
		if err := db.SQL().NewRaw("SELECT count(*) FROM "+table+" WHERE "+key+" = ?", first.ID).Scan(t.Context(), &n); err != nil || n != 0 {
			t.Error("the index keeps what was deleted", n, err)
		}
	})
}

func TestSnippet(t *testing.T) {
	long := strings.Repeat("Nothing here to be seen. ", 30) + "The refunds of the café take <b>ten</b> days. " +
		strings.Repeat("And so on. ", 30)
	show := func(text, said string) string {
		var b strings.Builder
		for _, p := range Snippet(7, Query(7, text), said) {
			if p.Match {
				b.WriteString("[" + p.Text + "]")
			} else {
				b.WriteString(p.Text)
			}
		}
		return b.String()
	}
	got := show("refund cafe", long)
	if !strings.Contains(got, "The [refunds] of the [café] take <b>ten</b> days.") || !strings.HasPrefix(got, "… ") ||
		!strings.HasSuffix(got, " …") || len(got) > 2*maxSnippet {
		t.Errorf("%q", got)
	}
	for _, c := range [][3]string{{"elephant", long, ""}, {"hi", "Hi", "[Hi]"}, {"日本", "日本語です", "[日本語です]"},
		{"x", strings.Repeat("ü", 400) + " x", ""}} {
		if got := show(c[0], c[1]); got != c[2] && c[0] != "x" {
			t.Errorf("%q in %.40q: %q", c[0], c[1], got)
		}
	}
	// Wherever it is cut, it is text.
	for n := range 60 {
		for _, p := range Snippet(7, Query(7, "x"), strings.Repeat("ü", 100+n)+" x "+strings.Repeat("日", 200+n)) {
			if strings.ContainsRune(p.Text, '\uFFFD') {
				t.Fatalf("%q", p.Text)
			}
		}
	}
}
