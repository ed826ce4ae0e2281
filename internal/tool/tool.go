// Package tool runs mid-call tools: it checks the model's arguments, makes a request from the tool's template, and
// turns the answer, or its absence, into words for the model.
package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/egress"
	"parley/internal/mcp"
	"parley/internal/parley"
	"parley/internal/schema"
)

const (
	// MaxAnswer is how many bytes of an answer reach the model.
	MaxAnswer = 64 << 10

	excerptSize  = 16 << 10 // of a JSON answer that is too long
	maxRead      = 16 << 20 // of such an answer
	maxRedirects = 5
	userAgent    = "Parley/1"
)

// What the model is told of an answer that it gets in another form.
const (
	shortNote = "The tool's answer is longer than can be read: of long lists and texts only the beginning follows, and where " +
		"something is left out it says so."
	pageNote  = "The tool answered with a web page (HTML) and not with data; its text follows."
	emptyPage = "The tool answered with a web page (HTML) that has no text, and not with data."
)

// Result is how a call went, as POST /user/tools/{id}/test shows it.
type Result struct {
	Status     int    `json:"status" doc:"HTTP status of the answer; 0 when there was none."`
	DurationMS int64  `json:"duration_ms"`
	Body       string `json:"body" doc:"The answer, at most 64 KiB of it."`
	Truncated  bool   `json:"truncated,omitempty" doc:"The answer was longer."`
	Error      string `json:"error,omitempty" doc:"Why there is no answer."`
	Misfit     bool   `json:"-"` // nothing was sent: the arguments don't fit

	told string // what the model is told in place of the body; "" for the body itself
	note string // what it is told of that
	text string // what it is told of characters that may not be what was written
}

// Text is what the model is told: valid UTF-8 of at most MaxAnswer bytes.
func (r Result) Text() string {
	if r.Error != "" {
		return cut(r.Error, MaxAnswer)
	}
	var notes []string
	if r.Status < 200 || r.Status > 299 {
		notes = append(notes, fmt.Sprintf("The tool failed with HTTP status %s.", status(r.Status)))
	} else if r.Body == "" {
		notes = append(notes, fmt.Sprintf("The tool succeeded with HTTP status %s and an empty answer.",
			status(r.Status)))
	}
	for _, note := range []string{r.note, r.text} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	body := cmp.Or(r.told, r.Body)
	if r.note == emptyPage {
		body = ""
	}
	if r.Truncated && r.note != shortNote {
		notes = append(notes, "Only the beginning of the tool's answer follows; it is longer than can be read.")
	}
	if len(notes) == 0 {
		return body
	}
	head := strings.Join(notes, " ")
	if body != "" {
		head += "\n\n"
	}
	return head + cut(body, MaxAnswer-len(head))
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// Variables are the values of {{variable}}, by where they may stand.
type Variables struct {
	All map[string]string // in the path and the query of an endpoint
	// in headers: without what whoever talks to the assistant wrote, as headers carry keys and say who asks
	Owner map[string]string
}

// Owned are variables that the tool's owner gave.
func Owned(vars map[string]string) Variables { return Variables{vars, vars} }

// Runner runs tools. It is safe for concurrent use.
type Runner struct {
	client  *http.Client
	servers *mcp.Client
	listing listing
}

// New makes a runner whose requests go out through the guard.
func New(g *egress.Guard) *Runner {
	r := &Runner{client: g.Client(maxRedirects), servers: mcp.New(g)}
	r.listing.ctx, r.listing.stop = context.WithCancel(context.Background())
	return r
}

// Close ends the sessions with MCP servers, and what is being asked of them in the background.
func (r *Runner) Close() {
	r.listing.stop()
	r.listing.wait.Wait()
	r.servers.Close()
}

// Run calls the tool once and never again, with decoded JSON values as arguments (numbers as float64 or json.Number).
// It returns within the tool's timeout and always with a result: what goes wrong is told in it.
func (r *Runner) Run(ctx context.Context, t *parley.Tool, args map[string]any, vars Variables) Result {
	result, _ := r.Try(ctx, t, args, vars)
	return result
}

// Sent is a request as it went out.
type Sent struct {
	Method, URL string
	Headers     []string // names of the tool's own: their values are secrets
	Body        string
}

// Try is Run, and shows the request; nil where none could be made.
func (r *Runner) Try(ctx context.Context, t *parley.Tool, args map[string]any, vars Variables) (Result, *Sent) {
	var sent *Sent
	start := time.Now()
	result := r.run(ctx, t, args, vars, &sent)
	result.DurationMS = time.Since(start).Milliseconds()
	return result, sent
}

func sentOf(req *http.Request, t *parley.Tool) *Sent {
	s := &Sent{Method: req.Method, URL: req.URL.String()}
	for _, h := range t.Headers {
		if name := http.CanonicalHeaderKey(h.Name); !slices.Contains(ours, name) && !slices.Contains(s.Headers, name) {
			s.Headers = append(s.Headers, name)
		}
	}
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil { // it is a text in memory
			raw, _ := io.ReadAll(body)
			s.Body = string(raw)
		}
	}
	return s
}

func (r *Runner) run(ctx context.Context, t *parley.Tool, args map[string]any, vars Variables, sent **Sent) Result {
	own, cancel := context.WithTimeout(ctx, time.Duration(t.Timeout)*time.Second)
	defer cancel()
	req, err := request(own, t, args, vars)
	if err != nil {
		_, unfit := errors.AsType[misfit](err)
		return Result{Error: "The tool was not called: " + err.Error() + ".", Misfit: unfit}
	}
	*sent = sentOf(req, t)
	result, err := r.exchange(req)
	switch {
	case err == nil:
		return result
	case ctx.Err() == nil && errors.Is(own.Err(), context.DeadlineExceeded):
		return Result{Error: fmt.Sprintf("The tool failed: no whole answer came within %d s.", t.Timeout)}
	}
	return Result{Error: "The tool failed: " + egress.Explain(err) + "."}
}

func (r *Runner) exchange(req *http.Request) (Result, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		return Result{}, err
	}
	defer resp.Body.Close()
	var read bytes.Buffer
	raw, more, err := egress.Read(io.TeeReader(resp.Body, &read), MaxAnswer)
	if err != nil {
		return Result{}, err
	}
	result := Result{Status: resp.StatusCode}
	result.Body, result.text, result.Truncated = text(raw, more, resp.Header)
	kind := resp.Header.Get("Content-Type")
	if more && resp.Header.Get("Content-Encoding") == "" {
		whole := io.MultiReader(&read, io.LimitReader(resp.Body, maxRead))
		if short, ok := excerptJSON(whole, excerptSize); ok {
			result.told, result.text = decode([]byte(short), kind)
			result.note = shortNote
		}
	}
	if result.note == "" && isPage(result.Body, kind) {
		result.told, result.note = pageText(result.Body), pageNote
		if result.told == "" {
			result.note = emptyPage
		}
	}
	return result, nil
}

// Schema is the JSON Schema of the tool's parameters for function calling: its own, or that of its short form, in their
// order.
func Schema(t *parley.Tool) json.RawMessage { return json.RawMessage(schema.ToolForms.Shown(forms(t))) }

// Shown is a tool as answers show it: with both forms of its schema, and what vendors can't do with it.
func Shown(t *parley.Tool) *parley.Tool {
	out := *t
	out.RemoteTools = []parley.ListedTool{}
	if l := t.Listing; t.Kind == parley.ToolMCP && l != nil {
		out.RemoteTools, out.RemoteMore, out.RemoteError, out.RemoteAt = Offered(t), l.More, l.Error, l.ListedAt
		for i := range out.RemoteTools {
			out.RemoteTools[i].SchemaNotes = schema.Notes(out.RemoteTools[i].Schema)
		}
	}
	out.SchemaNotes = []string{}
	if len(t.JSONSchema) > 0 {
		out.SchemaNotes = schema.Notes(t.JSONSchema)
	}
	out.JSONSchema = parley.JSONSchema(Schema(t))
	return &out
}

// encode is the JSON of strings, numbers, booleans and lists and maps of them, which can't fail.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("tool: %v", err))
	}
	return string(b)
}
