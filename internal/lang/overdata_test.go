package lang_test

import (
	"archive/zip"
	"encoding/csv"
	"encoding/json"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"
)

// sentences are what people say or write in one language, as far as testdata/turns.tsv lists them.
type sentences struct {
	language string
	turns    [][]string // whole turns, or sentences that follow each other in a source that has no turns
	whole    []bool
	frequent map[string]bool
}

// source is a row of testdata/turns.tsv.
type source struct{ language, use, kind, path string }

// sources reads testdata/turns.tsv. Without the directory that PARLEY_SENTENCES names, the test is skipped.
func sources(t *testing.T) (dir string, rows []source) {
	t.Helper()
	if dir = os.Getenv("PARLEY_SENTENCES"); dir == "" {
		t.Log("quality: when a turn is over: not measured, as PARLEY_SENTENCES names no directory with sentences")
		t.Skip("PARLEY_SENTENCES names no directory with the sentences of testdata/turns.tsv")
	}
	list, err := os.ReadFile("testdata/turns.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if !strings.HasPrefix(line, "#") {
			f := strings.Split(line, "\t")
			rows = append(rows, source{f[0], f[1], f[2], f[3]})
		}
	}
	return dir, rows
}

// saidIn reads the sentences of a language, at most so many of each source, that are for one part: to "train", to
// "choose" between models and policies, or to "test" what was chosen.
func saidIn(t *testing.T, language, part string, most int) *sentences {
	t.Helper()
	dir, rows := sources(t)
	r := rand.New(rand.NewPCG(1, uint64(len(language))))
	s := &sentences{language: language, frequent: map[string]bool{}}
	seen := map[string]bool{}
	for _, row := range rows {
		if row.language != language || row.use != part && row.use != "some" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, row.path))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, readers[row.kind](t, raw)...)
		}
		kept := found[:0]
		for _, text := range found {
			text = strings.Join(strings.Fields(text), " ")
			text = strings.Trim(text, `"“”„»«- `)
			h := fnv.New32a()
			h.Write([]byte(strings.ToLower(text)))
			if row.use == "some" && partOf(h.Sum32()) != part || seen[text] || !utf8.ValidString(text) ||
				strings.ContainsAny(text, "{}[]<>|=\\/@#") || len(text) > 400 {
				continue
			}
			seen[text] = true
			kept = append(kept, text)
		}
		whole := row.kind != "lines" && row.kind != "commands"
		if !whole {
			r.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		}
		share := most
		if row.kind == "commands" {
			share = most / 6 // they are much alike
		}
		for _, text := range kept[:min(len(kept), share)] {
			for _, text := range scripts(language, text) {
				if words := wordsOf(text, language); len(words) > 0 && len(words) <= 60 {
					s.turns, s.whole = append(s.turns, words), append(s.whole, whole)
				}
			}
		}
	}
	if len(s.turns) == 0 {
		t.Fatalf("no sentence in %q of testdata/turns.tsv is below %s", language, dir)
	}
	counts := map[string]int{}
	for _, words := range s.turns {
		for _, w := range words {
			counts[bare(w)]++
		}
	}
	all := make([]string, 0, len(counts))
	for w := range counts {
		all = append(all, w)
	}
	sort.Slice(all, func(i, j int) bool {
		return counts[all[i]] > counts[all[j]] || counts[all[i]] == counts[all[j]] && all[i] < all[j]
	})
	for _, w := range all[:min(len(all), 50)] {
		s.frequent[w] = true
	}
	return s
}

// partOf is the part of a sentence of a source of which each part has some.
func partOf(hash uint32) string {
	switch hash % 8 {
	case 0:
		return "choose"
	case 1:
		return "test"
	}
	return "train"
}

// readers find the sentences in a file, by its kind.
var readers = map[string]func(t *testing.T, raw []byte) []string{
	"lines": func(_ *testing.T, raw []byte) []string { return strings.Split(string(raw), "\n") },
	"commands": func(_ *testing.T, raw []byte) (out []string) {
		in := false
		for line := range strings.Lines(string(raw)) {
			item := strings.TrimSpace(line)
			switch {
			case strings.HasSuffix(item, "sentences:"):
				in = true
			case in && strings.HasPrefix(item, "- "):
				out = append(out, strings.Trim(item[2:], `"' `))
			case !strings.HasPrefix(item, "#"):
				in = false
			}
		}
		return out
	},
	"taskmaster": func(t *testing.T, raw []byte) (out []string) {
		var dialogues []struct {
			Utterances []struct{ Speaker, Text string }
		}
		decode(t, raw, &dialogues)
		for _, d := range dialogues {
			for _, u := range d.Utterances {
				if u.Speaker == "user" {
					out = append(out, u.Text)
				}
			}
		}
		return out
	},
	"restaurant": func(t *testing.T, raw []byte) (out []string) {
		var list []struct{ UserInput struct{ Text string } }
		decode(t, raw, &list)
		for _, e := range list {
			out = append(out, e.UserInput.Text)
		}
		return out
	},
	"banking": func(t *testing.T, raw []byte) (out []string) {
		rows, err := csv.NewReader(strings.NewReader(string(raw))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			out = append(out, row[0])
		}
		return out
	},
	"crosswoz": func(t *testing.T, raw []byte) (out []string) {
		z, err := zip.NewReader(strings.NewReader(string(raw)), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			var dialogues map[string]struct {
				Messages []struct{ Role, Content string }
			}
			decode(t, raw, &dialogues)
			for _, d := range dialogues {
				for _, m := range d.Messages {
					if m.Role == "usr" {
						out = append(out, m.Content)
					}
				}
			}
		}
		slices.Sort(out)
		return out
	},
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// scripts are the ways to write a text: recognizers write Serbian in Latin letters too.
func scripts(language, text string) []string {
	if language != "sr" {
		return []string{text}
	}
	const cyrillic = "абвгдђежзијклљмнњопрстћуфхцчџш"
	latin := strings.Fields("a b v g d đ e ž z i j k l lj m n nj o p r s t ć u f h c č dž š")
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		if i := strings.IndexRune(cyrillic, c); i >= 0 {
			b.WriteString(latin[utf8.RuneCountInString(cyrillic[:i])])
		} else {
			b.WriteRune(c)
		}
	}
	if b.String() == strings.ToLower(text) {
		return []string{text}
	}
	return []string{text, b.String()}
}

// joints are where speech in languages that are written without spaces can pause: before and after these.
var joints = map[string]string{
	"zh": "的 了 在 是 我 你 他 她 不 就 也 都 和 跟 但是 但 因为 所以 如果 然后 还有 还 想 要 有 吗 呢 吧 一个 这个 那个 这 那 什么 怎么 可以 从 到 给 把 被 对 很",
	"ja": "は が を に で と も から ので けど まで より です ます した って ね よ か たい それ この その あの でも だから そして",
	"th": "ที่ ของ และ ใน ให้ จะ ได้ ว่า เป็น มี ไป มา กับ จาก แต่ หรือ ถ้า ไม่ ก็ คือ เพราะ ครับ ค่ะ คะ นี้ นั้น ผม ฉัน คุณ เขา เรา อยู่ " +
		"แล้ว อยาก ต้อง ด้วย",
}

// wordsOf cuts a text into what pauses can part, each with the punctuation behind it. Together they are the text.
func wordsOf(text, language string) (words []string) {
	marks := strings.Fields(joints[language])
	sort.SliceStable(marks, func(i, j int) bool { return len(marks[i]) > len(marks[j]) })
	for i, field := range strings.Fields(text) {
		if i > 0 {
			words[len(words)-1] += " "
		}
		if len(marks) == 0 {
			words = append(words, field)
			continue
		}
		from := 0
		for i := 0; i < len(field); {
			m := 0
			for _, mark := range marks {
				if strings.HasPrefix(field[i:], mark) {
					m = len(mark)
					break
				}
			}
			if m == 0 {
				c, size := utf8.DecodeRuneInString(field[i:])
				i += size
				if strings.ContainsRune("，。！？、；：", c) {
					words, from = append(words, field[from:i]), i
				}
				continue
			}
			if i > from {
				words = append(words, field[from:i])
			}
			i += m
			words, from = append(words, field[i-m:i]), i
		}
		if from < len(field) {
			words = append(words, field[from:])
		}
	}
	for i := 1; i < len(words); i++ { // punctuation belongs to what it follows
		if bare(words[i]) == "" {
			words[i-1] += words[i]
			words = slices.Delete(words, i, i+1)
			i--
		}
	}
	return words
}

const punctuation = ".!?…。！？؟।,،，、;；:：\"“”„«»()"

// bare is a word without punctuation, in lower case.
func bare(word string) string { return strings.TrimSpace(plain(strings.ToLower(word))) }

// plain is a text without punctuation.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(punctuation, r) {
			return -1
		}
		return r
	}, text)
}

// utterance is a turn, and where in it the speaker paused for how long.
type utterance struct {
	words []string
	at    int     // words before the pause
	pause float64 // milliseconds
}

// join is how many of the turns consist of two sentences, in sources that have sentences and no turns.
const join = 0.25

// utter makes an utterance of two words or more from the i-th turn; nil if that isn't possible.
//
// People pause where a sentence ends within their turn, at commas, before and after little words, and, more rarely,
// anywhere: some half of all pauses stand at grammatical joints (Goldman-Eisler, 1968). The lengths are such that silence
// alone cuts off as many people as it does in recorded calls: 55.6 % at 300 ms, 21.7 % at 600, 10 % at 1,000 and 5 %
// at 1,600.
func (s *sentences) utter(i int, r *rand.Rand) *utterance {
	words := s.spoken(i, r)
	if len(words) < 2 {
		return nil
	}
	weights, total := s.pauses(words)
	x, at := r.Float64()*total, 1
	for ; at < len(words)-1 && x > weights[at]; at++ {
		x -= weights[at]
	}
	return &utterance{words, at, pauseOf(r.Float64())}
}

// spoken are the words of an utterance that begins with the i-th turn.
func (s *sentences) spoken(i int, r *rand.Rand) []string {
	words := s.turns[i]
	if !s.whole[i] && r.Float64() < join && i+1 < len(s.turns) && !s.whole[i+1] {
		first := slices.Clone(words)
		if end := strings.TrimSpace(first[len(first)-1]); bare(end) == strings.ToLower(end) {
			first[len(first)-1] = end + "."
		}
		if joints[s.language] == "" {
			first[len(first)-1] += " "
		}
		words = append(first, s.turns[i+1]...)
	}
	return words
}

// pauses are how likely it is that somebody pauses before each of the words but the first, and the sum of it.
func (s *sentences) pauses(words []string) (weights [128]float64, total float64) {
	for k := 1; k < len(words); k++ {
		before := strings.TrimSpace(words[k-1])
		w := 1.0
		switch {
		case endsWith(before, ".!?…。！？؟।"):
			w = 10
		case endsWith(before, ",،，、;；:："):
			w = 6
		default:
			if s.frequent[bare(words[k-1])] {
				w++
			}
			if s.frequent[bare(words[k])] {
				w++
			}
		}
		weights[k] = w
		total += w
	}
	return weights, total
}

func endsWith(word, any string) bool {
	c, _ := utf8.DecodeLastRuneInString(word)
	return strings.ContainsRune(any, c)
}

// pauseOf is the pause that a share x of pauses exceed.
func pauseOf(x float64) float64 {
	known := []struct{ share, ms float64 }{{1, 50}, {0.556, 300}, {0.217, 600}, {0.10, 1000}, {0.05, 1600}, {0.005, 7800}}
	for i := 1; i < len(known); i++ {
		if a, b := known[i-1], known[i]; x >= b.share {
			return a.ms * math.Pow(b.ms/a.ms, math.Log(a.share/x)/math.Log(a.share/b.share))
		}
	}
	return 7800
}

// texts are what a recognizer gives of an utterance at its pause and at its end, with punctuation or without. One
// that writes punctuation puts a full stop into four pauses of ten where none belongs, and leaves out one in ten.
func (u *utterance) texts(punctuated bool, r *rand.Rand) (paused, whole string) {
	return pausedOf(strings.Join(u.words[:u.at], ""), punctuated, r), wholeOf(strings.Join(u.words, ""), punctuated, r)
}

func pausedOf(text string, punctuated bool, r *rand.Rand) string {
	text = strings.TrimSpace(text)
	if !punctuated {
		return plain(text)
	}
	if c, _ := utf8.DecodeLastRuneInString(text); !strings.ContainsRune(punctuation, c) && r.Float64() < 0.4 {
		text += "."
	}
	return text
}

func wholeOf(text string, punctuated bool, r *rand.Rand) string {
	if !punctuated {
		return plain(text)
	}
	if c, _ := utf8.DecodeLastRuneInString(text); !strings.ContainsRune(punctuation, c) {
		text += "."
	}
	if r.Float64() < 0.1 {
		text = strings.TrimRight(text, punctuation)
	}
	return text
}
