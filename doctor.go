package parley

// Finding is one line of what 'parley doctor' says about a server.
type Finding struct {
	State string // ok, note, FAIL
	What  string
	Text  string
}
