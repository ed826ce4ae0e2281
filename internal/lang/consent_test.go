package lang

import "testing"

func TestConsents(t *testing.T) {
	for text, want := range map[string][2]bool{
		"Yes.": {true, false}, "yes please": {true, false}, "Okay, sure.": {true, false}, "No, thanks.": {false, true},
		"Not now.": {false, true}, "Yes?": {}, "no, I mean yes": {}, "Who is it?": {}, "": {},
		"yes but first tell me who that is": {}, "know": {}, "hello": {}} {
		if yes, no := Consents(text, "en"); yes != want[0] || no != want[1] {
			t.Errorf("%q: %v %v", text, yes, no)
		}
	}
	for code, words := range map[string][2]string{"de": {"Ja, gerne.", "Nein danke"}, "zh": {"好的。", "不要"},
		"ja": {"はい", "いいえ"}, "ar": {"نعم", "لا"}, "et": {"yes", "no"}} {
		if yes, no := Consents(words[0], code); !yes || no {
			t.Errorf("%s: %q is no yes", code, words[0])
		}
		if yes, no := Consents(words[1], code); yes || !no {
			t.Errorf("%s: %q is no no", code, words[1])
		}
	}
}
