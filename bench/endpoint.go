package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/egress"
	servers "parley/internal/endpoint"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
)

// benchEndpoint measures what endpoints of an account's own take until the first word, and until the reply is whole, over a server at
// the operator's base URL: the same server, and the reference programs of the protocol parley. The goal is at most 3 ms more (p99).
func benchEndpoint(b *bench) error {
	const rounds = 2000
	far, err := aitest.Serve()
	if err != nil {
		return err
	}
	defer far.Close()
	far.Models = []string{"thinker"}
	set, err := provider.Open([]*ai.Vendor{openai.Declare(&openai.Settings{BaseURL: far.URL, APIKey: "key", ChatModel: []string{"thinker"}})})
	if err != nil {
		return err
	}
	defer set.Close()
	byURL, err := set.Model(openai.Code, "thinker")
	if err != nil {
		return err
	}
	book := servers.New(nil, egress.New(nil, netip.MustParsePrefix("127.0.0.0/8")), set, servers.Public, func(int64, string) {})
	defer book.Close()
	models, names := []ai.Model{byURL}, []string{""}
	add := func(name string, e parley.Endpoint) error {
		e.ID, e.Name, e.Kind = int64(len(models)), name, parley.EndpointLLM
		own, err := book.Open(&e)
		if err != nil {
			return err
		}
		m, err := own.Model()
		models, names = append(models, m), append(names, name)
		return err
	}
	if err := add("openai", parley.Endpoint{Protocol: parley.EndpointOpenAI, URL: far.URL, Key: "key", Model: "thinker",
		Headers: []parley.ToolHeader{{Name: "X-Team", Value: "bakery"}}}); err != nil {
		return err
	}
	for _, form := range []struct{ name, scheme, folder string }{{"agent by WebSocket", "ws://", "./examples/endpoint"},
		{"agent by requests", "http://", "./examples/endpoint/http"}} {
		at, err := b.example(form.folder)
		if err != nil {
			return err
		}
		if err := add(form.name, parley.Endpoint{Protocol: parley.EndpointParley, URL: form.scheme + at}); err != nil {
			return err
		}
	}
	req := ai.Request{System: "You are a baker.", Messages: []ai.Message{{Role: ai.User, Text: "What do you have today?"}}}
	ctx := ai.ForParty(context.Background(), ai.Party{Of: "call 1", Assistant: 1, Customer: "+4930123456"})
	first, whole := make([][]time.Duration, len(models)), make([][]time.Duration, len(models))
	for round := range rounds + 50 {
		for i, m := range models { // by turns: what else this machine does falls on both
			began, said := time.Now(), time.Duration(0)
			reply, err := m.Generate(ctx, req, func(ai.Delta) error {
				if said == 0 {
					said = time.Since(began)
				}
				return nil
			})
			if err != nil || reply.Text == "" {
				return fmt.Errorf("%s answered %q, %w", names[i], reply.Text, err)
			}
			if round >= 50 {
				first[i], whole[i] = append(first[i], said), append(whole[i], time.Since(began))
			}
		}
	}
	for _, part := range []struct {
		name string
		took [][]time.Duration
	}{{"first word", first}, {"whole reply", whole}} {
		for i, name := range names {
			if slices.Sort(part.took[i]); i == 0 {
				continue
			}
			for _, q := range []float64{.5, .99} {
				base, took := quantile(part.took[0], q), quantile(part.took[i], q)
				fmt.Printf("  p%.0f  %s by an endpoint of one's own, %s: %.2f ms more (goal: 3), %.2f ms and %.2f ms\n", 100*q, part.name,
					name, ms(took-base), ms(took), ms(base))
			}
		}
	}
	return nil
}

// example builds and starts a reference program until the group's end. It returns its address, and path, on loopback.
func (b *bench) example(folder string) (string, error) {
	dir, err := os.MkdirTemp("", "parley-example-")
	if err != nil {
		return "", err
	}
	b.undo = append(b.undo, func() { os.RemoveAll(dir) })
	bin := filepath.Join(dir, "endpoint")
	if out, err := exec.Command("go", "build", "-o", bin, folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	at := free.Addr().String()
	free.Close()
	cmd := exec.Command(bin, at)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	b.undo = append(b.undo, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			return at, conn.Close()
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("%s does not serve: %w", folder, err)
		}
	}
}
