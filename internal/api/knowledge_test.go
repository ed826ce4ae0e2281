package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/api"
	"parley/internal/blob"
	"parley/internal/document"
	"parley/internal/knowledge"
	"parley/internal/parley"
	"parley/internal/store"
)

func (h *harness) knowledgebase(change map[string]any) int64 {
	h.Helper()
	return id(h.post("/user/knowledgebases", with(map[string]any{"name": "Handbook"}, change),
		status(201)).json()["data"].(map[string]any))
}

// multi is a multipart body: values are texts, or readers for files.
func multi(fields ...any) (o option) {
	return func(c *call) {
		out, in := io.Pipe()
		w := multipart.NewWriter(in)
		c.raw = out
		c.header.Set("Content-Type", w.FormDataContentType())
		go func() {
			var err error
			for i := 0; i < len(fields) && err == nil; i += 2 {
				name := fields[i].(string)
				if text, ok := fields[i+1].(string); ok {
					err = w.WriteField(name, text)
					continue
				}
				var part io.Writer
				if part, err = w.CreateFormFile(name, "document.bin"); err == nil {
					_, err = io.Copy(part, fields[i+1].(io.Reader))
				}
			}
			in.CloseWithError(errors.Join(err, w.Close()))
		}()
	}
}

func file(n int) io.Reader { return io.LimitReader(zeros{}, int64(n)) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// processing runs the jobs of documents until the test ends; the text of a document is the content of its file.
func (h *harness) processing() {
	h.Helper()
	h.knowledge.ReadFile = func(_ context.Context, _ parley.DocumentType, o blob.Object) (*document.Text, error) {
		raw, err := io.ReadAll(o)
		if strings.HasPrefix(string(raw), "%broken") {
			return nil, &document.Failure{Reason: "The file is broken."}
		}
		return &document.Text{Sections: []document.Section{{Page: 3, Heading: []string{"Part", "Delivery"},
			Text: string(raw)}}}, err
	}
	h.knowledge.ReadSite = func(_ context.Context, d *parley.Document, _ func(int, int)) (*document.Text, error) {
		return &document.Text{Sections: []document.Section{{URL: d.URL,
			Text: fmt.Sprint("Links ", d.Links, " limit ", d.RelativeLinksLimit)}}}, nil
	}
	workers := river.NewWorkers()
	h.knowledge.Register(workers)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := h.db.Work(ctx, ctx, store.Jobs{Workers: workers,
			Queues: map[string]river.QueueConfig{knowledge.Queue: {MaxWorkers: 2}}})
		if err != nil {
			h.Error(err)
		}
	})
	h.Cleanup(func() { cancel(); wg.Wait() })
}

// settled waits until a document is processed.
func (h *harness) settled(at string) map[string]any {
	h.Helper()
	look, hang := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for {
		d := h.get(at, status(200)).json()["data"].(map[string]any)
		if d["status"] != "processing" {
			return d
		}
		select {
		case <-look.C:
		case <-hang:
			h.Fatalf("%s is never processed", at)
		}
	}
}

func TestKnowledgebaseLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.get("/user/knowledgebases", status(200)).is(`{"data":[]}`)
		made := h.post("/user/knowledgebases", map[string]any{"name": "  Handbook ", "description": "All we know.",
			"status": "active", "id": 7}, status(201)).json()
		if made["message"] != "Knowledgebase created successfully." {
			t.Errorf("message %v", made["message"])
		}
		k := made["data"].(map[string]any)
		want := []string{"assistants_count", "created_at", "description", "documents_count", "id", "name", "status",
			"status_label", "updated_at"}
		if got := slices.Sorted(maps.Keys(k)); !slices.Equal(got, want) {
			t.Errorf("fields %v", got)
		}
		if k["name"] != "Handbook" || k["description"] != "All we know." || k["status"] != "empty" ||
			k["status_label"] != "Empty" || !isoTime.MatchString(k["created_at"].(string)) {
			t.Errorf("made %v", k)
		}
		at := fmt.Sprintf("/user/knowledgebases/%d", id(k))
		if got := h.get(at, status(200)).json()["data"]; fmt.Sprint(got) != fmt.Sprint(k) {
			t.Errorf("got %v, made %v", got, k)
		}
		second := h.knowledgebase(nil)
		if list := h.get("/user/knowledgebases", status(200)).json()["data"].([]any); len(list) != 2 ||
			id(list[0].(map[string]any)) != second || fmt.Sprint(list[1]) != fmt.Sprint(k) {
			t.Errorf("listed %v", list)
		}
		put := h.put(at, map[string]any{"description": nil}, status(200)).json()
		if now := put["data"].(map[string]any); put["message"] != "Knowledgebase updated successfully." ||
			now["description"] != nil || now["name"] != "Handbook" {
			t.Errorf("put %v", put)
		}
		before := h.get(at).body
		h.put(at, map[string]any{}, status(200))
		if after := h.get(at).body; !bytes.Equal(before, after) {
			t.Errorf("an empty PUT changed %s", after)
		}
		h.put(at, map[string]any{"name": ""}, status(422)).says("name", "The name field is required.")
		assistant := h.assistant(map[string]any{"knowledgebase_id": id(k)})
		if now := h.get(at).json()["data"].(map[string]any); now["assistants_count"] != json.Number("1") {
			t.Errorf("with an assistant: %v", now)
		}

		other := h.stranger()
		other.get(at, status(404)).is(`{"error":"Knowledgebase not found."}`)
		other.put(at, map[string]any{"name": "x"}, status(404)).is(`{"error":"Knowledgebase not found."}`)
		other.delete(at, status(404)).is(`{"error":"Knowledgebase not found."}`)
		other.post(at+"/search", map[string]any{"query": "x"}, status(404)).is(`{"error":"Knowledgebase not found."}`)
		other.get("/user/knowledgebases", status(200)).is(`{"data":[]}`)
		for _, odd := range []string{"0", "-1", "x", "1.5", "007", "99999999999999999999"} {
			h.get("/user/knowledgebases/"+odd, status(404)).is(`{"error":"Knowledgebase not found."}`)
			h.get("/user/knowledgebases/"+odd+"/documents/1", status(404)).is(`{"error":"Knowledgebase not found."}`)
			h.get(at+"/documents/"+odd, status(404)).is(`{"error":"Document not found."}`)
		}

		h.delete(at, status(200)).is(`{"message":"Knowledgebase deleted successfully."}`)
		h.delete(at, status(404)).is(`{"error":"Knowledgebase not found."}`)
		h.get(at, status(404))
		if a := h.get(fmt.Sprintf("/user/assistant/%d", assistant)).json(); a["knowledgebase_id"] != nil {
			t.Errorf("the assistant still has knowledgebase %v", a["knowledgebase_id"])
		}
		h.put(fmt.Sprintf("/user/assistant/%d", assistant), map[string]any{"knowledgebase_id": id(k)},
			status(422)).fails("knowledgebase_id")
		if list := h.get("/user/knowledgebases").json()["data"].([]any); len(list) != 1 {
			t.Errorf("listed %v", list)
		}
	})
}

func TestKnowledgebaseRules(t *testing.T) {
	h := lite(t, nil)
	h.post("/user/knowledgebases", nil, status(422)).
		is(`{"message":"The name field is required.","errors":{"name":["The name field is required."]}}`)
	long := strings.Repeat("ö", 256)
	h.post("/user/knowledgebases", map[string]any{"name": long, "description": long}, status(422)).fails("name",
		"description")
	h.post("/user/knowledgebases", map[string]any{"name": long[2:], "description": long[2:]}, status(201))
	for _, wrong := range []string{`5`, `true`, `[]`, `{}`} {
		h.post("/user/knowledgebases", nil, raw(`{"name":`+wrong+`,"description":`+wrong+`}`),
			status(422)).fails("name", "description")
	}
	at := fmt.Sprintf("/user/knowledgebases/%d", h.knowledgebase(nil))
	for _, c := range []struct{ body, field string }{
		{`{}`, "query"}, {`{"query":" "}`, "query"}, {`{"query":5}`, "query"}, {`{"query":"x","limit":0}`, "limit"},
		{`{"query":"x","limit":21}`, "limit"}, {`{"query":"x","limit":"5.0"}`, "limit"},
	} {
		h.post(at+"/search", nil, raw(c.body), status(422)).fails(c.field)
	}
	h.post(at+"/search", map[string]any{"query": "anything", "limit": 20}, status(200)).is(`{"data":[]}`)
}

func TestDocumentLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		base := h.knowledgebase(nil)
		at := fmt.Sprintf("/user/knowledgebases/%d", base)
		docs := at + "/documents"
		h.get(docs, status(200)).is(`{"data":[]}`)
		made := h.post(docs, nil, multi("name", " Prices ", "description", "Of this year", "type", "txt", "file",
			strings.NewReader("Bread is delivered by bicycle.")), status(201)).json()
		d := made["data"].(map[string]any)
		if d["status"] != "processing" || d["status_label"] != "Processing" || d["type_label"] != "Text" ||
			d["name"] != "Prices" || d["description"] != "Of this year" ||
			d["error"] != nil || d["chunks_count"] != json.Number("0") ||
			!isoTime.MatchString(d["created_at"].(string)) || made["message"] == "" {
			t.Errorf("made %v", made)
		}
		if k := h.get(at).json()["data"].(map[string]any); k["status"] != "processing" ||
			k["documents_count"] != json.Number("1") {
			t.Errorf("in processing: %v", k)
		}
		one := fmt.Sprintf("%s/%d", docs, id(d))
		h.post(one+"/retry", nil, status(409))
		h.processing()
		d = h.settled(one)
		if d["status"] != "active" || d["status_label"] != "Active" || d["chunks_count"] != json.Number("1") ||
			fmt.Sprint(d["progress"]) != "map[done:1 total:1]" {
			t.Errorf("processed: %v", d)
		}
		want := []string{"chunks_count", "created_at", "description", "duplicate_of", "error", "id", "links", "name",
			"progress", "relative_links_limit", "size", "status", "status_label", "type", "type_label", "updated_at", "url", "warnings"}
		if got := slices.Sorted(maps.Keys(d)); !slices.Equal(got, want) {
			t.Errorf("fields %v", got)
		}
		bare := *h
		bare.checker = nil // of JSON alone
		file := bare.get(one+"/content", status(200))
		if text := string(file.body); text != "Bread is delivered by bicycle." || d["size"] != json.Number("30") ||
			!strings.HasPrefix(file.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("its file of %v bytes is %q, %v", d["size"], text, file.header)
		}
		h.stranger().get(one+"/content", status(404))
		found := h.post(at+"/search", map[string]any{"query": "bicycle"}, status(200)).json()["data"].([]any)
		if len(found) != 1 {
			t.Fatalf("found %v", found)
		}
		p := found[0].(map[string]any)
		if p["document_id"] != d["id"] || p["document_name"] != "Prices" ||
			p["text"] != "Bread is delivered by bicycle." || p["source"] != "page 3, Part > Delivery" ||
			p["score"] == nil {
			t.Errorf("found %v", p)
		}

		site := h.post(docs, map[string]any{"name": "Site", "type": "website", "url": "https://example.com/a",
			"relative_links_limit": 3}, status(201)).json()["data"].(map[string]any)
		if site["type_label"] != "Website" || site["url"] != "https://example.com/a" || site["relative_links_limit"] != json.Number("3") {
			t.Errorf("made %v", site)
		}
		h.get(fmt.Sprintf("%s/%d/content", docs, id(site)), status(404))
		h.settled(fmt.Sprintf("%s/%d", docs, id(site)))
		found = h.post(at+"/search", map[string]any{"query": "limit links"}, status(200)).json()["data"].([]any)
		if len(found) == 0 || found[0].(map[string]any)["text"] != "Links [] limit 3" ||
			found[0].(map[string]any)["source"] != "https://example.com/a" {
			t.Errorf("found %v", found)
		}
		broken := h.post(docs, nil, multi("type", "pdf", "name", "Broken", "file", strings.NewReader("%broken")),
			status(201)).json()["data"].(map[string]any)
		atBroken := fmt.Sprintf("%s/%d", docs, id(broken))
		if d := h.settled(atBroken); d["status"] != "failed" || d["status_label"] != "Failed" ||
			d["error"] != "The file is broken." || d["type_label"] != "PDF" {
			t.Errorf("broken: %v", d)
		}
		if k := h.get(at).json()["data"].(map[string]any); k["status"] != "failed" || k["status_label"] != "Failed" {
			t.Errorf("with a broken one: %v", k)
		}
		if again := h.post(atBroken+"/retry", nil, status(200)).json()["data"].(map[string]any); again["status"] != "processing" ||
			again["error"] != nil {
			t.Errorf("again: %v", again)
		}
		h.settled(atBroken)
		if list := h.get(docs).json()["data"].([]any); len(list) != 3 || id(list[0].(map[string]any)) != id(broken) {
			t.Errorf("listed %v", list)
		}
		put := h.put(one, map[string]any{"name": "Price list", "type": "pdf"},
			status(200)).json()["data"].(map[string]any)
		if put["name"] != "Price list" || put["description"] != "Of this year" || put["type"] != "txt" {
			t.Errorf("put %v", put)
		}
		h.put(one, map[string]any{"name": "", "description": 5}, status(422)).fails("name", "description")

		other := h.stranger()
		theirs := fmt.Sprintf("/user/knowledgebases/%d", other.knowledgebase(nil))
		for _, call := range [][2]string{{"GET", ""}, {"PUT", ""}, {"DELETE", ""}, {"POST", "/retry"}} {
			other.do(call[0], one+call[1], nil, status(404)).is(`{"error":"Knowledgebase not found."}`)
			other.do(call[0], fmt.Sprintf("%s/documents/%d", theirs, id(d))+call[1], nil,
				status(404)).is(`{"error":"Document not found."}`)
		}
		other.get(docs, status(404)).is(`{"error":"Knowledgebase not found."}`)
		other.post(docs, map[string]any{"name": "x"}, status(404)).is(`{"error":"Knowledgebase not found."}`)

		h.delete(one, status(200)).is(`{"message":"Document deleted successfully."}`)
		h.delete(one, status(404)).is(`{"error":"Document not found."}`)
		if found := h.post(at+"/search", map[string]any{"query": "bicycle"},
			status(200)).json()["data"].([]any); len(found) != 0 {
			t.Errorf("deleted, and found %v", found)
		}
		h.delete(atBroken, status(200))
		if k := h.get(at).json()["data"].(map[string]any); k["status"] != "active" {
			t.Errorf("without the broken one: %v", k)
		}
		h.delete(fmt.Sprintf("%s/%d", docs, id(site)), status(200))
		if k := h.get(at).json()["data"].(map[string]any); k["status"] != "empty" ||
			k["documents_count"] != json.Number("0") {
			t.Errorf("without any: %v", k)
		}
	})
}

func TestDocumentRules(t *testing.T) {
	h := lite(t, nil)
	docs := fmt.Sprintf("/user/knowledgebases/%d/documents", h.knowledgebase(nil))
	site := map[string]any{"name": "Site", "type": "website", "url": "https://example.com/"}
	for _, c := range []struct {
		change map[string]any
		fails  []string
	}{
		{nil, nil},
		{map[string]any{"name": nil, "type": nil}, []string{"name", "type"}},
		{map[string]any{"type": "html"}, []string{"type"}},
		{map[string]any{"type": 5}, []string{"type"}},
		{map[string]any{"type": "pdf"}, []string{"file"}},
		{map[string]any{"type": "docx", "file": "x"}, []string{"file"}},
		{map[string]any{"url": nil}, []string{"url", "links"}},
		{map[string]any{"url": "ftp://example.com"}, []string{"url"}},
		{map[string]any{"url": "example.com"}, []string{"url"}},
		{map[string]any{"url": nil, "links": []any{map[string]any{"link": "https://example.com/a"}}}, nil},
		{map[string]any{"links": []any{map[string]any{"link": "nowhere"}, map[string]any{}, "x"}},
			[]string{"links.0.link", "links.1.link", "links.2"}},
		{map[string]any{"links": "https://example.com"}, []string{"links"}},
		{map[string]any{"url": nil, "links": []any{}}, []string{"url", "links"}},
		{map[string]any{"relative_links_limit": 0}, []string{"relative_links_limit"}},
		{map[string]any{"relative_links_limit": 51}, []string{"relative_links_limit"}},
		{map[string]any{"relative_links_limit": "five"}, []string{"relative_links_limit"}},
		{map[string]any{"relative_links_limit": 50}, nil},
		{map[string]any{"name": strings.Repeat("ö", 256), "description": strings.Repeat("ö", 256)},
			[]string{"name", "description"}},
	} {
		got := h.post(docs, with(site, c.change))
		if c.fails == nil && got.status != 201 {
			t.Errorf("%v: %s", c.change, got.body)
		} else if c.fails != nil {
			got.fails(c.fails...)
		}
	}
	h.post(docs, map[string]any{"name": "x", "type": "pdf"},
		status(422)).is(`{"message":"The file field is required.","errors":{"file":["The file field is required."]}}`)
	h.post(docs, nil, multi("name", "x", "type", "pdf"), status(422)).says("file", "The file field is required.")
	h.post(docs, nil, multi("name", "x", "type", "pdf", "file", "text"), status(422)).says("file",
		"The file field must be a file.")
	h.post(docs, nil, multi("file", file(10)), status(422)).fails("name", "type")
	h.post(docs, nil, multi("name", "x", "type", "website", "url", "https://example.com/", "relative_links_limit",
		"7"), status(201))
	h.post(docs, nil, multi("name", "x", "type", "website", "relative_links_limit", "many"),
		status(422)).fails("url", "links", "relative_links_limit")
	h.post(docs, nil, multi("name", "a\xff", "type", "txt", "file", file(1)), status(422)).fails("name")
	// The files of a refused form are not kept.
	h.post("/user/knowledgebases/999/documents", nil, multi("name", "x", "type", "pdf", "file", file(10)),
		status(404)).is(`{"error":"Knowledgebase not found."}`)
	h.post(docs, nil, raw("x"), header("Content-Type", "text/plain"),
		status(415)).is(`{"message":"Send the request body as application/json or multipart/form-data."}`)
	for _, broken := range []string{"", "--x\r\n\r\n",
		"--y\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nhalf a"} {
		got := h.post(docs, nil, raw(broken), header("Content-Type", "multipart/form-data; boundary=y"), status(422))
		if !strings.Contains(string(got.body), "not valid multipart/form-data") {
			t.Errorf("%q: %s", broken, got.body)
		}
	}
	h.post(docs, nil, raw("x"), header("Content-Type", "multipart/form-data"), status(422))
}

func TestDocumentSizes(t *testing.T) {
	dir := t.TempDir()
	h := lite(t, func(c *api.Config) {
		blobs, err := blob.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		c.Knowledge.Blobs = blobs
	})
	files := func() (n int) {
		filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				n++
			}
			return err
		})
		return n
	}
	docs := fmt.Sprintf("/user/knowledgebases/%d/documents", h.knowledgebase(nil))
	named := []any{"name", "Large", "type", "txt"}
	h.post(docs, nil, multi(append(named, "file", file(20<<20))...), status(201))
	if n := files(); n != 1 {
		t.Errorf("%d files are kept", n)
	}
	h.post(docs, nil, multi(append(named, "file", file(20<<20+1))...), status(422)).says("file",
		"The file field must not be greater than 20 MB.")
	// the fields after the file count too
	h.post(docs, nil, multi("file", file(20<<20+1), "type", "txt"), status(422)).fails("file", "name")
	h.post(docs, nil, multi("file", file(22<<20), "type", "txt"),
		status(413)).is(`{"message":"The request body is too large."}`)
	h.post(docs, nil, multi("file", file(100), "type", "txt", "name", strings.Repeat("x", 1<<20+1)), status(413))
	if n := files(); n != 1 {
		t.Errorf("%d files are kept after refusals", n)
	}
}
