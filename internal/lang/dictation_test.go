package lang

import "testing"

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		language, text string
		want           Form
	}{
		{"en", "What is your phone number?", Form{Kind: NumberForm}},
		{"en", "Please tell me your six-digit code.", Form{NumberForm, 6}},
		{"en", "Can I have the last 4 digits of your card?", Form{NumberForm, 4}},
		{"en", "And your e-mail address?", Form{Kind: EmailForm}},
		{"en", "Could you spell that for me?", Form{Kind: SpelledForm}},
		{"en", "What is your date of birth?", Form{Kind: BirthForm}},
		{"en", "What can I do for you?", Form{}},
		{"de", "Wie lautet Ihre sechsstellige Kundennummer?", Form{NumberForm, 6}},
		{"de", "Nennen Sie mir bitte die letzten vier Ziffern.", Form{NumberForm, 4}},
		{"de", "Wie ist Ihre Telefonnummer?", Form{Kind: NumberForm}},
		{"de", "Können Sie das bitte buchstabieren?", Form{Kind: SpelledForm}},
		{"de", "Wie lautet Ihre E-Mail-Adresse?", Form{Kind: EmailForm}},
		{"fr", "Quel est votre code à six chiffres ?", Form{NumberForm, 6}},
		{"fr", "Quelle est votre date de naissance ?", Form{Kind: BirthForm}},
		{"es", "Dígame el código de seis dígitos.", Form{NumberForm, 6}},
		{"es", "¿Cuál es su correo electrónico?", Form{Kind: EmailForm}},
		{"it", "Mi dica il codice di sei cifre.", Form{NumberForm, 6}},
		{"pt", "Qual é o código de seis dígitos?", Form{NumberForm, 6}},
		{"nl", "Wat is uw zescijferige code?", Form{NumberForm, 6}},
		{"nl", "Wat is uw telefoonnummer?", Form{Kind: NumberForm}},
		{"pl", "Proszę podać sześciocyfrowy kod.", Form{NumberForm, 6}},
		{"pl", "Jaki jest pana numer telefonu?", Form{Kind: NumberForm}},
		{"xx", "What is your phone number?", Form{}},
	} {
		if got := Asked(c.text, c.language); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.language, c.text, got, c.want)
		}
	}
}

func TestDigits(t *testing.T) {
	for _, c := range []struct {
		language, text, want string
		tail                 bool
	}{
		{"en", "four seven one five", "4715", true},
		{"en", "it's 47 15", "4715", true},
		{"en", "forty-seven fifteen", "4715", true},
		{"en", "double five oh triple two", "550222", true},
		{"en", "four seven one, no, seven", "477", true},
		{"en", "four seven fifteen sorry sixteen", "4716", true},
		{"en", "five [keypad: 1 2 3]", "5123", true},
		{"en", "five five please", "55", false},
		{"en", "no I don't have it", "", false},
		{"en", "double", "", true},
		{"de", "vier sieben zwo siebenundzwanzig", "47227", true},
		{"de", "siebenunddreißig, nein, achtunddreißig", "38", true},
		{"fr", "soixante-dix-sept quatre-vingt-trois zéro un", "778301", true},
		{"fr", "septante sept nonante", "7790", true},
		{"es", "treinta y dos veintiuno cero", "32210", true},
		{"it", "ventotto trentatré uno", "28331", true},
		{"pt", "meia três vinte e um", "6321", true},
		{"nl", "drieëntwintig dubbel vijf nul", "23550", true},
		{"pl", "dwadzieścia jeden pięć zero", "2150", true},
		{"xx", "47 15", "4715", true},
		// as recognizers write them
		{"en", "471-533", "471533", true}, {"en", "4-7-1-5-3-3.", "471533", true}, {"en", "4, 7, 1, 5, 3, 3", "471533", true},
		{"en", "471,533", "471533", true}, {"de", "471.533", "471533", true}, {"en", "(471) 533", "471533", true},
		{"en", "4...7...1", "471", true},
		{"en", "#471533", "471533", true}, {"en", "471 five 33", "471533", true}, {"en", "47/15/33!", "471533", true},
	} {
		if got, tail := Digits(c.text, c.language); got != c.want || tail != c.tail {
			t.Errorf("%s %q: %s %v, want %s", c.language, c.text, got, tail, c.want)
		}
	}
}

func TestTold(t *testing.T) {
	six, number := Form{NumberForm, 6}, Form{Kind: NumberForm}
	email, spelled, birth := Form{Kind: EmailForm}, Form{Kind: SpelledForm}, Form{Kind: BirthForm}
	for _, c := range []struct {
		form Form
		text string
		want Progress
	}{
		{six, "it's four seven", ToldPart}, {six, "four seven one um", ToldPart},
		{six, "four seven one five three three", ToldWhole}, {six, "four seven one five 33", ToldWhole},
		{six, "why do you ask", ToldNothing}, {six, "I don't have one", ToldNothing}, {six, "I only have one problem", ToldNothing},
		{number, "0171 555", ToldPart}, {number, "I don't have it here", ToldNothing},
		{six, "four no five", ToldPart}, {six, "no five", ToldPart}, {six, "no, I have one", ToldNothing},
		{email, "john", ToldPart}, {email, "it's john", ToldPart}, {email, "yes", ToldNothing}, {email, "excuse me", ToldNothing},
		{email, "what for", ToldNothing}, {email, "mine?", ToldNothing}, {email, "john at example dot co", ToldPart},
		{email, "john at example dot co dot uk", ToldWhole}, {email, "j o h n", ToldPart}, {email, "john at", ToldPart},
		{email, "john at example", ToldPart}, {email, "john at example dot", ToldPart},
		{email, "john at example dot com", ToldWhole}, {email, "john@example", ToldPart},
		{email, "it's john@example.com", ToldWhole}, {email, "john@example.com.", ToldWhole},
		{email, "john at example.com", ToldWhole}, {email, "I don't have one", ToldNothing},
		{spelled, "s m i", ToldPart}, {spelled, "Smith", ToldPart}, {spelled, "no", ToldNothing}, {spelled, "Smith s m i t h", ToldWhole},
		{spelled, "Smith s m i t", ToldPart}, {spelled, "it's S-M-I", ToldPart},
		{birth, "the 4th of may", ToldPart}, {birth, "4 may", ToldPart}, {birth, "4 may 1984", ToldWhole},
		{birth, "four five eighty-four", ToldWhole}, {birth, "04 05 84", ToldWhole},
		{Form{}, "four seven", ToldNothing},
	} {
		if got := c.form.Told(c.text, "en"); got != c.want {
			t.Errorf("%v %q: %v, want %v", c.form, c.text, got, c.want)
		}
	}
}

// TestToldDate: a date of birth is whole once its year was said, in figures or in words.
func TestToldDate(t *testing.T) {
	birth := Form{Kind: BirthForm}
	for _, c := range []struct {
		language, text string
		want           Progress
	}{
		{"en", "the third of May nineteen eighty-four", ToldWhole}, {"en", "May third nineteen eighty four", ToldWhole},
		{"en", "it's the twenty first of june nineteen oh four", ToldWhole}, {"en", "third of may two thousand and four", ToldWhole},
		{"en", "the third of may eighty-four", ToldWhole}, {"en", "may fourth twenty eleven", ToldWhole},
		{"en", "the third of May", ToldPart}, {"en", "the third of May nineteen", ToldPart},
		{"en", "third of may nineteen hundred", ToldPart},
		{"en", "the third of may two thousand", ToldNothing}, {"en", "I don't want to tell you", ToldNothing},
		{"en", "nineteen eighty-four", ToldPart}, {"en", "the 3rd of May, 1984", ToldWhole},
		{"de", "am dritten Mai neunzehnhundertvierundachtzig", ToldWhole}, {"de", "dritter fünfter vierundachtzig", ToldWhole},
		{"de", "der dritte Mai neunzehnhundert vierundachtzig", ToldWhole}, {"de", "dritter Mai zweitausendvier", ToldWhole},
		{"de", "der einundzwanzigste März neunzehnhundertneunzig", ToldWhole}, {"de", "dritter Mai", ToldPart},
		{"de", "dritter fünfter", ToldPart},
		{"fr", "le trois mai mille neuf cent quatre-vingt-quatre", ToldWhole}, {"fr", "le premier juin deux mille quatre", ToldWhole},
		{"fr", "le trois mai quatre-vingt-quatre", ToldWhole}, {"fr", "le trois mai", ToldPart},
		{"fr", "le trois mai mille neuf cent", ToldPart},
		{"es", "el tres de mayo de mil novecientos ochenta y cuatro", ToldWhole}, {"es", "el primero de junio del dos mil cuatro", ToldWhole},
		{"es", "tres de mayo del ochenta y cuatro", ToldWhole}, {"es", "el tres de mayo", ToldPart},
		{"es", "tres de mayo de mil novecientos", ToldPart},
		{"it", "il tre maggio millenovecentottantaquattro", ToldWhole}, {"it", "tre maggio mille novecento ottantaquattro", ToldWhole},
		{"it", "il primo giugno duemilaquattro", ToldWhole}, {"it", "tre maggio ottantaquattro", ToldWhole}, {"it", "tre maggio", ToldPart},
		{"pt", "três de maio de mil novecentos e oitenta e quatro", ToldWhole}, {"pt", "primeiro de junho de dois mil e quatro", ToldWhole},
		{"pt", "três de maio de oitenta e quatro", ToldWhole}, {"pt", "três de maio", ToldPart},
		{"nl", "drie mei negentien vierentachtig", ToldWhole},
		{"nl", "derde mei negentienhonderdvierentachtig", ToldWhole}, {"nl", "drie mei tweeduizend vier", ToldWhole},
		{"nl", "drie mei vierentachtig", ToldWhole}, {"nl", "drie mei", ToldPart},
		{"pl", "trzeciego maja tysiąc dziewięćset osiemdziesiątego czwartego roku", ToldWhole},
		{"pl", "trzeci maja osiemdziesiąty czwarty", ToldWhole}, {"pl", "trzeci maja dwa tysiące czwarty", ToldWhole},
		// as recognizers write them
		{"en", "5/4/84", ToldWhole}, {"en", "5-4-84.", ToldWhole}, {"de", "4.5.84.", ToldWhole}, {"de", "4. 5. 1984", ToldWhole},
		{"en", "May 4th, 1984.", ToldWhole}, {"en", "1984-05-04", ToldWhole}, {"fr", "4 mai 1984", ToldWhole},
		{"pl", "4 maja 1984 r.", ToldWhole},
		{"en", "5/4", ToldPart}, {"en", "5/4/19", ToldPart}, {"en", "four five twenty", ToldPart}, {"en", "45 84", ToldPart},
		{"en", "nineteen eighty-four May third", ToldWhole}, {"en", "nineteen eighty-four May", ToldPart},
		{"es", "cuatro del cinco del ochenta y cuatro", ToldWhole}, {"es", "cuatro del cinco", ToldPart},
		{"it", "quattro cinque ottantaquattro", ToldWhole}, {"pt", "quatro do cinco de oitenta e quatro", ToldWhole},
		{"nl", "vier vijf vierentachtig", ToldWhole}, {"fr", "quatre cinq quatre-vingt-quatre", ToldWhole},
		{"pl", "trzeci maja", ToldPart}, {"pl", "trzeciego maja tysiąc dziewięćset", ToldPart},
	} {
		if got := birth.Told(c.text, c.language); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.language, c.text, got, c.want)
		}
	}
}
