package parley

import (
	"encoding/json"
	"testing"
)

// The API shows the id of a trace, and nothing where there is none.
func TestTrace(t *testing.T) {
	for trace, want := range map[Trace]string{"": `{}`,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": `{"id":"0af7651916cd43dd8448eb211c80319c"}`,
		"nonsense": `{"id":""}`} {
		got, err := json.Marshal(struct {
			ID Trace `json:"id,omitempty"`
		}{trace})
		if err != nil || string(got) != want {
			t.Errorf("%q: %s %v", trace, got, err)
		}
	}
}
