package console

import (
	"parley/internal/parley"
	"parley/internal/setup"
)

// setupPage says what the account, and the server for its operator, has and lacks. The overview fetches its card.
func (c *Console) setupPage(r *request) (*answer, error) {
	list, err := c.Setup.Of(r.Context(), r.who.User, r.who.Role().Includes(parley.RoleAdministrator))
	if err != nil {
		return nil, err
	}
	return piece("Setup", setupPage(list)), nil
}

// failing is how many parts don't work.
func failing(list []setup.Part) (n int) {
	for _, p := range list {
		if p.State == setup.Fail {
			n++
		}
	}
	return n
}

// setupLook is the look of a part's tag, and its word.
func setupLook(p setup.Part) (look, word string) {
	switch p.State {
	case setup.OK:
		return "warm", "Ready"
	case setup.Note:
		return "plain", "Limited"
	}
	return "bad", "Not working"
}

func partTag(p setup.Part) string { look, _ := setupLook(p); return look }

func partWord(p setup.Part) string { _, word := setupLook(p); return word }

// mends are what the links of parts say.
var mends = map[string]string{"/providers": "Providers", "/assistants": "Assistants"}

func mend(p setup.Part) string {
	if text := mends[p.Path]; text != "" {
		return text
	}
	return "Open it"
}
