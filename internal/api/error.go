package api

import (
	"cmp"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

// family is the shape in which a group of routes tells its failures (contract 7.1, decisions 1).
type family int

const (
	messages  family = iota // {message}, validation {message, errors}
	bare                    // {error}: knowledgebases, documents, numbers; validation as above
	statuses                // {status:false, error}: the public conversations, validation too
	successes               // {message, success:false}: a campaign's start and stop
	whatsApp                // {success:false, error, error_code}
)

type errorBody struct {
	Status  *bool          `json:"status,omitempty"`
	Success *bool          `json:"success,omitempty"`
	Message string         `json:"message,omitempty"`
	Error   string         `json:"error,omitempty"`
	Code    string         `json:"error_code,omitempty"`
	Errors  *parley.Fields `json:"errors,omitempty"`
	Retry   int            `json:"retry_after,omitempty"`
	Detail  string         `json:"detail,omitempty" doc:"Which limit was reached, its value, and how to go on."`
}

// shape is e as a family tells it.
func (f family) shape(e *parley.Error) errorBody {
	no := false
	switch {
	case e.Kind == parley.Unauthenticated && f != statuses, e.Kind == parley.TooMany:
		return errorBody{Message: e.Message, Detail: e.Detail}
	case f == statuses:
		return errorBody{Status: &no, Error: e.Message}
	case e.Kind == parley.Invalid && (len(e.Fields) > 0 || e.Code == badJSON):
		return errorBody{Message: e.Message, Errors: &e.Fields}
	// {message} everywhere (decisions 1, 2), {error} for trunks (6)
	case (e.Kind == parley.Conflict || e.Kind == parley.Forbidden) && f == bare:
		return errorBody{Message: e.Message, Error: e.Message}
	case e.Kind == parley.Conflict, e.Kind == parley.TooLarge, e.Kind == parley.Unsupported:
		return errorBody{Message: e.Message}
	case f == bare:
		return errorBody{Error: e.Message}
	case f == whatsApp:
		return errorBody{Success: &no, Error: e.Message, Code: cmp.Or(e.Code, whatsAppCodes[e.Kind], "SERVER_ERROR")}
	case f == successes:
		return errorBody{Success: &no, Message: e.Message}
	}
	return errorBody{Message: e.Message}
}

// whatsAppCodes are the codes of failures that have none of their own: of the frame, of a path that can't be one.
var whatsAppCodes = map[parley.Kind]string{parley.NotFound: "SENDER_NOT_FOUND", parley.Refused: "BAD_REQUEST",
	parley.Invalid: "INVALID_REQUEST"}

// badJSON marks the validation error that has an empty errors object.
const badJSON = "bad_json"

// broken is what an asker reads of an error that is ours to mend, where the operation has no text of its own.
const broken = "Server error. Quote the X-Request-Id when you report it."

// fail answers with an error. It is the one place where an error becomes an answer.
func (a *API) fail(w http.ResponseWriter, r *http.Request, f family, failure string, err error) {
	err = store.Told(err)
	e := web.Known(r, err, cmp.Or(failure, broken))
	body := f.shape(e)
	body.Retry = web.RetryAfter(w, err)
	early := e != errSlow && stillSending(w, r)
	send(w, web.Status(e.Kind), body)
	if early {
		linger(w, r)
	}
}

// lingerBytes is how much is read of a body after the answer to it.
const lingerBytes = 64 << 20

// stillSending says whether a request that is about to be refused may have a body that was not read to its end.
// net/http would answer and close the connection: a client that reads only after it has sent everything finds it
// broken, and never learns why.
func stillSending(w http.ResponseWriter, r *http.Request) bool {
	const readAnyway = 256 << 10 // by net/http
	large := r.ContentLength < 0 || r.ContentLength > readAnyway
	return large && r.Header.Get("Expect") == "" && http.NewResponseController(w).EnableFullDuplex() == nil
}

// linger sends the answer and reads on, for as long as a body may take.
func linger(w http.ResponseWriter, r *http.Request) {
	if http.NewResponseController(w).Flush() == nil {
		web.Patience(r, web.BodyTime)
		io.CopyN(io.Discard, r.Body, lingerBytes) // a client that left has read what it wanted
	}
}

// send answers with JSON.
func send(w http.ResponseWriter, status int, body any) {
	b := buffers.Get()
	defer buffers.Put(b)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		slog.Error("encode an answer", "error", err)
		http.Error(w, `{"message":"Server error."}`, http.StatusInternalServerError)
		return
	}
	write(w, status, b.Bytes())
}

func write(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(body) // a reader who left is nobody's error
}
