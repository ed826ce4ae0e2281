package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// eventBody reads an answer as the stream of events that it should be: what is plain JSON becomes one event, and the last
// event ends although its server ended no line.
type eventBody struct {
	body io.Reader
	r    io.Reader // nil before the first byte
}

func events(body io.Reader) io.Reader { return &eventBody{body: body} }

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	if b.r == nil {
		in := bufio.NewReader(b.body)
		b.r = io.MultiReader(in, strings.NewReader("\n\n"))
		if first, err := in.Peek(1); err == nil && first[0] == '{' {
			whole, err := io.ReadAll(in) // the guard bounds it
			if err != nil {
				return 0, err
			}
			var line bytes.Buffer
			if json.Compact(&line, whole) == nil {
				whole = line.Bytes()
			}
			b.r = io.MultiReader(strings.NewReader("data: "), bytes.NewReader(whole), strings.NewReader("\n\n"))
		}
	}
	return b.r.Read(p)
}
