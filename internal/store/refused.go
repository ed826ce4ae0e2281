package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Refused says whether a write failed for what was to be written: the database answered, and would not take it the
// next time either. A database that can't be reached, is full, busy or broken is another matter.
func Refused(err error) bool {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	var marshal *json.MarshalerError
	var value *json.UnsupportedValueError
	switch {
	case errors.As(err, &pg):
		// Data exceptions, violated constraints, mistakes in the statement, limits of a statement.
		return slices.ContainsFunc([]string{"22", "23", "42", "54"},
			func(class string) bool { return strings.HasPrefix(pg.Code, class) })
	case errors.As(err, &lite):
		return slices.Contains([]int{sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT,
			sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}, lite.Code()&0xff)
	}
	return errors.As(err, &marshal) || errors.As(err, &value)
}
