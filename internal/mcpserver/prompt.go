package mcpserver

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"parley/internal/parley"
)

// prompt is a task that a person picks, with what they say about it; {{name}} in its text stands for an argument. A line that begins
// with "[name] " is left out where that argument was not given.
type prompt struct {
	Name, Title, About, Text string
	Arguments                []struct {
		Name, About string
		Needed      bool
	}
}

//go:embed prompts.yaml
var promptsFile []byte

var prompts = func() (list []prompt) {
	dec := yaml.NewDecoder(bytes.NewReader(promptsFile))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		panic(err) // of our own making
	}
	return list
}()

// maxArgument is how long an argument of a prompt may be, in bytes.
const maxArgument = 20 << 10

func addPrompts(server *sdk.Server) {
	for _, p := range prompts {
		shown := &sdk.Prompt{Name: p.Name, Title: p.Title, Description: p.About}
		for _, a := range p.Arguments {
			shown.Arguments = append(shown.Arguments, &sdk.PromptArgument{Name: a.Name, Description: a.About, Required: a.Needed})
		}
		server.AddPrompt(shown, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			text, err := p.fill(req.Params.Arguments)
			if err != nil {
				return nil, err
			}
			return &sdk.GetPromptResult{Description: p.About,
				Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
		})
	}
}

// fill is the prompt's text with arguments in their places.
func (p *prompt) fill(args map[string]string) (string, error) {
	var pairs []string
	for _, a := range p.Arguments {
		switch value := strings.TrimSpace(args[a.Name]); {
		case value == "" && a.Needed:
			return "", parley.Errorf(parley.Refused, "The argument %s is missing.", a.Name)
		case len(value) > maxArgument:
			return "", parley.Errorf(parley.Refused, "The argument %s is longer than %d bytes.", a.Name, maxArgument)
		default:
			pairs = append(pairs, "{{"+a.Name+"}}", value)
		}
	}
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(p.Text), "\n") {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] "); ok && strings.HasPrefix(line, "[") {
			if strings.TrimSpace(args[name]) == "" {
				continue
			}
			line = rest
		}
		out = append(out, line)
	}
	for n := range out { // numbers of steps, without those that were left out
		out[n] = strings.Replace(out[n], "#. ", fmt.Sprintf("%d. ", steps(out[:n])+1), 1)
	}
	return strings.NewReplacer(pairs...).Replace(strings.Join(out, "\n")), nil
}

// steps counts the numbered lines.
func steps(lines []string) (n int) {
	for _, l := range lines {
		if l != "" && l[0] >= '0' && l[0] <= '9' {
			n++
		}
	}
	return n
}
