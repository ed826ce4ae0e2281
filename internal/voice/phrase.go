package voice

// The fixed sentences: what is said when the model has nothing to say, by language. A language without them gets English.
var phrases = map[string]map[what]string{
	"en": {stillThere: "Are you still there?", aMoment: "One moment, please.", stillOn: "I'm still working on it. Thank you for your patience.", anApology: "I'm sorry, I didn't catch that. Could you say it again?", aFailure: "I'm sorry, I can't answer right now. Please try again in a moment."},
	"es": {stillThere: "¿Sigue ahí?", aMoment: "Un momento, por favor.", stillOn: "Sigo en ello. Gracias por su paciencia.", anApology: "Perdone, no le he entendido. ¿Puede repetirlo?", aFailure: "Lo siento, ahora mismo no puedo responder. Inténtelo de nuevo en un momento."},
	"fr": {stillThere: "Êtes-vous toujours là ?", aMoment: "Un instant, s'il vous plaît.", stillOn: "J'y travaille encore. Merci de votre patience.", anApology: "Pardon, je n'ai pas compris. Pouvez-vous répéter ?", aFailure: "Je suis désolé, je ne peux pas répondre pour le moment. Veuillez réessayer dans un instant."},
	"de": {stillThere: "Sind Sie noch da?", aMoment: "Einen Moment, bitte.", stillOn: "Ich bin noch dabei. Vielen Dank für Ihre Geduld.", anApology: "Entschuldigung, das habe ich nicht verstanden. Können Sie es wiederholen?", aFailure: "Es tut mir leid, ich kann gerade nicht antworten. Bitte versuchen Sie es gleich noch einmal."},
	"it": {stillThere: "È ancora lì?", aMoment: "Un momento, per favore.", stillOn: "Ci sto ancora lavorando. Grazie per la pazienza.", anApology: "Mi scusi, non ho capito. Può ripetere?", aFailure: "Mi dispiace, in questo momento non posso rispondere. Riprovi tra un attimo."},
	"pt": {stillThere: "Ainda está aí?", aMoment: "Um momento, por favor.", stillOn: "Ainda estou a tratar disso. Obrigado pela paciência.", anApology: "Desculpe, não entendi. Pode repetir?", aFailure: "Desculpe, não consigo responder agora. Tente novamente dentro de momentos."},
	"nl": {stillThere: "Bent u er nog?", aMoment: "Een ogenblik, alstublieft.", stillOn: "Ik ben er nog mee bezig. Bedankt voor uw geduld.", anApology: "Sorry, dat heb ik niet verstaan. Kunt u het herhalen?", aFailure: "Het spijt me, ik kan nu geen antwoord geven. Probeer het zo meteen nog eens."},
	"pl": {stillThere: "Czy nadal Pan lub Pani tam jest?", aMoment: "Chwileczkę, proszę.", stillOn: "Jeszcze nad tym pracuję. Dziękuję za cierpliwość.", anApology: "Przepraszam, nie zrozumiałem. Czy można powtórzyć?", aFailure: "Przepraszam, teraz nie mogę odpowiedzieć. Proszę spróbować za chwilę."},
	"sv": {stillThere: "Är du kvar?", aMoment: "Ett ögonblick, tack.", stillOn: "Jag håller fortfarande på. Tack för ditt tålamod.", anApology: "Förlåt, jag uppfattade inte det. Kan du säga det igen?", aFailure: "Tyvärr kan jag inte svara just nu. Försök igen om en stund."},
	"da": {stillThere: "Er du der stadig?", aMoment: "Et øjeblik, tak.", stillOn: "Jeg er stadig i gang. Tak for din tålmodighed.", anApology: "Undskyld, det hørte jeg ikke. Kan du sige det igen?", aFailure: "Beklager, jeg kan ikke svare lige nu. Prøv igen om et øjeblik."},
	"no": {stillThere: "Er du der fortsatt?", aMoment: "Et øyeblikk.", stillOn: "Jeg holder fortsatt på. Takk for tålmodigheten.", anApology: "Unnskyld, det fikk jeg ikke med meg. Kan du si det igjen?", aFailure: "Beklager, jeg kan ikke svare akkurat nå. Prøv igjen om et øyeblikk."},
	"fi": {stillThere: "Oletko vielä siellä?", aMoment: "Pieni hetki, olkaa hyvä.", stillOn: "Selvitän asiaa yhä. Kiitos kärsivällisyydestä.", anApology: "Anteeksi, en saanut selvää. Voisitteko toistaa?", aFailure: "Valitettavasti en voi vastata juuri nyt. Yrittäkää hetken kuluttua uudelleen."},
	"cs": {stillThere: "Jste tam ještě?", aMoment: "Moment, prosím.", stillOn: "Stále na tom pracuji. Děkuji za trpělivost.", anApology: "Promiňte, nerozuměl jsem. Můžete to zopakovat?", aFailure: "Omlouvám se, teď nemohu odpovědět. Zkuste to prosím za chvíli."},
	"sk": {stillThere: "Ste tam ešte?", aMoment: "Moment, prosím.", stillOn: "Stále na tom pracujem. Ďakujem za trpezlivosť.", anApology: "Prepáčte, nerozumel som. Môžete to zopakovať?", aFailure: "Prepáčte, teraz nemôžem odpovedať. Skúste to, prosím, o chvíľu."},
	"hu": {stillThere: "Vonalban van még?", aMoment: "Egy pillanat türelmet kérek.", stillOn: "Még dolgozom rajta. Köszönöm a türelmét.", anApology: "Elnézést, nem értettem. Megismételné?", aFailure: "Elnézést, most nem tudok válaszolni. Kérem, próbálja újra egy kicsit később."},
	"ro": {stillThere: "Mai sunteți acolo?", aMoment: "Un moment, vă rog.", stillOn: "Încă lucrez la asta. Vă mulțumesc pentru răbdare.", anApology: "Îmi pare rău, nu am înțeles. Puteți repeta?", aFailure: "Îmi pare rău, nu pot răspunde acum. Încercați din nou peste puțin timp."},
	"el": {stillThere: "Είστε ακόμα εκεί;", aMoment: "Μια στιγμή, παρακαλώ.", stillOn: "Το ψάχνω ακόμα. Ευχαριστώ για την υπομονή σας.", anApology: "Συγγνώμη, δεν το άκουσα. Μπορείτε να το επαναλάβετε;", aFailure: "Λυπάμαι, δεν μπορώ να απαντήσω τώρα. Δοκιμάστε ξανά σε λίγο."},
	"tr": {stillThere: "Orada mısınız?", aMoment: "Bir dakika lütfen.", stillOn: "Hâlâ üzerinde çalışıyorum. Sabrınız için teşekkürler.", anApology: "Üzgünüm, anlayamadım. Tekrar eder misiniz?", aFailure: "Üzgünüm, şu anda yanıt veremiyorum. Lütfen birazdan tekrar deneyin."},
	"ru": {stillThere: "Вы ещё здесь?", aMoment: "Одну минуту, пожалуйста.", stillOn: "Я всё ещё этим занимаюсь. Спасибо за терпение.", anApology: "Извините, не расслышал. Повторите, пожалуйста.", aFailure: "Извините, сейчас я не могу ответить. Попробуйте, пожалуйста, чуть позже."},
	"uk": {stillThere: "Ви ще тут?", aMoment: "Хвилинку, будь ласка.", stillOn: "Я ще працюю над цим. Дякую за терпіння.", anApology: "Вибачте, я не розчув. Повторіть, будь ласка.", aFailure: "Вибачте, зараз я не можу відповісти. Спробуйте, будь ласка, трохи пізніше."},
	"bg": {stillThere: "Още ли сте там?", aMoment: "Един момент, моля.", stillOn: "Все още работя по въпроса. Благодаря за търпението.", anApology: "Извинете, не разбрах. Бихте ли повторили?", aFailure: "Съжалявам, в момента не мога да отговоря. Моля, опитайте след малко."},
	"hr": {stillThere: "Jeste li još tu?", aMoment: "Trenutak, molim.", stillOn: "Još radim na tome. Hvala na strpljenju.", anApology: "Oprostite, nisam razumio. Možete li ponoviti?", aFailure: "Žao mi je, sada ne mogu odgovoriti. Pokušajte ponovno za trenutak."},
	"he": {stillThere: "את או אתה עדיין על הקו?", aMoment: "רגע אחד, בבקשה.", stillOn: "אני עדיין בודק. תודה על הסבלנות.", anApology: "סליחה, לא הבנתי. אפשר לחזור על זה?", aFailure: "מצטער, אני לא יכול לענות כרגע. נא לנסות שוב בעוד רגע."},
	"ar": {stillThere: "هل ما زلت معي؟", aMoment: "لحظة من فضلك.", stillOn: "ما زلت أعمل على ذلك. شكرا على صبرك.", anApology: "عذرا، لم أفهم. هل يمكنك أن تعيد ما قلت؟", aFailure: "عذرا، لا أستطيع الإجابة الآن. يرجى المحاولة بعد قليل."},
	"hi": {stillThere: "क्या आप लाइन पर हैं?", aMoment: "कृपया एक क्षण रुकिए।", stillOn: "मैं अभी देख रहा हूँ। आपके धैर्य के लिए धन्यवाद।", anApology: "माफ़ कीजिए, मैं समझ नहीं पाया। क्या आप दोहरा सकते हैं?", aFailure: "माफ़ कीजिए, मैं अभी जवाब नहीं दे सकता। कृपया थोड़ी देर में फिर कोशिश करें।"},
	"zh": {stillThere: "您还在吗？", aMoment: "请稍等。", stillOn: "我还在处理，感谢您的耐心等待。", anApology: "不好意思，我没听清，请您再说一遍。", aFailure: "抱歉，我现在无法回答，请稍后再试。"},
	"ja": {stillThere: "もしもし、聞こえますか？", aMoment: "少々お待ちください。", stillOn: "ただいま確認しております。もう少々お待ちください。", anApology: "申し訳ありません、聞き取れませんでした。もう一度お願いします。", aFailure: "申し訳ありません、ただいまお答えできません。しばらくしてからもう一度お試しください。"},
	"ko": {stillThere: "듣고 계신가요?", aMoment: "잠시만 기다려 주세요.", stillOn: "아직 확인 중입니다. 기다려 주셔서 감사합니다.", anApology: "죄송합니다, 잘 듣지 못했습니다. 다시 말씀해 주시겠어요?", aFailure: "죄송합니다, 지금은 답변드릴 수 없습니다. 잠시 후 다시 시도해 주세요."},
	"vi": {stillThere: "Quý khách còn nghe máy không?", aMoment: "Xin chờ một chút.", stillOn: "Tôi vẫn đang xử lý. Cảm ơn quý khách đã kiên nhẫn.", anApology: "Xin lỗi, tôi chưa nghe rõ. Quý khách nói lại được không?", aFailure: "Xin lỗi, hiện tôi không thể trả lời. Vui lòng thử lại sau."},
	"id": {stillThere: "Apakah Anda masih di sana?", aMoment: "Mohon tunggu sebentar.", stillOn: "Saya masih mengerjakannya. Terima kasih atas kesabaran Anda.", anApology: "Maaf, saya tidak menangkapnya. Bisa diulangi?", aFailure: "Maaf, saya tidak bisa menjawab sekarang. Silakan coba lagi sebentar lagi."},
	"ms": {stillThere: "Adakah anda masih di sana?", aMoment: "Sila tunggu sebentar.", stillOn: "Saya masih menguruskannya. Terima kasih kerana bersabar.", anApology: "Maaf, saya tidak dengar. Boleh ulang semula?", aFailure: "Maaf, saya tidak dapat menjawab sekarang. Sila cuba sebentar lagi."},
	"ca": {stillThere: "Encara hi és?", aMoment: "Un moment, si us plau.", stillOn: "Encara hi estic treballant. Gràcies per la paciència.", anApology: "Perdoni, no ho he entès. Ho pot repetir?", aFailure: "Ho sento, ara mateix no puc respondre. Torni-ho a provar d'aquí a un moment."},
}

func phrase(w what, language string) string {
	if p := phrases[language][w]; p != "" {
		return p
	}
	return phrases["en"][w]
}

// machineWords are what answering machines say and people who take a call don't.
var machineWords = map[string][]string{
	"en": {"leave a message", "leave your message", "leave me a message", "leave us a message", "leave your name", "after the tone", "after the beep", "at the tone", "not available right now", "is not available", "not available to take", "unable to take your call", "can't take your call", "cannot take your call", "can't come to the phone", "can't get to the phone", "can't answer the phone", "unavailable to take", "you have reached the voicemail", "voicemail", "voice mail", "voice mailbox", "mailbox", "answering machine", "record your message", "please hang up or press", "when you have finished recording", "at the sound of the tone", "get back to you as soon as", "call you back as soon as", "has been forwarded", "the person you are calling", "number you are calling"},
	"de": {"nachricht hinterlassen", "hinterlassen sie", "hinterlassen sie eine nachricht", "nach dem ton", "nach dem signalton", "nach dem piep", "nach dem pfeifton", "mailbox", "anrufbeantworter", "nicht erreichbar", "vorübergehend nicht erreichbar", "zur zeit nicht", "sprachbox", "nicht zu hause"},
	"fr": {"laissez un message", "laisser un message", "laissez moi un message", "laissez-moi un message", "après le bip", "après le signal sonore", "messagerie", "boîte vocale", "répondeur", "pas disponible", "votre correspondant", "ne peut pas vous répondre"},
	"es": {"deje un mensaje", "deje su mensaje", "déjame un mensaje", "deja tu mensaje", "deja un mensaje", "después de la señal", "después del tono", "buzón de voz", "contestador", "no está disponible", "no puedo atender", "no podemos atender"},
	"it": {"lasciate un messaggio", "lasci un messaggio", "lasciare un messaggio", "dopo il segnale", "dopo il bip", "segreteria telefonica", "non è raggiungibile", "non è disponibile", "casella vocale"},
	"pt": {"deixe uma mensagem", "deixe a sua mensagem", "deixe sua mensagem", "deixe o seu recado", "deixe seu recado", "após o sinal", "após o bipe", "depois do sinal", "caixa postal", "correio de voz", "não está disponível", "não posso atender"},
	"nl": {"spreek een bericht in", "laat een bericht achter", "bericht achterlaten", "uw bericht", "na de piep", "na de toon", "voicemail", "niet bereikbaar", "antwoordapparaat"},
	"pl": {"zostaw wiadomość", "proszę zostawić wiadomość", "po sygnale", "poczta głosowa", "abonent", "nie może odebrać", "automatyczna sekretarka"},
	"sv": {"lämna ett meddelande", "efter tonen", "efter signalen", "röstbrevlåda", "mobilsvar", "telefonsvarare", "inte svara"},
	"da": {"læg en besked", "efter tonen", "efter bippet", "telefonsvarer", "voicemail"},
	"no": {"legg igjen en beskjed", "etter tonen", "etter pipetonen", "telefonsvarer", "mobilsvar"},
	"tr": {"mesaj bırakın", "mesajınızı bırakın", "sinyal sesinden sonra", "telesekreter", "ulaşılamıyor"},
	"ru": {"оставьте сообщение", "после сигнала", "после звукового сигнала", "автоответчик", "голосовая почта", "абонент"},
	"ja": {"留守番電話", "メッセージをお残し", "発信音", "ただいま電話に出ることができません", "お話しください"},
	"zh": {"请留言", "语音信箱", "提示音", "暂时无法接通", "无人接听"},
}

// greetingWords are what answering machines begin with; people say such things as well, but not before they know who called.
var greetingWords = map[string][]string{
	"en": {"you have reached the voice", "the person you", "number you have", "missed your call", "know what to do", "office is closed", "currently closed", "opening hours", "stay on the line", "call is important", "may be recorded", "hang up and dial", "for english press", "can't take", "nobody can take", "no one is", "lines are busy", "switched off"},
}

// personWords are what people say who greet at length.
var personWords = map[string][]string{
	"en": {"speaking", "how can i help", "how may i help", "how can we help", "how may i direct", "what can i do for you", "who is this", "who's this", "who's calling", "can i help you", "can i call", "can you hear", "i help", "talk to", "talking to", "front desk", "hold on a", "about to call"},
	"de": {"wie kann ich", "was kann ich für sie tun", "am apparat", "guten tag", "wer ist da"},
	"fr": {"que puis je", "que puis-je", "comment puis", "à l'appareil", "en quoi puis-je", "qui est à"},
	"es": {"en qué puedo", "en qué le puedo", "dígame", "quién es", "quién habla", "le atiende"},
	"it": {"come posso", "in cosa posso", "posso aiutarla", "chi parla"},
	"pt": {"em que posso", "como posso", "quem fala", "posso ajudar"},
	"nl": {"waarmee kan ik", "hoe kan ik", "spreekt u mee", "met wie spreek"},
	"pl": {"w czym mogę", "jak mogę", "przy telefonie", "kto mówi"},
}

// hints are words of greetings with what they tell: positive for a machine, negative for a person.
var hints = map[string]map[string]float64{
	"en": {
		"voicemail": 2, "mailbox": 2, "beep": 2, "tone": 2, "unavailable": 2, "message": 1.2, "reached": 1, "leave": 1.2, "record": 1, "recording": 1.5, "recorded": 1.2,
		"available": 1.2, "forwarded": 1.6, "automatic": 1, "automated": 1.2, "system": 0.6, "dialled": 1.2, "dialed": 1.2, "closed": 1.2, "hours": 0.8, "nobody": 0.9,
		"machine": 1, "can't": 0.7, "cannot": 0.9, "unable": 0.9, "able": 0.5, "phone": 0.5, "number": 0.8, "possible": 0.6, "soon": 0.5, "back": 0.2, "come": 0.4, "agents": 0.8,
		"press": 1.2, "english": 0.5, "welcome": 0.8, "try": 0.5, "hang": 0.6, "after": 0.4, "please": 0.2, "family": 0.5, "menu": 0.8, "listen": 0.6, "answer": 0.7, "answered": 0.7, "reach": 0.9, "dial": 0.8, "extension": 0.8, "option": 0.9, "holiday": 0.7, "vacation": 1, "email": 0.7, "text": 0.5, "signal": 1, "return": 0.5, "operator": 0.5, "home": 0.4, "office": 0.1, "until": 0.6, "short": 0.4, "open": 0.4, "outside": 0.6, "later": 0.2, "busy": 0.3, "sorry": 0.2, "currently": 1, "moment": 0.3,
		"person": 1, "customer": 0.3, "called": 0.5, "lines": 0.8, "away": 0.6, "details": 0.8, "missed": 1, "switched": 1,
		"we're": 0.4, "voice": 0.8, "your": 0.3, "take": 0.2, "meeting": 0.5, "wait": 0.4, "know": 0.3, "thank": -0.3, "calling": -0.2, "all": 0.2, "out": 0.2, "i'm": 0.1, "not": 0.2, "call": 0.1, "been": 0.5, "has": 0.3,
		"help": -1.2, "speaking": -1.2, "who": -1, "who's": -1, "assist": -1.2, "what": -0.6, "may": -0.5, "yes": -0.5, "yeah": -0.5, "desk": -0.6, "hear": -1,
		"reception": -0.6, "front": -0.6, "good": -0.2, "morning": -0.3, "afternoon": -0.3, "evening": -0.3, "direct": -0.8, "with": -0.3, "talk": -0.5, "can": -0.3, "do": -0.2, "minutes": -0.5, "me": -0.2, "interested": -1, "is": -0.1,
	},
	"de": {
		"mailbox": 2, "anrufbeantworter": 2, "signalton": 2, "piepton": 2, "pfeifton": 2, "sprachbox": 2, "nachricht": 1.3, "hinterlassen": 1.3, "erreichbar": 1.2,
		"ton": 1, "erreichen": 0.8, "leider": 0.7, "zurzeit": 0.7, "zurück": 0.5, "rückruf": 0.8, "schnellstmöglich": 0.8, "teilnehmer": 1, "geschlossen": 1,
		"öffnungszeiten": 1, "nummer": 0.5, "helfen": -1.2, "apparat": -1.2, "wer": -1, "tag": -0.2, "was": -0.5,
	},
	"fr": {
		"messagerie": 2, "répondeur": 2, "bip": 2, "message": 1.2, "laissez": 1.2, "laisser": 1, "signal": 1, "sonore": 1, "correspondant": 1.2, "disponible": 1,
		"absent": 1, "rappellerai": 1, "joindre": 0.6, "vocale": 1.5, "fermés": 1, "aider": -1.2, "appareil": -1.2, "qui": -0.8, "écoute": -1,
	},
	"es": {
		"buzón": 2, "contestador": 2, "señal": 1.5, "tono": 1.5, "mensaje": 1.2, "deje": 1.2, "deja": 1, "disponible": 1, "atender": 0.8, "grabe": 1.2,
		"momento": 0.3, "llamaré": 0.7, "cerrado": 1, "número": 0.5, "ayudarle": -1.2, "ayudar": -1.2, "quién": -1, "habla": -0.6, "dígame": -1,
	},
	"it": {
		"segreteria": 2, "segnale": 1.5, "bip": 2, "messaggio": 1.2, "lasciate": 1.2, "lasciare": 1, "lasci": 1, "raggiungibile": 1.5, "disponibile": 1, "utente": 1,
		"richiamerò": 0.8, "aiutarla": -1.2, "aiutare": -1.2, "chi": -0.8, "parla": -0.6, "pronto": -0.3,
	},
	"pt": {
		"caixa": 0.8, "postal": 1.2, "recado": 1.3, "sinal": 1.5, "bipe": 2, "mensagem": 1.2, "deixe": 1.2, "disponível": 1, "atender": 0.8, "gravar": 1,
		"ajudar": -1.2, "quem": -1, "fala": -0.6,
	},
	"nl": {
		"voicemail": 2, "piep": 2, "toon": 1.2, "bericht": 1.2, "inspreken": 1.3, "achterlaten": 1, "bereikbaar": 1.2, "antwoordapparaat": 2, "terug": 0.5,
		"gesloten": 1, "helpen": -1.2, "wie": -0.8, "spreekt": -0.4,
	},
	"pl": {
		"poczta": 1.2, "głosowa": 1.2, "sygnale": 2, "wiadomość": 1.2, "zostaw": 1.2, "zostawić": 1.2, "abonent": 1.5, "odebrać": 0.8, "sekretarka": 2,
		"pomóc": -1.2, "kto": -1, "słucham": -1,
	},
}
