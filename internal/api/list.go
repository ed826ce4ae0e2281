package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"parley/internal/web"
)

// How many rows of an unpaginated list are in memory at once: few at first, and more while they are small.
const (
	firstRows = 10
	maxRows   = 200
	smallPage = 32 << 10 // bytes: after a page that is no larger, the next one has four times its rows
)

// sendList answers with a JSON list that next reads page by page, n rows or fewer for the last: a slow reader holds a page
// of it in memory, not the list. An error before the first page is returned; a list that breaks off later does not look whole.
func sendList[T any](w http.ResponseWriter, r *http.Request, next func(n int) ([]T, error)) error {
	n := firstRows
	rows, err := next(n)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('[')
	for begun := false; len(rows) > 0; {
		last := len(rows) < n
		for i := range rows {
			if begun {
				b.WriteByte(',')
			}
			begun = true
			err = errors.Join(err, enc.Encode(rows[i]))
		}
		rows = nil // what is written slowly is the text alone
		if err == nil {
			_, err = w.Write(b.Bytes())
		}
		if b.Len() <= smallPage {
			n = min(4*n, maxRows)
		}
		if b.Reset(); err != nil || last {
			break
		}
		if rows, err = next(n); err != nil {
			break
		}
	}
	if err != nil {
		if r.Context().Err() == nil {
			web.Known(r, err, "") // logs it
		}
		panic(http.ErrAbortHandler)
	}
	b.WriteString("]\n")
	w.Write(b.Bytes()) // a reader who left is nobody's error
	return errAnswered
}
