package number_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func trunkOf(number string) *parley.TrunkInput {
	return &parley.TrunkInput{Trunk: parley.Trunk{Name: "PBX", PhoneNumber: number, SIPAddress: "pbx.example.com",
		Transport: "udp", SRTP: "off", InboundAuthorizationType: "auth", AllowedInboundIPs: []string{}}}
}

// as changes nothing: the trunk stays as it is.
func as(*parley.TrunkInput) (parley.Fields, bool) { return nil, false }

// change is the set of fields sent for a trunk.
func change(fn func(t *parley.TrunkInput)) number.Lay {
	return func(t *parley.TrunkInput) (parley.Fields, bool) { fn(t); return nil, false }
}

// field returns the only field that an error names.
func field(t *testing.T, err error) string {
	t.Helper()
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != parley.Invalid || len(e.Fields) != 1 {
		t.Fatalf("no field is named: %v", err)
	}
	return e.Fields[0].Name
}

// TestTrunkNumbers: a trunk takes no number away from the user who rents it, whether it is made before or after, and
// its username can't be another user's number.
func TestTrunkNumbers(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		thief := storetest.User(t, h.db, parley.USD)
		h.buy(number1)
		err := h.pool.CreateTrunk(ctx, thief.ID, trunkOf(number1), as)
		h.is(err, parley.Conflict)
		for _, name := range []string{number1, strings.TrimPrefix(number1, "+"), strings.TrimPrefix(number1, "+1"),
			"00" + strings.TrimPrefix(number1, "+"), number1 + "@sip.example.com"} {
			mine := trunkOf("+12125550199")
			mine.SIPUsername = name
			if got := field(t, h.pool.CreateTrunk(ctx, thief.ID, mine, as)); got != "sip_username" {
				t.Errorf("the name %s: %s is refused", name, got)
			}
		}
		own := trunkOf("+12125550199")
		own.SIPUsername = "12125550199"
		if err := h.pool.CreateTrunk(ctx, thief.ID, own, as); err != nil {
			t.Errorf("one's own number as a name: %v", err)
		}
		_, err = h.pool.ChangeTrunk(ctx, thief.ID, own.ID,
			change(func(t *parley.TrunkInput) { t.SIPUsername = number1 }))
		if got := field(t, err); got != "sip_username" {
			t.Errorf("a change of the name: %s is refused", got)
		}
		// A number of the carrier's stock that a trunk claims can still be found and bought.
		squat := trunkOf(number2)
		if err := h.pool.CreateTrunk(ctx, thief.ID, squat, as); err != nil {
			t.Fatal(err)
		}
		if now, err := h.db.AnyTrunk(ctx, squat.ID); err != nil || now.Rented {
			t.Fatalf("%+v: %v", now, err)
		}
		h.buy(number2)
		if now, err := h.db.AnyTrunk(ctx, squat.ID); err != nil || !now.Rented {
			t.Errorf("the trunk that claims the number is used: %+v, %v", now, err)
		}
		all, err := h.db.AllTrunks(ctx)
		if err != nil || len(all) != 2 || all[0].Rented || !all[1].Rented {
			t.Errorf("%+v: %v", all, err)
		}
		if n, err := h.db.RentedNumber(ctx, number2); err != nil || n.UserID != h.user.ID {
			t.Errorf("%+v: %v", n, err)
		}
		err = h.pool.CreateTrunk(ctx, thief.ID, trunkOf(number2), as)
		h.is(err, parley.Conflict)
	})
}

// TestTrunkRules: who may make trunks, and where they may be.
func TestTrunkRules(t *testing.T) {
	h := open(t, storetest.SQLite(t))
	ctx := t.Context()
	makers := func(list ...string) error {
		h.pool.Trunks = parley.TrunkRules{Makers: list}
		tr := trunkOf("+12125550100")
		err := h.pool.CreateTrunk(ctx, h.user.ID, tr, as)
		if err == nil {
			_, err = h.pool.ChangeTrunk(ctx, h.user.ID, tr.ID, as)
			h.pool.Trunks.Makers = []string{"none"}
			if _, bad := h.pool.ChangeTrunk(ctx, h.user.ID, tr.ID, as); bad == nil {
				t.Error("who may make no trunk changes one")
			}
			if bad := h.pool.DeleteTrunk(ctx, h.user.ID, tr.ID); bad != nil {
				t.Error(bad)
			}
		}
		return err
	}
	for _, good := range [][]string{nil, {"all"}, {h.user.Plan}, {"x", strings.ToUpper(h.user.Email)}} {
		if err := makers(good...); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range [][]string{{"none"}, {"other"}, {"x" + h.user.Email}} {
		if err := makers(bad...); err == nil || !strings.Contains(err.Error(), "PARLEY_TRUNKS") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	h.pool.Trunks = parley.TrunkRules{IPv4: 24, IPv6: 48, Carrier: "SIP.Carrier.example:5060"}
	proxy := parley.ProxyAddress("sip.carrier.example")
	for want, c := range map[string]func(*parley.TrunkInput){
		"sip_address":    func(t *parley.TrunkInput) { t.SIPAddress = "sip.carrier.EXAMPLE.:5070" },
		"outbound_proxy": func(t *parley.TrunkInput) { t.OutboundProxy = &proxy },
		"tls_ca":         func(t *parley.TrunkInput) { t.TLSCA = "no certificate" },
		"allowed_inbound_ips.1": func(t *parley.TrunkInput) {
			t.AllowedInboundIPs = []string{"192.0.2.0/24",
				"192.0.0.0/23"}
		},
		"allowed_inbound_ips.0": func(t *parley.TrunkInput) { t.AllowedInboundIPs = []string{"2001:db8::/47", "2001:db8::/48"} },
	} {
		tr := trunkOf("+12125550100")
		if got := field(t, h.pool.CreateTrunk(ctx, h.user.ID, tr, change(c))); got != want {
			t.Errorf("%s is refused, want %s", got, want)
		}
	}
	h.pool.Place = func(_ context.Context, t *parley.Trunk) error {
		if t.SIPAddress == "192.0.2.1" {
			return errors.New("It is the carrier's.")
		}
		return nil
	}
	tr := trunkOf("+12125550100")
	if got := field(t, h.pool.CreateTrunk(ctx, h.user.ID, tr,
		change(func(t *parley.TrunkInput) { t.SIPAddress = "192.0.2.1" }))); got != "sip_address" {
		t.Errorf("%s is refused", got)
	}
	if err := h.pool.CreateTrunk(ctx, h.user.ID, tr,
		change(func(t *parley.TrunkInput) { t.SIPAddress = "192.0.2.2" })); err != nil {
		t.Fatal(err)
	}
	if _, err := h.pool.ChangeTrunk(ctx, h.user.ID, tr.ID,
		change(func(t *parley.TrunkInput) { t.SIPAddress = "192.0.2.1" })); field(t, err) != "sip_address" {
		t.Error(err)
	}
	// A trunk that was stored before a rule existed can be read, and corrected.
	h.pool.Trunks, h.pool.Place = parley.TrunkRules{}, nil
	h.write(func(ctx context.Context, tx *store.Tx) error {
		old, err := tx.TrunkForUpdate(ctx, h.user.ID, tr.ID)
		if err != nil {
			return err
		}
		now := *old
		now.TLSCA = "no certificate"
		return tx.SaveTrunk(ctx, h.user.ID, old, &now)
	})
	if _, err := h.pool.ChangeTrunk(ctx, h.user.ID, tr.ID,
		change(func(t *parley.TrunkInput) { t.Name = "x" })); field(t, err) != "tls_ca" {
		t.Error(err)
	}
	if now, err := h.pool.ChangeTrunk(ctx, h.user.ID, tr.ID,
		change(func(t *parley.TrunkInput) { t.TLSCA, t.Transport = "", "tls" })); err != nil || now.Transport != "tls" {
		t.Error(now, err)
	}
}

// TestCallerIDOfTrunk: a user can verify the number of their own trunk, and a verified number is not verified again.
func TestCallerIDOfTrunk(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		tr := trunkOf("+12125550100")
		if err := h.pool.CreateTrunk(ctx, h.user.ID, tr, as); err != nil {
			t.Fatal(err)
		}
		proved := func() bool {
			ok, err := h.db.ProvedNumber(ctx, h.user.ID, tr.PhoneNumber)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if proved() {
			t.Error("a number that was written down is proved")
		}
		c, err := h.pool.AskCallerID(ctx, h.user.ID, tr.PhoneNumber)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.pool.VerifyCallerID(ctx, h.user.ID, c.ID, c.Code); err != nil || !proved() {
			t.Errorf("verified: %v", err)
		}
		if _, err := h.pool.AskCallerID(ctx, h.user.ID, tr.PhoneNumber); err == nil {
			t.Error("it is asked for again")
		}
	})
}
