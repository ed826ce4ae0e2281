package console

import (
	"net/http"
	"strings"
)

// writing is told by the script while somebody writes a reply.
func (c *Console) writing(r *request) (*answer, error) {
	if err := c.Chat.Writes(r.Context(), r.UserID(), r.who.Writer(), r.PathValue("id")); err != nil {
		return nil, err
	}
	r.w.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// otherWriters returns the names of those who write in a conversation, besides the reader.
func (c *Console) otherWriters(r *request, conversation string) ([]string, error) {
	return c.DB.Writers(r.Context(), r.UserID(), conversation, r.who.Person())
}

// writingText says who else writes.
func writingText(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0] + " is writing a reply."
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " are writing replies."
	}
}
