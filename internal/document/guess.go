package document

import "unicode"

// common are the letters beyond ASCII that languages use a lot; the rest of an alphabet is rarer.
var common = func() map[rune]bool {
	m := map[rune]bool{}
	for _, r := range "äöüßéèêàçôîùñóíáúåøæãõœìòâ" + "ąćęłńśźżčšžřěůýőűđțșăâî" + "оеаинтсрвлкмдпуяыьгзбчйхжшюцщ" +
		"αειονστρκμλπυηςάέίό" {
		m[r] = true
	}
	return m
}()

// plausible scores how much a text looks like somebody's language: common letters in words of one script and case are
// good; symbols, private characters and letters of several scripts in a word are bad.
func plausible(s string) int {
	score := 0
	var before rune
	for _, r := range s {
		switch {
		case r == unicode.ReplacementChar:
			score -= 200
		case r < 0x80:
		case r >= 'א' && r <= 'ת': // where Russian has some of its letters, there are none
			score += 4
			if alien(before, r) {
				score -= 6
			}
		case unicode.Is(unicode.Hiragana, r), unicode.Is(unicode.Katakana, r) && r < 0xff00,
			unicode.Is(unicode.Hangul, r):
			score += 6
		case unicode.Is(unicode.Han, r):
			score += 3
		case common[r]:
			score += 3
			if alien(before, r) {
				score -= 6
			}
		case unicode.IsUpper(r):
			score++
			if unicode.IsLower(before) { // "dÜ": case doesn't change within a word
				score -= 6
			}
			if common[unicode.ToLower(r)] && !unicode.IsLetter(before) {
				score++
			}
			if alien(before, r) {
				score -= 6
			}
		case unicode.IsLetter(r):
			if alien(before, r) {
				score -= 6
			}
		case r == '“' || r == '”' || r == '’' || r == '„' || r == '–' || r == '—' || r == '€' || r == '…' ||
			r == '«' || r == '»' || r == '°' || r == '§' || r == '·' || r == ' ' ||
			r == '、' || r == '。' || r == '「' || r == '」' || r == '，' || r == '：' || r == '（' || r == '）' ||
			r == '©' || r == '®' || r == '™' || r == '‘' || r == '№':
			score++
		case unicode.IsControl(r):
			score -= 20
		default:
			score -= 4
		}
		before = r
	}
	return score
}

// alien says whether two letters that stand side by side belong to different scripts.
func alien(a, b rune) bool {
	if !unicode.IsLetter(a) {
		return false
	}
	for _, script := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Hebrew} {
		if unicode.Is(script, b) {
			return !unicode.Is(script, a)
		}
	}
	return false
}
