package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/blob"
	"parley/internal/document"
	"parley/internal/knowledge"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

// shelf is a library that takes documents in. Their files are read as plain texts without headings, once work runs.
func shelf(t *testing.T, db *store.DB) *knowledge.Library {
	t.Helper()
	blobs, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &knowledge.Library{Index: search.Index{DB: db}, Blobs: blobs, Cut: document.Here,
		ReadFile: func(ctx context.Context, kind parley.DocumentType, file blob.Object) (*document.Text, error) {
			raw, err := io.ReadAll(file)
			if bytes.HasPrefix(raw, []byte("broken")) {
				return nil, &document.Failure{Reason: "It is broken <b>: mend it."}
			}
			return &document.Text{Sections: []document.Section{{Text: string(raw)}}}, err
		},
		ReadSite: func(ctx context.Context, d *parley.Document, progress func(done, total int)) (*document.Text,
			error) {
			return &document.Text{Sections: []document.Section{{URL: "javascript:alert(1)", Text: "Prices of " +
				d.URL}}}, nil
		}}
}

// work processes documents until the test ends.
func (h *harness) work(t *testing.T) {
	t.Helper()
	workers := river.NewWorkers()
	h.Knowledge.Register(workers)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := h.DB.Work(ctx, ctx, store.Jobs{Workers: workers,
			Queues: map[string]river.QueueConfig{knowledge.Queue: {MaxWorkers: 1}}})
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func (h *harness) handbook(t *testing.T, u *parley.User) *parley.Knowledgebase {
	t.Helper()
	k := &parley.Knowledgebase{Name: "Handbook"}
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.CreateKnowledgebase(ctx, u.ID, k) })
	return k
}

// file is a file to be uploaded.
type file struct{ name, content string }

// upload sends files in one form, as a browser does.
func (v *visitor) upload(path string, files ...file) *reply {
	v.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range files {
		part, err := w.CreateFormFile("file", f.name)
		if err == nil {
			_, err = io.WriteString(part, f.content)
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		v.t.Fatal(err)
	}
	res, err := v.client.Post(v.harness.url+path, w.FormDataContentType(), &b)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return &reply{v.t, res.StatusCode, res.Header, string(raw)}
}

func TestKnowledgeWithoutScript(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/knowledge").says("Give your assistants knowledge")
	v.post("/knowledge/new", url.Values{"name": {" "}}).is(http.StatusUnprocessableEntity).says(
		"This field is required.")
	path := v.post("/knowledge/new", url.Values{"name": {"Bakery"},
		"description": {"Everything"}}).is(http.StatusSeeOther).header.Get("Location")
	path = strings.TrimSuffix(path, "?done=created")
	v.get(path).says("Bakery").says("There are none yet.").says("None does yet.")
	form := v.get(path + "/edit").form(path + "/edit")
	if form.Get("name") != "Bakery" || form.Get("description") != "Everything" {
		t.Errorf("the form holds %v", form)
	}
	v.post(path+"/edit", url.Values{"name": {strings.Repeat("x", 256)}}).is(http.StatusUnprocessableEntity).says(
		"must not be greater than 255")
	v.post(path+"/edit", url.Values{"name": {"Handbook"}, "description": {""}}).moved(path + "?done=saved")
	if doc := v.get(path).says("Handbook").doc(); strings.Contains(doc.Find("header").Text(), "Everything") {
		t.Error("the description is still there")
	}

	// Each file by itself: one that is refused doesn't stop the others.
	v.upload(path+"/files", file{"Hours.TXT", "Open on Mondays."}, file{"", ""}).moved(path + "?done=uploaded")
	r := v.upload(path+"/files", file{"virus.exe", "MZ"}, file{"Prices.pdf", "Bread costs two euros."},
		file{"old.doc", "x"}, file{"big.txt", strings.Repeat("x", parley.MaxDocument+1)}, file{"page.html", "x"})
	r.is(http.StatusUnprocessableEntity).says("Save it as .docx or PDF").says("It is larger than 20 MB.").says(
		"Give the page's address")
	if got := r.doc().Find(".documents .document-name").Map(textOfNode); strings.Join(got, " ") != "Prices Hours" {
		t.Errorf("documents are %q", got)
	}
	v.upload(path + "/files").is(http.StatusUnprocessableEntity).says("There is no file yet")
	doc := r.doc().Find(".documents .document-name").Last().AttrOr("href", "")
	form = v.get(doc).is(http.StatusOK).form(doc)
	if form.Get("name") != "Hours" || form.Get("description") != "" {
		t.Errorf("the document's form holds %v", form)
	}
	v.post(doc, url.Values{"name": {""}}).is(http.StatusUnprocessableEntity).says("This field is required.")
	v.post(doc, url.Values{"name": {"Opening hours"}, "description": {"Of the shop"}}).moved(path + "?done=saved")
	v.get(path).says("Opening hours").says("Of the shop")
	v.send("POST", path+"/files", url.Values{"file": {"x"}}).is(http.StatusBadRequest)
	var many []file
	for i := range maxFiles + 1 {
		many = append(many, file{fmt.Sprintf("%d.exe", i), "x"})
	}
	v.upload(path+"/files", many...).is(http.StatusRequestEntityTooLarge).says("At most 20 files")

	// Websites.
	for _, c := range []struct {
		form url.Values
		says string
	}{
		{url.Values{"url": {""}, "links": {""}, "relative_links_limit": {"10"}}, "Give an address to begin at"},
		{url.Values{"url": {"ftp://x"}}, "must be a valid URL"},
		{url.Values{"url": {"https://x.example"}, "relative_links_limit": {"51"}}, "50"},
		{url.Values{"url": {"https://x.example"}, "relative_links_limit": {"many"}}, "must be an integer"},
		{url.Values{"links": {"https://a.example/1\r\nnowhere"}}, "Line 2: This field must be a valid URL."},
		{url.Values{"url": {"https://x.example"}, "name": {strings.Repeat("x", 256)}}, "255"},
		{url.Values{"links": {strings.Repeat("https://a.example/\r\n", 51)}}, "50"},
	} {
		r := v.post(path+"/site", c.form).is(http.StatusUnprocessableEntity).says(c.says)
		if got := r.form(path + "/site"); got.Get("url") != c.form.Get("url") {
			t.Errorf("the box holds %q", got.Get("url"))
		}
	}
	v.post(path+"/site", url.Values{"url": {"https://shop.example:8443/a?b"},
		"relative_links_limit": {"7"}}).moved(path + "?done=reading")
	v.post(path+"/site", url.Values{"url": {""}, "links": {"https://a.example/1\r\n\r\nhttps://a.example/2\r\n"},
		"name": {"Two pages"}}).moved(path + "?done=reading")
	k, err := h.DB.Knowledgebases(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := h.DB.Documents(t.Context(), u.ID, k[0].ID)
	if err != nil || len(docs) != 4 {
		t.Fatal(len(docs), err)
	}
	if d := docs[1]; d.Name != "shop.example:8443" || d.URL != "https://shop.example:8443/a?b" ||
		d.RelativeLinksLimit != 7 {
		t.Errorf("the site is %+v", d)
	}
	if d := docs[0]; d.Name != "Two pages" || len(d.Links) != 2 || d.URL != "" {
		t.Errorf("the pages are %+v", d)
	}

	// An assistant that uses it, and deleting it.
	a := h.assistant(t, u, "Front desk")
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		map[string]any{"knowledgebase_id": numeral(id(k[0].ID))}); err != nil {
		t.Fatal(err)
	}
	v.get(path).says("Front desk").says("1 assistant loses it")
	v.get("/knowledge").says("4 documents").says("used by 1 assistant")
	if e := v.get("/assistants/" + id(a.ID)); e.form("/assistants/"+id(a.ID)).Get("knowledgebase_id") != id(k[0].ID) {
		t.Error("the editor does not show the knowledgebase")
	}
	v.post(path+"/documents/"+id(docs[0].ID)+"/retry", nil).is(http.StatusConflict)
	v.post(path+"/documents/"+id(docs[0].ID)+"/delete", nil).moved(path + "?done=deleted")
	v.post(path+"/documents/"+id(docs[0].ID)+"/delete", nil).is(http.StatusNotFound)
	v.post(path+"/delete", nil).moved("/knowledge?done=deleted")
	v.get(path).is(http.StatusNotFound)
}

// waitFor loads a page until it has some words.
func (v *visitor) waitFor(path, words string) *reply {
	v.t.Helper()
	hang, look := time.After(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for {
		r := v.get(path).is(http.StatusOK)
		if strings.Contains(r.doc().Find("main").Text(), words) {
			return r
		}
		select {
		case <-look.C:
		case <-hang:
			v.t.Fatalf("%s never says %q:\n%s", path, words, r.doc().Find("main").Text())
		}
	}
}

func TestKnowledgeAnswersAndShowsHostileTextAsText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	h := open(t)
	u := h.user(t)
	k := h.handbook(t, u)
	v := h.signedIn(t, u)
	path := "/knowledge/" + id(k.ID)
	v.post(path+"/edit", url.Values{"name": {evil}, "description": {evil}}).is(http.StatusSeeOther)
	v.upload(path+"/files", file{`"><img src=x onerror=alert(3)>.txt`, "Croissants cost two euros. " + evil},
		file{"b\xff\r\n.txt", "broken"}, file{".txt", "A file without a name."}).is(http.StatusSeeOther)
	v.post(path+"/site", url.Values{"url": {"https://x.example/"}, "name": {evil}}).is(http.StatusSeeOther)

	// The page updates the states by itself.
	_, next := v.stream("GET", path+"/live", nil)
	until(t, next, "put", "Processing")
	h.work(t)
	until(t, next, "put", "It is broken &lt;b&gt;: mend it.")
	page := v.waitFor(path, "4 documents")
	for v.get("/knowledge").doc().Find(".tag").Text() == "Processing" { // the stream below says when
		until(t, next, "put", "")
	}
	replies := []*reply{page, v.get("/knowledge"), v.get(path + "/edit"), v.get(path),
		v.get(path + "?q=" + url.QueryEscape(evil)), v.get(path + "?q=" + strings.Repeat("x", 4001)),
		v.post(path+"/site", url.Values{"url": {evil}, "links": {evil}, "name": {evil}}),
		v.upload(path+"/files", file{evil, "x"}), v.get("/assistants/" + id(h.assistant(t, u, "x").ID))}
	found := v.get(path + "?q=croissants").says("Croissants cost two euros.").says("score 1.00").says(
		"As the assistant reads it")
	if pre := found.doc().Find("#found pre").Text(); !strings.Contains(pre, "Croissants cost two euros. "+evil) {
		t.Errorf("the assistant reads %q", pre)
	}
	site := v.get(path + "?q=prices+of").says("javascript:alert(1)")
	if site.doc().Find(`#found a[href*="javascript"], #found a[href*="templ"]`).Length() > 0 {
		t.Error("an address that is none of the web is a link")
	}
	for _, r := range append(replies, found, site) {
		if n := r.doc().Find("script:not([src]), img, [onerror]").Length(); n > 0 ||
			strings.Contains(r.body, "<script>") {
			t.Errorf("%d elements of the text came alive:\n%.3000s", n, r.body)
		}
	}
	v.get(path + "?q=zebra+quagga").says("Nothing was found.")

	// The failed document is tried again, in its row.
	retry := v.get(path).doc().Find(`.documents form[action$="/retry"]`).First()
	names := v.get(path).doc().Find(".document-name").Map(textOfNode)
	if strings.Join(names, "|") != evil+`|.txt|b�|"><img src=x onerror=alert(3)>` {
		t.Errorf("the documents are called %q", names)
	}
	v.post(retry.AttrOr("action", ""), nil).moved(path + "?done=reading")
}

func TestKnowledgeOfOthersIsUnknown(t *testing.T) {
	h := open(t)
	owner, other := h.user(t), h.user(t)
	k := h.handbook(t, owner)
	mine := h.handbook(t, other)
	d := &parley.Document{Name: "Secret plans", Type: parley.TXT, Links: []string{}}
	if err := h.Knowledge.Add(t.Context(), owner.ID, k.ID, d); err != nil {
		t.Fatal(err)
	}
	v := h.signedIn(t, other)
	for _, c := range []struct{ method, path, id string }{
		{"GET", "/knowledge/%", id(k.ID)}, {"GET", "/knowledge/%/live", id(k.ID)},
		{"GET", "/knowledge/%/edit", id(k.ID)}, {"POST", "/knowledge/%/edit", id(k.ID)},
		{"POST", "/knowledge/%/delete", id(k.ID)}, {"POST", "/knowledge/%/site", id(k.ID)},
		{"POST", "/knowledge/%/files", id(k.ID)},
		{"POST", "/knowledge/%/documents/" + id(d.ID) + "/retry", id(k.ID)},
		{"POST", "/knowledge/%/documents/" + id(d.ID) + "/delete", id(k.ID)},
		{"GET", "/knowledge/" + id(mine.ID) + "/documents/%", id(d.ID)},
		{"POST", "/knowledge/" + id(mine.ID) + "/documents/%", id(d.ID)},
		{"POST", "/knowledge/" + id(mine.ID) + "/documents/%/retry", id(d.ID)},
		{"POST", "/knowledge/" + id(mine.ID) + "/documents/%/delete", id(d.ID)},
	} {
		bodies := map[string]bool{}
		for _, one := range []string{c.id, "424242", "0", "007", "-1", "x", "99999999999999999999"} {
			path := strings.Replace(c.path, "%", one, 1)
			r := v.send(c.method, path, url.Values{"name": {"stolen"}, "url": {"https://x.example"}})
			bodies[r.is(http.StatusNotFound).doc().Find("main").Text()] = true
		}
		if len(bodies) != 1 {
			t.Errorf("%s %s tells a foreign id from an unknown one: %v", c.method, c.path, bodies)
		}
	}
	if text := v.get("/knowledge").doc().Find("main").Text(); strings.Count(text, "Handbook") != 1 {
		t.Error("the list shows another user's")
	}
	if got, err := h.DB.Document(t.Context(), owner.ID, k.ID, d.ID); err != nil || got.Name != "Secret plans" {
		t.Errorf("the owner's document became %+v, %v", got, err)
	}
}

func TestManyDocumentsHavePages(t *testing.T) {
	h := open(t)
	u := h.user(t)
	k := h.handbook(t, u)
	for i := range pageSize + 2 {
		if err := h.Knowledge.Add(t.Context(), u.ID, k.ID,
			&parley.Document{Name: "Doc " + id(int64(i)), Type: parley.TXT, Links: []string{}}); err != nil {
			t.Fatal(err)
		}
	}
	v := h.signedIn(t, u)
	path := "/knowledge/" + id(k.ID)
	for at, want := range map[string]int{"": pageSize, "?page=2": 2, "?page=9": 2, "?page=x": pageSize,
		"?q=loaf&page=2": 2} {
		if n := v.get(path + at).is(http.StatusOK).doc().Find(".documents > li").Length(); n != want {
			t.Errorf("%s shows %d documents, want %d", at, n, want)
		}
	}
	if next := v.get(path+"?q=loaf").doc().Find("a[rel=next]").AttrOr("href", ""); next != path+"?page=2&q=loaf" {
		t.Errorf("the next page is %s", next)
	}
	_, events := v.stream("GET", path+"/live?page=2", nil)
	until(t, events, "put", "Doc 0")
	until(t, events, "list", "27")
}

// A browser that stops in the middle of a file gets an error, and leaves nothing behind; one that is slow but goes on
// is waited for.
func TestUploadThatStops(t *testing.T) {
	h := open(t)
	h.guard.Pause = 200 * time.Millisecond
	u := h.user(t)
	k := h.handbook(t, u)
	v := h.signedIn(t, u)
	at, _ := url.Parse(h.url)
	cookie := v.client.Jar.Cookies(at)[0]
	begin := func(length int) net.Conn {
		conn, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "POST /knowledge/%d/files HTTP/1.1\r\nHost: %s\r\nCookie: %s=%s\r\nContent-Type: multipart/form-data; boundary=b\r\n"+
			"Content-Length: %d\r\nConnection: close\r\n\r\n",
			k.ID, at.Host, cookie.Name, cookie.Value, length)
		return conn
	}
	head, tail := "--b\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\n", "\r\n--b--\r\n"
	stopped := begin(len(head) + 100 + len(tail))
	io.WriteString(stopped, head+"half")
	if raw, _ := io.ReadAll(stopped); !strings.HasPrefix(string(raw), "HTTP/1.1 400 ") {
		t.Errorf("who stopped is answered %.200s", raw)
	}
	going := begin(len(head) + 8 + len(tail))
	io.WriteString(going, head)
	tick := time.NewTicker(50 * time.Millisecond) // eight of them are longer than the longest pause allowed
	defer tick.Stop()
	for range 8 {
		<-tick.C
		io.WriteString(going, "x")
	}
	io.WriteString(going, tail)
	if raw, _ := io.ReadAll(going); !strings.HasPrefix(string(raw), "HTTP/1.1 303 ") {
		t.Errorf("who is slow is answered %.200s", raw)
	}
	docs, err := h.DB.Documents(t.Context(), u.ID, k.ID)
	if err != nil || len(docs) != 1 || docs[0].Size != 8 {
		t.Errorf("documents %+v, %v", docs, err)
	}
}
