package sms

import (
	"strings"
	"testing"
)

// What people write to get no more messages, to get them again, or to get help; and what merely looks like it. A row
// grows by a form.
func TestKeyword(t *testing.T) {
	for want, list := range map[string][]string{
		wantsStop: {
			"STOP", "stop", " Stop. ", "Stop!!!", "STOP STOP", "stop stop stop!!", "S T O P", "S.T.O.P.", "s-t-o-p", "\"Stop\"",
			"'stop'", "(stop)", "*STOP*", "stop…", "STOP 🛑", "Stop 😡😡", "✋stop✋", "STOP\u200b", "\u202aSTOP\u202c", "ＳＴＯＰ",
			"Ｓtop！", "𝗦𝗧𝗢𝗣", "ⓢⓣⓞⓟ", "stóp", "STOP ALL", "StopAll", "stop all please", "opt out", "opt-out", "Opt Out.", "OPTOUT",
			"opt‑out", "opt – out", "Please opt me out", "I want to opt out", "STOP please", "please STOP", "Please, stop!",
			"pls stop", "stop plz", "Stop, thanks", "Stop. Thank you!", "ok stop", "STOP NOW", "please stop now, thank you",
			"Stop\n\nSent from my iPhone", "STOP\r\n\r\nSent from my Galaxy", "Stop\nGet Outlook for iOS",
			"Stop\n-- \nAna Ruiz, CEO", "Stop - Sent from my iPhone", "Stopp\n\nVon meinem iPhone gesendet", "Stop\nGesendet von Mail für Windows",
			"Stop\nEnvoyé de mon iPhone", "Alto\nEnviado desde mi iPhone", "Parar\n\nEnviado do meu iPhone", "Basta\nInviato da iPhone",
			"Stop\nVerzonden vanaf mijn iPhone", "Stopp\nSkickat från min iPhone", "Stop\nSendt fra min iPhone",
			"Stop\nWysłane z iPhone'a", "стоп\nОтправлено с iPhone", "停止\niPhoneから送信", "退订\n发自我的iPhone", "dur\niPhone’umdan gönderildi",
			"수신거부\n나의 iPhone에서 보냄", "stop texting me", "Stop sending me messages!", "no more texts please", "do not text me again",
			"Don't text me", "remove me from your list", "Take me off the list, thanks", "unsubscribe me please", "UNSUBSCRIBE", "end", "Quit.",
			"CANCEL", "revoke", "cancel\nSent from my iPhone",
			"ARRÊT", "arret", "Arrêtez", "STOP SMS", "stop pub", "désabonner svp", "Ne m'écrivez plus", "STOP s'il vous plaît",
			"Stopp", "stopp bitte", "Bitte abmelden", "ABBESTELLEN", "Keine SMS mehr!", "Aufhören", "Hört auf", "Hören Sie auf mir zu schreiben",
			"Alto", "BAJA", "Por favor, no más mensajes", "dar de baja", "Pare, por favor", "SAIR", "não quero mais mensagens",
			"Disiscrivimi", "basta", "Non scrivetemi più", "Afmelden aub", "Geen berichten meer", "Avregistrera", "Stoppa tack", "Afmeld mig",
			"Meld meg av", "lopeta", "Älä lähetä viestejä", "Wypisz mnie", "proszę nie pisać", "Odhlásit", "Leiratkozás", "Állj", "Dezabonare",
			"СТОП", "Стоп, пожалуйста", "отписаться", "Больше не пишите!", "Відписатися", "Спри", "ΔΙΑΚΟΠΗ", "σταματήστε", "İPTAL", "IPTAL", "dur",
			"mesaj istemiyorum", "توقف", "إيقاف", "إلغاء الاشتراك", "لغو", "הסר", "הסירו אותי", "बंद करो", "रोकें", "நிறுத்து", "หยุด",
			"ยกเลิก ครับ", "Dừng lại", "Hủy đăng ký", "Từ chối", "berhenti", "停止", "配信停止", "やめてください", "ストップ", "수신거부", "그만", "退订", "退訂",
			"TD", "取消订阅", "拒收",
		},
		wantsStart: {"START", "start", "UNSTOP", "Start!", "start please", "ＳＴＡＲＴ", "Start 👍", "Start\n\nSent from my iPhone"},
		wantsAgain: {"yes", "YES!", "Opt in", "opt-in please", "Subscribe", "ja", "Oui", "sí", "да", "はい", "예"},
		wantsHelp: {"HELP", "help", "Help!", "INFO", "info please", "Hilfe", "aide", "ayuda", "помощь", "ヘルプ", "帮助",
			"Help\nSent from my iPhone"},
		"": {
			"Does the bus stop here?", "Where is the next stop?", "Don't stop!", "Stop by at 5?", "I can't stop thinking about it",
			"Please stop the order and call me", "stop it", "non-stop", "Can you stop by tomorrow?", "Is it the last stop?", "Stop 42",
			"Please cancel", "cancel please", "Cancel my appointment", "The end", "At the end", "to the end please", "quit smoking",
			"no", "No thanks",
			"thanks", "please", "ok", "👍", "🛑", "", "help me find a gift for my mother", "I need help with my order", "start at 9",
			"When do you start?",
			"I opted out of the newsletter, did it work?", "How do I unsubscribe?", "Wo hält der Bus? Stopp am Markt?", "¿Dónde está la parada?",
			"Die Haltestelle", "arrêt de bus", "停车场在哪里", "stopwatch", "I want to stop my subscription next month", "Sent from my iPhone",
			"Ist das Ende gut?", "Stop\nlooking at me", "Where do I stop?\nSent from my iPhone", "the info desk", "Is this help?",
			"yes please send it", "The message said STOP to end, why?", "what does STOP do",
		},
	} {
		for _, text := range list {
			if got := keyword(text); got != want {
				t.Errorf("%q is %q, want %q", text, got, want)
			}
		}
	}
	for form := range words {
		if form == "" || strings.TrimSpace(form) != form {
			t.Errorf("a form that nobody can write: %q", form)
		}
	}
}

// A word means one thing.
func TestKeywordsDiffer(t *testing.T) {
	of := map[string]string{}
	for want, list := range map[string][]string{wantsStop: append(aloneWords[wantsStop], stopWords...), wantsHelp: helpWords,
		wantsAgain: againWords, wantsStart: startWords} {
		for _, w := range list {
			if was := of[plain(w)]; was != "" && was != want {
				t.Errorf("%q is both %s and %s", w, was, want)
			}
			of[plain(w)] = want
		}
	}
}
