package document

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

func TestCharsets(t *testing.T) {
	german := "Größere Öfen heizen früher, überall für 4 €. Ängstliche Gäste dürfen später kommen."
	french := "Le café était fermé à cause d’une fête ; où êtes-vous allés, très chère élève ?"
	polish := "Zażółć gęślą jaźń, pójdźmy później do sklepu po świeże bułki i żółty ser."
	russian := "Гавань открывается в шесть часов утра, опоздавшие платят за полный день."
	greek := "Το λιμάνι ανοίγει στις έξι το πρωί και κλείνει όταν φύγει το τελευταίο πλοίο."
	hebrew := "הנמל נפתח בשש בבוקר ונסגר כאשר המעבורת האחרונה יוצאת לדרכה"
	japan := "港の事務所は朝六時に開き、最後の船が出ると閉まります。カフェは七時からです。"
	china := "港口办公室早上六点开门，最后一班渡轮离开后关门。游客在停泊前必须报到。"
	korea := "항구 사무실은 아침 여섯 시에 열고 마지막 배가 떠나면 닫습니다."
	for name, c := range map[string]struct {
		e    encoding.Encoding
		text string
	}{
		"UTF-8": {encoding.Nop, german + russian + japan}, "UTF-8 with a mark": {unicode.UTF8BOM, german},
		"UTF-16 little":          {unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), german},
		"UTF-16 big":             {unicode.UTF16(unicode.BigEndian, unicode.UseBOM), russian},
		"UTF-16 little, no mark": {unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), german},
		"UTF-16 big, no mark":    {unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), russian},
		"windows-1252":           {charmap.Windows1252, german}, "windows-1252 French": {charmap.Windows1252, french},
		"windows-1250": {charmap.Windows1250, polish}, "windows-1251": {charmap.Windows1251, russian},
		"koi8-r": {charmap.KOI8R, russian}, "cp866": {charmap.CodePage866, russian},
		"windows-1253": {charmap.Windows1253, greek}, "windows-1255": {charmap.Windows1255, hebrew},
		"shift-jis": {japanese.ShiftJIS, japan}, "euc-jp": {japanese.EUCJP, japan},
		"iso-2022-jp": {japanese.ISO2022JP, japan}, "gb18030": {simplifiedchinese.GB18030, china},
		"euc-kr": {korean.EUCKR, korea},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := c.e.NewEncoder().Bytes([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := plain(b)
			if err != nil || len(got.Sections) != 1 || got.Sections[0].Text != c.text {
				t.Errorf("%v %+v", err, got)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	got, err := plain([]byte("\r\nTitle \r\n\r\n\r\n\r\nLine one\t\r\nline\u00a0two\u00ad\r\n\x0cPage"))
	if err != nil || got.Sections[0].Text != "Title\n\nLine one\nline two\n\nPage" {
		t.Errorf("%v %+v", err, got)
	}
	for name, raw := range map[string]string{"empty": "", "blank": " \n\t\n", "a PDF": "%PDF-1.4\n...",
		"Word": "PK\x03\x04abc", "older": "\xd0\xcf\x11\xe0\xa1\xb1", "RTF": `{\rtf1 hello}`,
		"picture": "\x89PNG\r\n", "zeros": "text\x00\x00\x00\x01",
		"not a text file": strings.Repeat("\x01\x02\x03abc", 50)} {
		_, err := plain([]byte(raw))
		if failure := (*Failure)(nil); !errors.As(err, &failure) || !strings.HasSuffix(failure.Reason, ".") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Files that were read as something else: each is read as what it is, or refused with what to do.
func TestOlderText(t *testing.T) {
	for name, want := range map[string]string{
		"big5.txt":                strings.Repeat("營業時間：每天早上七點到晚上六點。星期日休息。外送費用為五十元。", 6),
		"windows-1256-arabic.txt": strings.TrimSpace(strings.Repeat("المخبز مفتوح من الساعة السابعة صباحا حتى السادسة مساء. ", 6)),
	} {
		if got, err := plain(testdata(t, name)); err != nil || got.Sections[0].Text != want || len(got.Warnings) > 0 {
			t.Errorf("%s: %v %+v", name, err, got)
		}
	}
	english := strings.Repeat("Bread is baked at night and sold from six in the morning. ", 10)
	for name, c := range map[string]struct{ raw, text, warning, reason string }{
		"Thai":            {raw: "\xca\xc7\xd1\xca\xb4\xd5\xa4\xc3\xd1\xba", text: "สวัสดีครับ"},
		"short Shift-JIS": {raw: "\x82\xa0\x82\xe8\x82\xaa\x82\xc6\x82\xa4", text: "ありがとう"},
		"a sign":          {raw: english + "\xb8", text: english + "¸", warning: "It can't be told for sure which characters 1 of"},
		"one or another":  {raw: "\xbd\xbe\xbf", reason: "character set can't be told for sure"},
		"no set":          {raw: "\x81\x8d\x8f\x90\x9d\x81\xfe\x8d\xff\x81\x9d", reason: "in UTF-8 and upload it again"},
		"UTF-16, no mark": {raw: "\x9f\x71\xac\x51\x06\x5f\x01\x78\xc6\x96\x8b\x4e", reason: "in UTF-8 and upload it again"},
		"damaged UTF-8": {raw: strings.Repeat("Größe und Güte, ", 40) + "\xff", text: strings.Repeat("Größe und Güte, ", 40) + "\uFFFD",
			warning: "1 characters of the file are damaged"},
		"much damaged":       {raw: "\xef\xbb\xbfGr\uFFFD\uFFFDe", text: "Gr\uFFFD\uFFFDe"}, // it is valid, and judged as a whole
		"marks of direction": {raw: "\u202bשלום\u202c \u200eParley\u2069\u2003x\u061c", text: "שלום Parley x"},
	} {
		got, err := plain([]byte(c.raw))
		failure := (*Failure)(nil)
		switch {
		case c.reason != "":
			if !errors.As(err, &failure) || !strings.Contains(failure.Reason, c.reason) {
				t.Errorf("%s: %v %+v", name, err, got)
			}
		case err != nil || got.Sections[0].Text != c.text || !strings.HasPrefix(strings.Join(got.Warnings, " "), c.warning) ||
			(len(got.Warnings) > 0) != (c.warning != ""):
			t.Errorf("%s: %v %+v", name, err, got)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"plain", "\xff\xfea\x00", "gr\xfc\xdfe", "\x93\xfa\x96{", "\x1b$B", "a\x00b\x00",
		"\xef\xbb\xbfx", "{\\rtf1", "\xc3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sound(t)(plain(b)) })
}

// sound checks what every extractor promises about its output.
func sound(t *testing.T) func(*Text, error) {
	return func(got *Text, err error) {
		if err != nil {
			if failure := (*Failure)(nil); !errors.As(err, &failure) || got != nil {
				t.Fatalf("%v with %v", err, got)
			}
			return
		}
		if len(got.Sections) == 0 {
			t.Fatal("no text and no reason")
		}
		for _, s := range got.Sections {
			if strings.TrimSpace(s.Text) == "" || !utf8.ValidString(s.Text) ||
				strings.ContainsAny(s.Text, "\x00\r\f\x1b") || !utf8.ValidString(strings.Join(s.Heading, "")) {
				t.Fatalf("%+v", s)
			}
		}
		Split(got.Sections, 200, 50)
	}
}
