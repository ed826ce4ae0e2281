package sms

import "unicode/utf16"

// GSM 03.38 (3GPP TS 23.038): what a message of 7-bit characters may hold, and how much. A longer message is sent in
// parts that lose room to the header which joins them; a part never ends within an escaped character or a surrogate
// pair.
const (
	gsmOne, gsmPart   = 160, 153 // septets of 140 octets, without and with a 6-octet header
	ucs2One, ucs2Part = 70, 67   // 16-bit units
)

const (
	gsmDefault = "@£$¥èéùìòÇ\n" +
		"Øø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmEscaped = "\f^{}\\[~]|€" // each takes an escape before it: two septets
)

// septets is how many septets a character takes; 0: it is in no table.
var septets = func() map[rune]int {
	m := map[rune]int{}
	for _, r := range gsmDefault {
		m[r] = 1
	}
	for _, r := range gsmEscaped {
		m[r] = 2
	}
	return m
}()

// Segments are the parts that a text message is sent and charged in.
func Segments(text string) []string {
	width, one, part := func(r rune) int { return septets[r] }, gsmOne, gsmPart
	for _, r := range text {
		if septets[r] == 0 {
			width, one, part = func(r rune) int { return max(1, utf16.RuneLen(r)) }, ucs2One, ucs2Part
			break
		}
	}
	total := 0
	for _, r := range text {
		total += width(r)
	}
	if total <= one {
		return []string{text}
	}
	var list []string
	begin, used := 0, 0
	for i, r := range text {
		if w := width(r); used+w > part {
			list, begin, used = append(list, text[begin:i]), i, w
		} else {
			used += w
		}
	}
	return append(list, text[begin:])
}
