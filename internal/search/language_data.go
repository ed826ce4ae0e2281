package search

import "strings"

// The languages themselves. Endings are of words without accents.

var dutch = &language{
	marks: set(`wij jullie deze zijn wordt worden naar maar niet kunt onze hebben heeft geen tussen binnen vanaf hoeveel wanneer`),
	stops: set(`ik jij je u we wij jullie hij zij ze mij mijn jouw uw ons onze hun deze dit die dat daar hier er is ben bent zijn was waren word wordt worden heb
		hebt heeft hebben had kan kun kunt kunnen kon wil wilt willen moet moeten mag mogen zal zullen zou zouden ga gaat gaan doe doet doen wat wie waar wanneer
		waarom hoe hoeveel hoelang welk welke en of maar als dan dus want om te aan af bij door in met naar op over per sinds tot uit van vanaf voor tegen tijdens
		zonder ook nog wel niet geen al alle heel erg meer veel zo toch eens even iets iemand graag alstublieft het de een`),
	derived: fields(`ingen ing heden heid elijke elijk bare baar`),
	endings: fields(`jes je ende end ies ie en e`),
	letters: [][2]string{{"aa", "a"}, {"ee", "e"}, {"oo", "o"}, {"uu", "u"}},
	tidy:    tidyDutch,
	other: map[string]string{"gekoch": "kop", "gesloten": "sluit", "geslot": "sluit", "verzon": "verzen",
		"gebrach": "breng"},
	heads: []string{"ge"},
	glues: true,
}

// tidyDutch drops a plural's s, a verb's t or d, and writes what is left as it is spoken: bestelt, bestellen; huis,
// huizen.
func tidyDutch(s string) string {
	if n := len(s); n > 4 && s[n-1] == 's' && strings.IndexByte("lmnor", s[n-2]) >= 0 { // a plural
		s = s[:n-1]
	}
	if n := len(s); n > 3 && (s[n-1] == 't' || s[n-1] == 'd') && strings.IndexByte("aeiouyjst", s[n-2]) < 0 {
		s = s[:n-1]
	}
	if n := len(s); n > 3 && s[n-1] == s[n-2] && strings.IndexByte("aeiou", s[n-1]) < 0 {
		s = s[:n-1]
	}
	switch n := len(s); {
	case n > 3 && s[n-1] == 'v':
		s = s[:n-1] + "f"
	case n > 3 && s[n-1] == 'z':
		s = s[:n-1] + "s"
	}
	return s
}

var french = &language{
	marks: set(`votre vos notre nos etre chez leur leurs etes avez toutes tous apres aussi peut pouvez depuis dune cest quil jusqua lorsque ainsi selon celle`),
	stops: set(`je tu il elle on nous vous ils elles mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce cet cette ces cela ca suis est sommes etes
		sont etait ai as avons avez ont avoir etre peux peut pouvons pouvez peuvent puis veux veut voulez dois doit devez faut fais fait faire faites quel quelle quels
		quelles que qui quoi quand comment combien pourquoi ou dont le la les un une des du de au aux et mais donc car si en dans par pour sur sous avec sans chez
		vers entre depuis pendant ne pas plus y tout tous toute toutes tres bien aussi encore estce cest quest ya merci se sy ny dun dune`),
	derived: fields(`issements issement ations ation itions ition utions ution aisons aison ateurs ateur atrices atrice euses euse eurs eur ances ance ences ence
		abilites abilite ibilites ibilite ivement ives ive ifs if ables able ibles ible istes iste ages age etures eture ements ement`),
	endings: fields(`ements ement issons issez issent issant irons iront erons eront erez erai eras erait erions eraient era aient antes ante ants ant ait iez ions ion ons ez
		ent ees ee es er ir ira irez ies ie aux eaux e s x`),
	letters: [][2]string{{"œ", "oe"}},
	tidy:    tidyFrench,
	other: map[string]string{"ouvert": "ouvr", "ouvertur": "ouvr", "offert": "offr", "rendu": "rend",
		"recu": "recev", "recoi": "recev", "vendu": "vend", "vente": "vend", "vent": "vend", "anim": "animal"},
	heads:  []string{"l", "d", "s", "j", "n", "m", "qu"},
	elides: true,
}

// tidyFrench: payer, paiement; expédier, expédition; appeler, appelle; rendez, rendre.
func tidyFrench(s string) string {
	n := len(s)
	if n > 2 && s[n-1] == 'y' {
		s = s[:n-1] + "i"
	}
	if n > 4 && s[n-1] == 'i' {
		s, n = s[:n-1], n-1
	}
	if n > 3 && (s[n-1] == s[n-2] && strings.IndexByte("aeiou", s[n-1]) < 0 || strings.HasSuffix(s, "dr")) {
		s = s[:n-1]
	}
	return s
}

var polish = &language{
	marks: set(`oraz lub przez moze mozna dla przy czy tylko ktore ktory nasz nasze jesli przed wszystkie bedzie mozesz prosimy jestem zł dni dnia ciagu ale albo kiedy gdzie mozemy naszym naszych bez jeszcze`),
	stops: set(`ja ty on ona ono my wy oni one mnie mi mam masz ma macie maja miec cie ci go jej ich im nas nam was wam sie moj moja moje twoj twoja nasz nasza nasze
		wasz wasza wasze ten ta to te tego tej tych tym jest sa byc byl byla bylo bedzie beda jestem moge moze mozna mozesz mozemy moga chce chca chcialbym chcialabym
		musze trzeba co kto kogo komu jaki jaka jakie jakich jak kiedy gdzie dlaczego czemu ile ktory ktora ktore ktorej ktorym czy i a o u w z we ze na do od po za
		pod nad przy przez dla bez przed miedzy oraz lub albo ale wiec bo zeby nie tak tez juz jeszcze tylko bardzo tu tam prosze`),
	derived: fields(`owaniach owaniem owaniu owania owanie owan ieniach ieniem ieniu ienia ienie ien eniach eniem eniu enia enie aniach aniem aniu ania anie
		nosciach nosciami noscia nosci nosc acjach acjami acjom acja acji acje cjami cja cji cje ujemy ujesz ujecie ujac uja uje owac ywac iwac owego owemu owych owym owej owa owe owy
		nych nego nemu nym nej osciach osciami oscia osci osc en`),
	endings: fields(`iami iach iom iem iej ami ach owi om em ow ie iu ia ego emu ych ich ymi imi ym im ej ac ec ic yc amy asz acie aja emy esz ecie imy isz icie ymy
		ysz ycie al ala ali aly alo il ila ili ily yl yla yli any ana ane ani ony ona one eni a e i o u y`),
	letters: [][2]string{{"ł", "l"}},
	tidy:    tidyPolish,
	other: map[string]string{"otwier": "otwart", "otworz": "otwart", "otwor": "otwart", "zwrat": "zwrot",
		"dostarcz": "dostaw", "zamaw": "zamow", "wymien": "wymian", "zmien": "zmian",
		"pieniedz": "pieniadz", "zaplat": "plat", "wyslat": "wysyl", "wysl": "wysyl", "przesl": "przesyl",
		"zamyk": "zamk", "wym": "wymian", "zmi": "zmian"},
}

// tidyPolish: paczek, paczka; płatny, płatność; zwrot, zwrócić.
func tidyPolish(s string) string {
	if n := len(s); n > 4 && strings.HasSuffix(s, "ek") {
		s = s[:n-2] + "k"
	}
	if n := len(s); n > 4 && s[n-1] == 'k' && strings.IndexByte("aeiouy", s[n-2]) < 0 {
		s = s[:n-1]
	}
	if n := len(s); n > 4 && s[n-1] == 'n' && strings.IndexByte("aeiouy", s[n-2]) < 0 {
		s = s[:n-1]
	}
	if n := len(s); n > 3 && s[n-1] == 'i' {
		s = s[:n-1]
	}
	if n := len(s); n > 3 && s[n-1] == 'c' {
		s = s[:n-1] + "t"
	}
	return s
}

var spanish = &language{
	marks: set(`nuestro nuestra nuestros nuestras puede pueden usted hasta tambien cuando donde hay tiene muy estan desde todos todas`),
	stops: set(`yo tu el ella usted nosotros ustedes ellos ellas me te se nos le les lo la los las mi mis tus su sus nuestro nuestra nuestros nuestras este esta estos
		estas ese esa eso esto soy es son eres somos estan estoy estamos era fue ser estar he ha han haber hay tengo tiene tienen tener puedo puede pueden podemos
		puedes poder quiero quiere querer debo debe hago hace hacer que quien quienes cual cuales cuando como donde cuanto cuanta cuantos cuantas por porque para con sin
		de del a al en entre desde hasta sobre y e o u pero si no ni un una unos unas muy mas menos tan tambien ya aqui ahi alli todo todos toda todas algun alguna favor`),
	derived: fields(`amientos imientos amiento imiento aciones iciones uciones acion icion ucion adoras adores adora ador ancias encias ancia encia ciones cion idades idad
		amente mente ables ibles able ible istas ista`),
	endings: fields(`ariamos aramos abamos aremos eremos iremos ieron iendo ando aron aban abas aba amos emos imos adas idas ados idos ada ida ado ido aran eran iran
		aras eras iras ara era ira arian erian irian aria eria iria ian ias ia ais eis arse erse irse arlos arlas arlo arla erlo erla irlo irla arme erme irme arte ar er ir an en as es
		os a e o`),
	tidy: tidySpanish,
	other: map[string]string{"abert": "abr", "apertur": "abr", "devolt": "devolv", "devol": "devolv", "hech": "hac",
		"entregu": "entreg"},
}

// tidySpanish: pago, pague; cuesta, costar; cierra, cerrar.
func tidySpanish(s string) string {
	n := len(s)
	switch {
	case strings.HasSuffix(s, "gu"):
		s = s[:n-1]
	case strings.HasSuffix(s, "qu"):
		s = s[:n-2] + "c"
	case n > 3 && s[n-1] == 'z':
		s = s[:n-1] + "c"
	case n > 3 && s[n-1] == 'i':
		s = s[:n-1]
	}
	for _, d := range [...][2]string{{"ie", "e"}, {"ue", "o"}} {
		if i := strings.LastIndex(s, d[0]); i > 0 && i+3 <= len(s) && !strings.ContainsAny(s[i+2:], "aeiou") {
			s = s[:i] + d[1] + s[i+2:]
		}
	}
	return s
}
