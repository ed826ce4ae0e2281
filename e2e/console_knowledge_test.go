package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// librarySite serves a small site: a start page and two pages behind it, one with a hostile title.
func librarySite(t *testing.T) string {
	site := http.NewServeMux()
	page := func(path, body string) {
		site.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html><body><main>"+body+"</main></body></html>")
		})
	}
	page("/{$}", `<h1>Welcome</h1><p>We bake since 1921.</p><a href="/gift">Gifts</a> <a href="/evil">More</a>`)
	page("/gift", `<h1>Vouchers</h1><p>Gift vouchers are valid for three years and can be redeemed at the counter.</p>`)
	page("/evil", `<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1><p>Croissants &lt;img src=x onerror=alert(2)&gt; cost two euros.</p>`)
	return serveLocal(t, site)
}

// give puts files into the page's file input, as its dialog would.
func (p *page) give(files ...string) {
	p.t.Helper()
	p.do(chromedp.SetUploadFiles(chromedp.CSS("#files"), files))
}

// row waits until the row of a document contains some words.
func (p *page) row(name, words string) {
	p.t.Helper()
	p.until(fmt.Sprintf("[...document.querySelectorAll('.documents li')].some(r => r.querySelector('.document-name').innerText === %s && "+
		"r.innerText.includes(%s))", quote(name), quote(words)))
}

// Documents of every kind are uploaded, read, and used in answers; a document's error is shown beside it.
func TestConsoleKnowledge(t *testing.T) {
	share(t, browser)
	site := librarySite(t)
	s := start(t, "PARLEY_EGRESS_ALLOW=127.0.0.0/8")
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/knowledge")
	p.see("h1", "Give your assistants knowledge")
	p.click(".empty .primary")
	p.expect("422")
	p.click(".save button")
	p.see("#e-name", "required")
	p.fill("#f-name", `Bakery <b onclick=alert(1)>`)
	p.fill("#f-description", "What customers ask")
	p.click(".save button")
	p.see("h1", "Bakery <b onclick")
	p.see("#library-state", "Empty")
	p.shot("knowledge-empty", false)
	home := eval[string](p, "location.pathname")

	// Several files at once; two of them can't be accepted.
	p.give(file("Allergens.pdf", onePage("Allergens", "",
		"The walnut bread contains hazelnuts and traces of sesame.")),
		file("Parking.docx", word(t, "Parking", "Customers park their bicycles in the courtyard behind the house.")),
		file("<img src=x onerror=alert(3)>.txt", []byte("Wholesale\n\nRestaurants get a discount of twelve percent from fifty loaves a week.\n")),
		file("Broken.pdf", []byte("%PDF-1.4\nthis is no document")), file("virus.exe", []byte("MZ")),
		file("Huge.txt", make([]byte, 20<<20+1)))
	p.see("[data-uploads] .failed", "virus.exe")
	p.see("[data-uploads] .failed", "Files of this type can't be read: PDF")
	p.see("[data-uploads] .failed", "It is larger than 20 MB")
	for _, name := range []string{"Allergens", "Parking", "<img src=x onerror=alert(3)>"} {
		p.row(name, "Active")
		p.row(name, "1 passage")
	}
	p.row("Broken", "Failed")
	p.row("Broken", "Try again")
	p.until("document.querySelectorAll('[data-uploads] li').length === 2 && document.querySelector('.documents .wrong').innerText.length > 20")
	p.until("!document.querySelector('.documents .wrong').closest('li').innerText.includes('being read')")
	p.look("knowledge-files")
	p.click("[data-uploads] li:first-child [data-dismiss]")
	p.click("[data-uploads] li:first-child [data-dismiss]")
	p.until("document.querySelector('[data-uploads]').hidden && document.activeElement.id === 'files'")

	// A failed document is retried, in place.
	p.click(".documents form[action$='/retry'] button")
	p.row("Broken", "Failed")

	// A file that is dropped anywhere on the page is uploaded the same way.
	p.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const data = new DataTransfer();
		data.items.add(new File(["Opening hours\n\nOn Sundays the shop stays closed.\n"], "Hours.txt", {type: "text/plain"}));
		for (const kind of ["dragenter", "dragover", "drop"]) document.querySelector("h1").dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data}));
	})()`))
	p.row("Hours", "Active")

	// A website: first a mistake beside its input, then its pages.
	p.fill("#f-url", "bakery")
	p.click(".site .primary")
	p.see("#e-url", "must be")
	p.shot("knowledge-mistake", false)
	p.fill("#f-url", site+"/")
	p.click(".site .primary")
	p.see("#notice", "being processed now")
	p.row(strings.TrimPrefix(site, "http://"), "3 passages")
	p.row(strings.TrimPrefix(site, "http://"), "Import again")
	p.see("#library-state", "6 documents")

	// What an assistant would find, with its source; hostile text stays text.
	for _, c := range []struct{ question, says, source string }{{"Which nuts are in the walnut bread?", "hazelnuts",
		"page 1"}, {"How long are gift vuochers valid?", "three years", site + "/gift"},
		{"What do croissants cost?", "<img src=x onerror=alert(2)>", site + "/evil"}} {
		p.fill("input[name=q]", c.question)
		p.do(chromedp.KeyEvent("\r"))
		p.see(".passages li:first-child .passage", c.says)
		p.see(".passages li:first-child .passage-of", c.source)
		p.see(".passages li:first-child .passage-of", "score")
	}
	p.click("#found summary")
	p.see("#found pre", "Croissants")
	p.look("knowledge-found")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#try-t').scrollIntoView()"))
	p.shot("knowledge-found-low", false)

	// An assistant gets the knowledgebase.
	p.see("main", "None does yet.")
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10) + "#knowledge")
	p.see("#f-knowledgebase_id option", "(6 documents)")
	p.do(chromedp.SetValue(chromedp.CSS("#f-knowledgebase_id"), strings.TrimPrefix(home, "/knowledge/")))
	p.shot("editor-knowledgebase", false)
	p.click("#save")
	p.see("#notice", "The draft is saved.")
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10) + "/publish")
	p.click("#publish")
	p.see("#notice", "Published")
	p.open(s.URL + home)
	p.see("main .list", "Front desk")
	p.see("main .list", "looks things up")

	// A document is renamed and deleted, with the keyboard.
	p.do(chromedp.Evaluate[chromedp.Void]("[...document.querySelectorAll('a.document-name')].find(a => a.innerText === 'Parking').click()"))
	p.see("h1", "Parking")
	p.see(".passages", "1") // what was read
	p.look("document")
	p.fill("#f-name", "Where to park")
	p.click("#save")
	p.see("#notice", "Saved.")
	p.row("Where to park", "1 passage")
	p.click("main .actions a")
	p.fill("#f-name", "Handbook")
	p.click(".save button")
	p.see("h1", "Handbook")
	p.click(".documents li:first-child [popovertarget]")
	p.see(".ask:popover-open", "Delete \u2068127.0.0.1")
	p.do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
	p.see("#notice", "Deleted.")
	p.see("#library-state", "5 documents")
	p.open(s.URL + "/knowledge")
	p.see(".list", "5 documents · 1 failed · used by 1 assistant")
	p.look("knowledge-list")
	p.click(".list a")
	p.click("[popovertarget=ask-delete]")
	p.see("#ask-delete", "1 assistant loses it")
	p.click("#ask-delete .primary")
	p.see("#notice", "Deleted.")
	p.see("h1", "Give your assistants")
	if n := p.asked("alert"); n > 0 {
		t.Errorf("a name or a text came alive: %d alerts", n)
	}
}
