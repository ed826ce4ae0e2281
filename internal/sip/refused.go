package sip

import (
	"slices"
	"strings"

	sipgo "github.com/emiago/sipgo/sip"
)

// maxSaid is how many texts of a refusal are kept.
const maxSaid = 4

// refusedBy is a refusal with what its headers say about it: the texts of Reason (RFC 3326) and Warning, and where a
// network that blocks calls takes complaints (RFC 8688).
func refusedBy(res *sipgo.Response) *Refused {
	var said []string
	add := func(text string) {
		if text = strings.TrimSpace(text); text != "" && len(said) < maxSaid && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	for _, h := range res.GetHeaders("Reason") {
		for _, one := range splitList(h.Value()) {
			add(readReason(one).said())
		}
	}
	for _, h := range res.GetHeaders("Warning") {
		for _, one := range splitList(h.Value()) {
			if i := strings.IndexByte(one, '"'); i >= 0 {
				add(unquoted(one[i:]))
			}
		}
	}
	for _, h := range res.GetHeaders("Call-Info") {
		for _, one := range splitList(h.Value()) {
			from, to := strings.IndexByte(one, '<'), strings.IndexByte(one, '>')
			if from >= 0 && to > from && strings.Contains(strings.ToLower(one[to:]), "jwscard") {
				add("complaints: " + one[from+1:to])
			}
		}
	}
	return &Refused{Code: res.StatusCode, Reason: res.Reason, Because: strings.Join(said, "; ")}
}

// unquoted is a value without the quotes around it.
func unquoted(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s[1 : len(s)-1])
	}
	return s
}
