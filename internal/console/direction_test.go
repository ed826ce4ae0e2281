package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

// hebrew is what people write in the test below: it runs from right to left.
const hebrew = "שלום"

// isolates are texts that isolated wraps.
var isolates = regexp.MustCompile("\u2068[^\u2069]*\u2069")

const boxes = "textarea[name], input[type=text][name]"

// planted puts a text that runs from right to left into each text field of a page's form that takes it, and saves.
func (v *visitor) planted(page string) {
	v.t.Helper()
	r := v.get(page).is(http.StatusOK)
	action, most := "", 0
	r.doc().Find("form[method=post]").Each(func(_ int, s *goquery.Selection) {
		if n := s.Find(boxes).Length(); n > most {
			action, most = s.AttrOr("action", ""), n
		}
	})
	form, was := r.form(action), r.form(action)
	r.doc().Find(`form[action="` + action + `"]`).Find(boxes).Each(func(i int, s *goquery.Selection) {
		if s.Closest("template").Length() == 0 {
			form.Set(s.AttrOr("name", ""), fmt.Sprint(hebrew, i))
		}
	})
	for range 5 {
		r := v.post(action, form)
		if r.status == http.StatusSeeOther {
			return
		}
		left := 0
		// no place for words
		r.is(http.StatusUnprocessableEntity).doc().Find("[aria-invalid=true], .mistakes a").Each(func(_ int, s *goquery.Selection) {
			name := s.AttrOr("name", strings.TrimPrefix(s.AttrOr("href", ""), "#f-"))
			for field := range form {
				if field == name || strings.HasPrefix(field, name+".") || strings.HasPrefix(name, field+".") {
					form[field] = was[field]
					left++
				}
			}
		})
		if left == 0 {
			v.t.Fatalf("%s refuses the form: %s", page, r.doc().Find(".mistakes").Text())
		}
	}
	v.t.Fatalf("%s refuses the form", page)
}

// misplaced are the places of a page where a text that runs from right to left stands as if it ran from left to right:
// what people write has a direction of its own (dir="auto", or bdi), and what is within a sentence of ours is isolated.
func misplaced(doc *goquery.Document) (list []string) {
	doc.Find("input, textarea").Each(func(_ int, s *goquery.Selection) {
		value := s.AttrOr("value", "")
		if s.Is("textarea") {
			value = s.Text()
		}
		if strings.Contains(value, hebrew) && s.AttrOr("type", "") != "hidden" && s.AttrOr("dir", "") != "auto" {
			list = append(list, outline(s)+" has no dir")
		}
	})
	doc.Find("body *:not(script):not(style):not(textarea)").Contents().Each(func(_ int, s *goquery.Selection) {
		text := s.Text()
		if s.Get(0).Type != html.TextNode || !strings.Contains(isolates.ReplaceAllString(text, ""), hebrew) {
			return
		}
		holder := s.Parent().Closest("[dir=auto], bdi")
		if s.Parent().Is("pre") || strings.IndexAny(strings.TrimSpace(holder.Text()), "{[") == 0 { // JSON and other code begins at the left
			return
		}
		if holder.Length() == 0 {
			list = append(list, outline(s.Parent())+" has no dir: "+strings.TrimSpace(text))
		} else if first := strings.IndexFunc(holder.Text(), unicode.IsLetter); !unicode.Is(unicode.Hebrew, []rune(holder.Text()[first:])[0]) {
			list = append(list, outline(holder)+" begins with other words: "+strings.TrimSpace(holder.Text()))
		}
	})
	return list
}

// outline is an element as it can be found on its page.
func outline(s *goquery.Selection) string {
	way := goquery.NodeName(s)
	for _, at := range []string{"id", "class", "name"} {
		if v, ok := s.Attr(at); ok {
			way += "[" + at + "=" + v + "]"
		}
	}
	if up := s.Parent(); up.Length() > 0 && goquery.NodeName(up) != "main" && goquery.NodeName(up) != "body" {
		return goquery.NodeName(up) + up.AttrOr("class", "") + " > " + way
	}
	return way
}

// Whatever people write is shown in its own direction, on every page and in every field.
func TestDirectionOfWhatPeopleWrite(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	ids := h.everything(t, u, hebrew)
	v := h.signedIn(t, u)
	forms := []string{"/account"}
	for at, more := range map[string]string{"/assistants/": "", "/tools/": "", "/knowledge/": "/edit", "/campaigns/": "/edit", "/trunks/": "",
		"/alerts/": "", "/canned-answers/": "", "/numbers/": ""} {
		forms = append(forms, at+ids[at]+more)
	}
	forms = append(forms, "/knowledge/"+ids["/knowledge/"]+"/documents/"+ids["document"],
		"/campaigns/"+ids["/campaigns/"]+"/leads/"+ids["lead"])
	for _, page := range forms {
		v.planted(page)
	}
	v.post("/assistants/"+ids["/assistants/"]+"/publish", map[string][]string{"note": {hebrew}, "overwrite": {"1"}, "skip_tests": {"1"}})
	seen := 0
	for _, r := range everyRoute(t) {
		if r.method != http.MethodGet || strings.HasSuffix(r.path, "live") || strings.Contains(r.path, ".csv") {
			continue
		}
		path := r.at(t, ids)
		page := v.get(path)
		if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
			continue
		}
		if strings.Contains(page.body, hebrew) {
			seen++
		}
		for _, wrong := range misplaced(page.doc()) {
			t.Errorf("%s: %s", r.path, wrong)
		}
	}
	if seen < 40 {
		t.Errorf("%d pages show what people wrote", seen)
	}
}
