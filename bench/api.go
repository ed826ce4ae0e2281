package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"parley/internal/auth"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	connections = 32
	period      = 6 * time.Second
)

// benchAPI measures lists of 15 among 10,000 rows and creates, with 32 connections. Goals: twice PocketBase on such a
// machine (2 cores): 1,800 lists a second, 5,300 creates a second.
func benchAPI(b *bench) error {
	p, err := b.serve(seedLists)
	if err != nil {
		return err
	}
	prompt := fmt.Sprintf("%0200d", 0)
	for _, m := range []struct {
		name   string
		goal   float64
		status int
		req    func(n int64) []byte
	}{
		{"list 15 of 10,000 assistants", 1800, 200, func(n int64) []byte {
			return request("GET", fmt.Sprintf("/api/user/assistants/get?per_page=15&page=%d", n%5+1), p.token, "")
		}},
		{"list 15 of 10,000 conversations", 1800, 200, func(n int64) []byte {
			return request("GET", fmt.Sprintf("/api/user/conversations?page=%d", n%5+1), p.token, "")
		}},
		{"create a tool", 5300, 201, func(n int64) []byte {
			return request("POST", "/api/user/tools", owners[n%int64(len(owners))], `{"name":"tool_`+letters(n)+`","description":"Looks up an order.","method":"GET",
				"endpoint":"https://shop.example.com/orders/{number}","schema":[{"name":"number","type":"string","description":"Order number"}]}`)
		}},
		{"create an assistant", 5300, 201, func(n int64) []byte {
			return request("POST", "/api/user/assistants", owners[n%int64(len(owners))], `{"name":"Bench","type":"inbound","mode":"pipeline","timezone":"UTC",
				"voice_id":1001,"language_id":1,"llm_model_id":1,"system_prompt":"`+prompt+`"}`)
		}},
	} {
		if err := b.measure(p, m.name, m.goal, m.status, m.req); err != nil {
			return err
		}
	}
	return nil
}

// letters writes a number in letters, as the names of tools have no digits.
func letters(n int64) string {
	var b []byte
	for ; n > 0; n /= 26 {
		b = append(b, byte('a'+n%26))
	}
	return string(b)
}

func (b *bench) measure(p *program, name string, goal float64, status int, req func(int64) []byte) error {
	size, err := answerSize(p, req(1))
	if err != nil {
		return err
	}
	bare, err := b.floor(size)
	if err != nil {
		return err
	}
	next := func(n int64) []byte { return req(n + 1) } // the first has measured the size
	low, err := load(bare, connections, period/3, 200, req)
	if err != nil {
		return err
	}
	got, err := load(p.addr, connections, period, status, next)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Printf("  %-34s %.2f of the floor, %.2f of the goal   %.0f/s, p50 %v, p99 %v (floor %.0f/s, p99 %v)\n", name,
		got.perSecond/low.perSecond, got.perSecond/goal, got.perSecond, got.p50.Round(10*time.Microsecond),
		got.p99.Round(10*time.Microsecond),
		low.perSecond, low.p99.Round(10*time.Microsecond))
	return nil
}

// answerSize sends one request and measures the answer, for a floor of the same size.
func answerSize(p *program, raw []byte) (int, error) {
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(raw); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, res.Body)
	return int(n), err
}

// owners are the keys of a thousand users, who share the creating of tools: a plan allows each of them a hundred.
var owners [1000]string

// seedLists makes 10,000 assistants and 10,000 conversations.
func seedLists(ctx context.Context, db *store.DB, u *parley.User, _ string) error {
	const rows, batch = 10_000, 500
	err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		for i := range owners {
			owner := &parley.User{Name: "x", Email: fmt.Sprintf("owner%d@example.com", i), PasswordHash: "-",
				Timezone: "UTC", Plan: "default"}
			if err := tx.CreateUser(ctx, owner); err != nil {
				return err
			}
			if _, owners[i], err = new(auth.Authority).NewKey(ctx, tx, owner.ID, parley.APIKey, "bench"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var first int64
	for from := 0; from < rows; from += batch {
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			for i := from; i < from+batch; i++ {
				a := &parley.Assistant{}
				form.Defaults(a)
				a.Type, a.Mode, a.Status = "inbound", "pipeline", "active"
				a.Name = fmt.Sprintf("Assistant %d", i)
				a.Timezone, a.VoiceID, a.LanguageID, a.SystemPrompt = "UTC", 1001, 1,
					"You are the friendly receptionist of a bakery."
				if err := tx.CreateAssistant(ctx, u.ID, a); err != nil {
					return err
				}
				if first == 0 {
					first = a.ID
				}
				c := &parley.Conversation{UserID: u.ID, AssistantID: first, Type: parley.WidgetConversation,
					Variables: map[string]string{}}
				if err := tx.CreateConversation(ctx, c, "Hello."); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
