package lang

import (
	"strings"
	"time"
)

// weekdays are the names of the days in each language, from Sunday on, in the form used within a sentence.
var weekdays = map[string]string{
	"en": "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
	"es": "domingo lunes martes miércoles jueves viernes sábado",
	"fr": "dimanche lundi mardi mercredi jeudi vendredi samedi",
	"de": "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag",
	"it": "domenica lunedì martedì mercoledì giovedì venerdì sabato",
	"pt": "domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado",
	"nl": "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag",
	"pl": "niedziela poniedziałek wtorek środa czwartek piątek sobota",
	"sv": "söndag måndag tisdag onsdag torsdag fredag lördag",
	"da": "søndag mandag tirsdag onsdag torsdag fredag lørdag",
	"no": "søndag mandag tirsdag onsdag torsdag fredag lørdag",
	"fi": "sunnuntai maanantai tiistai keskiviikko torstai perjantai lauantai",
	"cs": "neděle pondělí úterý středa čtvrtek pátek sobota",
	"sk": "nedeľa pondelok utorok streda štvrtok piatok sobota",
	"hu": "vasárnap hétfő kedd szerda csütörtök péntek szombat",
	"ro": "duminică luni marți miercuri joi vineri sâmbătă",
	"bg": "неделя понеделник вторник сряда четвъртък петък събота",
	"hr": "nedjelja ponedjeljak utorak srijeda četvrtak petak subota",
	"sr": "недеља понедељак уторак среда четвртак петак субота",
	"sl": "nedelja ponedeljek torek sreda četrtek petek sobota",
	"el": "Κυριακή Δευτέρα Τρίτη Τετάρτη Πέμπτη Παρασκευή Σάββατο",
	"tr": "Pazar Pazartesi Salı Çarşamba Perşembe Cuma Cumartesi",
	"ru": "воскресенье понедельник вторник среда четверг пятница суббота",
	"uk": "неділя понеділок вівторок середа четвер п'ятниця субота",
	"he": "יום_ראשון יום_שני יום_שלישי יום_רביעי יום_חמישי יום_שישי שבת",
	"ar": "الأحد الاثنين الثلاثاء الأربعاء الخميس الجمعة السبت",
	"fa": "یکشنبه دوشنبه سه\u200cشنبه چهارشنبه پنجشنبه جمعه شنبه",
	"hi": "रविवार सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार",
	"ur": "اتوار پیر منگل بدھ جمعرات جمعہ ہفتہ",
	"ta": "ஞாயிறு திங்கள் செவ்வாய் புதன் வியாழன் வெள்ளி சனி",
	"zh": "星期日 星期一 星期二 星期三 星期四 星期五 星期六",
	"ja": "日曜日 月曜日 火曜日 水曜日 木曜日 金曜日 土曜日",
	"ko": "일요일 월요일 화요일 수요일 목요일 금요일 토요일",
	"th": "วันอาทิตย์ วันจันทร์ วันอังคาร วันพุธ วันพฤหัสบดี วันศุกร์ วันเสาร์",
	"vi": "Chủ_Nhật Thứ_Hai Thứ_Ba Thứ_Tư Thứ_Năm Thứ_Sáu Thứ_Bảy",
	"id": "Minggu Senin Selasa Rabu Kamis Jumat Sabtu",
	"ms": "Ahad Isnin Selasa Rabu Khamis Jumaat Sabtu",
	"et": "pühapäev esmaspäev teisipäev kolmapäev neljapäev reede laupäev",
	"lv": "svētdiena pirmdiena otrdiena trešdiena ceturtdiena piektdiena sestdiena",
	"lt": "sekmadienis pirmadienis antradienis trečiadienis ketvirtadienis penktadienis šeštadienis",
	"ca": "diumenge dilluns dimarts dimecres dijous divendres dissabte",
	"is": "sunnudagur mánudagur þriðjudagur miðvikudagur fimmtudagur föstudagur laugardagur",
}

// Weekday returns the name of a day in a language, by its ISO 639-1 code, or in English if the language is unknown.
func Weekday(iso string, day time.Weekday) string {
	names, ok := weekdays[iso]
	if !ok {
		names = weekdays["en"]
	}
	return strings.ReplaceAll(strings.Fields(names)[day], "_", " ")
}
