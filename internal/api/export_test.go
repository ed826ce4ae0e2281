package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// The types with which the tests of package api_test declare operations of their own.
type (
	Op      = op
	Request = request
	None    = none
)

const (
	User, Public, Anybody             = user, public, anybody
	Messages, Bare, Statuses, Success = messages, bare, statuses, successes
)

// Handle registers an operation as every other is, and writes the reference again.
func Handle[In, Out any](a *API, o Op, h func(context.Context, *Request, *In) (Out, error)) {
	handle(a, o, h)
	a.reference = sync.OnceValue(a.openAPI)
}

// Operation is a registered operation.
type Operation struct {
	Method, Path string
	Credential   bool
	Anybody      bool // a credential is not even looked at
}

// RoleTable are the operations that the table of roles names.
func RoleTable() (list []string) {
	for line := range roles {
		method, path, _ := strings.Cut(line, " ")
		list = append(list, fmt.Sprintf("%-6s %s", method, path))
	}
	return list
}

// Operations are all registered operations.
func (a *API) Operations() (list []Operation) {
	for _, o := range a.order {
		list = append(list, Operation{o.Method, o.Path, o.Access == user, o.Access == anybody})
	}
	return list
}

// ParseObject is the body reader without the connection.
func ParseObject(b []byte) (map[string]any, error) { return parseObject(b) }

// Address is the address that a request counts against.
func (a *API) Address(r *http.Request) string { return a.Front.Client(r) }
