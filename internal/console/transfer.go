package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"

	"parley/internal/assistant"
	"parley/internal/parley"
)

// assistantExport sends an assistant as a file, as parley pull writes it.
func (c *Console) assistantExport(r *request) (*answer, error) {
	text, name, err := c.Assistants.ExportYAML(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/yaml")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	r.w.Write(text)
	return nil, nil
}

func (c *Console) assistantImport(r *request) (*answer, error) {
	text, err := readFile(r)
	if err == nil {
		a, left, failed := c.imported(r, text)
		if failed == nil {
			return show("Imported", importedPage(a, left)), nil
		}
		err = failed
	}
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != parley.Invalid {
		return nil, err
	}
	return invalid("New assistant", assistantNew(c.blank(r), c.spoken(r), e.Message)), nil
}

// imported makes an assistant of a file: as parley pull writes it, or as the API exports one.
func (c *Console) imported(r *request, text []byte) (*parley.Assistant, []string, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return c.Assistants.ImportYAML(r.Context(), r.UserID(), text)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	f := new(assistant.File)
	if dec.Decode(f) != nil {
		return nil, nil, parley.Errorf(parley.Invalid, "This is not an assistant file: choose one that was exported from here.")
	}
	return c.Assistants.Import(r.Context(), r.UserID(), f)
}

// readFile reads the file that was sent.
func readFile(r *request) ([]byte, error) {
	file, _, err := r.FormFile("file") // the whole body is bounded, and small enough to be held
	if err != nil {
		return nil, parley.Errorf(parley.Invalid, "Choose a file of at most %d MiB.", formLimit>>20)
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, formLimit))
}

// assistantDuplicate makes a copy of an assistant and opens it.
func (c *Console) assistantDuplicate(r *request) (*answer, error) {
	a, err := c.Assistants.Duplicate(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return see(assistantPath(a.ID, ""), "copied"), nil
}
