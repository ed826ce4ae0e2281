package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/tool"
)

// benchTool measures what a tool of an MCP server takes over the same tool by HTTP: both answer at once, and the session
// with the server is that of a conversation, which has begun. The goal is at most 5 ms more.
func benchTool(*bench) error {
	const rounds = 2000
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"left":3}`)
	}))
	defer plain.Close()
	shop := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	sdk.AddTool(shop, &sdk.Tool{Name: "stock"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{"left":3}`}}}, nil, nil
	})
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shop }, nil))
	defer far.Close()
	runner := tool.New(egress.New(nil, netip.MustParsePrefix("127.0.0.0/8")))
	defer runner.Close()
	ctx := context.Background()
	byHTTP := &parley.Tool{Kind: parley.ToolHTTP, Name: "stock", Method: http.MethodPost, Endpoint: plain.URL, Timeout: 30}
	server := &parley.Tool{Kind: parley.ToolMCP, Name: "shop", Endpoint: far.URL, Timeout: 30}
	if server.Listing = runner.List(ctx, server, tool.Variables{}); len(server.Listing.Tools) != 1 {
		return fmt.Errorf("the server listed %+v", server.Listing)
	}
	ways := []func() tool.Result{
		func() tool.Result { return runner.Run(ctx, byHTTP, map[string]any{}, tool.Variables{}) },
		func() tool.Result {
			return runner.RunListed(ctx, server, server.Listing.Tools[0], "call 1", map[string]any{}, tool.Variables{})
		},
	}
	took := make([][]time.Duration, len(ways))
	for range rounds {
		for i, way := range ways { // by turns: what else this machine does falls on both
			began := time.Now()
			if r := way(); r.Text() != `{"left":3}` {
				return fmt.Errorf("a tool answered %q", r.Text())
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for _, t := range took {
		slices.Sort(t)
	}
	for _, q := range []float64{.5, .99} {
		h, m := quantile(took[0], q), quantile(took[1], q)
		fmt.Printf("  p%.0f  by MCP %.1f times the same tool by HTTP: %.2f ms more (goal: 5), %.2f ms and %.2f ms\n", 100*q,
			float64(m)/float64(h), ms(m-h), ms(m), ms(h))
	}
	return nil
}
