package console

import (
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strings"

	"parley/internal/parley"
	"parley/internal/web"
)

const (
	maxFiles = 20 // in one form; the script sends each in a form of its own
)

// badFile is a file that was not taken, and why.
type badFile struct{ name, why string }

// kinds are the types of documents by the ends of their files' names.
var kinds = map[string]parley.DocumentType{".pdf": parley.PDF, ".docx": parley.DOCX, ".txt": parley.TXT,
	".text": parley.TXT, ".md": parley.TXT}

// kindOf is the type that a file's name stands for, or why there is none.
func kindOf(name string) (kind parley.DocumentType, why string) {
	ext := strings.ToLower(path.Ext(name))
	switch kind = kinds[ext]; {
	case kind != "":
		return kind, ""
	case ext == ".doc" || ext == ".odt" || ext == ".rtf" || ext == ".pages":
		return "", "Files of this type can't be read. Save it as .docx or PDF and upload that."
	case ext == ".html" || ext == ".htm":
		return "", "Files of this type can't be read. Give the page's address beside instead."
	}
	return "", "Files of this type can't be read: PDF, Word (.docx) and text (.txt, .md) can."
}

// upload readies the request's body, which a form with files is read from, piece by piece.
func (r *request) upload(limit int64) *web.Witness {
	web.Patience(r.Request, web.UploadTime)
	body := &web.Witness{ReadCloser: http.MaxBytesReader(r.w, r.Body, limit)}
	r.Body = body
	return body
}

// filesAdd takes the files of a form in, each by itself: one that is refused stops none of the others.
func (c *Console) filesAdd(r *request) (*answer, error) {
	k, err := c.DB.Knowledgebase(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	body := r.upload(maxFiles*parley.MaxDocument + formLimit)
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, formError(err)
	}
	var refused []badFile
	taken := 0
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, formError(err)
		}
		name := fileName(part)
		if name == "" {
			continue // a box without a file
		}
		if taken+len(refused) == maxFiles {
			return nil, parley.Errorf(parley.TooLarge,
				"At most %d files can be uploaded at once. Those before %s were uploaded: upload the rest separately.", maxFiles, name)
		}
		why, err := c.fileAdd(r, k.ID, name, part)
		if err != nil && body.Err != nil {
			err = formError(body.Err)
		}
		if err != nil {
			return nil, err
		}
		if why != "" {
			refused = append(refused, badFile{name, why})
		} else {
			taken++
		}
	}
	if taken == 0 && len(refused) == 0 {
		refused = []badFile{{"", "There is no file yet: choose one first."}}
	}
	if len(refused) == 0 {
		return see("/knowledge/"+r.PathValue("id"), "uploaded"), nil
	}
	l, err := c.library(r, libraryQuery{Page: 1})
	if err != nil {
		return nil, err
	}
	l.refused = refused
	return c.libraryPage(r, l)
}

// escaped are the characters that browsers can't send in a file's name (WHATWG HTML, section 4.10.21.8).
var escaped = strings.NewReplacer("%0D", " ", "%0A", " ", "%22", `"`)

// fileName is the name that a file had where it comes from, fit to be shown.
func fileName(part *multipart.Part) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(escaped.Replace(part.FileName()), "�"))
	return strings.TrimSpace(name)
}

// fileAdd takes one file in, or says why not. The part of the file that it does not read is skipped by the next step of
// the form's reader.
func (c *Console) fileAdd(r *request, knowledgebase int64, name string, content io.Reader) (why string, err error) {
	kind, why := kindOf(name)
	if why != "" {
		return why, nil
	}
	blob, n, err := c.Knowledge.Upload(r.Context(), io.LimitReader(content, parley.MaxDocument+1))
	if err != nil {
		return "", err
	}
	if n > parley.MaxDocument {
		c.Knowledge.Discard(r.Context(), blob)
		return "It is larger than 20 MB. Split it and upload the parts.", nil
	}
	title := strings.TrimSpace(strings.TrimSuffix(name, path.Ext(name)))
	if title == "" {
		title = name
	}
	doc := &parley.Document{Name: cut(title, 255), Type: kind, Links: []string{}, Blob: blob, Size: n}
	if err := c.Knowledge.Add(r.Context(), r.UserID(), knowledgebase, doc); err != nil {
		c.Knowledge.Discard(r.Context(), blob)
		return "", err
	}
	return "", nil
}
