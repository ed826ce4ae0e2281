package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Texts that only look like text are refused, whichever engine reads them, with what to do.
func TestGarbledPDF(t *testing.T) {
	show := func(lines ...string) string {
		s := "BT /F 12 Tf 50 700 Td"
		for _, l := range lines {
			s += fmt.Sprintf(" (%s) Tj 0 -14 Td", l)
		}
		return s + " ET"
	}
	prose := show("The harbour office opens at six in the morning and closes when", "the last ferry leaves. Latecomers pay for the whole day.")
	shifted := show("Wkh kduerxu riilfh rshqv dw vla lq wkh pruqlqj dqg forvhv zkhq",
		"wkh odvw ihuub ohdyhv. Odwhfrphuv sdb iru wkh zkroh gdb.")
	for _, c := range []struct {
		name, want string // a text, or the beginning of the reason
		warning    string
		file       []byte
	}{
		{"no ToUnicode", "The text of this PDF can't be read", "", testdata(t, "no-tounicode.pdf")},
		{"a shifted ToUnicode", "The text of this PDF can't be read", "", testdata(t, "tounicode-shifted.pdf")},
		{"shifted letters", "The text of this PDF can't be read", "", minimal([]string{shifted})},
		{"one page of three", "The harbour office", "1 of 3 pages can't be read", minimal([]string{prose, shifted, prose})},
		{"most pages", "The text of this PDF can't be read", "", minimal([]string{prose, shifted, shifted})},
		{"scans", "The PDF contains scanned pages without text", "", minimal([]string{"", ""})},
		{"stamped scans", "The PDF contains scanned pages without text", "",
			minimal([]string{show("Scanned with CamScanner"), show("2", "Scanned with CamScanner")})},
		{"a table of codes", "AXK 12", "", minimal([]string{show("AXK 12 4.50", "BVN 13 5.20", "QRT 14 6.10")})},
		{"prose", "The harbour office", "", minimal([]string{prose})},
		{"Vietnamese letters without accents", "Cua hang", "",
			minimal([]string{show("Cua hang cua chung toi mo cua tu bay gio sang den sau gio toi moi ngay tru chu nhat")})},
	} {
		for _, engine := range engines(t) {
			got, err := (&Extractor{PDFToText: engine}).Extract(t.Context(), "pdf", bytes.NewReader(c.file))
			is, warnings := "", ""
			if failure := (*Failure)(nil); errors.As(err, &failure) {
				is = failure.Reason
			} else if err == nil {
				is, warnings = got.Sections[0].Text, strings.Join(got.Warnings, " ")
			}
			if !strings.HasPrefix(is, c.want) || !strings.HasPrefix(warnings, c.warning) || (warnings == "") != (c.warning == "") {
				t.Errorf("%s, engine %q: %q, warnings %q, %v", c.name, engine, is, warnings, err)
			}
		}
	}
}

// What letters, signs and accents say of a text.
func TestGarbled(t *testing.T) {
	for text, want := range map[string]bool{
		"The bakery in Baker Street is open from seven in the morning until six in the evening.": false,
		"Wkh ednhub lq Ednhu Vwuhhw lv rshq iurp vhyhq lq wkh pruqlqj xqwlo vla lq wkh hyhqlqj.": true,
		"Íàø îôèñ îòêðûò ñ ïîíåäåëüíèêà ïî ïÿòíèöó ñ äåâÿòè óòðà äî øåñòè âå÷åðà, à ïî ñóááîòàì": true,
		"Cửa hàng của chúng tôi mở cửa từ bảy giờ sáng đến sáu giờ tối mỗi ngày trừ chủ nhật.":   false,
		"Příliš žluťoučký kůň úpěl ďábelské ódy, a přece všichni věřili, že zítra bude lépe.":    false,
		"港の事務所は朝六時に開き、最後の船が出ると閉まります。":                                                            false,
		"\ue001\ue002\ue003 \ue004\ue005 The price":                                              true,
		"\ufffd\ufffd\ufffd\ufffd of \ufffd\ufffd":                                               true,
		"BX-1204 / 44.50 / 2026-03-01 / +49 151 123456":                                          false,
		"": false,
	} {
		if got := garbled(text, 0, minPage); got != want {
			t.Errorf("%t: %s", got, text)
		}
	}
	if !garbled("Page 1", 30, minPage) {
		t.Error("characters without a text don't count")
	}
	for kind, file := range map[string][]byte{"txt": []byte(strings.Repeat("Wkh ednhub lq Ednhu Vwuhhw lv rshq iurp vhyhq. ", 9)),
		"docx": word(p(r(strings.Repeat("Wkh ednhub lq Ednhu Vwuhhw lv rshq iurp vhyhq. ", 9))))} {
		_, err := (&Extractor{}).Extract(t.Context(), kind, bytes.NewReader(file))
		if !errors.Is(err, errGarbled) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
