package api

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"time"

	"parley"
)

// uploadTime is how long a whole upload may take; between two pieces of it bodyTime may pass.
const uploadTime = 15 * time.Minute

// maxParts bounds the fields of a form.
const maxParts = 200

var (
	errUploadLarge = &parley.Error{Kind: parley.TooLarge, Message: "The request body is too large."}
	errUploadType  = &parley.Error{Kind: parley.Unsupported, Message: "Send the request body as application/json or multipart/form-data."}
	errBadForm     = &parley.Error{Kind: parley.Invalid, Code: badJSON, Message: "The request body is not valid multipart/form-data."}
)

// upload is a multipart/form-data body (RFC 7578) that its handler reads with fields.
type upload struct {
	parts *multipart.Reader
	slow  *patient
}

// openUpload prepares a request's form, nil when its body is none. Nothing of it is read yet.
func openUpload(w http.ResponseWriter, r *http.Request, limit int64) (*upload, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || kind != "multipart/form-data":
		return nil, nil
	case params["boundary"] == "":
		return nil, errBadForm
	case r.ContentLength > limit:
		return nil, errUploadLarge
	}
	slow := &patient{body: http.MaxBytesReader(w, r.Body, limit), control: http.NewResponseController(w), until: time.Now().Add(uploadTime)}
	return &upload{multipart.NewReader(slow, params["boundary"]), slow}, nil
}

// patient reads a body whose sender may pause for bodyTime, and remembers how it failed: what reads from it tells that in other words.
type patient struct {
	body    io.Reader
	control *http.ResponseController
	until   time.Time
	err     error
}

func (p *patient) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	deadline := time.Now().Add(bodyTime)
	if deadline.After(p.until) {
		deadline = p.until
	}
	p.control.SetReadDeadline(deadline) // not every test writer has one
	n, err := p.body.Read(b)
	if err != nil && err != io.EOF {
		p.err = err
	}
	return n, err
}

// fields reads the form: its texts into a tree as a JSON body gives one, its files through take, which reads as much of each as it likes.
// An error of take ends the reading, unless it concerns a field alone: then it is told with all others.
func (u *upload) fields(take func(name string, content io.Reader) error) (map[string]any, error) {
	tree, left := map[string]any{}, int64(jsonLimit)
	for range maxParts {
		part, err := u.parts.NextPart()
		if err == io.EOF {
			u.slow.control.SetReadDeadline(time.Time{})
			return tree, nil
		}
		if err != nil {
			return nil, u.failed(errBadForm)
		}
		if part.FileName() != "" {
			err = take(part.FormName(), part)
		} else {
			var text []byte
			if text, err = io.ReadAll(io.LimitReader(part, left+1)); int64(len(text)) > left {
				return nil, errTooLarge
			}
			left -= int64(len(text))
			tree[part.FormName()] = string(text)
			if err != nil {
				err = u.failed(errBadForm)
			}
		}
		if err != nil {
			if u.slow.err != nil {
				err = u.failed(err)
			}
			return nil, err
		}
	}
	return nil, errBadForm
}

// failed says how the reading failed: otherwise unless it is the connection's or the limit's doing.
func (u *upload) failed(otherwise error) error {
	var over *http.MaxBytesError
	switch {
	case errors.As(u.slow.err, &over):
		return errUploadLarge
	case u.slow.err != nil:
		return errSlow
	}
	return otherwise
}
