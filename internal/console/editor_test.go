package console

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
)

func textOfNode(_ int, s *goquery.Selection) string { return s.Text() }

// writable are the dotted names of the fields of a struct that a form may set.
func writable(t reflect.Type, at string) (names []string) {
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "" || name == "-" || sf.Tag.Get("readOnly") == "true" {
			continue
		}
		if sf.Type.Kind() == reflect.Struct {
			names = append(names, writable(sf.Type, at+name+".")...)
			continue
		}
		names = append(names, at+name)
	}
	return names
}

func TestEditorHasEveryField(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	h.tool(t, u, "look_up")
	doc := h.signedIn(t, u).get("/assistants/" + id(a.ID)).is(http.StatusOK).doc()
	names := writable(reflect.TypeFor[parley.Assistant](), "")
	if len(names) < 60 {
		t.Fatalf("only %d fields", len(names))
	}
	for _, name := range names {
		if name == "folder_id" || name == "label_ids" { // they have a page of their own
			continue
		}
		box := doc.Find(`[name="` + name + `"]`)
		if box.Length() == 0 {
			t.Errorf("%s can't be edited", name)
		}
		if doc.Find(`[id="h-`+name+`"]`).Text() == "" && name != "tool_ids" && name != "tools" {
			t.Errorf("%s is not explained", name)
		}
	}
	doc.Find("input:not([type=hidden]), select, textarea").Each(func(_ int, s *goquery.Selection) {
		labelled := s.Closest("label").Length() > 0 || s.AttrOr("aria-label", "") != "" ||
			doc.Find(`label[for="`+s.AttrOr("id", "?")+`"]`).Length() > 0
		if !labelled {
			html, _ := goquery.OuterHtml(s)
			t.Errorf("no label: %s", html)
		}
	})
}

// rich is an assistant that uses every field in an unusual way.
func rich(t *testing.T, h *harness, u *parley.User) *parley.Assistant {
	t.Helper()
	a, other, tool := h.assistant(t, u, "Front desk"), h.assistant(t, u, "Billing"), h.tool(t, u, "look_up")
	h.tool(t, u, "between")
	newer := h.tool(t, u, "book")
	a, err := h.Assistants.Update(t.Context(), u.ID, a.ID, treeOf(map[string]any{
		"system_prompt":   "Line one.\n\n  Indented {{company}}.\n\"Quotes\" & <tags> </textarea>",
		"initial_message": "Hello\nthere",
		"variables": map[string]any{"company": "A & B\nsecond line", "empty": "",
			" odd name": "\nstarts with a break"},
		"llm_temperature": 0.35, "voice_stability": "0.10", "speech_speed": 1.15, "interrupt_sensitivity": 0.125,
		"endpoint_sensitivity": 4.75, "min_interrupt_words": 3,
		"fillers": 1, "filler_config": map[string]any{"neutral": []any{"Hm.", "Let me see."},
			"question": []any{"Good question."}}, "endpoint_type": "ai",
		"tool_ids": []any{tool.ID, newer.ID}, "keywords": []any{"Parley", "naïve café"},
		"pronunciations": map[string]any{"Dr.": "Doctor"},
		"tools": []any{map[string]any{"type": "collect_keypad", "timeout": 9, "stop_key": "#"},
			map[string]any{"type": "assistant_transfer", "assistant_id": other.ID,
				"message_before_transfer": "One moment."},
			map[string]any{"type": "call_transfer", "phone_number": "+4930901820", "warm_transfer": true,
				"warm_transfer_message": "A caller."},
			map[string]any{"type": "call_transfer", "phone_number": "+4930901821", "description": "An invoice."},
			map[string]any{"type": "end_call"}},
		"is_webhook_active": true, "webhook_url": "https://hooks.example.com/a?b=c&d=e",
		"inbound_webhook_url": "https://hooks.example.com/in", "end_call_on_voicemail": 0,
		"widget_settings": map[string]any{"theme": "dark", "color": "#abc", "title": "Hi", "auto_open": true,
			"allowed_origins": []any{"https://a.example", "http://b.example:8080"},
			"pre_chat_fields": []any{map[string]any{"variable": "email", "label": "Your email", "type": "email",
				"required": true}}},
		"post_call_schema": []any{map[string]any{"name": "goal", "type": "bool",
			"description": "Whether it went well"}}, "record": true, "reengagement_prompt": "Still there?",
		"background_speech_cancellation": true, "prompt_current_time": false,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSavingUnchangedChangesNothing(t *testing.T) {
	h := open(t)
	u := h.user(t)
	for _, a := range []*parley.Assistant{h.assistant(t, u, "Plain"), rich(t, h, u)} {
		v := h.signedIn(t, u)
		path := "/assistants/" + id(a.ID)
		v.post(path, v.get(path).form(path)).moved(path + "?done=same")
		got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(treeOf(a), treeOf(got)) {
			for name, was := range treeOf(a) {
				if now := treeOf(got)[name]; !reflect.DeepEqual(was, now) {
					t.Errorf("%s: %s was %#v, is %#v", a.Name, name, was, now)
				}
			}
		}
	}
}

func TestEditorSaves(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := rich(t, h, u)
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	form.Set("name", "Renamed")
	form["record"] = []string{"0"}
	form.Set("webhook_url", "")
	form["is_webhook_active"] = []string{"0"}
	form.Set("min_interrupt_words", "")
	form.Set("max_duration", " 90 ")
	form.Set("keywords", "one\r\n\r\n two \r\n")
	form["tool_ids"] = []string{""}
	form.Set("variables.9.key", "city")
	form.Set("variables.9.value", "Köln")
	form.Set("post_call_schema.7.name", "mood")
	form.Set("post_call_schema.7.type", "string")
	form.Set("post_call_schema.7.description", "How they felt")
	form.Set("post_call_schema.8.name", "") // a row that was added and left empty
	form.Set("post_call_schema.8.type", "string")
	for name := range form {
		if strings.HasSuffix(name, ".on") {
			form[name] = []string{"0"} // every built-in tool off: the transfer to an assistant stays
		}
	}
	v.publish(path, form)
	got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "Renamed" || got.Record || got.WebhookURL != nil || got.IsWebhookActive ||
		got.MinInterruptWords != nil || got.MaxDuration != 90 || len(got.ToolIDs) != 0 {
		t.Errorf("saved as %+v", got)
	}
	if !reflect.DeepEqual(got.Keywords, []string{"one", "two"}) || got.Variables["city"] != "Köln" ||
		len(got.Variables) != 4 {
		t.Errorf("saved as %q, %q", got.Keywords, got.Variables)
	}
	if len(got.PostCallSchema) != 2 || got.PostCallSchema[1].Name != "mood" || len(got.Tools) != 1 ||
		got.Tools[0].Type != "assistant_transfer" {
		t.Errorf("saved as %+v, %+v", got.PostCallSchema, got.Tools)
	}
	if got.PromptVersion != a.PromptVersion {
		t.Error("an unchanged prompt became a version")
	}
}

// mistakes is where the page lists what is wrong with an assistant: beside one field, which is not saved, or for the
// whole assistant, which is saved and can't be published.
const mistakes = ".mistakes, form [data-problems]"

// saved is the editor after a form with a mistake has been sent.
func (v *visitor) saved(path string, form url.Values) *reply {
	v.t.Helper()
	form.Set("seen", v.get(path).form(path).Get("seen"))
	r := v.post(path, form)
	if r.status == http.StatusUnprocessableEntity {
		return r
	}
	r.moved(path + "?done=drafted")
	return v.get(path).is(http.StatusOK)
}

func TestEditorErrorsStandBesideTheirFields(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := rich(t, h, u)
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	page := v.get(path)
	good := page.form(path)
	rows := map[string]string{}
	for name, values := range good {
		if strings.HasSuffix(name, ".type") && strings.HasPrefix(name, "tools.") {
			rows[values[0]] = strings.TrimSuffix(name, "type")
		}
	}
	long := strings.Repeat("x", 1001)
	for _, c := range []struct{ field, value string }{
		{"name", ""}, {"name", strings.Repeat("x", 256)}, {"type", "sideways"}, {"status", ""}, {"mode", "x"},
		{"language_id", ""}, {"language_id", "9999"}, {"voice_id", ""}, {"voice_id", "5"},
		{"timezone", "Mars/Olympus"}, {"timezone", ""}, {"system_prompt", " "},
		{"system_prompt", strings.Repeat("x", 100_001)}, {"initial_message", long}, {"llm_model_id", ""},
		{"llm_model_id", "999"}, {"multimodal_model_id", "999"}, {"phone_number_id", "77"},
		{"knowledgebase_id", "77"}, {"knowledgebase_id", "one"}, {"knowledgebase_mode", "x"},
		{"llm_temperature", "2"}, {"voice_stability", "-1"}, {"voice_similarity", "x"}, {"speech_speed", "9"},
		{"ambient_sound", "x"}, {"ambient_sound_volume", "1e9"},
		{"min_interrupt_words", "11"}, {"interrupt_sensitivity", "6"}, {"endpoint_type", "x"},
		{"endpoint_sensitivity", "much"}, {"max_duration", "10"}, {"max_silence_duration", "1.5"},
		{"reengagement_interval", "601"}, {"reengagement_prompt", long}, {"ringing_time", "0"},
		{"voice_mail_message", long}, {"webhook_url", "ftp://x"}, {"webhook_url", ""},
		{"inbound_webhook_url", "nope"}, {"conversation_ended_webhook_url", "http://"},
		{"conversation_inactivity_timeout", "1441"}, {"synthesizer_provider_id", "999"},
		{"transcriber_provider_id", "999"}, {"post_call_schema.0.name", "No"}, {"post_call_schema.0.type", "date"},
		{"post_call_schema.0.description", ""},
		{"widget_settings.color", "<b>"}, {"widget_settings.mode", "x"},
		{"widget_settings.title", strings.Repeat("x", 256)},
		{"widget_settings.avatar_url", "x"}, {"widget_settings.pre_chat_fields.0.variable", "1x"},
		{"widget_settings.pre_chat_fields.0.label", ""}, {"widget_settings.pre_chat_fields.0.type", "x"},
		{rows["call_transfer"] + "phone_number", "1"}, {rows["collect_keypad"] + "timeout", "31"},
		{rows["collect_keypad"] + "stop_key", "5"}, {rows["assistant_transfer"] + "assistant_id", "77"},
	} {
		form := url.Values{}
		for k, values := range good {
			form[k] = values
		}
		form.Set(c.field, c.value)
		doc := v.saved(path, form).doc()
		if wrong := doc.Find(`[id="e-` + c.field + `"]`); wrong.Length() != 1 || strings.TrimSpace(wrong.Text()) == "" {
			t.Errorf("%s = %.20q: no error beside the field; the list says %s", c.field, c.value,
				doc.Find(mistakes).Text())
		}
		if doc.Find(mistakes).Find(`a[href="#f-`+c.field+`"]`).Length() != 1 ||
			doc.Find(`[id="f-`+c.field+`"]`).Length() != 1 {
			t.Errorf("%s = %.20q: the list of mistakes does not lead to the field", c.field, c.value)
		}
		if box := doc.Find(`input[id="f-` + c.field + `"][type=text]`); box.Length() == 1 &&
			box.AttrOr("value", "") != c.value {
			t.Errorf("%s = %.20q: the box holds %.20q", c.field, c.value, box.AttrOr("value", ""))
		}
	}
	for _, c := range []struct{ field, value, says string }{
		{"keywords", "ok\r\n" + strings.Repeat("x", 101),
			"Line 2: This field must not be greater than 100 characters."},
		{"widget_settings.allowed_origins", "https://a.example/path", "Line 1: "},
		{"filler_config.neutral", strings.Repeat("x", 256), "Line 1: "},
		{"variables.0.value", strings.Repeat("x", 10_001), "must not be greater than 10000 characters."},
		{"tool_ids", "77", "Tool 1: "},
	} {
		form := url.Values{}
		for k, values := range good {
			form[k] = values
		}
		form[c.field] = []string{c.value}
		if text := v.saved(path, form).doc().Find(
			".wrong").Text(); !strings.Contains(text, c.says) {
			t.Errorf("%s = %.20q: %q", c.field, c.value, text)
		}
	}
	// The list of mistakes uses the names on the fields' labels.
	for field, label := range map[string]string{"max_duration": "Maximum call length",
		"post_call_schema.0.name": "Values to extract › Name", rows["call_transfer"] +
			"phone_number": "Built-in tools › Phone number"} {
		form := url.Values{}
		for k, values := range good {
			form[k] = values
		}
		form.Set(field, "1")
		if got := v.saved(path, form).doc().Find(mistakes).Find("a").Text(); got != label {
			t.Errorf("%s is called %q, want %q", field, got, label)
		}
	}
	if got, err := h.Assistants.Get(t.Context(), u.ID, a.ID); err != nil || !reflect.DeepEqual(treeOf(got), treeOf(a)) {
		t.Error("a refused form changed something", err)
	}
}

func TestEditorSeesThatItWasOvertaken(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"name": "By the API"}); err != nil {
		t.Fatal(err)
	}
	form.Set("name", "By hand")
	r := v.post(path, form).is(http.StatusConflict).says("while you were editing it")
	again := r.form(path)
	if again.Get("name") != "By hand" {
		t.Errorf("what was written is lost: %q", again.Get("name"))
	}
	v.post(path, again).moved(path + "?done=drafted")
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"max_duration": numeral("99")}); err != nil {
		t.Fatal(err)
	}
	v.get(path + "/publish").says("Publish on top of these changes")
	refused := v.post(path+"/publish", url.Values{"note": {"For <b>Easter</b>"}}).is(http.StatusConflict)
	refused.says("The live assistant was changed")
	if note := strings.TrimSpace(refused.form(path + "/publish").Get("note")); note != "For <b>Easter</b>" {
		t.Errorf("the note that was written is now %q", note)
	}
	v.post(path+"/publish", url.Values{"overwrite": {"1"}}).moved(path + "?done=published")
	if got, err := h.Assistants.Get(t.Context(), u.ID, a.ID); err != nil || got.Name != "By hand" {
		t.Error(got.Name, err)
	}
}

func TestChoicesFollowLanguageAndMode(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	form.Set("name", "Not saved")
	form.Set("language_id", "3")
	doc := v.post(path+"/choices", form).is(http.StatusOK).doc()
	for _, value := range doc.Find("#voices #f-voice_id option").Map(func(_ int,
		s *goquery.Selection) string {
		return s.AttrOr("value", "")
	}) {
		if !strings.HasSuffix(value, "003") {
			t.Errorf("voice %s does not speak language 3", value)
		}
	}
	if doc.Find(`#f-name`).AttrOr("value", "") != "Not saved" {
		t.Error("what was written is lost")
	}
	form.Set("mode", "multimodal")
	doc = v.post(path+"/choices", form).doc()
	if got := doc.Find("#models #f-multimodal_model_id").Text(); !strings.Contains(got, "gpt-realtime") {
		t.Errorf("multimodal models: %q", got)
	}
	for name, want := range map[string]string{"fillers": "Not in this mode.", "multimodal_model_id": "",
		"voice_stability": "No effect in this mode: the voice is the model's own.",
		"llm_temperature": "Used in chats only in this mode."} {
		if got := doc.Find("#n-" + name); got.Length() != 1 || got.Text() != want {
			t.Errorf("beside %s: %q", name, got.Text())
		}
	}
	if got := doc.Find("#f-voice_id optgroup").AttrOr("label", ""); got != "Inside the model" {
		t.Errorf("multimodal voices: %q", got)
	}
	if got, err := h.Assistants.Get(t.Context(), u.ID, a.ID); err != nil || got.Name != "Front desk" {
		t.Error("choosing saved something", err)
	}
}

// Fields that can't act with a model that decides by itself when it speaks are greyed out, with the reason, as soon as it is chosen.
func TestDecidingModel(t *testing.T) {
	var models []parley.Model
	h := open(t, func(c *Config) {
		cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", RealtimeModel: []string{"gpt-realtime"},
			LiveModel: []string{"gpt-live-1.1"}})))
		err := c.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
		if err != nil {
			t.Fatal(err)
		}
		rows, err := c.DB.Models(t.Context())
		if err == nil {
			err = cat.SetModels(rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Catalog, c.Assistants.Catalog, c.Answer = cat, cat, nil
		models = cat.ModelsOf(parley.Multimodal)
	})
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	form.Set("mode", "multimodal")
	const turns = "No effect: this model decides by itself when it speaks, and when it stops."
	limits := map[string]string{"min_interrupt_words": turns, "interrupt_sensitivity": turns, "endpoint_type": turns,
		"endpoint_sensitivity": turns, "speech_speed": "No effect: this model decides by itself how fast it speaks.", "max_duration": ""}
	for _, code := range []string{"gpt-realtime", "gpt-live-1.1"} {
		i := slices.IndexFunc(models, func(m parley.Model) bool { return m.Code == code })
		if i < 0 {
			t.Fatalf("%s is not offered", code)
		}
		form.Set("multimodal_model_id", id(models[i].ID))
		doc := v.post(path+"/choices", form).is(http.StatusOK).doc()
		for name, limit := range limits {
			if code == "gpt-realtime" {
				limit = ""
			}
			if got := doc.Find("#n-" + name); got.Text() != limit || got.HasClass("off") != (limit != "") {
				t.Errorf("%s: beside %s: %q", code, name, got.Text())
			}
			if swapped := strings.Contains(doc.Find("#f-multimodal_model_id").AttrOr("hx-select-oob", ""),
				"#n-"+name); swapped != (limits[name] != "") {
				t.Errorf("the sentence beside %s is changed with the model: %v", name, swapped)
			}
		}
	}
}

// An option that this server can't offer is disabled, and says why; one that is chosen already stays.
func TestImpossibleChoices(t *testing.T) {
	h := open(t, func(c *Config) {
		cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k"}))) // no realtime model
		rows, err := c.DB.Models(t.Context())
		if err == nil {
			err = cat.SetModels(rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Catalog, c.Assistants.Catalog, c.Answer = cat, cat, nil
	})
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	off := func(doc *goquery.Document, box string) (list string) {
		doc.Find("[id='" + box + "'] option[disabled]").Each(func(_ int, o *goquery.Selection) {
			list += o.AttrOr("value", "") + ": " + o.Text() + "; "
		})
		return list
	}
	path := "/assistants/" + id(a.ID)
	page := v.get(path)
	for box, want := range map[string]string{
		"f-mode": "multimodal: Multimodal (no such model on this server); dualplex: Dualplex (no such model on this server); ",
		"f-widget_settings.mode": "voice: Voice (no calls from browsers on this server); both: " +
			"Chat and voice (no calls from browsers on this server); ",
	} {
		if got := off(page.doc(), box); got != want {
			t.Errorf("%s can't be %q", box, got)
		}
	}
	silent := 0
	for _, l := range h.Catalog.Languages() {
		if len(h.Catalog.Voices("pipeline", l.ID)) == 0 {
			silent++
		}
	}
	if n := strings.Count(off(page.doc(), "f-language_id"), "(no voice on this server)"); n != silent {
		t.Errorf("%d languages can't be chosen, %d have no voice", n, silent)
	}
	form := page.form(path)
	form.Set("mode", "multimodal")
	if got := off(v.post(path+"/choices", form).doc(), "f-mode"); strings.Contains(got, "multimodal") ||
		!strings.Contains(got, "dualplex") {
		t.Errorf("with multimodal chosen, the mode can't be %q", got)
	}
}

func TestVariablesInUse(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	_, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		map[string]any{"system_prompt": "{{ company }} {{current_date}} {{typo}} {{typo}} {{not a name}}",
			"initial_message": "{{first}}"})
	if err != nil {
		t.Fatal(err)
	}
	got := h.signedIn(t, u).get("/assistants/" + id(a.ID)).doc().Find("[data-vars] li").Map(func(_ int,
		s *goquery.Selection) string {
		return strings.Join(strings.Fields(s.Text()), " ")
	})
	if want := []string{"companyyours", "current_datebuilt in", "typono value yet",
		"firstno value yet"}; !reflect.DeepEqual(squeeze(got), squeeze(want)) {
		t.Errorf("%q", got)
	}
}

func squeeze(list []string) (out []string) {
	for _, s := range list {
		out = append(out, strings.ReplaceAll(s, " ", ""))
	}
	return out
}

// Settings that are saved and can't work on this server are listed on the assistant's page, with how to fix them.
func TestEditorWarns(t *testing.T) {
	h := open(t, func(c *Config) { think(t, c) })
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	warnings := func() []string {
		return h.signedIn(t, u).get("/assistants/" +
			id(a.ID)).is(http.StatusOK).doc().Find("[data-warning]").Map(textOfNode)
	}
	if list := warnings(); len(list) > 0 {
		t.Errorf("warned of what is not there: %q", list)
	}
	none, err := provider.Open(provider.All())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(none.Close)
	h.Assistants.Providers = none
	if list := strings.Join(warnings(), "\n"); !strings.Contains(list, "is not configured on this server") {
		t.Errorf("the page warns of %q", list)
	}
}
