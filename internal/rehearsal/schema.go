package rehearsal

import (
	_ "embed"
)

// Schema is the JSON Schema of a case's file, for editors.
//
//go:embed case.schema.json
var Schema []byte
