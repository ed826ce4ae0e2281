// Package docs is the guide, as files: what models read of it by MCP is what people read.
package docs

import "embed"

// Files are the pages of the guide.
//
//go:embed *.md guide/*.md reference/*.md
var Files embed.FS
