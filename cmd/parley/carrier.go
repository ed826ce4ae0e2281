package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"parley/internal/carrier"
	"parley/internal/carrier/sandbox"
	"parley/internal/carrier/twilio"
	"parley/internal/channel/sms"
	"parley/internal/store"
)

// twilio is the operator's account at Twilio, nil where none is configured.
func (s *Settings) twilio() *twilio.Client {
	if s.TwilioAccountSID == "" {
		return nil
	}
	return twilio.New(twilio.Config{AccountSID: s.TwilioAccountSID, AuthToken: s.TwilioAuthToken,
		BaseURL: s.TwilioBaseURL, PublicURL: s.publicURL(), TrunkSID: s.TwilioTrunkSID})
}

// renter is who rents out numbers and carries text messages.
type renter struct {
	carrier.Carrier
	sandbox  bool
	webhooks func(*sms.Channel) http.Handler // answers the carrier's requests; the sandbox makes none
	close    func()
}

// carrier opens the carrier that these settings name: Twilio, or the sandbox.
func (s *Settings) carrier(db *store.DB) renter {
	if t := s.twilio(); t != nil {
		return renter{t, false, func(to *sms.Channel) http.Handler { return t.Webhooks(to) }, t.Close}
	}
	return renter{sandbox.New(sms.Outbox(db)), true,
		func(*sms.Channel) http.Handler { return http.HandlerFunc(notFound) }, func() {}}
}

// checkCarrier asks Twilio for the account, which costs nothing.
func checkCarrier(ctx context.Context, s *Settings) finding {
	const what = "carrier"
	t := s.twilio()
	if t == nil {
		return finding{"note", what, "sandbox: numbers are made up and messages stay here. " +
			"Set PARLEY_TWILIO_ACCOUNT_SID and PARLEY_TWILIO_AUTH_TOKEN for real ones"}
	}
	defer t.Close()
	if s.TwilioAuthToken == "" {
		return finding{"FAIL", what, "PARLEY_TWILIO_ACCOUNT_SID needs PARLEY_TWILIO_AUTH_TOKEN"}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := t.Ping(ctx)
	switch e := carrier.Refusal(err); {
	case e != nil && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden ||
		e.Status == http.StatusNotFound):
		return finding{"FAIL", what, "Twilio refuses PARLEY_TWILIO_ACCOUNT_SID and PARLEY_TWILIO_AUTH_TOKEN"}
	case err != nil:
		return finding{"FAIL", what, fmt.Sprintf("Twilio (%s): %v", t.BaseURL, err)}
	case s.PublicURL == "":
		return finding{"note", what, "Twilio " + s.TwilioAccountSID +
			", but without PARLEY_PUBLIC_URL it can't report incoming messages and deliveries"}
	}
	return finding{"ok", what, "Twilio " + s.TwilioAccountSID}
}
