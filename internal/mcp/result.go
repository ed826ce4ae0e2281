package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Result is what a tool answers, as text.
type Result struct {
	Text   string
	Failed bool // the tool says that it failed
}

func resultOf(r *sdk.CallToolResult) Result {
	var parts []string
	told := false // the structured content is among the texts
	for _, c := range r.Content {
		part := text(c)
		if _, ok := c.(*sdk.TextContent); ok && r.StructuredContent != nil && !told {
			var v any
			told = json.Unmarshal([]byte(part), &v) == nil && reflect.DeepEqual(v, r.StructuredContent)
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	if r.StructuredContent != nil && !told {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(raw))
		}
	}
	return Result{strings.ToValidUTF8(strings.Join(parts, "\n\n"), "\uFFFD"), r.IsError}
}

// text is a piece of an answer in words: what is no text is named.
func text(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[An image (%s, %d bytes), which can't be shown.]", short(c.MIMEType), len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[A sound (%s, %d bytes), which can't be played.]", short(c.MIMEType), len(c.Data))
	case *sdk.ResourceLink:
		return link(c)
	case *sdk.EmbeddedResource:
		switch r := c.Resource; {
		case r == nil:
			return ""
		case r.Blob != nil && r.Text == "":
			return fmt.Sprintf("[The file %s (%s, %d bytes), which is no text and can't be shown.]", short(r.URI), short(r.MIMEType), len(r.Blob))
		default:
			return fmt.Sprintf("[The file %s:]\n%s", short(r.URI), r.Text)
		}
	}
	return "[Something that can't be shown.]"
}

func link(l *sdk.ResourceLink) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[A file that was not read: %s", short(l.URI))
	for _, s := range []string{l.Title, l.Name, l.MIMEType, l.Description} {
		if s != "" {
			b.WriteString("; " + short(s))
		}
	}
	if l.Size != nil {
		fmt.Fprintf(&b, "; %d bytes", *l.Size)
	}
	return b.String() + "]"
}

// short is a text of a server's as valid UTF-8 of at most 4 KB.
func short(s string) string { return cut(strings.ToValidUTF8(s, "\uFFFD"), maxText) }

// cut shortens valid UTF-8 to at most n bytes, between runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
