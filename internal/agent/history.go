package agent

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"parley/internal/ai"
)

// Tokens estimates how many tokens a text has: a quarter of its ASCII bytes, plus one for every other rune. The
// vendors' tokenizers find fewer in nearly every text, so a budget holds.
func Tokens(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}

// messageTokens is what a message adds to its texts.
const messageTokens = 4

// Trim returns the newest part of a conversation that fits a budget of tokens. What tools answered is shortened first,
// the older answers before the latest; then older messages are dropped, the oldest first. A call never goes without its
// results, nor a result without its call; calls without results (a node died) and results without calls are left out.
// The customer's latest message always stays, and so does the very last entry, which the model is about to answer.
// Calls get ids that are unique in the result. The history itself is not changed.
func Trim(history []ai.Message, budget int) []ai.Message {
	units := split(history)
	shortenResults(units, budget)
	customer := -1
	for i, u := range units {
		if u[0].Role == ai.User {
			customer = i
		}
	}
	if customer >= 0 {
		budget -= size(units[customer])
	}
	from := len(units) // the oldest unit that fits
	for i := len(units) - 1; i >= 0; i-- {
		if i != customer {
			if budget -= size(units[i]); budget < 0 && i < len(units)-1 {
				break
			}
		}
		from = i
	}
	var out []ai.Message
	if customer >= 0 && customer < from {
		out = append(out, units[customer]...)
	}
	return number(append(out, slices.Concat(units[from:]...)...))
}

// minResult is how short a tool's answer may become, in tokens.
const minResult = 200

// shortenResults shortens what tools answered until the units fit a budget, or are short. An older answer keeps a
// quarter of what the latest keeps: much of it has been said already.
func shortenResults(units [][]ai.Message, budget int) {
	total := 0
	for _, u := range units {
		total += size(u)
	}
	for share := budget / 2; ; share /= 2 {
		for i, u := range units {
			most := max(share, minResult)
			if i < len(units)-1 {
				most = max(share/4, minResult)
			}
			for j := range u {
				if total <= budget {
					return
				}
				if n := Tokens(u[j].Text); u[j].Role == ai.ToolRole && n > most {
					u[j].Text = Shorten(u[j].Text, most)
					total -= n - Tokens(u[j].Text)
				}
			}
		}
		if share < minResult {
			return
		}
	}
}

// Shorten leaves out the middle of a text that has more than so many tokens, and says so in its place.
func Shorten(text string, tokens int) string {
	if Tokens(text) <= tokens {
		return text
	}
	const note = "\n[… %d characters are left out here: the answer was too long …]\n"
	room := (tokens - 25) * 4 // quarters of a token, as Tokens counts
	head, last := 0, len(text)
	for left := room * 3 / 4; head < last; {
		r, n := utf8.DecodeRuneInString(text[head:])
		if left -= quarters(r); left < 0 {
			break
		}
		head += n
	}
	for left := room / 4; last > head; {
		r, n := utf8.DecodeLastRuneInString(text[:last])
		if left -= quarters(r); left < 0 {
			break
		}
		last -= n
	}
	return text[:head] + fmt.Sprintf(note, utf8.RuneCountInString(text[head:last])) + text[last:]
}

// quarters is how much of a token a character is, in quarters.
func quarters(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 4
}

// split cuts a conversation into units that stay together: a message, or one with calls and their results.
func split(history []ai.Message) [][]ai.Message {
	var units [][]ai.Message
	for i := 0; i < len(history); {
		m := history[i]
		i++
		if m.Role == ai.ToolRole {
			continue // belongs to no call
		}
		results := map[string]ai.Message{}
		for ; i < len(history) && history[i].Role == ai.ToolRole; i++ {
			results[history[i].CallID] = history[i]
		}
		unit := []ai.Message{m}
		unit[0].Calls = nil
		for _, c := range m.Calls {
			if r, ok := results[c.ID]; ok {
				unit[0].Calls = append(unit[0].Calls, c)
				unit = append(unit, r)
				delete(results, c.ID)
			}
		}
		if m.Text != "" || len(unit) > 1 {
			units = append(units, unit)
		}
	}
	return units
}

func size(unit []ai.Message) int {
	n := 0
	for _, m := range unit {
		n += messageTokens + Tokens(m.Text)
		for _, c := range m.Calls {
			n += messageTokens + Tokens(c.Name) + Tokens(c.Arguments)
		}
	}
	return n
}

// number gives the calls new ids, in order. They have nine characters: some servers accept no others. The units' calls
// are already copies.
func number(messages []ai.Message) []ai.Message {
	n := 0
	for i := range messages {
		for j := range messages[i].Calls {
			n++
			id := "c" + strconv.Itoa(10_000_000+n)
			messages[i].Calls[j].ID = id
			messages[i+1+j].CallID = id
		}
	}
	return messages
}

// Replay rebuilds the messages of a stored reply: its calls with their results, then its text.
func Replay(text string, calls []ToolCall) []ai.Message {
	var out []ai.Message
	if len(calls) > 0 {
		made := make([]ai.ToolCall, len(calls))
		for i, c := range calls {
			made[i] = ai.ToolCall{ID: strconv.Itoa(i), Name: c.Name, Arguments: string(c.Arguments)}
		}
		out = append(out, ai.Message{Role: ai.Assistant, Calls: made})
		for i, c := range calls {
			out = append(out, ai.Message{Role: ai.ToolRole, CallID: strconv.Itoa(i), Text: c.Result})
		}
	}
	if text != "" {
		out = append(out, ai.Message{Role: ai.Assistant, Text: text})
	}
	return out
}
