package parley_test

import (
	"encoding/json"
	"errors"
	"testing"

	"parley/internal/parley"
)

func TestFieldsTellTheirErrors(t *testing.T) {
	var f parley.Fields
	if f.Err() != nil {
		t.Error("no fields fail")
	}
	for i, want := range []string{"The name field is required.", "The name field is required. (and 1 more error)",
		"The name field is required. (and 2 more errors)",
		"The name field is required. (and 3 more errors)"} {
		switch i {
		case 0:
			f.Add("name", "is required.")
		case 1:
			f.Add("links.0.link", "must be at least %d characters.", 3)
		case 2:
			f.AddText("name", "The name has already been taken.") // two errors of one field count as two
		case 3:
			f.Add("a", "must be a string.")
		}
		var e *parley.Error
		if err := f.Err(); !errors.As(err, &e) || e.Kind != parley.Invalid || e.Error() != want ||
			len(e.Fields) != len(f) {
			t.Errorf("told %v, want %s", err, want)
		}
	}
	want := `{"name":["The name field is required.","The name has already been taken."],"links.0.link":["The links.0.link field must be at least 3 characters."],"a":["The a field must be a string."]}`
	if b := must(json.Marshal(f)); string(b) != want {
		t.Errorf("written %s", b)
	}
	if b := must(json.Marshal(parley.Fields(nil))); string(b) != "{}" {
		t.Errorf("none are written %s", b)
	}
	for name, has := range map[string]bool{"name": true, "links": true, "links.0": true, "links.0.link": true,
		"link": false, "links.0.link.x": false, "nam": false, "": false} {
		if f.Has(name) != has {
			t.Errorf("Has(%q) is %v", name, !has)
		}
	}
}
