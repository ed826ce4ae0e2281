package catalog

import (
	"fmt"

	"parley/internal/ai"
	"parley/internal/parley"
)

// models is one snapshot of what is known about models.
type models struct {
	configured []parley.Model
	ofKind     map[parley.ModelKind][]parley.Model // configured ones
	byID       map[int64]model
}

type model struct {
	*parley.Model
	configured bool
}

type modelKey struct {
	kind parley.ModelKind
	code string
}

// modelsOf names the configured models, the built-in one last. A model is identified by its kind and code: if two
// vendors have models with the same code the first one counts, and no model can take the built-in one's place.
func modelsOf(vendors []*ai.Vendor) []parley.Model {
	seen := map[modelKey]bool{{parley.LLM, ""}: true, {parley.LLM, ai.BuiltIn}: true}
	var list, last []parley.Model
	for _, v := range vendors {
		if v.Models == nil {
			continue
		}
		for _, m := range v.Models() {
			m.Provider = v.Code
			switch key := (modelKey{m.Kind, m.Code}); {
			case v.Code == ai.BuiltIn:
				last = append(last, m)
			case !seen[key]:
				seen[key] = true
				list = append(list, m)
			}
		}
	}
	return append(list, last...)
}

func newModels(configured, rows []parley.Model) *models {
	m := &models{
		configured: make([]parley.Model, len(configured)),
		ofKind:     map[parley.ModelKind][]parley.Model{},
		byID:       make(map[int64]model, len(rows)),
	}
	copy(m.configured, configured)
	ids := make(map[modelKey]int64, len(rows))
	for _, row := range rows {
		ids[modelKey{row.Kind, row.Code}] = row.ID
		m.byID[row.ID] = model{&row, false}
	}
	for i := range m.configured {
		c := &m.configured[i]
		if c.ID = ids[modelKey{c.Kind, c.Code}]; c.ID != 0 {
			m.byID[c.ID] = model{c, true}
		}
		m.ofKind[c.Kind] = append(m.ofKind[c.Kind], *c)
	}
	return m
}

// SetModels takes all models that the database knows, whatever configured them, and so gives the configured ones their
// ids. The database keeps ids stable by (kind, code). If a configured model is missing, it returns an error and nothing
// changes.
func (c *Catalog) SetModels(rows []parley.Model) error {
	m := newModels(c.configuredModels, rows)
	for _, model := range m.configured {
		if model.ID == 0 {
			return fmt.Errorf("the configured %s model %s has no id", model.Kind, model.Code)
		}
	}
	c.models.Store(m)
	return nil
}

// Models lists the configured models; the built-in one, which is always there, comes last. Their ids are 0 until
// SetModels.
func (c *Catalog) Models() []parley.Model { return c.models.Load().configured }

// ModelsOf lists the configured models of a kind ("": every kind).
func (c *Catalog) ModelsOf(kind parley.ModelKind) []parley.Model {
	m := c.models.Load()
	if kind == "" {
		return m.configured
	}
	return orEmpty(m.ofKind[kind])
}

// Model finds a model by its id, configured here or not, nil if the database does not know it.
func (c *Catalog) Model(id int64) *parley.Model { return c.models.Load().byID[id].Model }

// ModelConfigured reports whether the model with this id is available on this server.
func (c *Catalog) ModelConfigured(id int64) bool { return c.models.Load().byID[id].configured }
