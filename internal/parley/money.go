package parley

import (
	"fmt"
	"strconv"
	"strings"
)

// Money is an amount in micro-USD (1 USD = 1,000,000). It is an integer everywhere inside and a JSON number of USD
// outside, so that no sum ever passes through a float.
type Money int64

// USD is one US dollar.
const USD Money = 1_000_000

// ParseMoney reads a decimal amount of USD such as "12.5". More than six decimals are rounded half away from zero.
func ParseMoney(s string) (Money, error) {
	bad := fmt.Errorf("%q is not an amount of USD such as 12.50", s)
	digits, neg := strings.CutPrefix(s, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	if whole == "" && frac == "" || len(whole) > 12 {
		return 0, bad
	}
	up := false
	if len(frac) > 6 {
		up = frac[6] >= '5'
		for _, c := range frac[6:] {
			if c < '0' || c > '9' {
				return 0, bad
			}
		}
		frac = frac[:6]
	}
	var n int64
	for _, c := range whole + frac + strings.Repeat("0", 6-len(frac)) {
		if c < '0' || c > '9' {
			return 0, bad
		}
		n = n*10 + int64(c-'0')
	}
	if up {
		n++
	}
	if n > 999_999_999_999_999_999 { // rounded past twelve digits
		return 0, bad
	}
	if neg {
		n = -n
	}
	return Money(n), nil
}

// String is the amount in USD with at least two decimals and no needless zeros: "12.50", "0.0075".
func (m Money) String() string {
	s := m.plain()
	if i := strings.IndexByte(s, '.'); i < 0 {
		return s + ".00"
	} else if len(s)-i == 2 {
		return s + "0"
	}
	return s
}

// Text is the amount in USD as people read it: to the cent, with a comma between thousands, and more exact only below a
// cent: "1,234.50", "0.0075".
func (m Money) Text() string {
	const cent = USD / 100
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	if m >= cent {
		m = (m + cent/2) / cent * cent
	}
	return sign + Thousands(m.String())
}

// Thousands puts a comma between the thousands of a decimal number.
func Thousands(number string) string {
	whole, rest, exact := strings.Cut(number, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if exact {
		return whole + "." + rest
	}
	return whole
}

// plain is the shortest decimal form.
func (m Money) plain() string {
	sign, u := "", uint64(m)
	if m < 0 {
		sign, u = "-", uint64(-m)
	}
	whole, frac := u/1_000_000, u%1_000_000
	s := sign + strconv.FormatUint(whole, 10)
	if frac == 0 {
		return s
	}
	return s + "." + strings.TrimRight(fmt.Sprintf("%06d", frac), "0")
}

// MarshalJSON writes a JSON number of USD.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.plain()), nil }

// UnmarshalJSON reads a JSON number of USD.
func (m *Money) UnmarshalJSON(b []byte) error {
	v, err := ParseMoney(string(b))
	if err == nil {
		*m = v
	}
	return err
}

// MulRatio is m*num/den rounded half up (away from zero for negative amounts): how a price per minute becomes the
// price of some milliseconds. It is called once per ledger entry, so that rounding happens once.
func (m Money) MulRatio(num, den int64) Money {
	neg := (m < 0) != (num < 0)
	a, b := uint64(abs(int64(m))), uint64(abs(num))
	// Amounts and durations here are far below 2^31, so the product fits.
	q := Money((a*b + uint64(den)/2) / uint64(den))
	if neg {
		return -q
	}
	return q
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
