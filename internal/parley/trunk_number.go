package parley

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// How a trunk is talked to: the numbers that it has, and how they are written.

// MaxTrunkNumbers is how many numbers a trunk may have beside its own.
const MaxTrunkNumbers = 1000

// ProxyAddress is host[:port] of an outbound proxy, or a boolean as other systems have it, "true" or "false": neither
// names a proxy.
type ProxyAddress string

// Address is the proxy's host[:port], "" where none is named.
func (p *ProxyAddress) Address() string {
	if p == nil || *p == "true" || *p == "false" {
		return ""
	}
	return string(*p)
}

// AnyOf are the types of the field in the reference.
func (ProxyAddress) AnyOf() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[bool]()}
}

// MarshalJSON writes it as it was given.
func (p ProxyAddress) MarshalJSON() ([]byte, error) {
	if p == "true" || p == "false" {
		return []byte(p), nil
	}
	return json.Marshal(string(p))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *ProxyAddress) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] != '"' {
		*p = ProxyAddress(b)
		return nil
	}
	var text string
	err := json.Unmarshal(b, &text)
	*p = ProxyAddress(text)
	return err
}

// BindJSON reads a decoded JSON value: a text, or a boolean. It returns what must be sent in place of a wrong one.
func (p *ProxyAddress) BindJSON(raw any) (must string) {
	switch v := raw.(type) {
	case bool:
		*p = ProxyAddress(strconv.FormatBool(v))
	case string:
		*p = ProxyAddress(strings.TrimSpace(v))
	default:
		return "must be a string or a boolean."
	}
	return ""
}

// Extension says whether the trunk has an extension of a telephone system in place of a number of its own.
func (t *Trunk) Extension() bool { return t.SIPTrunkType == "extension" }

// Lay lays changes over a trunk. What follows from other fields (its name, where it has none of its own, and its
// country) follows them again.
func (t *TrunkInput) Lay(change func()) {
	old := t.Trunk
	change()
	if t.Name == old.PhoneNumber || old.Nickname != nil && t.Name == *old.Nickname {
		t.Name = ""
	}
	if t.Name == "" && t.Nickname != nil {
		t.Name = *t.Nickname
	}
	if t.CountryCode = strings.ToUpper(t.CountryCode); t.CountryCode == PhoneCountry(old.PhoneNumber) {
		t.CountryCode = ""
	}
}

// FromStore fills in what is stored in another form, or follows from other fields.
func (t *Trunk) FromStore() {
	t.OutboundProxy, t.PasswordSet = (*ProxyAddress)(t.Proxy), len(t.Sealed) > 0
	t.Complete()
}

// Complete fills in what follows from other fields.
func (t *Trunk) Complete() {
	t.Name = cmp.Or(t.Name, t.PhoneNumber)
	if t.CountryCode == "" {
		t.CountryCode = PhoneCountry(t.PhoneNumber)
	}
}

// checkNumbers judges the numbers that the trunk has, and writes them as they are kept.
func (t *Trunk) checkNumbers(f *Fields) {
	bad := func(name, text string) {
		if !f.Has(name) {
			f.Add(name, "%s", text)
		}
	}
	if n, ok := NormalizePhone(t.PhoneNumber); ok && !t.Extension() {
		t.PhoneNumber = n
	} else if !t.Extension() {
		bad("phone_number", "must be a phone number in international format.")
	} else if len(t.PhoneNumber) > 15 {
		bad("phone_number", "must not be greater than 15 characters when sip_trunk_type is extension.")
	} else if t.PhoneNumber == "" || strings.Trim(t.PhoneNumber, extensionSigns) != "" {
		bad("phone_number", "must contain only letters, digits and the characters + - _ . * # when sip_trunk_type is extension.")
	}
	if t.CountryCode != "" && phonenumbers.GetCountryCodeForRegion(t.CountryCode) == 0 {
		bad("country_code", "must be a country code of two letters such as DE.")
	}
	if t.SIPCallingFormat == "national" && cmp.Or(t.CountryCode, PhoneCountry(t.PhoneNumber)) == "" {
		bad("country_code", "is required when sip_calling_format is national and the number does not tell the country.")
	}
	total := 0
	for i, text := range t.Numbers {
		at := "numbers." + strconv.Itoa(i)
		first, n, ok := numberRange(text)
		switch total += n; {
		case !ok:
			bad(at, "must be a phone number in international format, or a range such as +4930901820-+4930901829 or +4930901820-29.")
		case total > MaxTrunkNumbers:
			bad("numbers", "must not hold more than "+strconv.Itoa(MaxTrunkNumbers)+" numbers altogether.")
			return
		default:
			t.Numbers[i] = writeRange(first, n)
		}
	}
}

// ReadNumber returns one of a trunk's numbers with its country code, as checkNumbers wants it: a national number as it is dialled in the
// country, and 00 as +. A range, and what can't be read, stays as it is otherwise.
func ReadNumber(text, country string) string {
	text = prefix00.ReplaceAllString(text, "$1+")
	if !strings.HasPrefix(text, "+") {
		if n, err := ReadPhone(text, country); err == nil {
			return n
		}
	}
	return text
}

// prefix00 is 00 before a number, or before either end of a range.
var prefix00 = regexp.MustCompile(`(^|-)\s*00`)

const extensionSigns = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-_.*#"

// lastDigits is the end of a range such as +4930901820-99: the digits in which the last number differs from the first.
var lastDigits = regexp.MustCompile(`^(\+[0-9]{7,15})-([0-9]{1,3})$`)

// numberRange reads a number, or a range of numbers of one length: the first one's digits, and how many there are.
// +4930901820-99 is short for +4930901820-+4930901899. With spaces, +49 30 901820-99, it is a number and its extension.
func numberRange(s string) (first int64, n int, ok bool) {
	if m := lastDigits.FindStringSubmatch(s); m != nil {
		s = m[1] + "-" + m[1][:len(m[1])-len(m[2])] + m[2]
	}
	from, to, isRange := strings.Cut(s, "-+")
	a, ok := NormalizePhone(from)
	if !ok {
		return 0, 0, false
	}
	first, err := strconv.ParseInt(a[1:], 10, 64)
	if err != nil || !isRange {
		return first, 1, err == nil
	}
	b, ok := NormalizePhone("+" + to)
	if !ok || len(a) != len(b) {
		return 0, 0, false
	}
	last, err := strconv.ParseInt(b[1:], 10, 64)
	if err != nil || last < first || last-first >= MaxTrunkNumbers {
		return 0, 0, false
	}
	return first, int(last-first) + 1, true
}

func writeRange(first int64, n int) string {
	text := "+" + strconv.FormatInt(first, 10)
	if n > 1 {
		text += "-+" + strconv.FormatInt(first+int64(n)-1, 10)
	}
	return text
}

// Further are the trunk's numbers beside its own, E.164, each once.
func (t *Trunk) Further() (list []string) {
	seen := map[string]bool{t.PhoneNumber: true}
	for _, text := range t.Numbers {
		first, n, _ := numberRange(text)
		for i := range int64(n) {
			if number := writeRange(first+i, 1); !seen[number] {
				seen[number] = true
				list = append(list, number)
			}
		}
	}
	return list
}

// Without are the trunk's ranges of numbers without one of them.
func (t *Trunk) Without(number string) []string {
	list := []string{}
	for _, text := range t.Numbers {
		first, n, _ := numberRange(text)
		gone, err := strconv.ParseInt(strings.TrimPrefix(number, "+"), 10, 64)
		if at := int(gone - first); err != nil || gone < first || at >= n {
			list = append(list, text)
		} else {
			if at > 0 {
				list = append(list, writeRange(first, at))
			}
			if at < n-1 {
				list = append(list, writeRange(gone+1, n-1-at))
			}
		}
	}
	return list
}

// WrittenNumber is an E.164 number in a format of a trunk's, as dialled in a country: "+e164" with its plus, "e164"
// without it, "national" with what is dialled there before national and foreign numbers. What is no such number stays
// as it is.
func WrittenNumber(number, format, country string) string {
	if !strings.HasPrefix(number, "+") {
		return number
	}
	switch format {
	case "e164":
		return number[1:]
	case "national":
		n, err := phonenumbers.Parse(number, "")
		if err != nil || country == "" {
			return number
		}
		if slices.Contains(phonenumbers.GetRegionCodesForCountryCode(int(n.GetCountryCode())), country) {
			return digitsOf(phonenumbers.Format(n, phonenumbers.NATIONAL))
		}
		if abroad := phonenumbers.FormatOutOfCountryCallingNumber(n, country); !strings.HasPrefix(abroad, "+") {
			return digitsOf(abroad)
		}
	}
	return number
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}
