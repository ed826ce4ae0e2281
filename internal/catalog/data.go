package catalog

import (
	"strings"

	"parley"
)

// The codes of providers. A vendor that both speaks and listens has one code and one id for both.
const (
	Flite        = "flite"
	ESpeak       = "espeak"
	PocketSphinx = "pocketsphinx"
	OpenAI       = "openai"
	ElevenLabs   = "elevenlabs"
	Deepgram     = "deepgram"
	Cartesia     = "cartesia"

	Anthropic = "anthropic" // thinks only
)

// Every id and every voice number below is stored in databases: rows may be added with new numbers, never renumbered, never reused.

// languages is append-only, ids below 1000.
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

// What each vendor documents, of the languages above.
const (
	// eSpeak NG 1.51, OpenAI (speech and transcription: "the languages of Whisper"), ElevenLabs Scribe, Cartesia ink-whisper.
	all = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he ar fa hi ur ta zh ja ko th vi id ms et lv lt ca is"
	// ElevenLabs eleven_flash_v2_5.
	flash = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr el tr ru uk ar hi ta zh ja ko vi id ms"
	// Deepgram nova-3.
	nova = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he fa hi ur ta zh ja ko th vi id ms et lv lt ca"
)

// synthesizers, the best first: the first one that is configured and speaks a language is the language's default.
var synthesizers = []parley.Provider{
	{ID: 5, Code: ElevenLabs, Name: "ElevenLabs"},
	{ID: 7, Code: Cartesia, Name: "Cartesia"},
	{ID: 6, Code: Deepgram, Name: "Deepgram"},
	{ID: 4, Code: OpenAI, Name: "OpenAI"},
	{ID: 1, Code: Flite, Name: "Local (Flite)"},
	{ID: 2, Code: ESpeak, Name: "Local (eSpeak NG)"},
}

// tunable are the vendors whose voices have more settings than speed.
var tunable = map[string]parley.Tunable{ElevenLabs: {Stability: true, Similarity: true}}

// transcribers, the best first, likewise.
var transcribers = []struct {
	parley.Provider
	languages string
}{
	{parley.Provider{ID: 6, Code: Deepgram, Name: "Deepgram"}, nova},
	{parley.Provider{ID: 5, Code: ElevenLabs, Name: "ElevenLabs"}, all},
	{parley.Provider{ID: 4, Code: OpenAI, Name: "OpenAI"}, all},
	{parley.Provider{ID: 7, Code: Cartesia, Name: "Cartesia"}, all},
	{parley.Provider{ID: 3, Code: PocketSphinx, Name: "Local (PocketSphinx)"}, "en"},
}

// voiceData is one voice of a provider in one or more languages; each of them makes a row of its own.
type voiceData struct {
	number    int64
	languages string
	code      string // the provider's name of it; * stands for eSpeak's name of the language
	name      string
	gender    string
	accent    string
	age       string
}

// espeakNames are eSpeak NG's names of languages where they are not the ISO 639-1 code.
var espeakNames = map[string]string{"en": "en-us", "fr": "fr-fr", "no": "nb", "pt": "pt-br", "zh": "cmn"}

func (d voiceData) codeIn(iso string) string {
	name := espeakNames[iso]
	if name == "" {
		name = iso
	}
	return strings.Replace(d.code, "*", name, 1)
}

const (
	male   = "male"
	female = "female"
	young  = "young"
	middle = "middle-aged"
	old    = "old"
)

// voices of the synthesizers. Numbers: Flite from 1, eSpeak 101, OpenAI 201, ElevenLabs 401, Deepgram 501, Cartesia 701.
var voices = map[string][]voiceData{
	// The best understood on a telephone first.
	Flite: {
		{1, "en", "rms", "Richard", male, "American", ""},
		{2, "en", "slt", "Stella", female, "American", ""},
		{3, "en", "awb", "Alan", male, "Scottish", ""},
		{4, "en", "kal16", "Kevin", male, "American", ""},
		{5, "en", "kal", "Kevin (8 kHz)", male, "American", ""},
	},
	ESpeak: {
		{101, all, "*", "eSpeak (male)", male, "", ""},
		{102, all, "*+f3", "eSpeak (female)", female, "", ""},
	},
	// OpenAI says no genders: these are how the voices are heard.
	OpenAI: {
		{201, all, "alloy", "Alloy", female, "", ""},
		{202, all, "ash", "Ash", male, "", ""},
		{203, all, "ballad", "Ballad", male, "", ""},
		{204, all, "coral", "Coral", female, "", ""},
		{205, all, "echo", "Echo", male, "", ""},
		{206, all, "fable", "Fable", male, "", ""},
		{207, all, "nova", "Nova", female, "", ""},
		{208, all, "onyx", "Onyx", male, "", ""},
		{209, all, "sage", "Sage", female, "", ""},
		{210, all, "shimmer", "Shimmer", female, "", ""},
		{211, all, "verse", "Verse", male, "", ""},
		{212, all, "marin", "Marin", female, "", ""},
		{213, all, "cedar", "Cedar", male, "", ""},
	},
	// ElevenLabs' premade voices, which every account has.
	ElevenLabs: {
		{401, flash, "EXAVITQu4vr4xnSDxMaL", "Sarah", female, "American", young},
		{402, flash, "JBFqnCBsd6RMkjVDRZzb", "George", male, "British", middle},
		{403, flash, "FGY2WhTYpPnrIDTdsKH5", "Laura", female, "American", young},
		{404, flash, "IKne3meq5aSn9XLyUdCD", "Charlie", male, "Australian", young},
		{405, flash, "Xb7hH8MSUJpSbSDYk0k2", "Alice", female, "British", middle},
		{406, flash, "CwhRBWXzGAHq8TQ4Fs17", "Roger", male, "American", middle},
		{407, flash, "XrExE9yKIg1WjnnlVkGX", "Matilda", female, "American", middle},
		{408, flash, "cjVigY5qzO86Huf0OWal", "Eric", male, "American", middle},
		{409, flash, "cgSgspJ2msm6clMCkdW9", "Jessica", female, "American", young},
		{410, flash, "nPczCjzI2devNBz1zQrb", "Brian", male, "American", middle},
		{411, flash, "pFZP5JQG7iQjIQuC4Bku", "Lily", female, "British", middle},
		{412, flash, "onwK4e9ZLuTAKqWW03F9", "Daniel", male, "British", middle},
		{413, flash, "iP95p4xoKVk53GoZ742B", "Chris", male, "American", middle},
		{414, flash, "pqHfZKP75CvOlQylNhV4", "Bill", male, "American", old},
	},
	Deepgram: {
		{501, "en", "aura-2-thalia-en", "Thalia", female, "American", ""},
		{502, "en", "aura-2-apollo-en", "Apollo", male, "American", ""},
		{503, "en", "aura-2-andromeda-en", "Andromeda", female, "American", ""},
		{504, "en", "aura-2-arcas-en", "Arcas", male, "American", ""},
		{505, "en", "aura-2-helena-en", "Helena", female, "American", ""},
		{506, "en", "aura-2-aries-en", "Aries", male, "American", ""},
		{507, "en", "aura-2-asteria-en", "Asteria", female, "American", ""},
		{508, "en", "aura-2-orion-en", "Orion", male, "American", ""},
		{509, "en", "aura-2-pandora-en", "Pandora", female, "British", ""},
		{510, "en", "aura-2-draco-en", "Draco", male, "British", ""},
		{511, "en", "aura-2-theia-en", "Theia", female, "Australian", ""},
		{512, "en", "aura-2-hyperion-en", "Hyperion", male, "Australian", ""},
		{521, "es", "aura-2-celeste-es", "Celeste", female, "Colombian", ""},
		{522, "es", "aura-2-nestor-es", "Néstor", male, "Peninsular", ""},
		{523, "es", "aura-2-estrella-es", "Estrella", female, "Mexican", ""},
		{524, "es", "aura-2-javier-es", "Javier", male, "Mexican", ""},
		{525, "es", "aura-2-diana-es", "Diana", female, "Peninsular", ""},
		{526, "es", "aura-2-alvaro-es", "Álvaro", male, "Peninsular", ""},
		{531, "de", "aura-2-viktoria-de", "Viktoria", female, "", ""},
		{532, "de", "aura-2-julius-de", "Julius", male, "", ""},
		{533, "de", "aura-2-elara-de", "Elara", female, "", ""},
		{534, "de", "aura-2-fabian-de", "Fabian", male, "", ""},
		{541, "fr", "aura-2-agathe-fr", "Agathe", female, "", ""},
		{542, "fr", "aura-2-hector-fr", "Hector", male, "", ""},
		{551, "nl", "aura-2-rhea-nl", "Rhea", female, "", ""},
		{552, "nl", "aura-2-sander-nl", "Sander", male, "", ""},
		{553, "nl", "aura-2-beatrix-nl", "Beatrix", female, "", ""},
		{554, "nl", "aura-2-lars-nl", "Lars", male, "", ""},
		{561, "it", "aura-2-livia-it", "Livia", female, "", ""},
		{562, "it", "aura-2-dionisio-it", "Dionisio", male, "", ""},
		{563, "it", "aura-2-melia-it", "Melia", female, "", ""},
		{564, "it", "aura-2-cesare-it", "Cesare", male, "", ""},
		{571, "ja", "aura-2-izanami-ja", "Izanami", female, "", ""},
		{572, "ja", "aura-2-fujin-ja", "Fujin", male, "", ""},
		{573, "ja", "aura-2-uzume-ja", "Uzume", female, "", ""},
		{574, "ja", "aura-2-ebisu-ja", "Ebisu", male, "", ""},
	},
	// Cartesia's voices keep their accent in other languages: the English ones speak English.
	Cartesia: {
		{701, "en", "f786b574-daa5-4673-aa0c-cbe3e8534c02", "Katie", female, "American", ""},
		{702, "en", "5ee9feff-1265-424a-9d7f-8e4d431a12c7", "Ronald", male, "American", ""},
		{703, "en", "9626c31c-bec5-4cca-baa8-f8ba9e84c8bc", "Jacqueline", female, "American", ""},
		{704, "en", "a167e0f3-df7e-4d52-a9c3-f949145efdab", "Blake", male, "American", ""},
		{705, "en", "e07c00bc-4134-4eae-9ea4-1a55fb45746b", "Brooke", female, "American", ""},
		{706, "en", "f9836c6e-a0bd-460e-9d3c-f7299fa60f94", "Caroline", female, "American", ""},
	},
}

// realtimeVoices speak inside OpenAI's realtime model: no synthesizer does. Numbers from 301.
var realtimeVoices = []voiceData{
	{301, all, "marin", "Marin", female, "", ""},
	{302, all, "cedar", "Cedar", male, "", ""},
	{303, all, "alloy", "Alloy", female, "", ""},
	{304, all, "ash", "Ash", male, "", ""},
	{305, all, "ballad", "Ballad", male, "", ""},
	{306, all, "coral", "Coral", female, "", ""},
	{307, all, "echo", "Echo", male, "", ""},
	{308, all, "sage", "Sage", female, "", ""},
	{309, all, "shimmer", "Shimmer", female, "", ""},
	{310, all, "verse", "Verse", male, "", ""},
}
