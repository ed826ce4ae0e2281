package parley

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
)

// ReadPhone reads a telephone number as people write it, and returns its E.164 form. A number that begins with + or 00
// is international; every other is national, and read as it is dialled in country (ISO 3166-1 alpha-2, "" where
// none is known). The error is a sentence for whoever wrote the number.
func ReadPhone(text, country string) (string, error) {
	s := plainPhone(text)
	no := func(format string, a ...any) (string, error) { return "", Errorf(Invalid, format, a...) }
	mend := func(format string, a ...any) (string, error) {
		err := Errorf(Invalid, format, a...)
		if len(strings.Map(onlyDigits, s)) >= 6 { // fewer are hardly meant for one
			err.Code = mendable
		}
		return "", err
	}
	if s == "" {
		return no("There is no phone number.")
	}
	if shortened.MatchString(s) {
		return "", &Error{Kind: Invalid, Code: mendable, Message: s + " is how a spreadsheet shortens a long number, and its last digits " +
			"are lost: format the column as text, enter the numbers again, and save the list."}
	}
	if m := decimals.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	if lead := strings.TrimLeft(s, "([{ "); strings.HasPrefix(lead, "00") {
		s = "+" + lead[2:]
	} else if strings.HasPrefix(lead, "+") {
		s = lead
	}
	if strings.HasPrefix(s, "+") {
		if e164, ok := validPhone(s, ""); ok {
			return e164, nil
		}
		return no("There is no phone number %s.", quoted(s))
	}
	const between = " ()[]{}.-/"
	if strings.Trim(s, "0123456789"+between) != "" || strings.Trim(s, between) == "" {
		return no("%s is not a phone number.", quoted(text))
	}
	if country == "" {
		return mend("%s has no country code: write it with + and the country code, or choose the country of your account.", quoted(s))
	}
	if e164, ok := withoutPlus(s, country); ok {
		return e164, nil
	}
	if e164, ok := validPhone(s, country); ok {
		return e164, nil
	}
	return mend("There is no phone number %s in %s: write numbers of other countries with + and the country code.", quoted(s),
		CountryName(country))
}

// withoutPlus reads a number that a list or a spreadsheet has taken its plus from: it begins with the country's own
// calling code, and not as its national numbers do.
func withoutPlus(s, country string) (string, bool) {
	national := phonenumbers.GetNddPrefixForRegion(country, true)
	digits := strings.Map(onlyDigits, s)
	if national == "" || strings.HasPrefix(digits, national) ||
		!strings.HasPrefix(digits, strconv.Itoa(phonenumbers.GetCountryCodeForRegion(country))) {
		return "", false
	}
	return validPhone("+"+digits, "")
}

// mendable is the code of an error of ReadPhone that says how the number can be mended.
const mendable = "phone_mendable"

// PhoneHelp is how a number can be mended that ReadPhone has refused, "" where there is no more to say than that it is
// none.
func PhoneHelp(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Code == mendable {
		return e.Message
	}
	return ""
}

// onlyDigits leaves out all but digits.
func onlyDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return r
	}
	return -1
}

var (
	shortened = regexp.MustCompile(`^[+-]?[0-9]+([.,][0-9]*)?[eE][+]?[0-9]+$`) // 4.91512E+11
	decimals  = regexp.MustCompile(`^([+]?[0-9]{6,})[.]0+$`)                   // 4915112345678.0
)

func validPhone(s, country string) (string, bool) {
	if len(s) > 32 {
		return "", false
	}
	n, err := phonenumbers.Parse(s, country)
	if err != nil || !phonenumbers.IsValidNumber(n) {
		return "", false
	}
	s = phonenumbers.Format(n, phonenumbers.E164)
	return s, len(s) <= 1+15 // some plans allow more digits than E.164 does
}

// quoted is a text that is quoted to the person who wrote it.
func quoted(s string) string {
	if r := []rune(strings.TrimSpace(s)); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return strings.TrimSpace(s)
}

// plainPhone writes a number in ASCII, as far as it is one: digits of any script, signs of full width, every kind of
// blank and dash. Apostrophes, quotes and characters that nobody sees are left out, as is the = with which a
// spreadsheet keeps a number as text.
func plainPhone(text string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= '!'+fullWidth && r <= '~'+fullWidth:
			r -= fullWidth
		case unicode.Is(unicode.Nd, r):
			return '0' + digitOf(r)
		}
		switch {
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Mn, r), strings.ContainsRune("'\"`´’‘ʼ′“”", r):
			return -1
		case unicode.IsSpace(r), r == '\u2800', r == '\u3164':
			return ' '
		case unicode.Is(unicode.Pd, r), r == '−':
			return '-'
		case r == '·', r == '•', r == '．':
			return '.'
		case r == '⁄', r == '∕':
			return '/'
		}
		return r
	}, text)
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "="))
}

// fullWidth is how far signs of full width are from those of ASCII.
const fullWidth = '！' - '!'

// digitOf is the value of a decimal digit of any script: each has its ten in one row.
func digitOf(r rune) rune {
	for _, in := range unicode.Nd.R16 {
		if r >= rune(in.Lo) && r <= rune(in.Hi) {
			return (r - rune(in.Lo)) % 10
		}
	}
	for _, in := range unicode.Nd.R32 {
		if r >= rune(in.Lo) && r <= rune(in.Hi) {
			return (r - rune(in.Lo)) % 10
		}
	}
	return 0
}
