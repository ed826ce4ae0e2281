package charset

import (
	_ "embed"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// corpus has a line for each text: its character set, a tab, and the text.
//
//go:embed testdata/corpus.txt
var corpus string

//go:embed testdata/later.txt
var later string

func named(t *testing.T, name string) encoding.Encoding {
	t.Helper()
	switch name {
	case "cp850":
		return charmap.CodePage850
	case "cp866":
		return charmap.CodePage866
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		t.Fatal(name, err)
	}
	return e
}

// count is how texts were read.
type count struct{ right, unsure, wrong int }

// tell detects a text's set; wrong is a text that is read as something else without a word.
func (c *count) tell(t *testing.T, name, text string) {
	t.Helper()
	raw, err := named(t, name).NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	g := Detect(raw)
	got, err := g.Encoding.NewDecoder().Bytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !g.Sure:
		c.unsure++
		t.Logf("unsure of %s, as %s: %s", name, g.Name, got)
	case string(got) != text:
		c.wrong++
		t.Errorf("%s is taken for %s: %s", name, g.Name, got)
	default:
		c.right++
	}
}

// TestCorpus: each text by itself, and all of a set together. None is read as what it isn't. The second corpus was written when the
// samples and the odds were settled.
func TestCorpus(t *testing.T) {
	for name, c := range map[string]struct {
		corpus string
		right  int // at least
	}{"corpus": {corpus, 94}, "written later": {later, 57}} {
		var lines, together count
		whole := map[string]string{}
		for line := range strings.Lines(c.corpus) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
			lines.tell(t, name, text)
			whole[name] += text + "\n"
		}
		for _, name := range slices.Sorted(maps.Keys(whole)) {
			together.tell(t, name, whole[name])
		}
		t.Logf("%s: %d sets; texts by themselves: %+v; together: %+v", name, len(whole), lines, together)
		if lines.right < c.right || together.right < len(whole) {
			t.Errorf("%s: %+v, %+v", name, lines, together)
		}
	}
}

// TestShort: a name or a word is enough where letters tell a language; a lone sign is not.
func TestShort(t *testing.T) {
	for text, sure := range map[string]bool{"Müller": true, "Muñoz": true, "José": true, "François": true, "Grüße": true, "Zoë": true,
		"café": true, "naïve": true, "Jürgen Weiß": true, "Åsa": true, "Søren": true, "João": true, "don’t": true,
		"Ñ": false, "5 €": false, "20 °C": false, "½": false, "© 2024": false} {
		raw, err := charmap.Windows1252.NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		g := Detect(raw)
		got, err := g.Encoding.NewDecoder().Bytes(raw)
		if err != nil || g.Sure != sure || sure && string(got) != text {
			t.Errorf("%s: %s, %s, or %s, sure %t: %v", text, got, g.Name, g.Or, g.Sure, err)
		}
	}
}

// TestNoText: bytes at random are no text in any set.
func TestNoText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 10; n < 5000; n *= 2 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(0x80 + r.IntN(128))
		}
		if g := Detect(b); g.Sure {
			t.Errorf("%d bytes at random are %s", n, g.Name)
		}
	}
	if g := Detect(nil); g.Encoding == nil {
		t.Errorf("nothing is %+v", g)
	}
}

// TestLanguage: texts in languages that no sample has look like language, and those whose letters were put for others don't.
func TestLanguage(t *testing.T) {
	for _, text := range []string{
		"Toko kami buka dari jam tujuh pagi sampai jam enam sore setiap hari kecuali hari minggu. " +
			"Pengembalian barang dapat dilakukan dalam empat belas hari.",
		"Duka letu linafunguliwa saa moja asubuhi hadi saa kumi na mbili jioni kila siku isipokuwa Jumapili. " +
			"Unaweza kurudisha bidhaa ndani ya siku kumi.",
		"Gure denda goizeko zazpietatik arratsaldeko seiak arte irekita dago egunero, igandeetan izan ezik. " +
			"Hamalau eguneko epean itzul ditzakezu.",
		"Meie kauplus on avatud iga päev kella seitsmest kuni kella kuueni, välja arvatud pühapäeviti. " +
			"Kaupa saab tagastada neljateistkümne päeva jooksul.",
		"Mae ein siop ar agor o saith y bore tan chwech yr hwyr bob dydd ac eithrio dydd Sul. " +
			"Gallwch ddychwelyd nwyddau o fewn pedwar diwrnod ar ddeg.",
		"Cửa hàng của chúng tôi mở cửa từ bảy giờ sáng đến sáu giờ tối mỗi ngày trừ chủ nhật. Bạn có thể trả lại hàng trong vòng mười bốn ngày.",
		"Il-ħanut tagħna jiftaħ mis-sebgħa ta' filgħodu sas-sitta ta' filgħaxija kuljum ħlief nhar ta' Ħadd. " +
			"Tista' trodd lura l-oġġetti fi żmien.",
		"Isitolo sethu sivulwa ngehora lesikhombisa ekuseni kuze kube yihora lesithupha kusihlwa nsuku zonke ngaphandle kwangeSonto.",
		"func main() { for i := range list { fmt.Println(strings.TrimSpace(list[i].name)) } return err != nil && ctx.Err() == nil " +
			"} struct http.Request",
		"Szczepański Krzysztof Przybyszewski Dvořáková Nguyễn Zhang Xiaoming Schwarzenegger Björgvinsson Papadopoulos Oyelaran Kowalczyk Hrvoje",
		"Women de shangdian meitian cong zaoshang qi dian dao xiawu liu dian kaimen xingqitian chuwai shangpin keyi zai shisi tian nei tuihuo",
	} {
		if likeness, letters := Language(text); likeness < Garbled || letters < 50 {
			t.Errorf("%.2f of %d letters: %s", likeness, letters, text)
		}
	}
	missed, all := 0, 0
	for _, name := range strings.Fields("en de fr es pt it nl sv fi pl cs hu tr ro") {
		text := models()[name].sample
		if likeness, _ := Language(text); likeness < -3 {
			t.Errorf("%s: %.2f", name, likeness)
		}
		for by := range rune(25) {
			shifted := strings.Map(func(r rune) rune {
				switch {
				case r >= 'a' && r <= 'z':
					return 'a' + (r-'a'+by+1)%26
				case r >= 'A' && r <= 'Z':
					return 'A' + (r-'A'+by+1)%26
				}
				return r
			}, text)
			if all++; func() bool { likeness, _ := Language(shifted); return likeness >= Garbled }() {
				missed++
			}
		}
	}
	t.Logf("of %d texts whose letters are shifted, %d look like language", all, missed)
	if missed > 5 {
		t.Errorf("%d of %d", missed, all)
	}
}

// Any bytes have a likeliest set.
func FuzzDetect(f *testing.F) {
	f.Add([]byte("gr\xfc\xdfe"))
	f.Add([]byte("\xa4\x40\xff\x81"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g := Detect(b); g.Encoding == nil || g.Name == "" || g.Or == g.Name {
			t.Errorf("%+v", g)
		}
		Language(string(b))
	})
}

func BenchmarkDetect(b *testing.B) {
	raw, err := charmap.Windows1251.NewEncoder().Bytes([]byte(strings.Repeat(models()["ru"].sample, 20)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Detect(raw)
	}
}
