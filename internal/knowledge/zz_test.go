package knowledge

import (
	"os"
	"fmt"
	"testing"
)

func TestZZ(t *testing.T) {
	f, _ := os.Open("/tmp/corpus/x/live-manual-pdf/usr/share/doc/live-manual/pdf/live-manual.landscape.it.a4.pdf")
	for i := 0; i < 150; i++ {
		for _, e := range []string{"", "off"} {
			if _, err := (&Extractor{PDFToText: e}).Extract(t.Context(), "pdf", f); err != nil && err != errScanned {
				fmt.Println(e, i, err)
			}
		}
	}
}
