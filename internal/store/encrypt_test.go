package store

import "testing"

// What is said to a database on another machine is encrypted, unless its address says otherwise.
func TestPlain(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for address, plain := range map[string]bool{
		"postgres://parley:secret@db.example.com/parley":                     false,
		"postgres://parley:secret@192.0.2.20:5432/parley?sslmode=require":    false,
		"postgres://parley:secret@db.example.com/parley?sslmode=verify-full": false,
		"postgres://parley:secret@192.0.2.20:5432/parley?sslmode=disable":    true,
		"postgres://parley:secret@db.example.com/parley?sslmode=prefer":      true,
		"postgres://parley:secret@127.0.0.1:5432/parley":                     false,
		"postgres://parley:secret@localhost/parley":                          false,
		"postgres:///parley?host=/var/run/postgresql":                        false,
		"postgres://parley:secret@127.0.0.1,db.example.com/parley":           false,
		"postgres://parley:secret@127.0.0.1,db.example.com/p?sslmode=prefer": true,
	} {
		if got := Plain(address); got != plain {
			t.Errorf("%s: %v", address, got)
		}
	}
}
