package main

import (
	"context"
	"fmt"
	"net/netip"
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

// benchEndpoint measures what an endpoint of an account's own takes over the same server by the operator's base URL: until the
// first word, and until the reply is whole. The goal is at most 3 ms more (p99).
func benchEndpoint(*bench) error {
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
	book := servers.New(nil, egress.New(nil, netip.MustParsePrefix("127.0.0.0/8")), set, []string{"all"}, func(string) {})
	defer book.Close()
	own, err := book.Open(&parley.Endpoint{ID: 1, Name: "mine", Part: parley.EndpointModel, Protocol: parley.EndpointOpenAI,
		URL: far.URL, Key: "key", Model: "thinker", Headers: []parley.ToolHeader{{Name: "X-Team", Value: "bakery"}}})
	if err != nil {
		return err
	}
	mine, err := own.Model()
	if err != nil {
		return err
	}
	req := ai.Request{System: "You are a baker.", Messages: []ai.Message{{Role: ai.User, Text: "What do you have today?"}}}
	ctx := ai.ForParty(context.Background(), ai.Party{Of: "call 1", Assistant: 1, Customer: "+4930123456"})
	models := []ai.Model{byURL, mine}
	first, whole := make([][]time.Duration, 2), make([][]time.Duration, 2)
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
				return fmt.Errorf("a model answered %q, %w", reply.Text, err)
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
		slices.Sort(part.took[0])
		slices.Sort(part.took[1])
		for _, q := range []float64{.5, .99} {
			b, m := quantile(part.took[0], q), quantile(part.took[1], q)
			fmt.Printf("  p%.0f  %s by an endpoint of one's own: %.2f ms more (goal: 3), %.2f ms and %.2f ms\n", 100*q, part.name, ms(m-b),
				ms(m), ms(b))
		}
	}
	return nil
}
