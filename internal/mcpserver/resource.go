package mcpserver

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/parley"
)

// Resources are named by URIs of this scheme.
const scheme = "parley://"

// maxResource is how many bytes of a resource are read.
const maxResource = 100 << 10

// kind is a kind of resource: what one is named by, the operation that reads it, and how a model reads that.
type kind struct {
	template, name, title, text, op string
	show                            func(v any) string
}

var kinds = []kind{
	{"assistants/{id}", "assistant", "Assistant", "A live assistant: its prompt and settings, as JSON. id is the assistant's.", "getAssistant",
		func(v any) string { return compact(set(unwrapped(v))) }},
	{"calls/{id}/transcript", "transcript", "Transcript of a call", "What was said in a call. id is the call's.", "getCall",
		func(v any) string { return lines(at(unwrapped(v), "turns"), "speaker", "text") }},
	{"conversations/{id}/transcript", "chat", "Transcript of a chat", "What was said in a chat. id is the conversation's.", "getConversation",
		func(v any) string { return lines(at(unwrapped(v), "history"), "role", "content") }},
}

// lines are what was said, a line for each time that somebody spoke.
func lines(turns any, who, words string) string {
	list, _ := turns.([]any)
	var b strings.Builder
	for _, one := range list {
		o, _ := one.(object)
		fmt.Fprintf(&b, "%s: %s\n", textOf(o[who]), textOf(o[words]))
	}
	return b.String()
}

var pageTitle = regexp.MustCompile(`(?m)^# (.+)$`)

// addResources adds the guide's pages, and the kinds of things that an account has.
func (s *Server) addResources(server *sdk.Server) {
	var pages []string
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := fs.Glob(s.Docs, pattern)
		if err != nil {
			panic(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		raw, err := fs.ReadFile(s.Docs, page)
		if err != nil {
			panic(err)
		}
		text, name := string(raw), strings.TrimSuffix(page, ".md")
		title := name
		if m := pageTitle.FindStringSubmatch(text); m != nil {
			title = m[1]
		}
		server.AddResource(&sdk.Resource{URI: scheme + "docs/" + name, Name: name, Title: title, MIMEType: "text/markdown", Size: int64(len(raw)),
			Description: "A page of Parley's guide."},
			func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return contents(req.Params.URI, "text/markdown", text), nil
			})
	}
	for _, k := range kinds {
		mime := "text/plain"
		if k.op == "getAssistant" {
			mime = "application/json"
		}
		begin, end, _ := strings.Cut(scheme+k.template, "{id}")
		server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: scheme + k.template, Name: k.name, Title: k.title, Description: k.text,
			MIMEType: mime},
			func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				id, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, begin), end))
				if err != nil {
					return nil, sdk.ResourceNotFoundError(req.Params.URI)
				}
				a, err := s.ask(ctx, s.ops()[k.op], map[string]string{"id": id}, nil, nil, "")
				if err != nil {
					return nil, parley.Errorf(parley.Refused, "%s", known(ctx, err))
				}
				switch {
				case a.status == 404:
					return nil, sdk.ResourceNotFoundError(req.Params.URI)
				case a.failed():
					return nil, parley.Errorf(parley.Refused, "%s", a.refusal(&tool{Name: k.op}))
				}
				return contents(req.Params.URI, mime, k.show(a.value)), nil
			})
	}
}

func contents(uri, mime, text string) *sdk.ReadResourceResult {
	if len(text) > maxResource {
		text = strings.ToValidUTF8(text[:maxResource], "") + "\n[cut: the resource has " + fmt.Sprint(len(text)) + " bytes]"
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}
}

// withOwn adds the account's newest assistants to the list of resources.
func (s *Server) withOwn(ctx context.Context, list *sdk.ListResourcesResult) error {
	a, err := s.ask(ctx, s.ops()["listAssistants"], nil, url.Values{"per_page": {"50"}}, nil, "")
	if err != nil {
		return parley.Errorf(parley.Refused, "%s", known(ctx, err))
	}
	if a.failed() { // a role that sees no assistants has none listed
		return nil
	}
	of, _ := at(a.value, "data").([]any)
	for _, one := range of {
		o, _ := one.(object)
		list.Resources = append(list.Resources, &sdk.Resource{URI: scheme + "assistants/" + textOf(o["id"]), Name: textOf(o["name"]),
			Title: textOf(o["name"]), MIMEType: "application/json", Description: "An assistant of the account."})
	}
	return nil
}
