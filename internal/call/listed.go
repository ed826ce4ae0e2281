package call

import (
	"context"

	"parley/internal/parley"
)

// errUnlisted refuses an agent's invitation.
var errUnlisted = parley.Errorf(parley.Forbidden,
	"Agents can call in only whom the account lists: the targets of its assistants' transfers, the telephones that its numbers ring, "+
		"and its own numbers. Ask an editor of the account to add this one.")

// listed reports whether an account lists somebody: as the target of an assistant's transfer, as a telephone that one of its
// numbers rings, or as a number of its own.
func (d *Center) listed(ctx context.Context, userID int64, to string) (bool, error) {
	want, _, ok := parley.TransferTarget(to)
	if !ok {
		return false, nil
	}
	same := func(other string) bool {
		target, _, ok := parley.TransferTarget(other)
		return ok && target == want
	}
	numbers, err := d.DB.Numbers(ctx, userID)
	if err != nil {
		return false, err
	}
	for i := range numbers {
		if same(numbers[i].PhoneNumber) {
			return true, nil
		}
		if route := numbers[i].Route; route != nil {
			for _, t := range route.Telephones {
				if same(t.PhoneNumber) {
					return true, nil
				}
			}
		}
	}
	assistants, err := d.DB.Assistants(ctx, userID, "")
	if err != nil {
		return false, err
	}
	for i := range assistants {
		for _, t := range assistants[i].Tools {
			if same(t.PhoneNumber) || same(t.SupervisorPhone) {
				return true, nil
			}
		}
	}
	return false, nil
}
