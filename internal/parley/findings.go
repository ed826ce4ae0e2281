package parley

// Findings are what was found out from a conversation by post_call_schema: a value for each item, and of each that is
// nil why. They hold no secrets and no vendor's own words.
type Findings struct {
	Values map[string]any
	Notes  map[string]string
}

// Unread are findings without a value, since the conversation could not be read: err says why.
func Unread(items []ExtractedItem, err error) Findings {
	why := "The conversation could not be read."
	if text := Explanation(err); text != "" {
		why += " " + text
	}
	f := Findings{Values: make(map[string]any, len(items)), Notes: make(map[string]string, len(items))}
	for i := range items {
		f.Values[items[i].Name], f.Notes[items[i].Name] = nil, why
	}
	return f
}
