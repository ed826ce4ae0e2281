package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe-core/axe.min.js
var axe string

// page is a tab in a browser of its own.
type page struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	expected []string // parts of console errors that a test causes on purpose
	problems []string
	dialogs  []string // the dialogs that the browser showed; each is answered with yes
	dialogue sync.WaitGroup
}

// browse opens a new browser with an empty profile and further flags, name or name=value. The test fails at the end if
// a page logged an error.
func browse(t *testing.T, flags ...string) *page {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("no chromium: apt-get install chromium: %v", err)
	}
	return browseWith(t, path, flags...)
}

// browseWith is browse with the program at a path.
func browseWith(t *testing.T, path string, flags ...string) *page {
	t.Helper()
	opts := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck, chromedp.Headless,
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900)}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync", "hide-scrollbars",
		"disable-dev-shm-usage"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	for _, flag := range flags {
		if name, value, ok := strings.Cut(flag, "="); ok {
			opts = append(opts, chromedp.Flag(name, value))
		} else {
			opts = append(opts, chromedp.Flag(name, true))
		}
	}
	ctx, stop := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(opts...),
		chromedp.WithErrorf(func(string, ...any) {})) // a newer browser sends events that this client does not know
	p := &page{t: t, ctx: ctx}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the browser: %v", err)
		}
		stop()
		p.dialogue.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, text := range p.problems {
			t.Errorf("the browser's console: %s", text)
		}
	})
	// The browser lives as long as the context that starts it.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	if err := chromedp.Listen(ctx, p.event); err != nil {
		t.Fatal(err)
	}
	return p
}

// event handles a browser event of the page. It must not block.
func (p *page) event(ev any) {
	text := ""
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		text = ev.ExceptionDetails.Text
		if e := ev.ExceptionDetails.Exception; e != nil {
			text += " " + e.Description
		}
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning ||
			ev.Type == runtime.ConsoleAPICalledTypeAssert {
			for _, a := range ev.Args {
				text += " " + string(a.Value) + a.Description
			}
		}
	case *cdplog.EventEntryAdded:
		if ev.Entry.Level == cdplog.EntryLevelError || ev.Entry.Source == cdplog.EntrySourceSecurity {
			text = fmt.Sprintf("%s: %s %s", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL)
		}
	case *cdppage.EventJavascriptDialogOpening:
		p.mu.Lock()
		p.dialogs = append(p.dialogs, string(ev.Type))
		p.mu.Unlock()
		p.dialogue.Go(func() {
			chromedp.Call(p.ctx, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: true})
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != "" && !slices.ContainsFunc(p.expected, func(s string) bool { return strings.Contains(text, s) }) {
		p.problems = append(p.problems, text)
	}
}

// expect says that the console may show an error that contains part: the test causes it.
func (p *page) expect(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, part)
}

// asked counts the dialogs of a kind that the browser has shown.
func (p *page) asked(kind string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.dialogs {
		if d == kind {
			n++
		}
	}
	return n
}

// do runs actions that return nothing, or fails the test.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	get(p, chromedp.Steps(actions...))
}

// get runs an action and returns its value, or fails the test.
func get[T any](p *page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "Could not find node") { // the page has replaced it meanwhile
		v, err = chromedp.Run(ctx, action)
	}
	if err != nil {
		quick, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		defer cancel()
		where, _ := chromedp.Run(quick, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
		p.t.Fatalf("%v\nat %.2000s", err, where)
	}
	return v
}

// see waits until the text of the element of a selector contains some words.
func (p *page) see(selector, words string) {
	p.t.Helper()
	p.until(fmt.Sprintf("[...document.querySelectorAll(%s)].some(e => e.innerText.includes(%s))", quote(selector),
		quote(words)))
}

// until waits for a JavaScript expression to become true, also across navigations. The page itself looks again: asked from here as often,
// it would take as much of the processor as all else that a test does.
func (p *page) until(expression string) {
	p.t.Helper()
	ask := chromedp.Evaluate[bool](`new Promise(done => {
		const end = Date.now() + 1000, look = () => {
			try {
				if (`+expression+`) return done(true)
			} catch {} // what it asks for isn't there yet
			if (Date.now() > end) done(false)
			else setTimeout(look, 20)
		}
		look()
	})`, chromedp.EvalAwaitPromise)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		yes, err := chromedp.Run(ctx, ask)
		cancel()
		if yes && err == nil {
			return
		}
		if err != nil { // the page went away during the evaluation
			time.Sleep(10 * time.Millisecond)
		}
	}
	p.t.Fatalf("not so: %s\nat %.2000s", expression, eval[string](p, "location.href + '\\n' + document.body.innerText"))
}

// eval is the value of a JavaScript expression.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	return get(p, chromedp.Evaluate[T](expression))
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// open goes to an address and waits for the page, its scripts and its frames. The load event alone may be that of the page
// before, if that was still loading.
func (p *page) open(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
	p.until("document.readyState === 'complete'")
}

// click clicks the element of a selector as a person would: it must be visible.
func (p *page) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// fill replaces the content of an input by typing.
func (p *page) fill(selector, text string) {
	p.t.Helper()
	box := chromedp.CSS(selector)
	p.do(chromedp.Focus(box, chromedp.NodeVisible),
		chromedp.Evaluate[chromedp.Void]("document.activeElement.select()"), chromedp.KeyEvent("\b"),
		chromedp.SendKeys(box, text))
}

// scheme makes the browser prefer light or dark.
func (p *page) scheme(name string) {
	p.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
		Value: name},
		{Name: "prefers-reduced-motion", Value: "reduce"}}}
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// size sets the size of the window; below 600 it is a phone.
func (p *page) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height, func(m *emulation.SetDeviceMetricsOverrideParams,
		_ *emulation.SetTouchEmulationEnabledParams) {
		m.Mobile = width < 600
	}))
}

// shot saves a picture of the window's content, or of the whole page.
func (p *page) shot(name string, whole bool) {
	p.t.Helper()
	action := chromedp.CaptureScreenshot()
	if whole {
		action = chromedp.FullScreenshot(100)
	}
	png := get(p, action)
	artifact(p.t, name+".png", png)
}

// accessible fails the test if axe-core has serious or critical findings on the page in its current state.
func (p *page) accessible(what string) {
	p.t.Helper()
	type result struct {
		Violations []struct {
			ID     string `json:"id"`
			Impact string `json:"impact"`
			Help   string `json:"help"`
			Nodes  []struct {
				HTML           string `json:"html"`
				FailureSummary string `json:"failureSummary"`
			} `json:"nodes"`
		} `json:"violations"`
	}
	if !eval[bool](p, "'axe' in window") {
		p.do(chromedp.Evaluate[chromedp.Void](axe))
	}
	out := get(p, chromedp.Evaluate[result]("axe.run(document, {resultTypes: ['violations']})", chromedp.EvalAwaitPromise))
	for _, v := range out.Violations {
		if v.Impact != "serious" && v.Impact != "critical" {
			p.t.Logf("%s: axe: %s %s: %s (%d)", what, v.Impact, v.ID, v.Help, len(v.Nodes))
			continue
		}
		for i, n := range v.Nodes {
			if i < 3 {
				p.t.Errorf("%s: axe: %s %s: %s\n%s\n%s", what, v.Impact, v.ID, v.Help, n.HTML, n.FailureSummary)
			}
		}
	}
}
