package assistant

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/provider/failover"
)

// Fallback is who goes on where an assistant's vendors fail, on this server. The zero value is nobody.
type Fallback struct {
	Models     []string      // vendor/model
	ModelAfter time.Duration // how long a model may take before the next one is asked; 0: see package failover

	circuits failover.Circuits
}

// Check says what of a server's lists is not there.
func (f *Fallback) Check(c *catalog.Catalog) error {
	for _, name := range f.Models {
		if modelNamed(c, name) == nil {
			var there []string
			for _, m := range c.ModelsOf(parley.LLM) {
				there = append(there, nameOf(&m))
			}
			return fmt.Errorf("PARLEY_FALLBACK_MODELS: there is no model %q; those configured are: %s", name,
				strings.Join(there, ", "))
		}
	}
	return nil
}

func nameOf(m *parley.Model) string { return m.Provider + "/" + m.Code }

func modelNamed(c *catalog.Catalog, name string) *parley.Model {
	for _, m := range c.ModelsOf(parley.LLM) {
		if nameOf(&m) == name {
			return &m
		}
	}
	return nil
}

// minds is a model, and those that go on where it fails. The error is that of the first where there is no other.
func (d *Studio) minds(first *parley.Model) (ai.Model, error) {
	f := &d.Fallback
	m, err := d.Providers.Model(first.Provider, first.Code)
	if err != nil {
		m = absentModel{err}
	}
	name := nameOf(first)
	list := &failover.Model{Budget: f.ModelAfter,
		Links: []failover.Link[ai.Model]{{Name: name, Circuit: f.circuits.Of(ai.TheModel, name), Do: m}}}
	for _, name := range f.Models {
		next := modelNamed(d.Catalog, name)
		if next == nil || nameOf(next) == nameOf(first) {
			continue
		}
		if m, failed := d.Providers.Model(next.Provider, next.Code); failed == nil {
			list.Links = append(list.Links,
				failover.Link[ai.Model]{Name: name, Circuit: f.circuits.Of(ai.TheModel, name), Do: m})
		}
	}
	if len(list.Links) == 1 {
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	return list, nil
}

// absentModel stands for a model that is not on this server: another goes on.
type absentModel struct{ err error }

// Generate implements ai.Model.
func (a absentModel) Generate(context.Context, ai.Request, func(ai.Delta) error) (ai.Reply, error) {
	return ai.Reply{}, a.err
}
