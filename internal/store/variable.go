package store

import (
	"context"
	"encoding/json"
	"fmt"

	"parley/internal/parley"
)

// The variables of an assistant may hold keys and passwords (for the headers and endpoints of its tools), so they are
// encrypted as those headers are. The column of former versions stays empty; what one of their nodes writes there
// while a server is renewed node by node counts, and is encrypted by the next change, or by SealVariables.

const variablesSeal = "assistant variables"

func (q Query) sealVariables(a *parley.Assistant) error {
	a.Unsealed = map[string]string{}
	if a.Sealed = nil; len(a.Variables) == 0 {
		return nil
	}
	plain, err := json.Marshal(a.Variables)
	a.Sealed = q.box.seal(variablesSeal, plain)
	return err
}

func (q Query) unsealVariables(a *parley.Assistant) error {
	if a.Variables = a.Unsealed; len(a.Variables) > 0 || len(a.Sealed) == 0 {
		if a.Variables == nil {
			a.Variables = map[string]string{}
		}
		return nil
	}
	plain, err := q.box.open(variablesSeal, a.Sealed)
	if err != nil {
		return fmt.Errorf("variables of assistant %d: %w", a.ID, err)
	}
	a.Variables = nil // a map of its own
	return json.Unmarshal(plain, &a.Variables)
}

// SealVariables encrypts the variables of some assistants that a former version stored, and says how many there were.
func (tx *Tx) SealVariables(ctx context.Context, limit int) (int, error) {
	var list []parley.Assistant
	empty := "'{}'"
	if !tx.sqlite {
		empty = "'{}'::jsonb"
	}
	s := tx.locked(tx.q.NewSelect().Model(&list).Column("id", "variables").Where("variables <> " +
		empty).Limit(int64(limit)))
	if err := s.Scan(ctx); err != nil {
		return 0, err
	}
	for i := range list {
		a := &list[i]
		a.Variables = a.Unsealed
		if err := tx.sealVariables(a); err != nil {
			return 0, err
		}
		if _, err := tx.q.NewUpdate().Model(a).Column("variables", "sealed_variables").WherePK().Exec(ctx); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}
