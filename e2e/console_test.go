package e2e

import (
	"strconv"
	"strings"
	"testing"
)

// signIn signs in with what the first start printed.
func signIn(p *page, s *program) {
	p.t.Helper()
	p.open(s.URL + "/")
	p.fill("[name=email]", s.Email)
	p.fill("[name=password]", s.Password)
	p.click("button[type=submit]")
	p.see("h1", "Assistants")
}

func TestLooks(t *testing.T) {
	s := start(t)
	p := browse(t)
	make := map[string]any{"name": "look_up_order", "description": "Looks up an order by its number and says where it is.", "endpoint": "https://shop.example.com/orders/{number}", "method": "GET",
		"schema": []any{map[string]any{"name": "number", "type": "string", "description": "The order number"}}, "headers": []any{map[string]any{"name": "Authorization", "value": "Bearer secret"}}}
	if status := s.call(t, "POST", "/user/tools", make, nil); status != 201 {
		t.Fatal(status)
	}
	one := "/assistants/" + strconv.FormatInt(s.Assistant, 10)
	for i, name := range []string{"Dentist reception", "Night support", "Pick-up reminder", strings.Repeat("A very long name ", 10)} {
		var got map[string]any
		s.call(t, "GET", "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), nil, &got)
		got["name"], got["status"] = name, []string{"active", "inactive"}[i%2]
		if status := s.call(t, "POST", "/user/assistants", got, nil); status != 201 {
			t.Fatal(status)
		}
	}
	s.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), map[string]any{"system_prompt": "You are the friendly receptionist of {{company}}.\nToday is {{current_date}}.\nAsk for {{customer_nmae}}.\nBe kind."}, nil)
	pages := []struct{ name, path string }{{"signin", ""}, {"assistants", "/assistants"}, {"new", "/assistants/new"}, {"editor", one}, {"versions", one + "/versions"},
		{"diff", one + "/versions/1"}, {"tools", "/tools"}, {"tool", "/tools/1"}, {"keys", "/keys"}, {"account", "/account"}, {"missing", "/assistants/999"}}
	for _, pg := range pages {
		if pg.name == "signin" {
			p.open(s.URL + "/signin")
		} else {
			if pg.name == "assistants" {
				signIn(p, s)
			}
			if pg.name == "missing" {
				p.expect("404")
			}
			p.open(s.URL + pg.path)
		}
		for _, scheme := range []string{"light", "dark"} {
			p.scheme(scheme)
			p.size(1280, 900)
			p.shot(pg.name+"-"+scheme, false)
			p.accessible(pg.name + " " + scheme)
			if scheme == "light" {
				p.size(390, 844)
				p.shot(pg.name+"-phone", false)
				if wide := eval[bool](p, "document.documentElement.scrollWidth > innerWidth"); wide {
					t.Errorf("%s is wider than a phone", pg.name)
				}
			}
			if pg.name == "editor" {
				p.size(1280, 5200)
				p.shot(pg.name+"-"+scheme+"-whole", false)
			}
		}
	}
}
