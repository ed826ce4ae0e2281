package channel_test

import (
	"testing"

	"parley/internal/channel"
	"parley/internal/parley"
)

// What models write as Markdown, as WhatsApp shows it, and as plain text. A row grows by a form.
func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ in, whatsapp, plain string }{
		{"Hello!", "Hello!", "Hello!"},
		{"We are **open** today.", "We are *open* today.", "We are open today."},
		{"__Open__ today", "*Open* today", "Open today"},
		{"It is *really* good", "It is _really_ good", "It is really good"},
		{"It is _really_ good", "It is _really_ good", "It is really good"},
		{"***Now***", "*_Now_*", "Now"},
		{"~~5 $~~ 4 $", "~5 $~ 4 $", "5 $ 4 $"},
		{"**Price:** 5*4 is 20, 2 * 3 * 4", "*Price:* 5*4 is 20, 2 * 3 * 4", "Price: 5*4 is 20, 2 * 3 * 4"},
		{"my_file_name.txt and a*b*c", "my_file_name.txt and a*b*c", "my_file_name.txt and a*b*c"},
		{"# Menu", "*Menu*", "Menu"},
		{"### **Menu** ###", "*Menu*", "Menu"},
		{"#5 is ready", "#5 is ready", "#5 is ready"},
		{"* tea\n* **coffee**\n+ milk\n- [x] bread", "- tea\n- *coffee*\n- milk\n- bread", "- tea\n- coffee\n- milk\n- bread"},
		{"- a\n  - b", "- a\n  - b", "- a\n  - b"},
		{"1. one\n2. two", "1. one\n2. two", "1. one\n2. two"},
		{"See [our menu](https://example.com/menu_of_day).", "See our menu (https://example.com/menu_of_day).",
			"See our menu (https://example.com/menu_of_day)."},
		{"[https://a.test](https://a.test)", "https://a.test", "https://a.test"},
		{"[**Book**](https://a.test/b \"Book\") now", "*Book* (https://a.test/b) now", "Book (https://a.test/b) now"},
		{"[a (b)](https://a.test/x_(y))", "a (b) (https://a.test/x_(y))", "a (b) (https://a.test/x_(y))"},
		{"[Mail us](mailto:a@b.test)", "Mail us (a@b.test)", "Mail us (a@b.test)"},
		{"![Cake](https://a.test/c.png)", "Cake (https://a.test/c.png)", "Cake (https://a.test/c.png)"},
		{"<https://a.test/x_y_z>", "https://a.test/x_y_z", "https://a.test/x_y_z"},
		{"https://a.test/_x_/*", "https://a.test/_x_/*", "https://a.test/_x_/*"},
		{"**https://a.test/x**", "*https://a.test/x*", "https://a.test/x"},
		{"[1] and [x]", "[1] and [x]", "[1] and [x]"},
		{"Use `a_b` now", "Use `a_b` now", "Use a_b now"},
		{"```go\nx := *y*\n```", "```\nx := *y*\n```", "x := *y*"},
		{"> be **kind**", "> be *kind*", "be kind"},
		{"a\n\n---\n\nb", "a\n\nb", "a\n\nb"},
		{"| Day | Open |\n|---|:---:|\n| Mon | **9** |", "Day | Open\nMon | *9*", "Day | Open\nMon | 9"},
		{"a \\*b\\* c", "a *b* c", "a *b* c"},
		{"Tea &amp; cake &lt;3 & more", "Tea & cake <3 & more", "Tea & cake <3 & more"},
		{"one<br>two", "one\ntwo", "one\ntwo"},
		{"a\r\n\r\n\r\n\r\nb", "a\n\nb", "a\n\nb"},
		{"**not closed", "**not closed", "**not closed"},
		{"* * *", "", ""},
		{"**Öffnungszeiten**: 9–17 Uhr", "*Öffnungszeiten*: 9–17 Uhr", "Öffnungszeiten: 9–17 Uhr"},
		{"营业时间**九点**开始", "营业时间*九点*开始", "营业时间九点开始"},
		{"¡*Hola*!", "¡_Hola_!", "¡Hola!"},
	} {
		for style, want := range map[*channel.Style]string{&channel.WhatsAppText: c.whatsapp, &channel.PlainText: c.plain} {
			if got := style.Text(c.in); got != want {
				t.Errorf("%q is %q, want %q", c.in, got, want)
			}
		}
	}
	m := &parley.Message{Author: parley.AuthorHuman, Content: "**as it is**"}
	if got := channel.Said(m, channel.PlainText); got != m.Content {
		t.Errorf("a person's words go out as %q", got)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("**a** [b](c) `d`\n| e | f |")
	f.Add("[[[((()))]]]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		channel.WhatsAppText.Text(text)
		channel.PlainText.Text(text)
	})
}
