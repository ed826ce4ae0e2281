package api

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"parley/internal/parley"
	"parley/internal/web"
)

// maxParts bounds the fields of a form.
const maxParts = 200

var (
	errUploadLarge = &parley.Error{Kind: parley.TooLarge, Message: "The request body is too large."}
	errUploadType  = &parley.Error{Kind: parley.Unsupported,
		Message: "Send the request body as application/json or multipart/form-data."}
	errBadForm = &parley.Error{Kind: parley.Invalid, Code: badJSON,
		Message: "The request body is not valid multipart/form-data."}
)

// upload is a multipart/form-data body (RFC 7578) that its handler reads with fields.
type upload struct {
	parts *multipart.Reader
	slow  *web.Witness
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
	web.Patience(r, web.UploadTime)
	slow := &web.Witness{ReadCloser: http.MaxBytesReader(w, r.Body, limit)}
	return &upload{multipart.NewReader(slow, params["boundary"]), slow}, nil
}

// fields reads the form: its texts into a tree as a JSON body gives one, its files through take, which reads as much
// of each as it likes. An error of take ends the reading, unless it concerns a field alone: then it is told with all
// others.
func (u *upload) fields(take func(name string, content io.Reader) error) (map[string]any, error) {
	tree, left := map[string]any{}, int64(jsonLimit)
	for range maxParts {
		part, err := u.parts.NextPart()
		if err == io.EOF {
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
			if u.slow.Err != nil {
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
	case errors.As(u.slow.Err, &over):
		return errUploadLarge
	case u.slow.Err != nil:
		return errSlow
	}
	return otherwise
}
