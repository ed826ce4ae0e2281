package campaign

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/parley"
)

// The tables of docs/campaigns.md match the program.
func TestStatesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/campaigns.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ` + "`([a-z-]+)` \\| ([a-z ]+) \\| `([a-z-]+)`")
	var written, real []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		written = append(written, strings.Join(m[1:], " > "))
	}
	for from, moves := range parley.CampaignMoves {
		for e, to := range moves {
			real = append(real, fmt.Sprintf("%s > %s > %s", from, e, to))
		}
	}
	for from, moves := range parley.LeadMoves {
		for e, to := range moves {
			real = append(real, fmt.Sprintf("%s > %s > %s", from, e, to))
		}
	}
	slices.Sort(written)
	slices.Sort(real)
	if !slices.Equal(written, real) {
		for _, r := range real {
			if !slices.Contains(written, r) {
				t.Errorf("not in docs/campaigns.md: %s", r)
			}
		}
		for _, w := range written {
			if !slices.Contains(real, w) {
				t.Errorf("in docs/campaigns.md, and not so: %s", w)
			}
		}
	}
}
