package console

import (
	"testing"

	"parley/internal/parley"
)

// Amounts are rounded to the cent, and exact only below a cent; prices per unit are exact.
func TestDollars(t *testing.T) {
	for amount, want := range map[parley.Money][2]string{
		0:                  {"$0.00", "$0.00"},
		7_500:              {"$0.0075", "$0.0075"},
		-7_500:             {"−$0.0075", ""},
		10_000:             {"$0.01", "$0.01"},
		14_000:             {"$0.01", "$0.014"},
		15_000:             {"$0.02", "$0.015"},
		93_217:             {"$0.09", "$0.093217"},
		999_999:            {"$1.00", "$0.999999"},
		-1_234_567_890:     {"−$1,234.57", ""},
		1_000_000_000_000:  {"$1,000,000.00", "$1,000,000.00"},
		123_456 * 1_000_00: {"$12,345.60", "$12,345.60"},
	} {
		if got := dollars(amount); got != want[0] {
			t.Errorf("%d reads %s, not %s", amount, got, want[0])
		}
		if got := rate(max(amount, 0)); want[1] != "" && got != want[1] {
			t.Errorf("%d as a price reads %s, not %s", amount, got, want[1])
		}
	}
}
