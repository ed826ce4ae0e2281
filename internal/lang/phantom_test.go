package lang

import "testing"

// TestPhantom: the sentences of films that recognizers write for noise are known, and what people say isn't one.
func TestPhantom(t *testing.T) {
	for _, c := range []struct {
		language, text string
		never, often   bool
	}{
		{"en", "Thank you.", false, true}, {"en", "Thanks for watching!", true, false}, {"en", "Subtitles by the Amara.org community", true, false},
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
		{"ko", "시청해 주셔서 감사합니다.", true, false}, {"xx", "Thank you for watching.", true, false},
	} {
		if never, often := Phantom(c.text, c.language); never != c.never || often != c.often {
			t.Errorf("%s %q: %v %v, want %v %v", c.language, c.text, never, often, c.never, c.often)
		}
	}
}
