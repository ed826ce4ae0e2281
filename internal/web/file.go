package web

import (
	"io"
	"net/http"
	"time"
)

// SendCSV answers with a list that write writes once it has begun. An error before that is returned.
func SendCSV(w http.ResponseWriter, r *http.Request, write func(begin func(name string) io.Writer) error) error {
	begun := false
	err := write(func(name string) io.Writer {
		begun = true
		h := w.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		return w
	})
	if err != nil && begun {
		Known(r, err, "")           // logs it
		panic(http.ErrAbortHandler) // a list that ends in the middle must not look whole
	}
	return err
}

// SendRecording answers with a recording under a name, or the range of it that is asked for.
func SendRecording(w http.ResponseWriter, r *http.Request, name string, made time.Time, wav io.ReadSeeker) {
	h := w.Header()
	h.Set("Content-Type", "audio/wav")
	h.Set("Content-Disposition", `inline; filename="`+name+`.wav"`)
	h.Set("Cache-Control", "private, no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", made, wav)
}
