package store_test

import (
	"testing"

	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestLastMessagesOfNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, ids := range [][]string{nil, {"no-such-conversation"}} {
			if last, err := db.LastMessages(t.Context(), ids); err != nil || len(last) != 0 {
				t.Errorf("%v: %v, %v", ids, last, err)
			}
		}
	})
}
