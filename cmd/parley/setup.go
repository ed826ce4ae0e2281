package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/setup"
)

// serverChecks are the parts of the running server that its operator is shown in the console. What the doctor says of
// the settings counts here too.
func (h *server) serverChecks() []setup.Check {
	list := []setup.Check{
		{Code: "telephone", Name: "Telephone", Ask: func(context.Context) []parley.Finding { return h.phone.state(h.Settings) }},
		{Code: "address", Name: "Public address", Ask: h.checkAddress},
		{Code: "carrier", Name: "Carrier", Ask: func(ctx context.Context) []parley.Finding {
			return findings(checkCarrier(ctx, h.Settings), h.checkCarrierTrunk())
		}},
		{Code: "jobs", Name: "Job workers", Ask: func(context.Context) []parley.Finding {
			if h.ready.Load() {
				return findings(finding{parley.DoctorOK, "jobs", "running"})
			}
			return findings(finding{parley.DoctorFail, "jobs", "job workers are not running: " +
				"documents are not processed, messages not sent, numbers not renewed. The server's log says why"})
		}},
		{Code: "mail", Name: "E-mail", Ask: func(ctx context.Context) []parley.Finding {
			return []parley.Finding{h.mail.Check(ctx)}
		}},
	}
	if h.judge != nil {
		list = append(list, setup.Check{Code: "turn_detector", Name: "Turn detector", Ask: func(ctx context.Context) []parley.Finding {
			return []parley.Finding{h.judge.Check(ctx)}
		}})
	}
	if h.issuer != nil {
		list = append(list, setup.Check{Code: "sign_in", Name: "Sign-in", Ask: func(ctx context.Context) []parley.Finding {
			return []parley.Finding{h.issuer.Check(ctx)}
		}})
	}
	return list
}

// findings are lines of the doctor's as others read them.
func findings(list ...finding) (found []parley.Finding) {
	for _, f := range list {
		found = append(found, parley.Finding{State: f.state, What: f.what, Text: f.text})
	}
	return found
}

// state is how the telephone of the running server is.
func (p *telephone) state(s *Settings) []parley.Finding {
	const what = "telephone"
	config, err := s.sipConfig()
	switch {
	case err != nil:
		return findings(finding{parley.DoctorFail, what, err.Error()})
	case config.Listen == "off":
		return findings(finding{parley.DoctorNote, what, "off (PARLEY_SIP_LISTEN): no calls come in or go out over SIP"})
	case p.line == nil:
		return findings(finding{parley.DoctorFail, what, fmt.Sprintf("not running: %s was in use when the server started. "+
			"Stop the program that uses it, or choose another address with PARLEY_SIP_LISTEN, and start the server again", config.Listen)})
	}
	return findings(finding{parley.DoctorOK, what, fmt.Sprintf("listening on %s; sound on UDP ports %s", p.line.Addr(), s.RTPPorts)},
		s.checkExternal(config))
}

// addressTime is how long the public address may take to answer.
const addressTime = 5 * time.Second

// checkAddress looks whether the public address leads to this server.
func (h *server) checkAddress(ctx context.Context) []parley.Finding {
	said := checkPublicURL(h.Settings)
	if h.PublicURL == "" || said.state == parley.DoctorFail {
		return findings(said)
	}
	ctx, cancel := context.WithTimeout(ctx, addressTime)
	defer cancel()
	found := func(state, format string, a ...any) []parley.Finding {
		return findings(finding{state, said.what, fmt.Sprintf(format, a...)})
	}
	at := strings.TrimSuffix(h.PublicURL, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/healthz", nil)
	if err != nil {
		return found(parley.DoctorFail, "PARLEY_PUBLIC_URL is not a URL")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return found(parley.DoctorNote, "%s does not answer this machine (%v). If it does not answer others either, "+
			"set PARLEY_PUBLIC_URL to the address of this server or its proxy", at, err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return found(parley.DoctorFail, "%s leads somewhere else: it answers %s where this server would answer 200. "+
			"Set PARLEY_PUBLIC_URL to the address of this server or its proxy", at, res.Status)
	}
	return found(parley.DoctorOK, "%s leads to this server", at)
}
