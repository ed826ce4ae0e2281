package console

import (
	"strings"

	"parley/internal/parley"
)

// telTrigger is when a box for a number asks how it is read: as somebody writes, and for what it holds already.
func telTrigger(value string) string {
	const written = "input changed delay:300ms"
	if value == "" || strings.HasPrefix(value, "+") {
		return written
	}
	return "load, " + written
}

// phoneRead says how a telephone number, the query's only parameter, is read in the account's country; targetRead also
// knows extensions and sip: addresses. Nothing is said of a number that is complete, or has only been begun.
func (c *Console) phoneRead(r *request) (*answer, error)  { return readNumber(r, false) }
func (c *Console) targetRead(r *request) (*answer, error) { return readNumber(r, true) }

func readNumber(r *request, transfer bool) (*answer, error) {
	text := ""
	for _, values := range r.URL.Query() {
		text = strings.TrimSpace(values[0])
	}
	said := ""
	e164, err := parley.ReadPhone(text, r.who.User.Country)
	if transfer {
		if to, number, ok := parley.ReadTransferTarget(text, r.who.User.Country); ok && to != number {
			return piece("Number", readAs("")), nil
		}
	}
	switch {
	case err != nil:
		said = parley.PhoneHelp(err)
	case !strings.HasPrefix(text, "+"):
		said = text + " is read as " + e164 + "."
	}
	return piece("Number", readAs(said)), nil
}
