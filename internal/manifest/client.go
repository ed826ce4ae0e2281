package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Client asks a server's API in the name of an account.
type Client struct {
	URL  string // without /api
	Key  string // an API key
	HTTP *http.Client
}

// Refusal is what a server says is wrong with what it was asked for.
type Refusal struct {
	Status int
	Text   string
	Fields map[string][]string // by the field's name, with dots within it
}

func (r *Refusal) Error() string {
	if len(r.Fields) == 0 {
		return r.Text
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		all = append(all, r.Fields[name]...)
	}
	return strings.Join(all, " ")
}

// ask asks the API with JSON. out, where not nil, takes the answer.
func (c *Client) ask(ctx context.Context, method, path string, body, out any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return c.send(ctx, method, path, "application/json", sent, func(r io.Reader) error {
		if out == nil {
			return nil
		}
		dec := json.NewDecoder(r)
		dec.UseNumber()
		return dec.Decode(out)
	})
}

// content reads a file of the API's.
func (c *Client) content(ctx context.Context, path string) (raw []byte, err error) {
	err = c.send(ctx, "GET", path, "", nil, func(r io.Reader) (err error) {
		raw, err = io.ReadAll(r)
		return err
	})
	return raw, err
}

// upload sends a form with a file. out takes the answer.
func (c *Client) upload(ctx context.Context, at string, fields map[string]string, name string, content []byte, out any) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if err := form.WriteField(k, fields[k]); err != nil {
			return err
		}
	}
	part, err := form.CreateFormFile("file", path.Base(name))
	if err == nil {
		_, err = part.Write(content)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return err
	}
	return c.send(ctx, "POST", at, form.FormDataContentType(), body.Bytes(), func(r io.Reader) error {
		return json.NewDecoder(r).Decode(out)
	})
}

// maxWaits is how often a server that is busy is asked again.
const maxWaits = 5

// send sends a request, again after a while where the server says so.
func (c *Client) send(ctx context.Context, method, path, kind string, body []byte, read func(io.Reader) error) error {
	for tries := 0; ; tries++ {
		wait, err := c.once(ctx, method, path, kind, body, read)
		if wait == 0 || tries == maxWaits {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// once sends a request. wait is after how long it is worth another try; 0: never.
func (c *Client) once(ctx context.Context, method, path, kind string, body []byte,
	read func(io.Reader) error) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+"/api"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	res, err := c.HTTP.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask the server: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode < 300 {
		if err := read(res.Body); err != nil {
			return 0, fmt.Errorf("the server answers %s %s with something else than an API of Parley: %w", method, path, err)
		}
		return 0, nil
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("ask the server: %w", err)
	}
	if res.StatusCode == http.StatusTooManyRequests {
		n, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		wait = time.Duration(min(max(1, n), 60)) * time.Second
	}
	return wait, refused(method, path, res.StatusCode, raw)
}

// refused is the error of an answer that says no.
func refused(method, path string, status int, raw []byte) error {
	var said struct {
		Message, Error string
		Errors         map[string][]string
	}
	if json.Unmarshal(raw, &said) == nil && said.Message+said.Error != "" && status < 500 {
		if status == http.StatusUnauthorized {
			said.Message = "the server doesn't know the key: make one with POST /user/api-keys, in the console, or with parley key create"
		}
		if said.Message == "" {
			said.Message = said.Error
		}
		return &Refusal{status, said.Message, said.Errors}
	}
	return fmt.Errorf("the server answers %s %s with %d: %.300s", method, path, status, bytes.TrimSpace(raw))
}
