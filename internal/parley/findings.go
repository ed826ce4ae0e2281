package parley

// Findings are what was found out from a conversation by post_call_schema: a value for each name, and of each that is
// nil why. They hold no secrets and no vendor's own words.
type Findings struct {
	Values map[string]any
	Notes  map[string]string
}

// Unread are findings without a value, since the conversation could not be read: err says why.
func Unread(names []string, err error) Findings {
	why := "The conversation could not be read."
	if text := Explanation(err); text != "" {
		why += " " + text
	}
	f := Findings{Values: make(map[string]any, len(names)), Notes: make(map[string]string, len(names))}
	for _, name := range names {
		f.Values[name], f.Notes[name] = nil, why
	}
	return f
}
