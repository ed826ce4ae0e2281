package sms

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// What a message asks for that is a keyword.
const (
	wantsStop  = "stop"
	wantsStart = "start"
	wantsAgain = "again" // after a stop it is a start; otherwise it is for the assistant
	wantsHelp  = "help"
)

// The words by which people say whether they want messages. A message is one when it says nothing else, whatever its
// case, its accents, its punctuation and emoji, the phone's signature below it, and a please or thank you around it.
// Sentences are here whole: one that merely contains such a word is for the assistant.
var (
	// without a please or a thank you: with one they are as likely an answer to what the assistant asked
	aloneWords = map[string][]string{wantsStop: {"cancel", "end", "quit", "revoke", "exit", "cancelar", "cancela", "annuler",
		"annulla", "fin", "ende", "slut",
		"koniec", "konec", "τελος", "iptal", "batal", "إلغاء", "لغو", "בטל", "td", "baja", "alto"}}

	stopWords = []string{
		// English
		"stop", "stop all", "stopall", "unsubscribe", "unsubscribe me", "unsubscribe all", "opt out", "optout", "opt me out",
		"opt out all", "i opt out", "i want to opt out", "i would like to opt out", "opting out", "stop sms", "stop text",
		"stop texts", "stop texting", "stop texting me", "stop text messages", "stop messaging", "stop messaging me",
		"stop messages", "stop the messages", "stop these messages", "stop the texts", "stop these texts", "stop sending",
		"stop sending me", "stop sending messages", "stop sending me messages", "stop sending texts", "stop sending me texts",
		"stop sending me text messages", "stop sending me these", "stop sending me this", "stop contacting me", "stop spam",
		"stop spamming me", "stop ads", "stop advertising", "stop marketing", "stop promotions", "stop bothering me",
		"no more messages", "no more texts", "no more sms", "no more text messages", "do not text", "do not text me",
		"don t text me", "dont text me", "do not text me again", "don t text me again", "dont text me again",
		"do not message me", "don t message me", "dont message me", "do not contact me", "don t contact me",
		"dont contact me", "do not contact me again", "don t contact me again", "remove me", "remove me from your list",
		"remove me from the list", "remove me from this list", "remove my number", "remove my number from your list",
		"delete my number", "take me off your list", "take me off the list", "take me off this list", "take me off",
		"leave me alone", "stopp", "sotp", "stpo", "stoop", "arretez",
		// German
		"stopp alle", "aufhoren", "abmelden", "abmeldung", "abbestellen", "austragen", "mich austragen", "mich abmelden",
		"keine sms mehr", "keine nachrichten mehr", "keine werbung", "keine werbung mehr", "ich mochte abbestellen",
		"ich mochte keine nachrichten mehr", "ich will keine nachrichten mehr", "ich mochte keine sms mehr",
		"hort auf", "horen sie auf", "horen sie auf mir zu schreiben", "schreiben sie mir nicht mehr", "nicht mehr schreiben",
		// French
		"arret", "arreter", "arrete", "stop sms", "stop pub", "stop au", "desabonner", "desabonnement", "me desabonner",
		"desinscrire", "desinscription", "me desinscrire", "desinscrivez moi", "desabonnez moi", "plus de messages",
		"plus de sms", "plus de pub", "ne m ecrivez plus", "ne me contactez plus", "arretez de m ecrire",
		"arretez les messages", "arretez vos messages",
		// Spanish, Catalan, Portuguese, Italian, Romanian
		"parar", "pare", "detener", "basta", "dar de baja", "darme de baja", "dame de baja", "deme de baja",
		"quiero darme de baja", "no mas mensajes", "no mas sms", "no me escriban mas", "no me escriba mas",
		"no me manden mas mensajes", "no quiero mas mensajes", "no enviar mas mensajes", "desuscribir", "desuscribirme",
		"baixa", "atura", "aturar", "no mes missatges", "no vull mes missatges",
		"descadastrar", "descadastre", "sair", "cancelar inscricao", "remover", "nao quero mais mensagens", "chega",
		"nao enviar mais mensagens", "nao me mandem mais mensagens", "pare de enviar mensagens", "parem",
		"ferma", "fermati", "disiscrivi", "disiscriviti", "disiscrivimi", "cancellami", "cancellatemi", "basta messaggi",
		"basta sms", "niente piu messaggi", "non voglio piu messaggi", "non scrivetemi piu", "non contattatemi piu",
		"opreste", "opriti", "dezabonare", "dezabonati ma", "nu mai vreau mesaje",
		// Dutch, Swedish, Danish, Norwegian, Icelandic, Finnish
		"stoppen", "afmelden", "uitschrijven", "afmelding", "meld mij af", "geen berichten meer", "geen sms meer",
		"geen reclame", "geen reclame meer", "ik wil geen berichten meer", "stop met berichten", "stop met sms en",
		"stoppa", "avsluta", "avregistrera", "avanmal", "avprenumerera", "inga fler sms", "inga fler meddelanden",
		"sluta skicka", "sluta sms a", "ta bort mig",
		"afmeld", "afmeld mig", "frameld", "ikke flere beskeder", "ikke flere sms", "ingen flere beskeder", "slet mig",
		"meld av", "meld meg av", "avmeld", "avslutt", "ikke flere meldinger", "ingen flere meldinger", "slett meg",
		"haetta", "haettu", "afskra", "ekki fleiri skilabod",
		"lopeta", "lopettakaa", "peruuta tilaus", "ei enaa viesteja", "ala laheta viesteja", "poista minut",
		// Polish, Czech, Slovak, Hungarian, Slovenian, Croatian, Serbian, Bulgarian
		"zatrzymaj", "wypisz", "wypisz mnie", "rezygnuje", "nie chce wiecej wiadomosci", "koniec z sms",
		"prosze nie pisac", "prosze wiecej nie pisac", "przestan", "przestancie", "anuluj subskrypcje",
		"odhlasit", "odhlaste me", "odhlasit odber", "uz nepiste", "nepiste mi", "prestante", "zastavit",
		"odhlasit ma", "odhlaste ma", "uz mi nepiste", "prestante mi pisat",
		"leiratkozas", "leiratkozom", "allj", "ne kuldjenek tobb uzenetet", "nem kerek tobb uzenetet",
		"odjava", "odjavi", "odjavi me", "odjavite me", "nehajte", "prekini", "prestanite", "nema vise poruka",
		"stani", "dosta", "ne zelim vise poruka",
		"стоп", "спри", "спрете", "отписване", "отпиши ме", "без повече съобщения",
		"одјава", "одјави ме", "престаните",
		// Russian, Ukrainian
		"отписаться", "отпишите меня", "отписка", "отмена подписки", "хватит", "прекратите", "прекратить",
		"больше не пишите", "не пишите мне", "не пишите мне больше", "не присылайте больше", "остановить",
		"відписатися", "відпишіть мене", "відписка", "припиніть", "зупинити", "досить", "більше не пишіть", "не пишіть мені",
		// Greek, Turkish
		"σταματηστε", "σταματα", "διακοπη", "διαγραφη", "απεγγραφη", "οχι αλλα μηνυματα",
		"dur", "durdur", "durdurun", "abonelikten cik", "listeden cik", "ret", "mesaj istemiyorum",
		"artik mesaj istemiyorum", "bana mesaj atmayin", "mesaj gondermeyin", "beni listeden cikarin",
		// Estonian, Latvian, Lithuanian
		"lopeta tellimus", "loobu", "ei soovi sonumeid", "tuhista tellimus", "lopetage",
		"apturet", "atrakstities", "atteikties", "vairs nesutiet", "beidziet",
		"sustabdyti", "atsisakau", "atsisakyti", "nebesiuskite", "stabdyti",
		// Arabic, Persian, Urdu, Hebrew
		"توقف", "ايقاف", "إيقاف", "الغاء الاشتراك", "إلغاء الاشتراك", "أوقف", "اوقف", "لا ترسل",
		"لا تراسلني", "كفى", "ستوب",
		"توقف کن", "لغو اشتراک", "پیام نفرستید", "دیگر پیام نفرستید", "لغو ۱۱",
		"بند کرو", "بند کریں", "روکو", "روکیں", "پیغام مت بھیجیں",
		"הסר", "הסרה", "להסיר", "תסירו אותי", "הסירו אותי", "עצור", "די", "סטופ", "הפסק", "תפסיקו",
		// Hindi, Tamil, Thai, Vietnamese, Indonesian, Malay
		"बंद करो", "बंद करें", "रोको", "रोकें", "रुको", "रुकें", "स्टॉप", "संदेश मत भेजो", "मैसेज मत भेजो",
		"நிறுத்து", "நிறுத்தவும்", "நிறுத்துங்கள்",
		"หยุด", "ยกเลิก", "หยุดส่ง", "เลิกส่ง", "ยกเลิกรับข้อความ", "ไม่รับข้อความ", "หยุดส่งข้อความ",
		"dung lai", "huy dang ky", "tu choi", "ngung", "dung nhan tin",
		"berhenti", "hentikan", "berhenti langganan", "jangan kirim lagi", "jangan sms lagi", "stop sms",
		"berhenti melanggan", "jangan hantar lagi", "batal langganan",
		// Japanese, Korean, Chinese
		"停止", "中止", "配信停止", "停止希望", "配信停止希望", "解除", "退会", "やめて", "やめてください", "やめて下さい",
		"ストップ", "止めて", "止めてください", "送らないで", "送らないでください", "もう送らないで", "もう送らないでください",
		"중지", "정지", "수신거부", "수신 거부", "거부", "그만", "그만 보내세요", "그만보내세요", "보내지 마세요", "해지", "스톱",
		"退订", "退訂", "取消订阅", "取消訂閱", "停", "停止发送", "停止發送", "不要再发", "不要再发了", "不要再發",
		"别发了", "別發了", "拒收", "回t退订", "停止接收",
	}
	startWords = []string{"start", "unstop"}
	againWords = []string{"yes", "opt in", "optin", "opt me in", "subscribe", "resubscribe", "subscribe me", "resume",
		"start again", "start sms", "start messages", "start texting me", "restart",
		"ja", "anmelden", "wieder anmelden", "starten", "oui", "reprendre", "reabonner", "me reabonner", "demarrer",
		"si", "alta", "darme de alta", "empezar", "comenzar", "iniciar", "sim", "comecar", "voltar", "inizia", "riattiva",
		"iscrivimi", "aanmelden", "aanmelding", "starta", "start igjen", "tilmeld", "meld på", "aloita", "tak", "zacznij",
		"wznow", "ano", "zacit", "igen", "inditas", "da", "pornire", "старт", "да", "начать", "возобновить", "подписаться",
		"так", "почати", "підписатися", "ναι", "εναρξη", "evet", "basla", "baslat", "نعم", "ابدأ", "ابدا", "اشتراك", "بله",
		"شروع", "כן", "התחל", "हाँ", "शुरू", "शुरू करो", "शुरू करें", "เริ่ม", "สมัคร", "ใช่", "bat dau", "dong y", "ya", "mulai",
		"mula", "はい", "開始", "再開", "네", "예", "시작", "是", "开始", "開始", "恢复", "恢復", "订阅", "訂閱"}
	helpWords = []string{"help", "info", "help me", "hilfe", "aide", "ayuda", "ajuda", "aiuto", "ajutor", "hulp", "hjalp",
		"hjelp", "hjælp", "apua", "pomoc", "napoveda", "segitseg", "помощь", "помощ", "допомога", "помоћ", "βοηθεια", "yardim",
		"palidziba", "pagalba", "مساعدة", "کمک", "راهنما", "مدد", "עזרה", "मदद", "உதவி", "ช่วยด้วย", "ช่วยเหลือ", "tro giup",
		"bantuan", "ヘルプ", "助けて", "도움말", "도움", "帮助", "幫助"}

	// what people put around it; the longest that fits goes first
	polite = []string{"please", "pls", "plz", "thanks", "thank you", "thank u", "thx", "ty", "ok", "okay", "kindly", "hi",
		"hello", "hey", "now", "right now", "immediately", "thank you very much", "many thanks", "sir", "madam", "guys",
		"bitte", "danke", "vielen dank", "sofort", "hallo", "s il vous plait", "s il te plait", "svp", "stp", "merci",
		"bonjour", "por favor", "porfavor", "porfa", "gracias", "muchas gracias", "hola", "ya", "sisplau", "si us plau",
		"gracies", "obrigado", "obrigada", "ola", "per favore", "per piacere", "grazie", "ciao", "va rog", "multumesc",
		"alstublieft", "alsjeblieft", "aub", "ajb", "dank u", "dank je", "bedankt", "tack", "snalla", "var vanlig", "hej",
		"takk", "vaer sa snill", "tak", "vaer sa venlig", "venligst", "vennligst", "kiitos", "prosze", "dziekuje", "dzieki",
		"prosim", "dekuji", "dakujem", "kerem", "koszonom", "prosim lepo", "hvala", "molim", "molim vas", "пожалуйста",
		"спасибо", "моля", "благодаря", "будь ласка", "дякую", "хвала", "молим", "παρακαλω", "ευχαριστω", "lutfen", "tesekkurler",
		"tesekkur ederim", "palun", "aitah", "ludzu", "paldies", "prasau", "aciu", "من فضلك", "رجاء", "شكرا", "لطفا", "ممنون",
		"بس", "براہ کرم", "شکریہ", "בבקשה", "תודה", "कृपया", "धन्यवाद", "தயவுசெய்து", "நன்றி", "ครับ", "ค่ะ", "คะ", "ขอบคุณ", "กรุณา",
		"vui long", "cam on", "xin", "tolong", "terima kasih", "mohon", "sila", "お願いします", "ください", "下さい", "ありがとう",
		"ありがとうございます", "감사합니다", "부탁합니다", "부탁드립니다", "请", "請", "谢谢", "謝謝"}
)

// signature is the beginning of a line that a phone writes below a message.
var signature = regexp.MustCompile(`(?i)^\W*(sent (from|via|with|using) |get outlook for |gesendet (von|mit) |von meinem .{1,30} gesendet` +
	`|envoy[ée] (de|depuis|à partir) |enviad[oa] (desde|do|da|de|a partir) |enviat des |inviat[oa] (da|dal) |trimis (de pe|din) ` +
	`|verzonden (vanaf|met|via) |verstuurd vanaf |skickat från |sendt fra |sent frá |lähetetty |wysłan[eo] z |odesláno z |odoslané z ` +
	`|poslano (z|s|iz) |послато са |изпратено от |отправлено (с|из) |надіслано з |στάλθηκε από ` +
	`|.{1,30}(’|')?(u|ü|ı|i)?m?(dan|den) gönderildi` +
	`|saadetud |nosūtīts no |išsiųsta iš |أ?ُ?رسلت من |ارسال شده از |فرستاده شده از |נשלח מ|मेरे .{1,30} से भेजा|ส่งจาก|đã gửi từ |` +
	`dikirim dari |dihantar d|.{1,30}から送信|나의 .{1,30}에서 보냄|내 .{1,30}에서 (보냄|전송)|发自|發自|從我的 .{1,30}(傳送|寄出)|--\s*$)`)

// inline is such a signature behind the text, in the line itself.
var inline = regexp.MustCompile(`(?i)\W+sent from my \S.{0,30}$`)

// words are the forms of all keywords, plain.
var words = func() map[string]string {
	out := map[string]string{}
	for want, list := range map[string][]string{wantsStop: stopWords, wantsHelp: helpWords, wantsAgain: againWords,
		wantsStart: startWords} {
		for _, w := range list {
			out[plain(w)] = want
		}
	}
	return out
}()

var (
	alone = func() map[string]string {
		out := map[string]string{}
		for want, list := range aloneWords {
			for _, w := range list {
				out[plain(w)] = want
			}
		}
		return out
	}()
	around = func() (list [][]string) {
		for _, p := range polite {
			list = append(list, strings.Fields(plain(p)))
		}
		slices.SortStableFunc(list, func(a, b []string) int { return len(b) - len(a) })
		return list
	}()
)

// plain is a text as it is compared: without case, accents, width, punctuation and emoji.
func plain(text string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(strings.ToLower(norm.NFKC.String(text))) {
		switch {
		case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Cf, r):
		case r == 'ı':
			b.WriteByte('i')
		case r == 'ł':
			b.WriteByte('l')
		case r == 'đ':
			b.WriteByte('d')
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mc, r):
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// keyword says what a message asks for that is a keyword; "" when it is for the assistant.
func keyword(body string) string {
	text := plain(unsigned(body))
	if letters := strings.Fields(text); len(letters) > 2 && !slices.ContainsFunc(letters, func(s string) bool {
		return len([]rune(s)) > 1 // s t o p
	}) {
		text = strings.Join(letters, "")
	}
	tokens := strings.Fields(text)
	if want := alone[once(tokens)]; want != "" {
		return want
	}
	for {
		if want := words[once(tokens)]; want != "" {
			return want
		}
		i := slices.IndexFunc(around, func(p []string) bool {
			n := len(tokens) - len(p)
			return n > 0 && (slices.Equal(tokens[:len(p)], p) || slices.Equal(tokens[n:], p))
		})
		if i < 0 {
			return ""
		}
		p := around[i]
		if slices.Equal(tokens[:len(p)], p) {
			tokens = tokens[len(p):]
		} else {
			tokens = tokens[:len(tokens)-len(p)]
		}
	}
}

// once is a text whose only word is repeated, once.
func once(tokens []string) string {
	return strings.Join(slices.Compact(slices.Clone(tokens)), " ")
}

// unsigned is a message without the signature below it.
func unsigned(body string) string {
	var kept []string
	for line := range strings.Lines(strings.ReplaceAll(body, "\r", "\n")) {
		if len(kept) > 0 && signature.MatchString(norm.NFC.String(strings.TrimSpace(line))) {
			break
		}
		if strings.TrimSpace(line) != "" {
			kept = append(kept, line)
		}
	}
	return inline.ReplaceAllString(strings.TrimSpace(strings.Join(kept, "")), "")
}
