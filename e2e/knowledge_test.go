package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/search"
	"parley/internal/store"
)

type document struct {
	ID          int64
	Status      string
	Error       *string
	ChunksCount int `json:"chunks_count"`
	Progress    struct{ Done, Total int }
}

// knowledgebase makes a knowledgebase and gives it to the first assistant.
func (p *program) knowledgebase(t *testing.T, mode string) (path string) {
	t.Helper()
	var made struct{ Data struct{ ID int64 } }
	if status := p.call(t, "POST", "/user/knowledgebases", map[string]any{"name": "Bakery"}, &made); status != 201 {
		t.Fatal(status)
	}
	p.consult(t, made.Data.ID, mode)
	return "/user/knowledgebases/" + strconv.FormatInt(made.Data.ID, 10)
}

func (p *program) consult(t *testing.T, knowledgebase int64, mode string) {
	t.Helper()
	change := map[string]any{"knowledgebase_id": knowledgebase, "knowledgebase_mode": mode,
		"system_prompt": "You are the receptionist of a bakery."}
	if status := p.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(p.Assistant, 10), change, nil); status != 200 {
		t.Fatal(status)
	}
}

// upload sends a file to a knowledgebase.
func (p *program) upload(t *testing.T, base, kind, name string, content []byte) document {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	w.WriteField("name", name)
	w.WriteField("type", kind)
	part, err := w.CreateFormFile("file", name+"."+kind)
	if err == nil {
		_, err = part.Write(content)
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/api"+base+"/documents", &b)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.Key)
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	var made struct{ Data document }
	if err != nil || res.StatusCode != 201 || json.Unmarshal(raw, &made) != nil {
		t.Fatalf("%s: %d %s %v", name, res.StatusCode, raw, err)
	}
	return made.Data
}

// read waits until a document satisfies is.
func (p *program) read(t *testing.T, base string, id int64, is func(document) bool) document {
	t.Helper()
	look, hang := time.NewTicker(20*time.Millisecond), time.After(90*time.Second)
	defer look.Stop()
	for {
		var got struct{ Data document }
		p.call(t, "GET", fmt.Sprintf("%s/documents/%d", base, id), nil, &got)
		if is(got.Data) {
			return got.Data
		}
		select {
		case <-look.C:
		case <-hang:
			t.Fatalf("document %d stays %+v\n%s", id, got.Data, p.log)
		}
	}
}

func processed(d document) bool { return d.Status != "processing" }

// onePage is a PDF of one page with lines of text.
func onePage(lines ...string) []byte {
	var text strings.Builder
	text.WriteString("BT /F1 12 Tf 72 720 Td 16 TL\n")
	for _, l := range lines {
		text.WriteString("(" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(l) + ") Tj T*\n")
	}
	text.WriteString("ET")
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", text.Len(), text.String()),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}

// word is a DOCX with paragraphs.
func word(t *testing.T, paragraphs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	body := ""
	for _, p := range paragraphs {
		body += "<w:p><w:r><w:t>" + p + "</w:t></w:r></w:p>"
	}
	for name, content := range map[string]string{
		"[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
		"_rels/.rels":         `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
		"word/document.xml": `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` + body +
			`</w:body></w:document>`,
	} {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An assistant answers in a conversation from a PDF, a Word file, a text file and a website, both with its search tool
// and with passages in its prompt.
func TestAssistantAnswersFromDocuments(t *testing.T) {
	share(t, call)
	site := http.NewServeMux()
	site.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<html><head><title>Bakery</title></head><body><nav><a href="/">Home</a></nav><main><h1>Welcome</h1><p>We bake since 1921.</p><a href="/gift">Gifts</a></main></body></html>`)
	})
	site.HandleFunc("GET /gift", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<html><body><main><h1>Vouchers</h1><p>Gift vouchers are valid for three years and can be redeemed at the counter.</p></main></body></html>`)
	})
	at := serveLocal(t, site)
	p := start(t, "PARLEY_EGRESS_ALLOW=127.0.0.0/8", "PARLEY_RATE_PUBLIC=off")
	base := p.knowledgebase(t, "function_call")
	var made struct{ Data document }
	if status := p.call(t, "POST", base+"/documents",
		map[string]any{"name": "Site", "type": "website", "url": at + "/"}, &made); status != 201 {
		t.Fatal(status)
	}
	for _, d := range []document{
		p.upload(t, base, "pdf", "Allergens", onePage("Allergens", "",
			"The walnut bread contains hazelnuts and traces of sesame.")),
		p.upload(t, base, "docx", "Parking", word(t, "Parking",
			"Customers park their bicycles in the courtyard behind the house.")),
		p.upload(t, base, "txt", "Wholesale", []byte("Wholesale\n\nRestaurants get a discount of twelve percent from fifty loaves a week.\n")),
		made.Data,
	} {
		if d = p.read(t, base, d.ID, processed); d.Status != "active" || d.ChunksCount == 0 {
			t.Errorf("document %d is %s: %v", d.ID, d.Status, d.Error)
		}
	}
	for _, mode := range []string{"function_call", "prompt"} {
		id, _ := strconv.ParseInt(base[strings.LastIndexByte(base, '/')+1:], 10, 64)
		p.consult(t, id, mode)
		for question, want := range map[string][2]string{
			"Which nuts does the walnut bread contain?":          {"hazelnuts", "Allergens"},
			"Where do customers park their bicycles?":            {"courtyard", "Parking"},
			"What discount do restaurants get for fifty loaves?": {"twelve percent", "Wholesale"},
			"How long are gift vouchers valid?":                  {"three years", "Site"},
			"How long are gift vuochers vaild at the counter?":   {"three years", "Site"},
		} {
			conversation := p.converse(t)
			status, r := p.say(t, conversation, question)
			if status != 200 || r.Message == nil || !strings.Contains(*r.Message, want[0]) {
				t.Errorf("%s: %q is answered with %d %v", mode, question, status, said(r))
				continue
			}
			if (mode == "function_call") != (len(r.FunctionCalls) == 1 &&
				r.FunctionCalls[0].Name == "search_knowledgebase") {
				t.Errorf("%s: calls %+v", mode, r.FunctionCalls)
			}
			var record struct {
				History []struct {
					Role    string
					Sources []struct {
						DocumentName string `json:"document_name"`
						Source       string
					}
				}
			}
			p.call(t, "GET", "/user/conversations/"+conversation, nil, &record)
			last := record.History[len(record.History)-1]
			if last.Role != "assistant" || len(last.Sources) == 0 || last.Sources[0].DocumentName != want[1] {
				t.Errorf("%s: the sources of %q are %+v", mode, question, last.Sources)
			}
		}
	}
}

func said(r reply) string {
	if r.Message == nil {
		return r.Error
	}
	return *r.Message
}

// A program that is killed while it processes a document finishes it after its restart, with no passage stored twice.
func TestKilledWhileProcessing(t *testing.T) {
	share(t, call)
	p := start(t, "PARLEY_SECRET_KEY="+secretKey)
	base := p.knowledgebase(t, "function_call")
	var book strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&book, "Chapter %d tells of loaf number %d, which was baked with care and sold before noon at the market of the town.\n\n", i,
			i)
	}
	d := p.upload(t, base, "txt", "Book", []byte(book.String()))
	p.read(t, base, d.ID, func(d document) bool { return d.Progress.Done > 0 })
	p.kill(t)
	p.restart(t)
	d = p.read(t, base, d.ID, processed)
	if d.Status != "active" || d.ChunksCount < 1000 {
		t.Fatalf("%+v", d)
	}
	var found struct{ Data []struct{ Text string } }
	if p.call(t, "POST", base+"/search", map[string]any{"query": "loaf number 31415"},
		&found); len(found.Data) == 0 || !strings.Contains(found.Data[0].Text, "number 31415,") {
		t.Errorf("found %+v", found.Data)
	}
	p.stop(t)
	var rows map[string]int
	var err error
	p.data(t, func(ctx context.Context, tx *store.Tx) error {
		rows, err = search.Rows(ctx, tx.Query)
		return err
	})
	if err != nil || rows["chunks"] != d.ChunksCount || rows["chunk_tokens"] == 0 {
		t.Errorf("%d passages, and the database holds %v: %v", d.ChunksCount, rows, err)
	}
}
