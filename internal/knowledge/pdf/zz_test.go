package pdf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
)

func words(s string) map[string]int {
	m := map[string]int{}
	for _, w := range strings.Fields(norm.NFKC.String(s)) {
		m[w]++
	}
	return m
}

func TestZZ(t *testing.T) {
	only := os.Getenv("ONLY")
	filepath.Walk("/tmp/corpus/x", func(p string, fi os.FileInfo, err error) error {
		if err != nil || !strings.HasSuffix(p, ".pdf") || fi.Size() < 1000 || !fi.Mode().IsRegular() {
			return nil
		}
		if only != "" && !strings.Contains(p, only) {
			return nil
		}
		ref, err := exec.Command("pdftotext", "-enc", "UTF-8", p, "-").Output()
		if err != nil {
			fmt.Println("POPPLER", p, err)
		}
		b, _ := os.ReadFile(p)
		t0 := time.Now()
		doc, err := Read(b, 100000)
		if err != nil {
			fmt.Println("ERR", err, p)
			return nil
		}
		d := time.Since(t0)
		got := strings.Join(doc.Pages, "\n")
		want, have := words(string(ref)), words(got)
		n, hit, more := 0, 0, 0
		type miss struct {
			w string
			n int
		}
		var ms []miss
		for w, k := range want {
			n += k
			hit += min(k, have[w])
			if have[w] < k {
				ms = append(ms, miss{w, k - have[w]})
			}
		}
		for _, k := range have {
			more += k
		}
		sort.Slice(ms, func(i, j int) bool { return ms[i].n > ms[j].n })
		s := ""
		for i := 0; i < len(ms) && i < 8; i++ {
			s += fmt.Sprint(ms[i].w, "*", ms[i].n, " ")
		}
		fmt.Printf("%6.2f%% of %6d (have %6d) %4dp %6.2fs %s   %s\n", 100*float64(hit)/float64(max(n, 1)), n, more, len(doc.Pages), d.Seconds(), strings.TrimPrefix(p, "/tmp/corpus/x/"), s)
		if only != "" {
			os.WriteFile("/tmp/meas/got.txt", []byte(got), 0o644)
			os.WriteFile("/tmp/meas/ref.txt", ref, 0o644)
		}
		return nil
	})
}
