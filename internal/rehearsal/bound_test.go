package rehearsal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// script are the bounds of a test that somebody uploads.
var script = Bounds{Bytes: 64 << 10, Cases: 50}

// hostile are files of at most 64 KB that would take hundreds of megabytes, or more, if they were made before they are
// counted.
func hostile() map[string]string {
	filled := func(head, each, tail string) string {
		n := (script.Bytes - len(head) - len(tail)) / len(each)
		return head + strings.Repeat(each, n) + tail
	}
	bomb := "{a: &a [1,1,1,1,1,1,1,1,1], b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b], " +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c], e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d], f: [*e,*e]}"
	many := strings.Repeat("/(?:abcdefghij){900}/, ", 40)
	return map[string]string{
		"ranges":               least(filled("matrix: {seed: [", "1..1000, ", "1]}")),
		"ranges of three axes": least("matrix: {seed: 1..1000, pace: [1, 1.1, 1.2], loss: [1%, 2%]}"),
		"values":               least(filled("matrix: {seed: [", "1, ", "1]}")),
		"mocks":                filled("call: desk\nmock:\n  a0: &m {reply: {a: ["+strings.Repeat("1, ", 9000)+"1]}}\n", "  b: *m\n", "") + "\n",
		"a mock's reply":       least(filled("mock: {a: {reply: [&a \""+strings.Repeat("x", 30_000)+"\", ", "*a, ", "*a]}}")),
		"bomb in a reply":      least("mock: {a: {reply: " + bomb + "}}"),
		"bomb in variables":    least("end: {variables: " + bomb + "}"),
		"bombs in tools": "call: desk\nsteps:\n  - say: hello\n  - expect:\n      tool:\n" +
			strings.Repeat("        - 'book"+bomb+"'\n", 150),
		"steps":                 filled("call: desk\nsteps:\n  - &s {say: \""+strings.Repeat("a <pause 1ms> ", 2000)+"\"}\n", "  - *s\n", ""),
		"short steps":           filled("call: desk\nsteps:\n", "- beep\n", ""),
		"expectations":          "call: desk\nsteps:\n  - say: hello\n  - expect: {says: [" + many + "x]}\n",
		"one large expectation": least("  - hear: /" + strings.Repeat("x", 50_000) + "/"),
		"classes":               least("  - hear: /" + strings.Repeat(`\pL`, 20_000) + "/"),
		"repeated expectations": filled("call: desk\nsteps:\n  - say: hello\n  - &e {expect: {says: '/(?:abcdefghij){900}/'}}\n", "  - *e\n", ""),
		"fewer expectations": "call: desk\nsteps:\n  - say: hello\n  - &e {expect: {says: '/(?:abcdefghij){900}/'}}\n" +
			strings.Repeat("  - *e\n", 900),
		"thousands of ranges": least("matrix: {seed: [" + strings.Repeat("1..1000, ", 900) + "1]}"),
		"criteria":            least(filled("judge: [", "a, ", "b]")),
		"alias of itself":     least("mock: {a: {reply: &a [*a, *a]}}"),
		"documents":           filled("", "call: a\nsteps: [beep]\n---\n", ""),
		"nested":              least(filled("mock: {a: {reply: ", "[", "")),
	}
}

// A short file takes little memory whatever it says: what it would make is counted before it is made.
func TestBounds(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			list, err := ReadOf("this assistant", "a.yaml", []byte(text[:min(len(text), script.Bytes)]), script)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 48<<20 {
				t.Errorf("it took %d MB, and ended with %d cases, %v", took>>20, len(list), err)
			}
			m, ok := errors.AsType[*Mistake](err)
			if !ok || len(m.Text) > 1000 {
				t.Errorf("read as %d cases, %.2000v", len(list), err)
			}
		})
	}
}

// What people write is within the bounds.
func TestWithinBounds(t *testing.T) {
	for name, text := range map[string]string{
		"whole": strings.Replace(whole, "1..20", "1..25", 1),
		"alias": "call: desk\nsteps:\n  - &s {say: hello}\n  - *s\n  - *s\n",
		"mocks": least("mock: {a: &m {reply: {ok: true}}, b: *m}"),
		"expressions": least("  - hear: /(good ?bye|see you)[ ,.!]{0,20}\\w+/i within 2s\n  - expect: {says: " +
			"['/[0-9]+ (USD|EUR)/', http://x/y/z]}"),
		"100 messages": "call: desk\nsteps:\n" + strings.Repeat("  - say: I would like a table for two, please\n  - hear: reply\n", 400),
	} {
		if list, err := ReadOf("", "a.yaml", []byte(text), script); err != nil || len(list) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := Read("a.yaml", []byte(least("matrix: {seed: [1..1000, 2001..3000], loss: [1%, 2%, 3%, 4%, 5%]}"))); err != nil ||
		len(list) != 10_000 {
		t.Errorf("%d cases, %v", len(list), err)
	}
	_, err := Read("a.yaml", []byte(least("matrix: {seed: [1..1000, 2001..3000], loss: [1%, 2%, 3%, 4%, 5%, 6%]}")))
	if err == nil || !strings.Contains(err.Error(), "more than 10000 cases") {
		t.Errorf("12,000 cases: %v", err)
	}
}

// No file of lists, mappings and aliases takes much memory.
func FuzzBounds(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"&a ", "*a", "[", "]", "{", "}", ", ", ": ", "\n", "  - ", "call: x\n", "steps:\n", "say: hello", "matrix: ",
		"seed: ", "1..1000",
		"mock: ", "reply: ", "expect: ", "tool: ", "'book{a: ", "'", "/(a{9}){90}/", "---\n", "<<: ", "variables: ", "end: "}
	for range 200 {
		var b strings.Builder
		for range random.IntN(200) {
			fmt.Fprint(&b, words[random.IntN(len(words))])
		}
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		list, err := ReadOf("this assistant", "a.yaml", []byte(text), script)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("it took %d MB", took>>20)
		}
		if (err == nil) == (len(list) == 0) || len(list) > script.Cases {
			t.Errorf("%d cases and %v", len(list), err)
		}
	})
}
