package agent

import (
	"regexp"
	"strings"
	"time"

	"parley/internal/parley"
)

var (
	isoDate = regexp.MustCompile(`(?i)iso[ -]?8601 date|iso date`)
	pattern = regexp.MustCompile(`(?i)\b(?:yyyy([-/.])mm([-/.])dd|(?:dd([-/.])mm|mm([-/.])dd)([-/.])yyyy)\b`)
	timed   = regexp.MustCompile(`(?i)hh:mm|time zone|timezone`)
	// a description that allows for something else than the date
	choice  = regexp.MustCompile(`(?i)\b(?:or|else|otherwise|oder|sonst|ou|sinon)\b`)
	ordinal = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)\b`)
	// the order of day and month is the writer's
	numeric = regexp.MustCompile(`^(\d{1,2})[-/](\d{1,2})[-/]\d{4}$`)
)

// dateOf is the form in which an item wants a day, as YYYY-MM-DD or DD.MM.YYYY; "" where it wants something else, or may have that instead.
func dateOf(it *parley.ExtractedItem) string {
	d := it.Description
	if it.Type != "string" || timed.MatchString(d) || choice.MatchString(d) {
		return ""
	}
	if form := pattern.FindString(d); form != "" {
		return strings.ToUpper(form)
	}
	if isoDate.MatchString(d) {
		return "YYYY-MM-DD"
	}
	return ""
}

// dateLayouts are ways of writing a date that mean one day alone.
var dateLayouts = []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04",
	"2006/1/2", "2006.1.2", "20060102", "January 2, 2006", "January 2 2006", "2 January 2006", "2. January 2006", "Jan 2, 2006", "2 Jan 2006",
	"Monday, January 2, 2006", "Monday, 2 January 2006", "2.1.2006"}

// dated is a text as a day in a form; false where it is no day, or may be two: 03/04/2026 is, unless the form has the same order.
func dated(form, text string) (string, bool) {
	want := strings.NewReplacer("YYYY", "2006", "MM", "01", "DD", "02").Replace(form)
	plain := ordinal.ReplaceAllString(strings.TrimSpace(text), "$1")
	layouts := append([]string{want}, dateLayouts...)
	if m := numeric.FindStringSubmatch(plain); m != nil {
		plain = strings.ReplaceAll(plain, "-", "/")
		switch {
		case strings.HasPrefix(form, "DD") || m[1] > "12" && len(m[1]) == 2:
			layouts = []string{"2/1/2006"}
		case strings.HasPrefix(form, "MM") || m[2] > "12" && len(m[2]) == 2:
			layouts = []string{"1/2/2006"}
		}
	}
	for _, layout := range layouts {
		if day, err := time.Parse(layout, plain); err == nil {
			return day.Format(want), true
		}
	}
	return "", false
}
