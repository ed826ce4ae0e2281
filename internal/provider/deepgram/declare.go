// Package deepgram is Deepgram: its voices and languages, whose numbers assistants can hold. Nothing opens it yet.
package deepgram

import (
	"parley"
	"parley/internal/ai"
)

// Code is the code of this vendor.
const Code = "deepgram"

// Declare declares Deepgram, which no setting configures.
func Declare() *ai.Vendor {
	provider, never := parley.Provider{ID: 6, Code: Code, Name: "Deepgram"}, func() bool { return false }
	return &ai.Vendor{
		Code:      Code,
		Speakers:  []ai.Speaker{{Provider: provider, Rank: 30, Voices: voices, Configured: never}},
		Listeners: []ai.Listener{{Provider: provider, Rank: 10, Languages: languages, Configured: never}},
	}
}

// languages are those of nova-3 that we know.
const languages = "en es fr de it pt nl pl sv da no fi cs sk hu ro bg hr sr sl el tr ru uk he fa hi ur ta zh ja ko th vi id ms et lv lt ca"

// voices are those of Aura 2. Numbers from 501.
var voices = []ai.Voice{
	{Number: 501, Languages: "en", Code: "aura-2-thalia-en", Name: "Thalia", Gender: "female", Accent: "American"},
	{Number: 502, Languages: "en", Code: "aura-2-apollo-en", Name: "Apollo", Gender: "male", Accent: "American"},
	{Number: 503, Languages: "en", Code: "aura-2-andromeda-en", Name: "Andromeda", Gender: "female",
		Accent: "American"},
	{Number: 504, Languages: "en", Code: "aura-2-arcas-en", Name: "Arcas", Gender: "male", Accent: "American"},
	{Number: 505, Languages: "en", Code: "aura-2-helena-en", Name: "Helena", Gender: "female", Accent: "American"},
	{Number: 506, Languages: "en", Code: "aura-2-aries-en", Name: "Aries", Gender: "male", Accent: "American"},
	{Number: 507, Languages: "en", Code: "aura-2-asteria-en", Name: "Asteria", Gender: "female", Accent: "American"},
	{Number: 508, Languages: "en", Code: "aura-2-orion-en", Name: "Orion", Gender: "male", Accent: "American"},
	{Number: 509, Languages: "en", Code: "aura-2-pandora-en", Name: "Pandora", Gender: "female", Accent: "British"},
	{Number: 510, Languages: "en", Code: "aura-2-draco-en", Name: "Draco", Gender: "male", Accent: "British"},
	{Number: 511, Languages: "en", Code: "aura-2-theia-en", Name: "Theia", Gender: "female", Accent: "Australian"},
	{Number: 512, Languages: "en", Code: "aura-2-hyperion-en", Name: "Hyperion", Gender: "male", Accent: "Australian"},
	{Number: 521, Languages: "es", Code: "aura-2-celeste-es", Name: "Celeste", Gender: "female", Accent: "Colombian"},
	{Number: 522, Languages: "es", Code: "aura-2-nestor-es", Name: "Néstor", Gender: "male", Accent: "Peninsular"},
	{Number: 523, Languages: "es", Code: "aura-2-estrella-es", Name: "Estrella", Gender: "female", Accent: "Mexican"},
	{Number: 524, Languages: "es", Code: "aura-2-javier-es", Name: "Javier", Gender: "male", Accent: "Mexican"},
	{Number: 525, Languages: "es", Code: "aura-2-diana-es", Name: "Diana", Gender: "female", Accent: "Peninsular"},
	{Number: 526, Languages: "es", Code: "aura-2-alvaro-es", Name: "Álvaro", Gender: "male", Accent: "Peninsular"},
	{Number: 531, Languages: "de", Code: "aura-2-viktoria-de", Name: "Viktoria", Gender: "female"},
	{Number: 532, Languages: "de", Code: "aura-2-julius-de", Name: "Julius", Gender: "male"},
	{Number: 533, Languages: "de", Code: "aura-2-elara-de", Name: "Elara", Gender: "female"},
	{Number: 534, Languages: "de", Code: "aura-2-fabian-de", Name: "Fabian", Gender: "male"},
	{Number: 541, Languages: "fr", Code: "aura-2-agathe-fr", Name: "Agathe", Gender: "female"},
	{Number: 542, Languages: "fr", Code: "aura-2-hector-fr", Name: "Hector", Gender: "male"},
	{Number: 551, Languages: "nl", Code: "aura-2-rhea-nl", Name: "Rhea", Gender: "female"},
	{Number: 552, Languages: "nl", Code: "aura-2-sander-nl", Name: "Sander", Gender: "male"},
	{Number: 553, Languages: "nl", Code: "aura-2-beatrix-nl", Name: "Beatrix", Gender: "female"},
	{Number: 554, Languages: "nl", Code: "aura-2-lars-nl", Name: "Lars", Gender: "male"},
	{Number: 561, Languages: "it", Code: "aura-2-livia-it", Name: "Livia", Gender: "female"},
	{Number: 562, Languages: "it", Code: "aura-2-dionisio-it", Name: "Dionisio", Gender: "male"},
	{Number: 563, Languages: "it", Code: "aura-2-melia-it", Name: "Melia", Gender: "female"},
	{Number: 564, Languages: "it", Code: "aura-2-cesare-it", Name: "Cesare", Gender: "male"},
	{Number: 571, Languages: "ja", Code: "aura-2-izanami-ja", Name: "Izanami", Gender: "female"},
	{Number: 572, Languages: "ja", Code: "aura-2-fujin-ja", Name: "Fujin", Gender: "male"},
	{Number: 573, Languages: "ja", Code: "aura-2-uzume-ja", Name: "Uzume", Gender: "female"},
	{Number: 574, Languages: "ja", Code: "aura-2-ebisu-ja", Name: "Ebisu", Gender: "male"},
}
