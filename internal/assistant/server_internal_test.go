package assistant

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
)

func listed(server string, names ...string) parley.Tool {
	t := parley.Tool{Kind: parley.ToolMCP, Name: server, Listing: &parley.ToolListing{}}
	for _, name := range names {
		t.Listing.Tools = append(t.Listing.Tools, parley.ListedTool{Name: name, Schema: parley.JSONSchema(`{"type":"object"}`)})
	}
	return t
}

// Names of tools are the servers' own where no other tool has them; no two are the same, whatever servers call them.
func TestNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	for name, c := range map[string]struct {
		servers []parley.Tool
		others  []string
		want    []string
	}{
		"own":             {[]parley.Tool{listed("a", "x", "y"), listed("b", "z")}, []string{"w"}, []string{"x", "y", "z"}},
		"two servers":     {[]parley.Tool{listed("a", "x"), listed("b", "x", "y")}, nil, []string{"a_x", "b_x", "y"}},
		"another tool":    {[]parley.Tool{listed("a", "x")}, []string{"x"}, []string{"a_x"}},
		"a built-in tool": {[]parley.Tool{listed("a", "end_call")}, nil, []string{"a_end_call"}},
		"characters":      {[]parley.Tool{listed("a", "get/x.y", "größe")}, nil, []string{"get_x_y", "gr__e"}},
		"same by them":    {[]parley.Tool{listed("a", "g.x", "g/x")}, nil, []string{"a_g_x", "a_g_x_2"}},
		"taken":           {[]parley.Tool{listed("a", "x", "a_x")}, []string{"x"}, []string{"a_x_2", "a_x"}},
		"taken by a tool": {[]parley.Tool{listed("a", "x")}, []string{"x", "a_x"}, []string{"a_x_2"}},
		"long":            {[]parley.Tool{listed("a", long, long+"y")}, nil, []string{"a_" + long[:62], "a_" + long[:60] + "_2"}},
	} {
		var got []string
		for _, n := range named(c.servers, c.others) {
			got = append(got, n.name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	var many []parley.Tool
	for i := range 4 {
		var names []string
		for j := range 60 {
			names = append(names, fmt.Sprintf("t%d_%d", i, j))
		}
		many = append(many, listed("a", names...))
	}
	if n := len(named(many, nil)); n != 128 {
		t.Errorf("a model gets %d tools", n)
	}
}
