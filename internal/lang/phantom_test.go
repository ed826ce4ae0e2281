package lang

import "testing"

// TestPhantom: the sentences of films that recognizers write for noise are known, and what people say isn't one.
func TestPhantom(t *testing.T) {
	for _, c := range []struct {
		language, text string
		never, often   bool
	}{
		{"en", "Thank you.", false, true}, {"en", "Thanks for watching!", true, false},
		{"en", "Subtitles by the Amara.org community", true, false},
		{"en", "Thank you. Thank you. Bye.", false, true}, {"en", "you", false, true},
		{"en", "Thank you, I'd like a table for two.", false, false}, {"en", "I have watched it, thanks for asking", false, false},
		{"en", "yes", false, false}, {"en", "", false, false},
		{"en", "Subtitles by the way are what I am calling about, since those of the film that I bought are wrong.", false, false},
		{"de", "Untertitel der Amara.org-Community", true, false}, {"de", "Untertitelung des ZDF, 2020", true, false},
		{"de", "Vielen Dank.", false, true}, {"de", "Thank you.", false, true}, {"de", "Thanks for watching", true, false},
		{"de", "Danke, aber ich möchte einen Termin.", false, false},
		{"fr", "Sous-titres réalisés par la communauté d'Amara.org", true, false}, {"fr", "Merci.", false, true},
		{"es", "Subtítulos realizados por la comunidad de Amara.org", true, false}, {"es", "¡Gracias por ver el video!", true, false},
		{"it", "Sottotitoli creati dalla comunità Amara.org", true, false}, {"it", "Grazie.", false, true},
		{"pt", "Legendas pela comunidade Amara.org", true, false}, {"nl", "Ondertitels ingediend door de Amara.org gemeenschap", true, false},
		{"pl", "Napisy stworzone przez społeczność Amara.org", true, false}, {"ru", "Субтитры сделал DimaTorzok", true, false},
		{"ru", "Продолжение следует...", true, false}, {"zh", "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目", true, false},
		{"ja", "ご視聴ありがとうございました。", true, false}, {"ja", "ありがとうございました", false, true},
		{"bg", "Благодаря за гледането!", true, false}, {"bg", "Благодаря.", false, true},
		{"bg", "Благодаря, искам маса за двама.", false, false},
		{"ca", "Gràcies per veure el vídeo.", true, false}, {"ca", "Gràcies.", false, true}, {"ca", "Gràcies, voldria una taula.", false, false},
		{"cs", "Děkuji.", false, true}, {"da", "Tak.", false, true}, {"sv", "Tack.", false, true}, {"no", "Takk.", false, true},
		{"el", "Υπότιτλοι AUTHORWAVE", true, false}, {"el", "Ευχαριστώ.", false, true}, {"el", "Ευχαριστώ, θέλω ένα τραπέζι.", false, false},
		{"et", "Aitäh vaatamast!", true, false}, {"et", "Aitäh.", false, true}, {"et", "Aitäh, soovin lauda.", false, false},
		{"fa", "ممنون که تماشا کردید", true, false}, {"fa", "ممنون", false, true}, {"fa", "ممنون، یک میز می\u200cخواهم", false, false},
		{"fi", "Kiitos katsomisesta!", true, false}, {"fi", "Kiitos.", false, true}, {"fi", "Kiitos, haluaisin pöydän.", false, false},
		{"he", "תודה רבה שצפיתם", true, false}, {"he", "תודה", false, true}, {"he", "תודה, אני רוצה שולחן", false, false},
		{"hi", "धन्यवाद", false, true}, {"ar", "شكرا", false, true}, {"tr", "Teşekkürler.", false, true}, {"uk", "Дякую.", false, true},
		{"hr", "Hvala što pratite kanal.", true, false}, {"hr", "Hvala.", false, true}, {"hr", "Hvala, trebam stol za dvoje.", false, false},
		{"hu", "Köszönöm, hogy megnézted a videót!", true, false}, {"hu", "Köszönöm.", false, true},
		{"hu", "Köszönöm, egy asztalt kérek.", false, false},
		{"id", "Terima kasih telah menonton!", true, false}, {"id", "Terima kasih.", false, true},
		{"id", "Terima kasih, saya mau pesan meja.", false, false},
		{"is", "Takk fyrir að horfa.", true, false}, {"is", "Takk fyrir.", false, true}, {"is", "Takk, ég vil panta borð.", false, false},
		{"lt", "Ačiū, kad žiūrėjote!", true, false}, {"lt", "Ačiū.", false, true}, {"lt", "Ačiū, noriu staliuko.", false, false},
		{"lv", "Paldies par skatīšanos!", true, false}, {"lv", "Paldies.", false, true}, {"lv", "Paldies, es vēlos galdiņu.", false, false},
		{"ms", "Terima kasih kerana menonton!", true, false}, {"ms", "Terima kasih.", false, true},
		{"ms", "Terima kasih, saya mahu meja.", false, false},
		{"ro", "Vă mulțumesc pentru vizionare!", true, false}, {"ro", "Mulțumesc.", false, true},
		{"ro", "Mulțumesc, aș dori o masă.", false, false},
		{"sk", "Ďakujem za pozretie.", true, false}, {"sk", "Ďakujem.", false, true}, {"sk", "Ďakujem, chcel by som stôl.", false, false},
		{"sl", "Hvala za ogled!", true, false}, {"sl", "Hvala lepa.", false, true}, {"sl", "Hvala, rad bi mizo.", false, false},
		{"sr", "Хвала што пратите канал.", true, false}, {"sr", "Hvala.", false, true}, {"sr", "Hvala, treba mi sto.", false, false},
		{"ta", "பார்த்ததற்கு நன்றி", true, false}, {"ta", "நன்றி", false, true}, {"ta", "நன்றி, எனக்கு ஒரு மேசை வேண்டும்", false, false},
		{"th", "ขอบคุณที่รับชม", true, false}, {"th", "ขอบคุณครับ", false, true}, {"th", "ขอบคุณครับ ขอจองโต๊ะ", false, false},
		{"ur", "دیکھنے کا شکریہ", true, false}, {"ur", "شکریہ", false, true}, {"ur", "شکریہ، مجھے ایک میز چاہیے", false, false},
		{"vi", "Cảm ơn các bạn đã theo dõi!", true, false}, {"vi", "Cảm ơn.", false, true}, {"vi", "Cảm ơn, tôi muốn đặt bàn.", false, false},
		{"ko", "시청해 주셔서 감사합니다.", true, false}, {"xx", "Thank you for watching.", true, false},
	} {
		if never, often := Phantom(c.text, c.language); never != c.never || often != c.often {
			t.Errorf("%s %q: %v %v, want %v %v", c.language, c.text, never, often, c.never, c.often)
		}
	}
}

// Every language knows what recognizers write for noise in it.
func TestPhantomsOfAll(t *testing.T) {
	for code, l := range known().languages {
		if code != "" && (len(l.Phantoms.Never) == 0 || len(l.Phantoms.Often) == 0) {
			t.Errorf("%s has no phantoms", code)
		}
	}
}

// A recognizer that doubts that somebody spoke is believed: at once of what it often writes for noise, else if it is sure.
func TestUnspoken(t *testing.T) {
	for _, c := range []struct {
		text     string
		noSpeech float64
		want     bool
	}{
		{"Thank you.", 0, false}, {"Thank you.", 0.5, false}, {"Thank you.", 0.6, true}, {"Thanks for watching!", 0, true},
		{"A table for two.", 0.8, false}, {"A table for two.", 0.95, true}, {"Yes.", 0.7, false}, {"", 0, false},
	} {
		if got := Unspoken(c.text, "en", c.noSpeech); got != c.want {
			t.Errorf("%q, %v: %v", c.text, c.noSpeech, got)
		}
	}
}
