package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/knowledge"
	"parley/internal/parley"
)

// ToolPassages is how many passages a search gives the model.
const ToolPassages = 6

const (
	searchTool   = "search_knowledgebase"
	seenPassages = 8    // that are looked at for a prompt
	promptBudget = 2000 // tokens of passages in a prompt, as agent.Tokens counts them
)

// searcher is an assistant's knowledgebase. It notes what it gives to the model: the sources of the reply.
type searcher struct {
	library       *knowledge.Library
	user, base    int64
	mu            sync.Mutex
	sources       []parley.MessageSource
	question, had string // what was looked for last for the prompt, and what came of it
}

// consult gives the assistant its knowledgebase: as a tool for the model to call, or as passages in the prompt.
func (r *Ready) consult(library *knowledge.Library) {
	r.knowledge = &searcher{library: library, user: r.Assistant.UserID, base: *r.Assistant.KnowledgebaseID}
	if r.Assistant.KnowledgebaseMode == "prompt" {
		r.model = &grounded{r.model, r.knowledge}
		return
	}
	r.tools = append(r.tools, agent.Tool{
		Tool: ai.Tool{Name: searchTool,
			Description: "Searches the documents that this assistant answers from. " +
				"Use it for every question about facts that the instructions do not answer, before saying that you do not know. " +
				"The answer holds passages with their sources.",
			Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"What to look for: a whole question, or its words, in the language of the documents."}},"required":["query"],"additionalProperties":false}`)},
		Run: func(ctx context.Context, arguments json.RawMessage) (string, error) {
			var args struct{ Query string }
			if err := json.Unmarshal(arguments, &args); err != nil {
				return "", fmt.Errorf("the arguments are no JSON object: %w", err)
			}
			found, err := r.knowledge.search(ctx, args.Query, ToolPassages)
			if err != nil {
				return "", fmt.Errorf("the documents can't be searched now")
			}
			if len(found) == 0 {
				return "Nothing was found. Try other words.", nil
			}
			return r.knowledge.told(found), nil
		},
	})
}

// Sources lists the passages given to the model since the last call.
func (r *Ready) Sources() []parley.MessageSource {
	if r.knowledge == nil {
		return nil
	}
	r.knowledge.mu.Lock()
	defer r.knowledge.mu.Unlock()
	list := r.knowledge.sources
	r.knowledge.sources = nil
	return list
}

func (s *searcher) search(ctx context.Context, query string, limit int) ([]parley.Passage, error) {
	return s.library.Search(ctx, s.user, s.base, query, limit)
}

// Told is the text in which the model reads passages.
func Told(list []parley.Passage) string {
	var b strings.Builder
	for _, p := range list {
		b.WriteString("## " + strings.Join(strings.Fields(p.DocumentName+" ("+p.Source.Source+")"), " ") + "\n" +
			p.Text + "\n\n")
	}
	return strings.TrimRight(strings.ReplaceAll(b.String(), " ()\n", "\n"), "\n")
}

// told is the text in which the model reads passages, which it notes as sources.
func (s *searcher) told(list []parley.Passage) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range list {
		source := parley.MessageSource{DocumentID: p.DocumentID, DocumentName: p.DocumentName, Source: p.Source}
		if !slices.Contains(s.sources, source) {
			s.sources = append(s.sources, source)
		}
	}
	return Told(list)
}

// grounded is a model whose prompt holds the passages that bear on the customer's latest message.
type grounded struct {
	ai.Model
	knowledge *searcher
}

// Generate implements ai.Model.
func (g *grounded) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role != ai.User || req.Schema != nil { // extraction reads a transcript, and nothing else
			continue
		}
		passages, err := g.knowledge.passages(ctx, m.Text)
		if err != nil {
			return ai.Reply{}, err
		}
		req.System += passages
		break
	}
	return g.Model.Generate(ctx, req, yield)
}

// passages is what a prompt says about a question, within the budget. The steps of one turn ask for the same.
func (s *searcher) passages(ctx context.Context, question string) (string, error) {
	s.mu.Lock()
	had, same := s.had, s.question == question
	s.mu.Unlock()
	if same {
		return had, nil
	}
	list, err := s.search(ctx, question, seenPassages)
	if err != nil {
		return "", fmt.Errorf("search knowledgebase %d: %w", s.base, err)
	}
	left := promptBudget
	for i, p := range list {
		if left -= agent.Tokens(p.Text) + agent.Tokens(p.DocumentName) + agent.Tokens(
			p.Source.Source) + 8; left < 0 && i > 0 {
			list = list[:i]
			break
		}
	}
	text := ""
	if len(list) > 0 {
		text = "\n\n# From the documents\nAnswer from these passages where they bear on the question, " +
			"and say so where they do not.\n\n" + s.told(list)
	}
	s.mu.Lock()
	s.question, s.had = question, text
	s.mu.Unlock()
	return text, nil
}
