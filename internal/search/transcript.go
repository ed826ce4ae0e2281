package search

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/parley"
	"parley/internal/store"
)

// Transcripts are found by the stems of their words, each behind its user's number, so that others' transcripts cost a
// search nothing.

const (
	maxStems = 20_000 // of a transcript
	maxAsked = 12     // words of a question
)

// Query are the words that a search in transcripts is for: nil where nothing is searched for. A text without words finds nothing.
func Query(userID int64, text string) []string {
	list := stemsOf(userID, text, maxAsked)
	if len(list) == 0 && strings.TrimSpace(text) != "" {
		return []string{prefix(userID) + inText}
	}
	return list
}

// stemsOf are the stems of a text's words, each once.
func stemsOf(userID int64, text string, most int) (list []string) {
	pre, seen := prefix(userID)+inText, map[string]bool{}
	terms(text, func(w string) {
		if s := stem(w); !seen[s] && len(list) < most {
			seen[s] = true
			list = append(list, pre+s)
		}
	})
	return list
}

// CallText is what of a call's transcript is searched.
func CallText(c *parley.Call) string {
	var b strings.Builder
	for _, t := range c.Turns {
		b.WriteString(t.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// step is how many transcripts are put into the index in one transaction.
const step = 100

// IndexTranscripts puts into the index, in steps, what is not there yet: calls that have ended, and conversations in
// which something was said.
func IndexTranscripts(ctx context.Context, db *store.DB) error {
	err := db.InSteps(ctx, func(ctx context.Context, tx *store.Tx) (bool, error) {
		list, err := tx.CallsToIndex(ctx, step)
		for i := range list {
			if err == nil {
				err = tx.IndexCall(ctx, list[i].ID, stemsOf(list[i].UserID, CallText(&list[i]), maxStems))
			}
		}
		return len(list) == step, err
	})
	if err != nil {
		return err
	}
	return db.InSteps(ctx, func(ctx context.Context, tx *store.Tx) (bool, error) {
		list, err := tx.ConversationsToIndex(ctx, step)
		for i := range list {
			if err == nil {
				err = tx.IndexConversation(ctx, &list[i].Conversation, stemsOf(list[i].UserID, list[i].Text, maxStems))
			}
		}
		return len(list) == step, err
	})
}

// Piece is a part of a text, and whether it is what was searched for.
type Piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match"`
}

// around is how many characters of a snippet stand before its first match, and maxSnippet how long it is.
const (
	around     = 50
	maxSnippet = 180
)

// Snippet is the place of a text that has most of the words that a search was for; nil where it has none.
func Snippet(userID int64, words []string, text string) []Piece {
	text = strings.Join(strings.Fields(text), " ")
	found := matches(userID, words, text)
	if len(found) == 0 {
		return nil
	}
	best, most := 0, 0
	for i := range found { // the window that begins with a match and has most different words
		seen := map[string]bool{}
		for _, m := range found[i:] {
			if m.to > found[i].from+maxSnippet-around {
				break
			}
			seen[m.stem] = true
		}
		if len(seen) > most {
			best, most = i, len(seen)
		}
	}
	return cutOut(text, found, max(found[best].from-around, 0))
}

// match is a word of a text that was searched for, in bytes.
type match struct {
	from, to int
	stem     string
}

func matches(userID int64, words []string, text string) (found []match) {
	of := func(from, to int) {
		for _, s := range stemsOf(userID, text[from:to], maxAsked) {
			if slices.Contains(words, s) {
				found = append(found, match{from, to, s})
				return
			}
		}
	}
	begin := -1
	for i, r := range text {
		word := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '\'' || r == '’'
		if word && begin < 0 {
			begin = i
		} else if !word && begin >= 0 {
			of(begin, i)
			begin = -1
		}
	}
	if begin >= 0 {
		of(begin, len(text))
	}
	return found
}

// cutOut is the part of a text that begins near a place, in pieces.
func cutOut(text string, found []match, from int) (list []Piece) {
	to := min(from+maxSnippet, len(text))
	for n := 0; from > 0 && (text[from-1] != ' ' && n < around || !utf8.RuneStart(text[from])); n++ {
		from--
	}
	for n := 0; to < len(text) && (text[to] != ' ' && n < around || !utf8.RuneStart(text[to])); n++ {
		to++
	}
	add := func(s string, match bool) {
		if s != "" {
			list = append(list, Piece{s, match})
		}
	}
	if from > 0 {
		add("… ", false)
	}
	at := from
	for _, m := range found {
		if m.from >= at && m.to <= to {
			add(text[at:m.from], false)
			add(text[m.from:m.to], true)
			at = m.to
		}
	}
	add(text[at:to], false)
	if to < len(text) {
		add(" …", false)
	}
	return list
}

// InCall is the snippet of a call's transcript.
func InCall(words []string, c *parley.Call) []Piece {
	if len(words) == 0 {
		return nil
	}
	return Snippet(c.UserID, words, CallText(c))
}

// InMessages is the snippet of a conversation's messages.
func InMessages(userID int64, words []string, list []parley.Message) []Piece {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.Content + "\n")
	}
	return Snippet(userID, words, b.String())
}
