package auth

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a password's length, in characters.
const (
	MinPassword = 8
	MaxPassword = 1024
)

// WeakPassword says why a password is not to be had, in words that follow its name ("must be at least 8
// characters."), or "". about is what everybody knows of its owner: name, address.
func WeakPassword(password string, about ...string) (why string) {
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return "must be at least 8 characters."
	case n > MaxPassword:
		return "must not be greater than 1024 characters."
	case fewCharacters(password):
		return "is too easy to guess: it has too few different characters. Use several unrelated words."
	case sequence(password):
		return "is too easy to guess: its characters are in a row. Use several unrelated words."
	}
	if digits := strings.Trim(password, digitsAndSigns); digits == "" && len(password) < 12 {
		return "is too easy to guess: it is a number or a date. Use several unrelated words."
	}
	cores := []string{plainCore(password, false), plainCore(password, true)}
	for _, core := range cores {
		if strings.Contains(common, " "+core+" ") {
			return "is too easy to guess: it is a common password. Use several unrelated words."
		}
	}
	for _, text := range about {
		for _, part := range append(strings.FieldsFunc(text,
			func(r rune) bool { return r == '@' || unicode.IsSpace(r) }), text) {
			if part = plainCore(part, false); len(part) >= 3 && slices.Contains(cores, part) {
				return "is too easy to guess: it is your name or email address. Use several unrelated words."
			}
		}
	}
	return ""
}

// fewCharacters says whether a text is made of three different characters at most, or of a short piece again and again.
func fewCharacters(text string) bool {
	seen := map[rune]bool{}
	for _, r := range strings.ToLower(text) {
		seen[r] = true
	}
	if len(seen) <= 3 {
		return true
	}
	for size := 1; size <= 4 && size <= len(text)/2; size++ {
		if strings.Repeat(text[:size], len(text)/size+1)[:len(text)] == text {
			return true
		}
	}
	return false
}

// rows are what fingers and heads run along.
var rows = []string{"abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiopasdfghjklzxcvbnm",
	"qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm", "1q2w3e4r5t6y7u8i9o0p", "zaq12wsxcde34rfvbgt56yhn", "!@#$%^&*()",
	"qazwsxedcrfvtgbyhnujm"}

// sequence says whether a text is made of at most two pieces that stand in rows, forwards or backwards.
func sequence(text string) bool {
	text = strings.ToLower(text)
	along := func(part string) bool {
		for _, row := range rows {
			if strings.Contains(row, part) || strings.Contains(row, reversed(part)) {
				return true
			}
		}
		return false
	}
	if along(text) {
		return true
	}
	for i := 3; i <= len(text)-3; i++ {
		if along(text[:i]) && along(text[i:]) {
			return true
		}
	}
	return false
}

func reversed(text string) string {
	b := []byte(text) // rows have single bytes alone
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

const digitsAndSigns = "0123456789 !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// plainCore is a password as who guesses sees it: what is put before and behind a word to please a rule taken off
// (signs says whether signs that stand for letters too), small letters, digits and signs that stand for letters read
// as them.
func plainCore(password string, signs bool) string {
	off := digitsAndSigns
	if !signs {
		off = strings.NewReplacer("@", "", "$", "").Replace(off)
	}
	text := strings.Trim(strings.ToLower(password), off)
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, leet.Replace(text))
}

var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// common are the words that stand alone in the longest lists of leaked passwords, and what a product's own users are
// tempted by.
const common = " password passwort passwords passwordpassword passwd pass passw mypassword thepassword yourpassword motdepasse " +
	"contrasena contrasenia wachtwoord haslo senha parola salasana " +
	"admin administrator administrateur adminadmin root toor superuser sysadmin user username guest default changeme changeit letmein " +
	"letmeinn welcome welcomehome willkommen bienvenue bienvenido " +
	"login logon signin access secret secrets geheim topsecret test tester testing testtest demo temp temporary sample example " +
	"parley parleyparley assistant voice telephone phone company office summer winter spring autumn fall sommer winterr january february " +
	"march april may june july august september october november december " +
	"monday tuesday wednesday thursday friday saturday sunday qwerty qwertyqwerty qwertz azerty asdf asdfasdf qwer qwerqwer zxcvbnm qazwsx " +
	"abc abcabc abcd abcdabcd iloveyou iloveu loveyou love lovely lover mylove ily " +
	"monkey dragon master shadow sunshine princess football baseball basketball soccer hockey superman batman spiderman starwars trustno " +
	"trustnoone whatever computer internet google facebook " +
	"michael michelle jennifer jessica jordan hunter ranger buster thomas robert daniel charlie andrew joshua matthew anthony nicole ashley " +
	"amanda samantha elizabeth william jonathan christian benjamin " +
	"pokemon nintendo minecraft killer hello hellohello hallo hallohallo freedom flower cheese butterfly chocolate cookie pepper ginger " +
	"banana orange purple yellow silver golden diamond mustang ferrari porsche mercedes yamaha harley corvette " +
	"liverpool arsenal chelsea barcelona realmadrid juventus manchester steelers cowboys lakers yankees eagles jesus jesuschrist blessed " +
	"angel angels heaven family forever friends mother father daddy mommy " +
	"matrix phoenix thunder tigger snoopy scooter maverick merlin jackson lennon nirvana metallica slipknot gandalf sephiroth naruto blink " +
	"fuckyou fuckoff fuck asshole bitch sexy pussy " +
	"australia canada england germany deutschland france espana italia america texas london berlin paris newyork california "
