package parley

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Decimal is a number with two decimals, in hundredths. The contract writes it as text ("0.70") and takes numbers or
// text.
type Decimal int32

func (d Decimal) String() string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	return fmt.Sprintf("%s%d.%02d", sign, d/100, d%100)
}

// Float is the decimal as a float64.
func (d Decimal) Float() float64 { return float64(d) / 100 }

// MarshalJSON writes numeric text with two decimals.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

// UnmarshalJSON reads a number or numeric text.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	var n json.Number // takes both 0.7 and "0.7"
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	v, err := ParseDecimal(string(n))
	*d = v
	return err
}

// ParseDecimal reads a decimal number, rounding half up to hundredths. Anything but a plain decimal of sensible size is
// an error.
func ParseDecimal(s string) (Decimal, error) {
	bad := fmt.Errorf("%q is not a decimal number", s)
	if s == "" || len(s) > 24 || strings.Trim(s, "0123456789.+-eE") != "" {
		return 0, bad
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 4 { // an exponent of three digits would make a giant
		return 0, bad
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, bad
	}
	r.Mul(r, big.NewRat(100, 1)).Add(r, big.NewRat(1, 2))
	// floor(x + 1/2) for either sign: Div is Euclidean and the denominator positive
	n := new(big.Int).Div(r.Num(), r.Denom())
	if !n.IsInt64() || n.Int64() > 1<<30 || n.Int64() < -1<<30 {
		return 0, bad
	}
	return Decimal(n.Int64()), nil
}

// Flag is a boolean that the contract answers as 0 or 1 and takes as 0, 1, true or false.
type Flag bool

// MarshalJSON writes 0 or 1.
func (f Flag) MarshalJSON() ([]byte, error) {
	if f {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

// UnmarshalJSON reads 0, 1, true or false.
func (f *Flag) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "1", "true":
		*f = true
	case "0", "false", "null":
		*f = false
	default:
		return fmt.Errorf("%s is not 0, 1, true or false", b)
	}
	return nil
}
