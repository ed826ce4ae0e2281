package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"

	"parley/internal/assistant"
	"parley/internal/parley"
)

// assistantExport sends an assistant as a file.
func (c *Console) assistantExport(r *request) (*answer, error) {
	f, err := c.Assistants.Export(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write assistant %d as a file: %w", r.id("id"), err)
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	name, _ := f.Assistant["name"].(string)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": assistant.FileName(name)}))
	r.w.Write(append(raw, '\n'))
	return nil, nil
}

func (c *Console) assistantImport(r *request) (*answer, error) {
	f, err := readFile(r)
	if err == nil {
		a, left, failed := c.Assistants.Import(r.Context(), r.UserID(), f)
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

// readFile reads the file that was sent.
func readFile(r *request) (*assistant.File, error) {
	file, _, err := r.FormFile("file") // the whole body is bounded, and small enough to be held
	if err != nil {
		return nil, parley.Errorf(parley.Invalid, "Choose a file of at most %d MiB.", formLimit>>20)
	}
	defer file.Close()
	dec := json.NewDecoder(io.LimitReader(file, formLimit))
	dec.UseNumber()
	f := new(assistant.File)
	if dec.Decode(f) != nil {
		return nil, parley.Errorf(parley.Invalid, "This is not an assistant file: choose one that was exported from here.")
	}
	return f, nil
}

// assistantDuplicate makes a copy of an assistant and opens it.
func (c *Console) assistantDuplicate(r *request) (*answer, error) {
	a, err := c.Assistants.Duplicate(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return see(assistantPath(a.ID, ""), "copied"), nil
}
