package e2e

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/simulator/phone"
)

// An account that tries to use other people's numbers through its trunks gets nothing: neither the calls to a number
// that somebody rents, nor the carrier's line.
func TestPhoneThief(t *testing.T) {
	share(t, call)
	carrier, err := phone.ListenOn(netip.MustParseAddrPort("127.0.0.2:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer carrier.Close()
	l := telephone(t, "PARLEY_CARRIER_SIP_ADDRESS="+carrier.Addr().String(), "PARLEY_CARRIER_SIP_ALLOWED_IPS=127.0.0.2")
	if out, ok := l.operate(t, "user", "create", "--email", "thief@example.com", "--password", "a good password",
		"--balance", "5"); !ok {
		t.Fatal(out)
	}
	thief := *l.program
	thief.Key, _ = l.operate(t, "key", "create", "--user", "thief@example.com", "--name", "x")
	var found struct {
		Data []struct {
			PhoneNumber string `json:"phone_number"`
		}
	}
	l.call(t, "GET", "/user/phone-numbers/search", nil, &found)
	number := found.Data[0].PhoneNumber // the one that purchase takes
	// a number in Vienna, dialled from there the way the carrier writes the rented number without its plus
	abroad := "+43" + number[1:]
	trunk := func(phoneNumber string, change map[string]any) (int, map[string][]string) {
		t.Helper()
		body := map[string]any{"name": "PBX", "phone_number": phoneNumber, "sip_address": "127.0.0.1:9",
			"sip_password": "x", "inbound_authorization_type": "ip", "allowed_inbound_ips": []string{"127.0.0.2"}}
		for k, v := range change {
			body[k] = v
		}
		var answer struct{ Errors map[string][]string }
		return thief.call(t, "POST", "/user/phone-numbers/sip-trunks", body, &answer), answer.Errors
	}
	for _, claimed := range []string{number, abroad} {
		if status, wrong := trunk(claimed, nil); status != http.StatusCreated {
			t.Fatalf("a trunk is answered %d %v", status, wrong)
		}
	}
	id, bought := l.purchase(t)
	if bought != number {
		t.Fatalf("%s was bought: %s, which a trunk claims, is not shown", bought, number)
	}
	l.change(t, map[string]any{"phone_number_id": id})
	for field, change := range map[string]map[string]any{
		"sip_username":          {"sip_username": number},
		"sip_address":           {"sip_address": carrier.Addr().String()},
		"outbound_proxy":        {"outbound_proxy": carrier.Addr().String()},
		"allowed_inbound_ips.0": {"allowed_inbound_ips": []string{"0.0.0.0/0"}},
	} {
		if status, wrong := trunk("+493012345678", change); status != http.StatusUnprocessableEntity ||
			len(wrong[field]) != 1 || len(wrong) != 1 {
			t.Errorf("%v is answered %d %v", change, status, wrong)
		}
	}
	call := func(to string) (*phone.Call, error) {
		ctx, cancel := timeout(t, patience)
		defer cancel()
		return carrier.Call(ctx, "+12025550177", to, l.sip)
	}
	eventually(t, "the thief's trunk to be known to the line", func() bool {
		_, err := call(abroad)
		var r *phone.Refused
		return errors.As(err, &r) && r.Code == 480 // no assistant answers the number
	})
	for _, to := range []string{number, strings.TrimPrefix(number, "+")} {
		c, err := call(to)
		if err != nil {
			t.Fatalf("a call of the carrier's to %s: %v", to, err)
		}
		hears(t, c, c.Answered)
		if err := c.Hangup(); err != nil {
			t.Error(err)
		}
		row := l.over(t)
		row.expect(t, parley.CallCompleted, parley.CustomerHangup)
		if row.Own != number {
			t.Errorf("%+v", row)
		}
	}
	if n := thief.total(t, "/user/calls"); n != 0 {
		t.Errorf("the thief has had %d calls", n)
	}
}
