package sip

import (
	"strings"
	"testing"
	"time"

	"parley/internal/testenv"
)

// TestTidySlow: no message takes long of a processor, however it is made to.
func TestTidySlow(t *testing.T) {
	worst := time.Duration(0)
	for _, part := range []string{`<,`, `"\";`, `;"`, `";`, `;a="\`, `<`, `\"<,`, `;;`, `,`, "\r\n ", `<sip:a@b;`, `a=",`} {
		for _, name := range []string{"Via", "From", "Contact", "P-Asserted-Identity", "WWW-Authenticate", "Content-Type", "X"} {
			text := []byte("OPTIONS sip:a@b SIP/2.0\r\n" + name + ": " + strings.Repeat(part, (maxMessage-100)/len(part)) + "\r\n\r\n")
			took := testenv.Processor(t, func() { tidy(nil, text) })
			if worst = max(worst, took); took > 500*time.Millisecond {
				t.Errorf("%s for a message of %q in %s", took, part, name)
			}
		}
	}
	t.Logf("%s at most", worst)
}
