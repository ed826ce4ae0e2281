package voice

import "strings"

// lexicon is the little that the turn rules know of a language. All words are in lower case.
type lexicon struct {
	listening map[string]bool // said by who listens and wants the other to go on
	greeting  map[string]bool
	farewell  map[string]bool
	answers   map[string]bool // a whole turn by themselves
	dangling  map[string]bool // nobody ends with these
	numbers   map[string]bool

	positive, negative, question map[string]bool // for the choice of a filler
}

// closed says whether a text ends as a sentence does, for recognizers that write punctuation.
func (l *lexicon) closed(text string) bool {
	for _, end := range []string{".", "!", "?", "。", "！", "？", "؟", "।"} {
		if strings.HasSuffix(text, end) && !strings.HasSuffix(text, "...") {
			return true
		}
	}
	return false
}

func set(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.SplitSeq(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			m[w] = true
		}
	}
	return m
}

// sounds are those of listening, in any language.
const sounds = "mm, mhm, mm-hm, mm-hmm, mmhm, mmhmm, mm hm, mm hmm, hm, hmm, hmmm, mmm, mh, mh-hm, uh, uh-huh, uh huh, uhuh, uhhuh, aha, ah, oh, uhm, um, ooh, eh, er, erm, huh, ha, haha, okay, ok"

var soundSet = set(sounds)

func lexiconOf(listening, greeting, farewell, answers, dangling, numbers, positive, negative, question string) *lexicon {
	return &lexicon{
		listening: set(sounds + "," + listening), greeting: set(greeting), farewell: set(farewell), answers: set(answers),
		dangling: set("um, uh, uhm, er, erm, hmm," + dangling), numbers: set(numbers),
		positive: set(positive), negative: set(negative), question: set(question),
	}
}

var lexicons = map[string]*lexicon{
	"en": lexiconOf(
		"yeah, yep, yup, yes, right, sure, i see, got it, alright, all right, oh okay, good, great, cool, fine, nice, of course, exactly, true, oh yeah, oh yes, uh yeah, really, wow",
		"hello, hi, hey, good morning, good afternoon, good evening, yes, hello there, hi there, who is this, who's this, who is it, who's there, who is there, anybody there, is anybody there, speaking, morning",
		"bye, goodbye, bye-bye, bye bye, good bye, thanks, thank you, thanks a lot, thank you very much, thank you so much, see you, see you soon, see you later, take care, have a nice day, have a good day, you too, cheers, good night, so much",
		"yes, no, yeah, nope, yep, sure, okay, ok, thanks, please, hello, hi, bye, goodbye, correct, right, exactly, never, nothing, tomorrow, today",
		"and, or, but, so, because, if, the, a, an, my, your, his, her, our, their, to, of, for, with, from, at, in, on, by, is, are, was, i'm, it's, that's, i, you, we, they, about, like, which, who, when, than, as, then, maybe, also, will, would, could, should, can, do, does, my number is, number is, name is, address is, email is, called, want to, need to, going to, the number, because i, i want, i need, i would, i'd, let me",
		"zero, oh, one, two, three, four, five, six, seven, eight, nine, ten, double, triple, eleven, twelve, twenty, thirty, forty, fifty, sixty, seventy, eighty, ninety, hundred, thousand",
		"yes, yeah, great, good, perfect, thanks, thank you, awesome, wonderful, nice, happy, love, excellent, sure, glad",
		"no, not, bad, problem, wrong, terrible, broken, cancel, complaint, complain, angry, upset, disappointed, don't, doesn't, didn't, can't, never, unfortunately, sorry, issue, lost, late, hate, worst, unhappy",
		"what, when, where, why, who, how, which, can, could, do, does, is, are, will, would, may, whose, did, have, has"),
	"de": lexiconOf(
		"ja, jo, jap, genau, ach so, achso, klar, gut, verstehe, richtig, stimmt, alles klar, mhm ja, ja ja, ja genau, schön, super, okay gut, sicher, na gut, echt, ach ja",
		"hallo, ja, ja hallo, guten tag, guten morgen, guten abend, grüß gott, moin, servus, hi, wer ist da, wer spricht, wer ist dran, bitte",
		"tschüss, tschüs, ciao, auf wiederhören, auf wiedersehen, danke, vielen dank, danke schön, dankeschön, bis dann, bis bald, schönen tag, schönen tag noch, ihnen auch, gleichfalls, ade",
		"ja, nein, nee, doch, genau, danke, bitte, hallo, tschüss, okay, gerne, richtig, morgen, heute, nichts, niemals",
		"und, oder, aber, weil, dass, wenn, der, die, das, den, dem, des, ein, eine, einen, einem, einer, mein, meine, meinen, dein, sein, ihr, unser, zu, von, für, mit, aus, bei, in, im, an, am, auf, ist, sind, war, ich, du, wir, sie, also, denn, ob, als, wie, sondern, möchte, will, kann, meine nummer ist, nummer ist, name ist, ich heiße, ähm, äh, nach, über, um, dann",
		"null, eins, ein, zwei, zwo, drei, vier, fünf, sechs, sieben, acht, neun, zehn, elf, zwölf, zwanzig, dreißig, hundert, tausend",
		"ja, gut, super, toll, danke, perfekt, prima, gerne, schön, wunderbar, klasse, freut",
		"nein, nicht, kein, keine, keinen, problem, falsch, schlecht, kaputt, stornieren, kündigen, beschwerde, leider, ärgerlich, enttäuscht, nie, fehler, verloren, spät",
		"was, wann, wo, warum, wer, wie, welche, welcher, welches, können, kann, haben, hat, ist, sind, gibt, wieso, weshalb, wohin, woher, darf"),
	"fr": lexiconOf(
		"oui, ouais, d'accord, bien, très bien, ah oui, ah bon, je vois, exactement, voilà, entendu, bien sûr, c'est ça, super, parfait, ouais ouais, oui oui",
		"allô, allo, oui, bonjour, bonsoir, salut, oui allô, oui bonjour, qui est-ce, c'est qui, qui est là",
		"au revoir, merci, merci beaucoup, bonne journée, bonne soirée, à bientôt, salut, ciao, à vous aussi, vous aussi, à plus",
		"oui, non, merci, d'accord, bonjour, exactement, voilà, jamais, rien, demain",
		"et, ou, mais, car, parce, que, qui, si, le, la, les, l', un, une, des, du, de, d', mon, ma, mes, votre, son, sa, à, au, aux, pour, avec, dans, en, sur, par, est, sont, c'est, je, j'ai, tu, vous, nous, il, elle, donc, alors, comme, quand, euh, mon numéro est, numéro est, je voudrais, je veux, m'appelle",
		"zéro, un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix, onze, douze, vingt, trente, quarante, cinquante, soixante, cent, mille",
		"oui, bien, super, parfait, merci, génial, excellent, content, contente, formidable",
		"non, pas, problème, mauvais, cassé, annuler, résilier, plainte, déçu, déçue, jamais, erreur, perdu, retard, malheureusement",
		"que, quoi, quand, où, pourquoi, qui, comment, quel, quelle, quels, quelles, combien, est-ce, pouvez, peut"),
	"es": lexiconOf(
		"sí, si, ya, vale, claro, bueno, bien, muy bien, de acuerdo, entiendo, ajá, exacto, perfecto, eso es, ah sí, ah bueno, sí sí, ya ya, cierto, dale",
		"hola, sí, si, diga, dígame, aló, bueno, buenos días, buenas tardes, buenas noches, buenas, quién es, quién habla",
		"adiós, adios, gracias, muchas gracias, hasta luego, hasta pronto, chao, chau, que tenga buen día, igualmente, buen día",
		"sí, si, no, claro, vale, gracias, hola, exacto, correcto, mañana, hoy, nada, nunca",
		"y, o, pero, porque, que, si, el, la, los, las, un, una, unos, unas, mi, mis, su, sus, tu, a, al, de, del, para, por, con, en, sobre, es, son, está, yo, usted, nosotros, como, cuando, entonces, pues, este, eh, mi número es, número es, quiero, quisiera, necesito, me llamo",
		"cero, uno, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez, once, doce, veinte, treinta, cuarenta, cincuenta, cien, mil",
		"sí, bien, genial, perfecto, gracias, excelente, bueno, contento, contenta, estupendo",
		"no, mal, malo, problema, error, roto, cancelar, queja, enfadado, nunca, perdido, tarde, lamentablemente, pésimo",
		"qué, cuándo, dónde, por qué, quién, cómo, cuál, cuáles, cuánto, cuánta, puede, puedo, podría, hay, tiene"),
	"it": lexiconOf(
		"sì, si, già, certo, va bene, bene, capisco, capito, esatto, giusto, d'accordo, ah sì, sì sì, perfetto, ho capito",
		"pronto, ciao, sì, buongiorno, buonasera, salve, chi è, chi parla, chi è lei",
		"ciao, arrivederci, grazie, grazie mille, buona giornata, buona serata, a presto, altrettanto",
		"sì, no, certo, grazie, ciao, esatto, giusto, domani, oggi, niente, mai",
		"e, o, ma, perché, che, se, il, lo, la, i, gli, le, un, uno, una, mio, mia, suo, sua, di, del, della, a, al, alla, da, dal, in, nel, con, su, per, è, sono, io, lei, noi, come, quando, quindi, allora, ehm, il mio numero è, numero è, vorrei, voglio, mi chiamo",
		"zero, uno, due, tre, quattro, cinque, sei, sette, otto, nove, dieci, undici, dodici, venti, trenta, cento, mille",
		"sì, bene, perfetto, grazie, ottimo, fantastico, contento, contenta, bello",
		"no, non, male, problema, sbagliato, rotto, annullare, disdire, reclamo, deluso, delusa, mai, errore, perso, ritardo, purtroppo",
		"che, cosa, quando, dove, perché, chi, come, quale, quali, quanto, quanti, può, posso, potrebbe, c'è"),
	"pt": lexiconOf(
		"sim, é, pois, pois é, tá, tá bom, está bem, claro, certo, entendi, ok, exato, isso, beleza, bom, muito bem, sim sim, percebo",
		"alô, alo, está lá, estou, sim, olá, oi, bom dia, boa tarde, boa noite, quem é, quem fala",
		"tchau, adeus, obrigado, obrigada, muito obrigado, muito obrigada, até logo, até breve, bom dia, igualmente",
		"sim, não, claro, obrigado, obrigada, certo, exato, amanhã, hoje, nada, nunca",
		"e, ou, mas, porque, que, se, o, a, os, as, um, uma, meu, minha, seu, sua, de, do, da, dos, das, para, por, com, em, no, na, é, são, eu, você, nós, como, quando, então, hã, meu número é, número é, quero, queria, preciso, chamo-me",
		"zero, um, dois, três, quatro, cinco, seis, meia, sete, oito, nove, dez, onze, doze, vinte, trinta, cem, mil",
		"sim, bom, ótimo, perfeito, obrigado, obrigada, excelente, legal, bem, feliz",
		"não, mal, mau, ruim, problema, errado, quebrado, cancelar, reclamação, nunca, erro, perdido, atrasado, infelizmente",
		"que, quê, quando, onde, por que, quem, como, qual, quais, quanto, quanta, pode, posso, poderia, há, tem"),
	"nl": lexiconOf(
		"ja, ja hoor, jawel, oké, goed, prima, precies, klopt, duidelijk, ik snap het, juist, ja ja, zeker, mooi, snap ik",
		"hallo, ja, hoi, goedemorgen, goedemiddag, goedenavond, dag, met wie, wie is dit, wie is daar",
		"dag, doei, tot ziens, bedankt, dank u, dank je, dank u wel, dank je wel, fijne dag, tot straks, hetzelfde, insgelijks",
		"ja, nee, goed, prima, bedankt, hallo, precies, klopt, morgen, vandaag, niets, nooit",
		"en, of, maar, omdat, dat, als, de, het, een, mijn, uw, jouw, zijn, haar, ons, te, van, voor, met, uit, bij, in, op, aan, is, was, ik, u, jij, wij, dus, want, die, wat, eh, ehm, mijn nummer is, nummer is, naam is, ik wil, ik heet",
		"nul, een, één, twee, drie, vier, vijf, zes, zeven, acht, negen, tien, elf, twaalf, twintig, dertig, honderd, duizend",
		"ja, goed, prima, mooi, bedankt, perfect, geweldig, fijn, super",
		"nee, niet, geen, probleem, fout, slecht, kapot, annuleren, opzeggen, klacht, helaas, boos, nooit, kwijt, laat",
		"wat, wanneer, waar, waarom, wie, hoe, welke, welk, kunt, kan, is, zijn, heeft, hebben, mag"),
	"pl": lexiconOf(
		"tak, no, no tak, dobrze, dobra, jasne, rozumiem, okej, aha, zgadza się, dokładnie, właśnie, tak tak",
		"halo, słucham, tak, dzień dobry, dobry wieczór, cześć, tak słucham, kto mówi, kto dzwoni",
		"do widzenia, dziękuję, dzięki, dziękuję bardzo, do usłyszenia, pa, na razie, miłego dnia, wzajemnie",
		"tak, nie, dobrze, dziękuję, dokładnie, jutro, dzisiaj, nic, nigdy",
		"i, oraz, albo, lub, ale, bo, ponieważ, że, jeśli, jak, mój, moja, moje, pan, pani, do, od, dla, z, ze, w, we, na, o, po, jest, są, ja, my, więc, który, która, kiedy, żeby, yyy, mój numer to, numer to, chcę, chciałbym, chciałabym, nazywam się",
		"zero, jeden, dwa, trzy, cztery, pięć, sześć, siedem, osiem, dziewięć, dziesięć, sto, tysiąc",
		"tak, dobrze, super, świetnie, dziękuję, doskonale, cieszę",
		"nie, źle, problem, błąd, zepsuty, anulować, reklamacja, niestety, nigdy, zgubiłem",
		"co, kiedy, gdzie, dlaczego, kto, jak, który, która, ile, czy, mogę, może"),
	"ja": lexiconOf(
		"はい, ええ, うん, そうですか, なるほど, そうです, そうですね, はいはい, へえ, 了解, わかりました",
		"もしもし, はい, こんにちは, おはようございます, こんばんは, どちら様ですか",
		"ありがとうございます, ありがとう, さようなら, 失礼します, では, どうも",
		"はい, いいえ, いえ", "", "", "はい, ありがとう", "いいえ, 困", "何, いつ, どこ, 誰, なぜ, どう"),
	"zh": lexiconOf(
		"嗯, 嗯嗯, 对, 对对, 好, 好的, 是, 是的, 哦, 明白, 知道了, 行, 没错",
		"喂, 你好, 您好, 喂你好, 哪位, 你是谁",
		"再见, 谢谢, 拜拜, 好的谢谢, 谢谢你",
		"是, 不, 好, 对", "", "", "好, 谢", "不, 没, 坏", "什, 哪, 谁, 怎, 吗, 几"),
}

var noLexicon = lexiconOf("", "", "", "", "", "", "", "", "")

// littleWords mean nothing alone: they are what a recognizer makes of noise and of mumbling. English is what the one here understands.
var littleWords = map[string]map[string]bool{
	"en": set("the, a, an, and, or, but, so, if, to, of, at, in, up, it, i, i'm, you, he, she, him, we, that, this, then, was, were, had, has, be, been, am, go, got, get, all, think, just, hi, even, app, im, her, mean"),
}

// wordsOf is what is known of a language: of one that is not in the tables, the sounds of listening alone.
func wordsOf(language string) *lexicon {
	if l := lexicons[language]; l != nil {
		return l
	}
	return noLexicon
}
