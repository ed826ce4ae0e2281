package document

import (
	"regexp"
	"strings"

	"github.com/PuerkitoBio/goquery"
)

// Pages that stand in the way of what somebody came to read. Each is a table of what such pages say, in small letters; a page that
// says much else besides is none.

// Reasons go on from the page's address.
const (
	IsChallenge = "it shows a check for robots instead of its text: ask its owner to let " + RobotName +
		" in, or upload the text as a document"
	isConsent  = "it shows a question about cookies or consent instead of its text: upload the text as a document"
	isMissing  = "the server says in words that there is no such page"
	IsSignIn   = "it asks visitors to sign in, and only public pages can be read: upload the text as a document"
	isScripted = "it is made by scripts in the browser, which are not run here: upload the text as a document"
)

// Words that a page may have beside what stands in the way.
const (
	maxChallenge = 150
	maxConsent   = 300
	maxMissing   = 200
	maxSignIn    = 100
	maxScripted  = 25
)

var (
	challengeTitle = saying(`just a moment|attention required|access denied|checking your browser|are you (a )?(human|robot)|security check|` +
		`pardon our interruption|verif(y|ying) (that )?you are( a)? human|robot check|ddos-guard|one moment, please|bot verification|sicherheitsüberprüfung|` +
		`einen moment|un instant|nur einen moment|vérification de sécurité|請稍候|请稍候`)
	challengeText = saying(
		`checking (if the site connection is secure|your browser before accessing)|verif(y|ying) (that )?you are( a)? human|` +
			`(complete|solve) the captcha|unusual (traffic|activity) from your|needs to review the security of your connection|ray id: |` +
			`enable (javascript and )?cookies to continue|prove (that )?you('re| are) not a robot|i'm not a robot|press (&|and) hold|incident id|` +
			`bestätigen sie, dass sie (ein mensch|kein roboter) sind|vérifiez que vous êtes humain|подтвердите, что вы не робот|verifica que eres humano`)
	challengeMarks = regexp.MustCompile(
		`(?i)/cdn-cgi/challenge-platform/h/|_cf_chl_opt|cf-browser-verification|_incapsula_resource|captcha-delivery\.com|px-captcha|` +
			`awswafintegration|sucuri_cloudproxy|/\.well-known/ddos-guard`)

	consentText = []*regexp.Regexp{
		saying(`we (and our (\d+ )?partners )?value your privacy|your privacy matters|before you continue to|ihre privatsphäre ist uns wichtig|` +
			`wir benötigen ihre (zustimmung|einwilligung)|votre vie privée|su privacidad|la tua privacy|uw privacy|din integritet|cenimy twoją prywatność`),
		saying(`(we|wir|nous|nosotros|noi|wij) (and|und|et|y|e|en) (our|unsere|nos|nuestros|i nostri|onze) (\d+ )?(partner|partenaires|socios)|store and/or access information on a device|` +
			`informationen auf (einem|ihrem) gerät speichern|partners? (store|use|process)|unsere partner|nos partenaires`),
		saying(`accept all|agree to all|accept and continue|i agree|reject all|alle akzeptieren|alles akzeptieren|zustimmen und weiter|einwilligen|mit werbung (weiterlesen|lesen)|tout accepter|` +
			`tout refuser|accepter et continuer|aceptar todo|rechazar todo|accetta tutt|rifiuta tutt|alles accepteren|godkänn alla|accepter alle|akceptuję|zaakceptuj|принять все`),
		saying(`use (of )?cookies|cookies? (and|und|et) |verwenden cookies|utilisons des cookies|utilizamos cookies|utilizziamo cookie|gebruiken cookies|personali[sz]ed (ads|advertising|content)|` +
			`personalisierte (werbung|anzeigen)|manage (options|preferences|settings)|tracking`)}

	missingTitle = saying(`(error|fehler|erreur|http) 404|404( error| not| page| -| –| \|| :|:)|(page|site|content|document|url|file) (was |is |could |can |has )?(not |n't |cannot be )(be )?found|page not found|not found|nothing found|no longer (available|exists)|`+
		`(page|it) (doesn't|does not) exist|seite (wurde |konnte |existiert )?(leider )?nicht( mehr)?( gefunden)?|`+
		`page (introuvable|non trouvée)|`+
		`página no (encontrada|existe)|no se (ha encontrado|encontró) la página|pagina (non trovata|inesistente)|página não encontrada|`+
		`pagina (is )?niet gevonden|sidan (kunde inte hittas|hittades inte|finns inte)|siden (blev|ble) ikke (fundet|funnet)|siden findes ikke|sivua ei löydy|`+
		`strona nie (została znaleziona|istnieje)|nie znaleziono strony|stránka (nebyla nalezena|nenalezena)|az oldal nem található|страница не найдена|`+
		`sayfa bulunamadı|الصفحة غير موجودة`, `^404$`, `ページが見つかりません|找不到(页面|頁面|该页)|页面不存在|頁面不存在|페이지를 찾을 수 없`)

	signInTitle = saying(`log ?-?in|sign ?-?in|log on|sign in to .*|anmeld(en|ung)|einloggen|connexion|se connecter|identifiez-vous|iniciar sesión|acceder|accedi|entrar|inloggen|aanmelden|`+
		`logga in|log ind|logg inn|kirjaudu|zaloguj( się)?|logowanie|přihlášení|bejelentkezés|войти|вход|giriş yap|oturum aç|تسجيل الدخول`,
		`ログイン|サインイン|登录|登入|로그인`)

	scriptedText = saying(`(enable|activate|requires?|need|turn on) javascript|javascript (is |to be )?(required|disabled|enabled)|javascript (aktivieren|ist deaktiviert)|activer javascript|` +
		`habilit\w+ javascript|attiva\w* javascript|(loading|wird geladen|chargement|cargando) ?(\.\.\.|…)`)
	roots = `#root, #app, #__next, #__nuxt, #___gatsby, #svelte, app-root, [data-reactroot], [ng-app], [data-v-app]`
)

// saying finds one of some texts that stand by themselves, or one that may stand anywhere.
func saying(texts string, anywhere ...string) *regexp.Regexp {
	return regexp.MustCompile(strings.Join(append([]string{`(?m)(?:^|[^\p{L}\p{N}])(?:` + texts + `)`}, anywhere...), "|"))
}

// barrier takes a page apart and says what a page shows in place of what it is about, "" for a page that is itself. count is how many
// words are left of it without what is around them.
func barrier(doc *goquery.Document, source string, count int) string {
	low := func(s *goquery.Selection) string {
		return strings.ReplaceAll(strings.ToLower(strings.Join(strings.Fields(s.Text()), " ")), "’", "'")
	}
	title := low(doc.Find("title").First()) + "\n" + low(doc.Find("h1").First())
	scripts, puzzle := doc.Find("script").Length() > 0, captcha(doc)
	visible := doc.Find("body")
	visible.Find("script, style, template, svg").Remove()
	text := low(visible)
	password := doc.Find(`input[type="password"]`).Length() > 0
	switch {
	case count <= maxChallenge &&
		(challengeTitle.MatchString(title) && (scripts || challengeText.MatchString(text)) || challengeText.MatchString(text) && puzzle ||
			challengeMarks.MatchString(source)):
		return IsChallenge
	case count <= maxSignIn && password && (signInTitle.MatchString(title) || count <= maxScripted),
		count <= maxSignIn && signInTitle.MatchString(title) &&
			doc.Find(`input[type="email"], input[name*="user"], input[name*="login"]`).Length() > 0:
		return IsSignIn
	case count <= maxMissing && missingTitle.MatchString(title):
		return isMissing
	}
	if count <= maxConsent && consent(visible, text, low) {
		return isConsent
	}
	if count <= maxScripted && scripts && (count == 0 || doc.Find(roots).Length() > 0 || scriptedText.MatchString(text)) {
		return isScripted
	}
	return ""
}

// consent says whether a page is a question about cookies, with nothing to read beside it. A page with a banner has a text of its own.
func consent(visible *goquery.Selection, text string, low func(*goquery.Selection) string) bool {
	if asks(text) < 3 || len(text) > 20_000 {
		return false
	}
	box, size := visible, len(text)
	visible.Find("div, section, form, dialog, main").EachWithBreak(func(i int, s *goquery.Selection) bool {
		if t := low(s); len(t) < size && asks(t) >= 3 {
			box, size = s, len(t)
		}
		return i < 2000
	})
	if box != visible {
		box.Remove()
		visible.Find("header, footer, nav, aside, noscript, button").Remove()
		return wordsOf(low(visible)) <= maxScripted
	}
	return true
}

// asks is how many of the things that such questions say a text says.
func asks(text string) (n int) {
	for _, one := range consentText {
		if one.MatchString(text) {
			n++
		}
	}
	return n
}

// captcha says whether a page has a puzzle, by whom it is from.
func captcha(doc *goquery.Document) bool {
	return doc.Find(`[class*="captcha"], [id*="captcha"], .cf-turnstile, iframe[src*="captcha"], script[src*="captcha"], script[src*="turnstile"], #challenge-form, #challenge-error-text`).Length() > 0
}
