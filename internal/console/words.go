package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/parley"
)

// Values on pages, as people read them.

// dollars is an amount as people read it. Money that goes out has a minus.
func dollars(m parley.Money) string {
	if m < 0 {
		return "−$" + (-m).Text()
	}
	return "$" + m.Text()
}

// exact is an amount to its last digit.
func exact(m parley.Money) string {
	if m < 0 {
		return "−" + rate(-m)
	}
	return rate(m)
}

// rate is the price of one of something: exact, since it is multiplied.
func rate(m parley.Money) string { return "$" + parley.Thousands(m.String()) }

// isolated is what somebody has written, within a sentence of ours: whichever way it is written, the sentence around
// it stays as it is.
func isolated(text string) string { return "\u2068" + text + "\u2069" }

// valueText is an extracted value in words.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "not said"
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// foundText is an extracted value in words, with why it is missing.
func foundText(v any, note string) string {
	if v != nil || note == "" {
		return valueText(v)
	}
	first, n := utf8.DecodeRuneInString(note)
	return "not known: " + string(unicode.ToLower(first)) + strings.TrimSuffix(note[n:], ".")
}

// lasting is a number of seconds as clocks show it: 1:05.
func lasting(seconds int64) string {
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// latencyText is a number of milliseconds as people read it.
func latencyText(ms int64) string {
	if ms < 1000 {
		return strconv.FormatInt(ms, 10) + " ms"
	}
	return strconv.FormatFloat(float64(ms)/1000, 'f', 2, 64) + " s"
}

// firstUpper begins a text with a capital letter.
func firstUpper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// urlText is a text as a part of a query.
func urlText(s string) string { return url.QueryEscape(s) }

// size is a number of bytes as people read it.
func size(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1_000_000:
		return strconv.FormatInt((n+500)/1000, 10) + " kB"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB"
}

// count is a number of things in words.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
