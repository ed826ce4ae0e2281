package manifest

import "strings"

// Secrets are the values that the references of an account's files stand for.
func Secrets(a *Account) map[string]string {
	all := map[string]string{}
	for _, t := range a.Things {
		if t.Body == nil {
			continue
		}
		t.Kind.eachSecret(t.Body, func(place, text string) string {
			hidden := t.secret[place]
			for _, name := range references(hidden) { // the text around it is that of the value
				before, after, _ := strings.Cut(hidden, "${"+name+"}")
				if text == unread {
					all[name] = "the password"
					continue
				}
				value := strings.TrimPrefix(text, strings.ReplaceAll(before, "$${", "${"))
				if i := strings.IndexAny(value, "&#"); i >= 0 && after != "" {
					value = value[:i]
				}
				all[name] = value
				hidden = before + value + after
			}
			return text
		})
	}
	return all
}

// As is a server for another account of its.
func As(s *Server, c *Client) *Server { return &Server{c, s.offer} }
