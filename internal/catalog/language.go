package catalog

// languages is append-only, ids below 1000. They are stored in databases: rows may be added with new ids, never
// renumbered, never reused.
var languages = []struct {
	id        int64
	iso, name string
}{
	{1, "en", "English"},
	{2, "es", "Spanish"},
	{3, "fr", "French"},
	{4, "de", "German"},
	{5, "it", "Italian"},
	{6, "pt", "Portuguese"},
	{7, "nl", "Dutch"},
	{8, "pl", "Polish"},
	{9, "sv", "Swedish"},
	{10, "da", "Danish"},
	{11, "no", "Norwegian"},
	{12, "fi", "Finnish"},
	{13, "cs", "Czech"},
	{14, "sk", "Slovak"},
	{15, "hu", "Hungarian"},
	{16, "ro", "Romanian"},
	{17, "bg", "Bulgarian"},
	{18, "hr", "Croatian"},
	{19, "sr", "Serbian"},
	{20, "sl", "Slovenian"},
	{21, "el", "Greek"},
	{22, "tr", "Turkish"},
	{23, "ru", "Russian"},
	{24, "uk", "Ukrainian"},
	{25, "he", "Hebrew"},
	{26, "ar", "Arabic"},
	{27, "fa", "Persian"},
	{28, "hi", "Hindi"},
	{29, "ur", "Urdu"},
	{30, "ta", "Tamil"},
	{31, "zh", "Chinese (Mandarin)"},
	{32, "ja", "Japanese"},
	{33, "ko", "Korean"},
	{34, "th", "Thai"},
	{35, "vi", "Vietnamese"},
	{36, "id", "Indonesian"},
	{37, "ms", "Malay"},
	{38, "et", "Estonian"},
	{39, "lv", "Latvian"},
	{40, "lt", "Lithuanian"},
	{41, "ca", "Catalan"},
	{42, "is", "Icelandic"},
}

// ISO returns a language's code of ISO 639-1, "" for an unknown id.
func ISO(languageID int64) string {
	for _, l := range languages {
		if l.id == languageID {
			return l.iso
		}
	}
	return ""
}

// LanguageID returns a language's id by its code of ISO 639-1, 0 for an unknown one.
func LanguageID(iso string) int64 {
	for _, l := range languages {
		if l.iso == iso {
			return l.id
		}
	}
	return 0
}
