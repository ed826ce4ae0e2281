package manifest

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// slug is a name as a file is called: letters and digits of every script in lower case, others as one hyphen.
func slug(name string) string {
	text, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC), strings.ToLower(name))
	if err != nil {
		text = strings.ToLower(name)
	}
	var b strings.Builder
	n := 0
	for _, c := range text {
		switch {
		case n >= 60:
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_':
			b.WriteRune(c)
			n++
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
			n++
		}
	}
	s := strings.Trim(b.String(), "-")
	if s == "" || device.MatchString(s) {
		s = strings.Trim("_"+s, "-")
	}
	return s
}

// device are names that Windows keeps for itself.
var device = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// free is a name that is not taken: the name itself, or with the next number behind it. It is taken then.
func free(name string, taken map[string]bool) string {
	one := name
	for n := 2; taken[one]; n++ {
		one = name + "-" + strconv.Itoa(n)
	}
	taken[one] = true
	return one
}

// numbered is a name that was free, without the number behind it.
func numbered(name string) (string, int) {
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.Atoi(name[i+1:])
	if i < 0 || err != nil || n < 2 || name[i+1] == '0' {
		return name, 1
	}
	return name[:i], n
}
