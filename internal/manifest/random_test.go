package manifest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"parley/internal/manifest"
	"parley/internal/parley"
)

type object = map[string]any

// random makes an account of random things by the API.
type random struct {
	testing.TB
	*rand.Rand
	server  *server
	client  *manifest.Server
	prefix  string   // of its numbers
	numbers []string // that it has
	secrets []string // that no file may hold

	folders, labels, tools, bases, ids, outbound, numberIDs, campaigns []int64
	taken                                                              map[int64]bool // numbers of inbound assistants
}

func newRandom(t testing.TB, s *server, c *manifest.Server, r *rand.Rand, prefix string) *random {
	return &random{TB: t, Rand: r, server: s, client: c, prefix: prefix, taken: map[int64]bool{}}
}

// do sends a request, which must be answered with success, and returns the id of what was made.
func (r *random) do(method, path string, body any) int64 {
	r.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		r.Fatal(err)
	}
	return r.send(method, path, "application/json", raw)
}

func (r *random) send(method, path, kind string, body []byte) int64 {
	r.Helper()
	raw := r.answer(method, path, kind, body)
	var made struct {
		Data struct {
			ID            int64 `json:"id"`
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	_ = json.Unmarshal(raw, &made)
	if made.Data.PhoneNumberID != 0 && strings.HasSuffix(path, "sip-trunks") {
		return made.Data.PhoneNumberID
	}
	return made.Data.ID
}

func (r *random) get(path string) []byte { r.Helper(); return r.answer("GET", path, "", nil) }

// answer sends a request, which must be answered with success.
func (r *random) answer(method, path, kind string, body []byte) []byte {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.client.URL+"/api"+path, bytes.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.client.Key)
	req.Header.Set("Content-Type", kind)
	res, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	if res.StatusCode >= 300 {
		r.Fatalf("%s %s: %d %s\n%s", method, path, res.StatusCode, raw, body)
	}
	return raw
}

func pick[T any](r *random, list ...T) T { return list[r.IntN(len(list))] }

// some says yes one time in n.
func (r *random) some(n int) bool { return r.IntN(n) == 0 }

func (r *random) secret() string {
	s := fmt.Sprintf("s3cr3t%08x", r.Uint32())
	r.secrets = append(r.secrets, s)
	return s
}

var names = []string{"Front desk", "front-desk", "Front  desk", "Größe", "日本語", "?!", "con", "a", "a-2", "A", "yes", "null", "123",
	"1e3", "x.yaml",
	"Prices: 2026", "- dash", "# hash", "naïve \"quoted\"", "it's", "{curly}", "[list]", "*star", "&amp", "%percent", "@at",
	"`tick`", "😀 smile",
	"Very long name that goes on and on and on until it is longer than a file's name should ever be, says everybody", "tab\there", "~",
	"true", "0x1F", "2026-01-02", "new\nline", "=", "<<", "!tag", "|", ">"}

// name is one of few, so that things have the same.
func (r *random) name() string { return pick(r, names...) }

// words are a text as people write it, and as they don't.
func (r *random) words(most int) string {
	parts := []string{"You are the receptionist of {{company}}.", "\n", "\n\n", "- one\n- two", "  indented\n",
		"trailing  \nspaces", "tab\tin it",
		"colon: value", "# no comment", "\"quoted\"", "it's", "\\backslash\\n", "${HOME}", "$${x}", "日本", "😀", "é", "\r\n", "---",
		"...", "%", "\u2028",
		"\u0085", "\ufeff", "\x01", "\x7f", "100%", "yes", "|", ">", "&a", "*a", "!x", "<b>", "very long line " + strings.Repeat("word ", 40)}
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(pick(r, parts...))
		if !r.some(3) {
			b.WriteByte(' ')
		}
	}
	text := []rune(b.String())
	text = text[:min(most, len(text))]
	if s := strings.TrimSpace(string(text)); s != "" {
		return s
	}
	return "text"
}

// maybe sets a field in half of the cases.
func (r *random) maybe(body object, name string, value func() any) {
	if r.some(2) {
		body[name] = value()
	}
}

func (r *random) flag() any { return r.some(2) }

func (r *random) between(low, high int) any { return low + r.IntN(high-low+1) }

// few takes some of a list, in a random order.
func few[T any](r *random, list []T, most int) []T {
	out := []T{}
	for _, i := range r.Perm(len(list)) {
		if len(out) < most && r.some(2) {
			out = append(out, list[i])
		}
	}
	return out
}

// trunks makes numbers.
func (r *random) trunks(numbers []string) {
	for i, n := range numbers {
		r.numberIDs = append(r.numberIDs,
			r.do("POST", "/user/phone-numbers/sip-trunks", object{"name": fmt.Sprint("Trunk ", i), "phone_number": n,
				"sip_address": "192.0.2.7", "inbound_authorization_type": "ip", "allowed_inbound_ips": []string{"192.0.2.7"}}))
	}
	r.numbers = numbers
}

// fill makes up to n things of each kind.
func (r *random) fill(n int) {
	var numbers []string
	for i := range r.IntN(n + 1) {
		numbers = append(numbers, r.prefix+strconv.Itoa(10+i))
	}
	for i, number := range numbers {
		r.trunk(i, number)
	}
	r.readNumbers()
	groups := r.Perm(len(names))
	for i := range r.IntN(n + 1) {
		body := object{"name": names[groups[i]]}
		r.maybe(body, "color", func() any { return pick(r, parley.GroupColors...) })
		r.folders = append(r.folders, r.do("POST", "/user/folders", body))
		r.labels = append(r.labels, r.do("POST", "/user/labels", body))
	}
	for i := range r.IntN(n + 1) {
		r.tool(i)
	}
	for range r.IntN(n + 1) {
		r.knowledge()
	}
	for range r.IntN(n + 1) {
		r.assistant()
	}
	r.transfers()
	for _, id := range r.ids {
		if r.some(2) {
			r.draft(id)
		}
		for range r.IntN(3) {
			r.do("POST", fmt.Sprintf("/user/assistants/%d/tests", id), object{"script": r.script()})
		}
	}
	for _, id := range r.numberIDs {
		r.route(id)
	}
	if len(r.outbound) > 0 {
		for range r.IntN(n + 1) {
			r.campaign()
		}
	}
	for range r.IntN(n + 1) {
		r.alert()
	}
	for i := range r.IntN(n + 1) {
		r.filter(i)
	}
	if r.some(2) {
		r.do("PUT", "/user/webhook-endpoint", object{"url": r.address()})
	}
}

// address is one of the account's own server, often with a secret in it.
func (r *random) address() string {
	u := "https://hooks.example.com/" + pick(r, "a", "b/c", "{{company}}", "x$y")
	switch r.IntN(4) {
	case 0:
		return u + "?token=" + r.secret() + "&x=" + pick(r, "1", "${HOME}")
	case 1:
		return u + "?x=1&api_key=" + r.secret() + "&sig=" + r.secret() + "#end"
	}
	return u
}

func (r *random) tool(i int) {
	body := object{"name": "tool_" + string(rune('a'+i)) + pick(r, "", "_x", "_yes"), "description": r.words(200), "endpoint": r.address(),
		"method": pick(r, "GET", "POST", "PUT", "PATCH", "DELETE")}
	r.maybe(body, "timeout", func() any { return r.between(1, 30) })
	r.maybe(body, "headers", func() any {
		list := []object{}
		for range r.IntN(4) {
			list = append(list,
				pick(r, object{"name": "Authorization", "value": "Bearer " + r.secret()}, object{"name": "X-Key", "value": r.secret()},
					object{"name": "Accept", "value": "application/json"}, object{"name": "Authorization", "value": "Bearer {{api_key}}"},
					object{"name": "X-Tenant", "value": "{{tenant}}"}, object{"name": "X-Empty", "value": ""},
					object{"name": "User-Agent", "value": "${x} $${y}"}))
		}
		return list
	})
	r.maybe(body, "schema", func() any {
		list := []object{}
		for i := range r.IntN(4) {
			p := object{"name": "param" + strconv.Itoa(i), "type": pick(r, "string", "number", "boolean"), "description": "d: " + r.words(200)}
			r.maybe(p, "required", r.flag)
			list = append(list, p)
		}
		return list
	})
	if r.some(3) {
		delete(body, "schema")
		body["json_schema"] = object{"type": "object", "required": []string{"name"}, "properties": object{
			"name": object{"type": "string", "description": r.words(40), "pattern": "^.*$"},
			"list": object{"type": "array", "items": object{"type": "integer", "default": 1.50}}}}
	}
	if r.some(4) { // nobody is there
		delete(body, "schema")
		delete(body, "json_schema")
		body["kind"], body["method"], body["endpoint"] = "mcp", "POST", "http://127.0.0.1:1/mcp"
		r.maybe(body, "allowed_tools", func() any { return []string{"look_up", "cancel"} })
		if r.some(2) {
			body["oauth"] = object{"client_id": "desk", "client_secret": r.secret(), "scope": "orders"}
		}
	}
	r.tools = append(r.tools, r.do("POST", "/user/tools", body))
}

func (r *random) knowledge() {
	body := object{"name": r.name()}
	r.maybe(body, "description", func() any { return r.words(255) })
	id := r.do("POST", "/user/knowledgebases", body)
	r.bases = append(r.bases, id)
	at := fmt.Sprintf("/user/knowledgebases/%d/documents", id)
	for range r.IntN(4) {
		if r.some(2) {
			d := object{"name": r.name(), "type": "website"}
			r.maybe(d, "description", func() any { return r.words(255) })
			if r.some(2) {
				d["url"] = "https://example.com/" + pick(r, "", "a?b=c", "d#e")
				r.maybe(d, "relative_links_limit", func() any { return r.between(1, 50) })
			} else {
				d["links"] = []object{{"link": "https://example.com/one"}, {"link": "https://example.com/two"}}
			}
			r.do("POST", at, d)
			continue
		}
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		w.WriteField("name", r.name())
		w.WriteField("type", pick(r, "txt", "txt", "pdf", "docx"))
		if r.some(2) {
			w.WriteField("description", r.words(255))
		}
		part, err := w.CreateFormFile("file", "file")
		if err != nil {
			r.Fatal(err)
		}
		io.WriteString(part, r.words(1000)+"\n")
		w.Close()
		r.send("POST", at, w.FormDataContentType(), form.Bytes())
	}
}

// text is a text that may be short.
func (r *random) text(most int) func() any { return func() any { return r.words(most) } }

func (r *random) assistant() {
	b, kind := r.anAssistant()
	r.numbered(b, kind)
	id := r.do("POST", "/user/assistants", b)
	r.ids = append(r.ids, id)
	if kind == "outbound" {
		r.outbound = append(r.outbound, id)
	}
}

// anAssistant are random fields, without a number.
func (r *random) anAssistant() (b object, kind string) {
	cat := r.server.cat
	mode := pick(r, "pipeline", "pipeline", "multimodal", "dualplex")
	all := cat.Voices(mode, 0)
	voice := all[r.IntN(len(all))]
	language := voice.LanguageID
	kind = pick(r, "inbound", "outbound")
	llms := cat.ModelsOf(parley.LLM)
	b = object{"name": r.name(), "type": kind, "mode": mode, "voice_id": voice.ID, "language_id": language, "system_prompt": r.words(2000),
		"timezone": pick(r, "UTC", "Europe/Berlin", "America/New_York"), "llm_model_id": llms[r.IntN(len(llms))].ID}
	for _, f := range []string{"record", "enable_noise_cancellation", "background_speech_cancellation", "wait_for_customer",
		"post_call_evaluation",
		"send_webhook_only_on_completed", "include_recording_in_webhook", "prompt_current_time", "end_call_on_voicemail"} {
		r.maybe(b, f, r.flag)
	}
	for f, high := range map[string]int{"max_duration": 3600, "max_silence_duration": 360, "reengagement_interval": 600, "ringing_time": 120,
		"conversation_inactivity_timeout": 1440} {
		r.maybe(b, f, func() any { return r.between(20, high) })
	}
	for _, f := range []string{"llm_temperature", "voice_stability", "voice_similarity", "ambient_sound_volume"} {
		r.maybe(b, f, func() any { return float64(r.IntN(101)) / 100 })
	}
	r.maybe(b, "speech_speed", func() any { return 0.7 + float64(r.IntN(50))/100 })
	for _, f := range []string{"interrupt_sensitivity", "endpoint_sensitivity"} {
		r.maybe(b, f, func() any { return pick[any](r, 0, 5, 0.5, 1.25, 0.1, 3.3333) })
	}
	for _, f := range []string{"initial_message", "reengagement_prompt", "voice_mail_message"} {
		r.maybe(b, f, r.text(900))
	}
	r.maybe(b, "status", func() any { return pick(r, "active", "inactive") })
	r.maybe(b, "ambient_sound", func() any { return pick(r, "off", "office", "cafe") })
	r.maybe(b, "endpoint_type", func() any { return pick(r, "vad", "ai") })
	r.maybe(b, "min_interrupt_words", func() any { return r.between(0, 10) })
	r.maybe(b, "keywords", func() any { return few(r, []string{"yes", "no: 1", "Müller", "a b", "#1"}, 5) })
	r.maybe(b, "pronunciations", func() any { return object{"SQL": "sequel", "yes": r.words(40), "1": "one"} })
	r.maybe(b, "variables", func() any {
		return object{"company": r.words(100), "api_key": r.secret(), "tenant": r.secret2(), "empty": "", "number": 12,
			"raw": pick(r, "\tx\ny", "  x\n y ", "\n\nx\n", "x\t\ny", "\r\nx")}
	})
	r.maybe(b, "post_call_schema", func() any {
		return []object{{"name": "reached", "type": "bool", "description": r.words(100) + " end"},
			{"name": "sum_1", "type": "string", "description": "abc"}}
	})
	if r.some(3) {
		delete(b, "post_call_schema")
		b["post_call_json_schema"] = object{"type": "object", "properties": object{"mood": object{"enum": []any{"good", "bad", nil}},
			"items": object{"type": "array", "items": object{"type": "string", "description": r.words(40)}}, "reached": object{"type": "boolean"}}}
	}
	r.maybe(b, "filler_config", func() any {
		return object{"neutral": []string{"Hm.", "One moment: please"}, "question": []string{r.words(50)}}
	})
	r.maybe(b, "widget_settings", r.widget)
	for _, f := range []string{"inbound_webhook_url", "conversation_ended_webhook_url"} {
		r.maybe(b, f, func() any { return r.address() })
	}
	r.maybe(b, "webhook_url", func() any { b["is_webhook_active"] = r.some(2); return r.address() })
	if mode == "pipeline" {
		r.pipeline(b, language)
	} else {
		models := cat.ModelsOf(parley.ModelKind(mode))
		b["multimodal_model_id"] = models[r.IntN(len(models))].ID
	}
	if voice.SynthesizerProviderID != nil {
		r.maybe(b, "synthesizer_provider_id", func() any { return *voice.SynthesizerProviderID })
	}
	var others, further []int64
	for _, v := range cat.Voices(mode, language) {
		if v.ID != voice.ID && v.Inside == voice.Inside {
			others = append(others, v.ID)
		}
	}
	for _, l := range cat.Languages() {
		if l.ID != language {
			further = append(further, l.ID)
		}
	}
	r.maybe(b, "fallback_voice_ids", func() any { return few(r, others, 3) })
	r.maybe(b, "fallback_llm_model_ids", func() any {
		var ids []int64
		for _, m := range llms {
			ids = append(ids, m.ID)
		}
		return few(r, ids, 3)
	})
	r.maybe(b, "secondary_language_ids", func() any { return few(r, further, 2) })
	r.owned(b)
	return b, kind
}

// secret2 is the value of a variable that only a tool's header makes a secret: it may be written.
func (r *random) secret2() string { return "tenant-" + strconv.Itoa(r.IntN(1000)) }

// pipeline sets what is of this mode alone.
func (r *random) pipeline(b object, language int64) {
	for _, f := range []string{"allow_interruptions", "fillers", "backchannels"} {
		r.maybe(b, f, r.flag)
	}
	r.maybe(b, "knowledgebase_mode", func() any { return pick(r, "function_call", "prompt") })
	if list := r.server.cat.Transcribers(language); len(list) > 0 {
		r.maybe(b, "transcriber_provider_id", func() any { return list[r.IntN(len(list))].ID })
	}
}

// owned sets what names things of the account.
func (r *random) owned(b object) {
	if len(r.bases) > 0 {
		r.maybe(b, "knowledgebase_id", func() any { return pick(r, r.bases...) })
	}
	if len(r.folders) > 0 {
		r.maybe(b, "folder_id", func() any { return pick(r, r.folders...) })
		r.maybe(b, "label_ids", func() any { return few(r, r.labels, 3) })
	}
	r.maybe(b, "tool_ids", func() any { return few(r, r.tools, 4) })
}

// numbered gives an assistant a number, which only one inbound assistant may have.
func (r *random) numbered(b object, kind string) {
	if len(r.numberIDs) > 0 && r.some(2) {
		if id := pick(r, r.numberIDs...); kind == "outbound" || !r.taken[id] {
			b["phone_number_id"] = id
			r.taken[id] = r.taken[id] || kind == "inbound"
		}
	}
}

func (r *random) widget() any {
	w := object{"title": r.words(100), "color": "#ff0000"}
	r.maybe(w, "theme", func() any { return pick(r, "dark", "auto") })
	r.maybe(w, "auto_open", r.flag)
	r.maybe(w, "avatar_url", func() any { return "https://example.com/a.png" })
	r.maybe(w, "allowed_origins", func() any { return []string{"https://example.com", "https://b.example.com:8443"} })
	r.maybe(w, "pre_chat_fields", func() any {
		return []object{{"variable": "name", "label": r.words(100)}, {"variable": "mail", "label": "Mail", "type": "email", "required": true}}
	})
	return w
}

// transfers gives assistants tools, some of which hand over to each other in circles.
func (r *random) transfers() {
	for _, id := range r.ids {
		tools := []object{}
		if r.some(2) {
			tools = append(tools, object{"type": "end_call"})
		}
		if r.some(3) {
			tools = append(tools,
				object{"type": "call_transfer", "phone_number": "+493012345678", "description": r.words(300), "warm_transfer": r.some(2)})
		}
		if other := pick(r, r.ids...); other != id && r.some(2) {
			tools = append(tools, object{"type": "assistant_transfer", "assistant_id": other, "message_before_transfer": r.words(100)})
		}
		if len(r.numberIDs) > 0 && r.some(3) {
			t := object{"type": "warm_call_transfer", "supervisor_phone": "+493012345678", "description": "Boss: urgent"}
			r.maybe(t, "outbound_phone_id", func() any { return pick(r, r.numberIDs...) })
			r.maybe(t, "hold_music_volume", func() any { return r.between(0, 100) })
			tools = append(tools, t)
		}
		if r.some(3) {
			tools = append(tools, object{"type": "collect_keypad", "timeout": 9, "stop_key": pick(r, "#", "*")}, object{"type": "dtmf_input"})
		}
		r.do("PUT", fmt.Sprintf("/user/assistants/%d", id), object{"tools": tools})
	}
}

func (r *random) script() string {
	name := pick(r, "Hours", "hours", "Books a table", "\"Quoted: yes\"", "Büro")
	return "# a comment stays\nname: " + name + "\nchannel: chat\nsteps:\n  - say: " + strconv.Quote(pick(r, "Hello", "When are you open?")) +
		pick(r, "", "\n", "   # and this\n")
}

func (r *random) route(id int64) {
	r.maybe(object{}, "", func() any {
		r.do("PUT", fmt.Sprintf("/user/phone-numbers/%d", id), object{"nickname": "Nick: " + r.words(20)})
		return nil
	})
	if r.some(3) {
		return
	}
	b := object{}
	r.maybe(b, "timezone", func() any { return pick(r, "UTC", "Europe/Paris") })
	r.maybe(b, "hours", func() any {
		return []object{{"days": []string{"monday", "friday"}, "from": "08:00", "to": "17:30"},
			{"days": []string{}, "from": "00:00", "to": "00:00"}}
	})
	r.maybe(b, "closed_dates", func() any { return []string{"2026-12-25", "2027-01-01"} })
	r.maybe(b, "telephones", func() any {
		b["ring_first"] = r.some(2)
		return []object{{"phone_number": "+493012345678"}, {"phone_number": "+493012345679", "seconds": 40}}
	})
	r.maybe(b, "voicemail_greeting", r.text(500))
	r.maybe(b, "lines", func() any { return r.between(1, 9) })
	r.maybe(b, "blocked_callers", func() any { return []string{"+4915112345678", "+1900*"} })
	r.maybe(b, "early_media", r.flag)
	r.do("PUT", fmt.Sprintf("/user/phone-numbers/routes/%d", id), b)
}

func (r *random) campaign() {
	b := object{"name": r.name(), "assistant_id": pick(r, r.outbound...)}
	r.maybe(b, "timezone", func() any { return pick(r, "UTC", "Asia/Tokyo") })
	r.maybe(b, "max_calls_in_parallel", func() any { return r.between(1, 9) })
	r.maybe(b, "allowed_hours_start_time", func() any { return pick(r, "08:00", "23:30:00") })
	r.maybe(b, "allowed_days", func() any { return []string{"monday", "sunday"} })
	r.maybe(b, "max_retries", func() any { return r.between(1, 5) })
	r.maybe(b, "retry_interval", func() any { return r.between(10, 4320) })
	r.maybe(b, "retry_on_voicemail", r.flag)
	r.maybe(b, "mark_complete_when_no_leads", r.flag)
	r.maybe(b, "phone_number_ids", func() any { return few(r, r.numberIDs, 3) })
	r.campaigns = append(r.campaigns, r.do("POST", "/user/campaigns", b))
}

func (r *random) alert() {
	b := object{"name": r.name(), "kind": pick(r, "failure_rate", "latency_p90", "no_calls"), "threshold": pick[any](r, 1, 12.5, 99)}
	if len(r.ids) > 0 {
		r.maybe(b, "assistant_id", func() any { return pick(r, r.ids...) })
	}
	r.maybe(b, "channel", func() any { return pick(r, "inbound", "web") })
	r.maybe(b, "window_minutes", func() any { return r.between(15, 1440) })
	r.maybe(b, "hours_start", func() any { b["hours_end"] = "18:00"; return "09:00" })
	r.maybe(b, "active", r.flag)
	r.do("POST", "/user/alerts", b)
}

func (r *random) filter(i int) {
	q := url.Values{"status": {"failed"}}
	set := func(name string, ids []int64) {
		if len(ids) > 0 && r.some(2) {
			q.Set(name, strconv.FormatInt(pick(r, ids...), 10))
		}
	}
	set("assistant_id", r.ids)
	set("campaign_id", r.campaigns)
	set("phone_number_id", r.numberIDs)
	if r.some(2) {
		q.Set("phone_number", "+4930123")
	}
	if r.some(2) {
		q.Set("search", r.words(100))
	}
	r.do("POST", "/user/filters",
		object{"page": pick(r, "calls", "analytics"), "name": strconv.Itoa(i) + pick(r, "a", "A", "ä", ": b"), "query": q.Encode()})
}
