package local

import (
	"math"
	"regexp"
	"strings"
)

// enough is the share of a question, weighted by how rare its words are, that an answer must cover to be trusted;
// less than little is no answer at all.
const (
	enough = 0.6
	little = 0.3
)

// maxSentences is how many sentences make an answer.
const maxSentences = 3

// passage is a sentence that can be said, with the words that it is found by.
type passage struct {
	say   string
	stems map[string]bool
}

var (
	marker = regexp.MustCompile(`^\s*(?:[-*•+>]+|#{1,6}|\d{1,2}[.)])\s+`)
	asks   = regexp.MustCompile(`(?i)^(?:q|question|customer|user)\s*:\s*(.+)$`)
	tells  = regexp.MustCompile(`(?i)^(?:a|answer|assistant|ai)\s*:\s*(.+)$`)
	// claims are what it is not.
	claims = regexp.MustCompile(`(?i)\b(?:language model|llm|gpt|chatgpt|ai|artificial intelligence|human|person)\b`)
	bold   = strings.NewReplacer("**", "", "__", "", "`", "")
)

// passages takes a prompt or a document apart into what can be said of it. A heading goes with what stands under it,
// a question with its answer, and "You are ..." becomes "I am ...".
func passages(text string) []passage {
	var out []passage
	add := func(say, about string) {
		if say = mine(say); say != "" {
			out = append(out, passage{ended(say), stemSet(about + " " + say)})
		}
	}
	heading, question := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(bold.Replace(line))
		isHeading := strings.HasPrefix(line, "#")
		isItem := !isHeading && marker.MatchString(line)
		line = strings.TrimSpace(marker.ReplaceAllString(line, ""))
		switch {
		case line == "":
			question = ""
		case isHeading || strings.HasSuffix(line, ":") && len(line) < 100:
			heading, question = strings.TrimSuffix(line, ":"), ""
		case asks.MatchString(line):
			question = asks.FindStringSubmatch(line)[1]
		case question != "" && tells.MatchString(line):
			add(tells.FindStringSubmatch(line)[1], question)
			question = ""
		default:
			for _, s := range sentences(line) {
				if isItem && heading != "" && !strings.Contains(s, ": ") && !instructs(heading) &&
					len(strings.Fields(s)) < 8 {
					add(heading+": "+s, "")
				} else {
					add(s, heading)
				}
			}
		}
	}
	return out
}

// mine turns a sentence that describes the assistant into one that it can say; "" when it is none to be said.
func mine(s string) string {
	if instructs(s) {
		return ""
	}
	if rest, ok := cutWord(s, "you are", "you're"); ok {
		if claims.MatchString(rest) {
			return ""
		}
		return "I am " + rest
	}
	if rest, ok := cutWord(s, "you"); ok {
		if claims.MatchString(rest) {
			return ""
		}
		return "I " + rest
	}
	return s
}

func cutWord(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if len(s) > len(p) && strings.EqualFold(s[:len(p)], p) && s[len(p)] == ' ' {
			return s[len(p)+1:], true
		}
	}
	return "", false
}

// find answers a question with the passages that cover its words best: the best one, and others as far as they add
// words. cover is the share of the question that the answer bears on.
func find(list []passage, question string) (answer string, cover float64) {
	asked := stems(question)
	weight := make(map[string]float64, len(asked))
	total, known := 0.0, 0.0 // known counts words that no passage has by half: they may be beside the point
	for _, w := range asked {
		n := 0
		for _, p := range list {
			if p.stems[w] {
				n++
			}
		}
		weight[w] = math.Log(1 + float64(len(list)+1)/float64(n+1))
		total += weight[w]
		if known += weight[w]; n == 0 {
			known -= weight[w] / 2
		}
	}
	if total == 0 {
		return "", 0
	}
	var said []string
	covered := 0.0
	for len(said) < maxSentences {
		best, score, gain := -1, 0.0, 0.0
		for i, p := range list {
			g := 0.0
			for _, w := range asked {
				if p.stems[w] {
					g += weight[w]
				}
			}
			// Of two that say as much the shorter one is better, and one about the matter better than one about the
			// assistant.
			s := g / (1 + 0.02*float64(len(p.stems)))
			if strings.HasPrefix(p.say, "I ") {
				s *= 0.8
			}
			if s > score {
				best, score, gain = i, s, g
			}
		}
		if best < 0 || len(said) == 0 && gain < little*known || len(said) > 0 && gain < 0.2*total {
			break
		}
		said = append(said, list[best].say)
		covered += gain
		for w := range list[best].stems {
			weight[w] = 0 // what is answered counts no more
		}
	}
	return strings.Join(said, " "), covered / total
}
