// Package blob keeps uploads and recordings: bytes under a name, in a directory or in S3. It never holds a whole file
// in memory.
package blob

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Store keeps objects. It is safe for concurrent use. Names are paths such as "documents/3f2a…": parts of letters,
// digits, _ and -, joined by / and with dots inside.
type Store interface {
	// Put stores what r gives until its end, and says how many bytes that were. When it fails, also because r does,
	// there is no object of that name, or still the former one.
	Put(ctx context.Context, name string, r io.Reader) (int64, error)
	// Open opens an object for reading. One that is not there is fs.ErrNotExist.
	Open(ctx context.Context, name string) (Object, error)
	// Delete removes an object. One that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// Object is an open object. It ends with the context that it was opened with.
type Object interface {
	io.ReadSeekCloser
	io.ReaderAt
	Size() int64
}

// Open prepares the store that an address names: s3://… (see OpenS3), or a directory.
func Open(address string) (Store, error) {
	if strings.HasPrefix(address, "s3://") {
		return OpenS3(address)
	}
	return OpenDir(address)
}

var name = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$`)

func checkName(s string) error {
	if len(s) > 512 || !name.MatchString(s) {
		return fmt.Errorf("blob: %q is no name", s)
	}
	return nil
}
