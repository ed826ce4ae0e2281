package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/traditionalchinese"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/blob"
	"parley/internal/campaign"
	"parley/internal/document"
	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/store/storetest"
	"parley/internal/testenv"
	"parley/internal/tool"
)

// What people and machines really write, through whole conversations.

// rough is a talking house that reads documents as the program does, and whose tools may ask this machine.
func rough(t *testing.T) (*harness, *aitest.Server) {
	t.Helper()
	h, model := talking(t, storetest.SQLite(t, rules), func(c *api.Config) {
		guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
		t.Cleanup(guard.Close)
		c.Assistants.Tools = tool.New(guard)
		c.Assistants.Knowledge = c.Knowledge
	})
	return h, model
}

// reading has documents read by child processes, as the program has them.
func (h *harness) reading() {
	h.Helper()
	h.processing()
	child, done, err := testenv.Unraced()
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(done)
	reader := &document.Extractor{Program: []string{child, document.ChildCommand}}
	h.knowledge.ReadFile = func(ctx context.Context, kind parley.DocumentType, o blob.Object) (*document.Text, error) {
		return reader.Extract(ctx, string(kind), o)
	}
}

func encoded(t *testing.T, e encoding.Encoding, text string) string {
	t.Helper()
	raw, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A document in an older character set answers a chat in the words that it was written in; one that can't be read fails with what to
// do, and what is left out of one is a warning.
func TestRoughDocuments(t *testing.T) {
	h, model := rough(t)
	h.reading()
	for name, c := range map[string]struct{ kind, file, question, want string }{
		"Big5": {"txt", encoded(t, traditionalchinese.Big5, "營業時間：每天早上七點到晚上六點。外送費用為五十元。"), "外送費用", "外送費用為五十元"},
		"Windows-874": {"txt", encoded(t, charmap.Windows874, "ร้านเปิดเจ็ดโมงเช้าถึงหกโมงเย็น ค่าจัดส่งห้าสิบบาท"), "ค่าจัดส่งเท่าไหร่",
			"ค่าจัดส่งห้าสิบบาท"},
		"Windows-1256": {"txt", encoded(t, charmap.Windows1256, "المخبز مفتوح من الساعة السابعة صباحا حتى السادسة مساء."), "متى المخبز مفتوح",
			"المخبز مفتوح من الساعة السابعة"},
		"ISO-8859-5": {"txt", encoded(t, charmap.ISO8859_5, "Доставка по городу стоит двести рублей."), "Сколько стоит доставка?",
			"Доставка по городу стоит двести рублей"},
		"Shift-JIS": {"txt", encoded(t, japanese.ShiftJIS, "配送料は四百円です。"), "配送料はいくらですか", "配送料は四百円です"},
		"a Word formula": {"docx", string(sample(t, "../document/testdata/fraction.docx")), "What is the discount?",
			"The discount is 1/2 of the price, area 10^3 units."},
	} {
		base := h.knowledgebase(nil)
		docs := fmt.Sprintf("/user/knowledgebases/%d/documents", base)
		made := h.post(docs, nil, multi("name", "Prices", "type", c.kind, "file", strings.NewReader(c.file)), status(201)).json()
		one := fmt.Sprintf("%s/%d", docs, id(made["data"].(map[string]any)))
		if d := h.settled(one); d["status"] != "active" || fmt.Sprint(d["warnings"]) != "[]" {
			t.Errorf("%s: %v", name, d)
			continue
		}
		for _, mode := range []string{"prompt", "function_call"} {
			_, uuid := h.active(map[string]any{"knowledgebase_id": base, "knowledgebase_mode": mode})
			if mode == "function_call" {
				model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: "search_knowledgebase",
					Arguments: fmt.Sprintf(`{"query":%q}`, c.question)}}}, aitest.Behaviour{Text: "Here it is."})
			}
			h.post("/conversations/"+h.converse(uuid)+"/messages", map[string]any{"message": c.question}, anonymous, status(200))
			asked := model.Requests()
			if body := fmt.Sprint(asked[len(asked)-1].Request); !strings.Contains(body, c.want) {
				t.Errorf("%s, %s: the model is told %s", name, mode, body)
			}
		}
	}

	docs := fmt.Sprintf("/user/knowledgebases/%d/documents", h.knowledgebase(nil))
	for name, c := range map[string]struct{ kind, file, want string }{
		"no-tounicode.pdf": {"pdf", string(sample(t, "../document/testdata/no-tounicode.pdf")),
			"The text of this PDF can't be read: its fonts don't say which letters they show. " +
				"Print it to a new PDF or run text recognition (OCR) over it, and upload the result."},
		"tounicode-shifted.pdf": {"pdf", string(sample(t, "../document/testdata/tounicode-shifted.pdf")),
			"The text of this PDF can't be read: its fonts don't say which letters they show. " +
				"Print it to a new PDF or run text recognition (OCR) over it, and upload the result."},
		"one set or another": {"txt", "\xbd\xbe\xbf",
			"The file's character set can't be told for sure (ISO-8859-5 or windows-874): save it as plain text in UTF-8 and upload it again."},
	} {
		made := h.post(docs, nil, multi("name", name, "type", c.kind, "file", strings.NewReader(c.file)), status(201)).json()
		d := h.settled(fmt.Sprintf("%s/%d", docs, id(made["data"].(map[string]any))))
		if d["status"] != "failed" || d["error"] != c.want || fmt.Sprint(d["warnings"]) != "[]" {
			t.Errorf("%s: %v", name, d)
		}
	}
	flawed := strings.Repeat("Größe und Güte kosten fünf Euro. ", 20) + "\xff"
	made := h.post(docs, nil, multi("name", "Flawed", "type", "txt", "file", strings.NewReader(flawed)), status(201)).json()
	d := h.settled(fmt.Sprintf("%s/%d", docs, id(made["data"].(map[string]any))))
	if warnings := fmt.Sprint(d["warnings"]); d["status"] != "active" || d["error"] != nil ||
		!strings.Contains(warnings, "1 characters of the file are damaged") {
		t.Errorf("flawed: %v", d)
	}
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a tool answers reaches the model as text that it can use, and says what became of it.
func TestRoughTools(t *testing.T) {
	h, model := rough(t)
	var rows bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&rows, `%s{"id":%d,"name":"customer %d","city":"Köln"}`, map[bool]string{true: ","}[i > 0], i, i)
	}
	long := `{"found":true,"rows":[` + rows.String() + `],"total":200000}`
	if len(long) < 8<<20 {
		t.Fatalf("only %d bytes", len(long))
	}
	for what, c := range map[string]struct {
		contentType, body string
		status            int
		want              []string
		most              int
	}{
		"undeclared Latin-1": {"application/json", "{\"city\":\"K\xf6ln\",\"street\":\"K\xf6nigstra\xdfe\"}", 200,
			[]string{`{"city":"Köln","street":"Königstraße"}`}, 100},
		"Latin-1 in XML": {"text/xml", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><city>K\xf6ln</city>", 200,
			[]string{"<city>Köln</city>"}, 200},
		"undeclared Windows-1251": {"text/plain", encoded(t, charmap.Windows1251, "Заказ готов, заберите его до шести."), 200,
			[]string{"Заказ готов, заберите его до шести."}, 200},
		"an HTML error page": {"text/html", `<!DOCTYPE html><html><head><title>503 Service Unavailable</title><style>b{}</style></head><body><script>x()</script><h1>Down for maintenance</h1></body></html>`, 503,
			[]string{"The tool failed with HTTP status 503 Service Unavailable.", "web page (HTML)", "Down for maintenance"}, 400},
		"10 MB of JSON": {"application/json", long, 200,
			[]string{"longer than can be read", `{"found":true,"rows":[{"id":0,"name":"customer 0","city":"Köln"}`, `more"`, `"total":200000}`},
			17_000},
	} {
		shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{c.contentType}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		name := "look_up" + strings.Repeat("x", len(model.Requests()))
		look := h.tool(map[string]any{"name": name, "endpoint": shop.URL, "schema": []any{}, "headers": []any{}})
		_, uuid := h.active(map[string]any{"tool_ids": []any{look}})
		model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: name, Arguments: "{}"}}}, aitest.Behaviour{Text: "Done."})
		got := h.post("/conversations/"+h.converse(uuid)+"/messages", map[string]any{"message": "Where is my order?"}, anonymous,
			status(200)).json()
		shop.Close()
		asked := model.Requests()
		messages := asked[len(asked)-1].Messages
		told := messages[len(messages)-1]
		if got["message"] != "Done." || told.Role != ai.ToolRole || len(told.Text) > c.most {
			t.Errorf("%s: answered %v after %s: %d bytes %.300s", what, got["message"], told.Role, len(told.Text), told.Text)
		}
		for _, want := range c.want {
			if !strings.Contains(told.Text, want) {
				t.Errorf("%s: no %q in %.300s", what, want, told.Text)
			}
		}
	}
}

// What a list in Windows-1252 with a title, or a spreadsheet, says of a person is in the prompt of a conversation with that person.
func TestRoughListPrompt(t *testing.T) {
	h, model := rough(t)
	storetest.Jobs(t, h.db, h.api.Campaigns.AddWorkers, campaign.Queue)
	f := excelize.NewFile()
	defer f.Close()
	for i, row := range [][]any{{"Leads of March"}, {}, {"phone_number", "who"}, {"+14155550102", "Zoë Łuczak"}} {
		if err := f.SetSheetRow("Sheet1", fmt.Sprint("A", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	var book bytes.Buffer
	if err := f.Write(&book); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		encoded(t, charmap.Windows1252, "Leads of March\n\nphone_number;who\n+14155550101;Jürgen Weiß\n"): "Serve Jürgen Weiß.",
		book.String(): "Serve Zoë Łuczak.",
	} {
		c := fmt.Sprint(h.campaign(nil))
		h.post("/user/leads/import", nil, multi("campaign_id", c, "file", strings.NewReader(file)), status(200))
		lead := h.get("/user/leads?page=1&campaign_id="+c, status(200)).json()["data"].([]any)[0].(map[string]any)
		_, uuid := h.active(nil)
		made := h.post("/conversations", map[string]any{"assistant_id": uuid, "variables": lead["variables"]}, status(200)).json()
		h.post("/conversations/"+made["conversation_id"].(string)+"/messages", map[string]any{"message": "Hi"}, status(200))
		asked := model.Requests()
		if r := asked[len(asked)-1].Request; !strings.Contains(fmt.Sprint(r), want) {
			t.Errorf("the model is told %.300s, want %s", fmt.Sprint(r), want)
		}
	}
}

// A list that brings nothing is no success, and says why.
func TestRoughList(t *testing.T) {
	h := lite(t, nil)
	storetest.Jobs(t, h.db, h.api.Campaigns.AddWorkers, campaign.Queue)
	c := fmt.Sprint(h.campaign(nil))
	got := h.post("/user/leads/import", nil, multi("campaign_id", c, "file", strings.NewReader("phone_number,name\nnobody,Ana\nnothing,Bo\n")),
		status(200)).json()
	if got["message"] != "No leads were imported" || fmt.Sprint(got["data"].(map[string]any)["imported"]) != "0" {
		t.Errorf("%v", got)
	}
	h.post("/user/leads/import", nil,
		multi("campaign_id", c, "file", strings.NewReader("phone_number,name\n+14155550100,\xbd\xbe\xbf\n")), status(422)).
		says("file", "The file field must be saved as CSV UTF-8 or XLSX: its character set can't be told for sure (EUC-KR or GB18030).")
	list := encoded(t, charmap.Windows1252, "Leads of March\n\nStraße;Phone;Phone\nGrünwalder Straße 5;+1 415 555 0101;+1 415 555 0102\n")
	got = h.post("/user/leads/import", nil, multi("campaign_id", c, "file", strings.NewReader(list)), status(200)).json()
	leads := h.get("/user/leads?campaign_id="+c, status(200)).body
	if fmt.Sprint(got["data"].(map[string]any)["imported"]) != "1" || !bytes.Contains(leads, []byte("Grünwalder Straße 5")) {
		t.Errorf("%v, %s", got, leads)
	}
}
