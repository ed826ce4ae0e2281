package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir keeps objects as files. What Put has acknowledged survives a power loss; what was cut off leaves a hidden file
// that the next OpenDir removes. A file that is being written, by this process or another, is locked, and is let be.
type Dir struct{ path string }

const cutOff = ".put-*"

// OpenDir prepares a directory, which only its owner may read.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open blob directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(path, cutOff))
	for _, f := range left {
		err = errors.Join(err, sweep(f))
	}
	if err != nil {
		return nil, fmt.Errorf("open blob directory: %w", err)
	}
	return &Dir{path}, nil
}

// sweep removes a file that nobody writes any more.
func sweep(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) { // it has become an object
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if lock(f) != nil {
		return nil
	}
	return os.Remove(path)
}

// lock keeps a file from sweep for as long as it is open.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Put implements Store.
func (d *Dir) Put(ctx context.Context, name string, r io.Reader) (n int64, err error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	tmp, err := os.CreateTemp(d.path, cutOff)
	if err != nil {
		return 0, fmt.Errorf("put blob %s: %w", name, err)
	}
	defer func() {
		tmp.Close()
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	_ = lock(tmp) // where the file system has no locks, sweep gets none either
	if n, err = io.Copy(tmp, alive{ctx, r}); err != nil {
		return 0, err // the reader's own, as its giver knows it
	}
	to := filepath.Join(d.path, filepath.FromSlash(name))
	if err = errors.Join(tmp.Sync(), os.MkdirAll(filepath.Dir(to), 0o700), os.Rename(tmp.Name(), to),
		syncDir(filepath.Dir(to))); err != nil {
		return 0, fmt.Errorf("put blob %s: %w", name, err)
	}
	return n, nil
}

// alive ends reading with its context.
type alive struct {
	ctx context.Context
	r   io.Reader
}

func (a alive) Read(p []byte) (int, error) {
	if a.ctx.Err() != nil {
		return 0, context.Cause(a.ctx)
	}
	return a.r.Read(p)
}

// syncDir makes a new name in a directory last.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type file struct {
	*os.File
	size int64
}

func (f file) Size() int64 { return f.size }

// Open implements Store.
func (d *Dir) Open(_ context.Context, name string) (Object, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(d.path, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open blob %s: %w", name, err)
	}
	return file{f, info.Size()}, nil
}

// Delete implements Store.
func (d *Dir) Delete(_ context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(d.path, filepath.FromSlash(name)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete blob: %w", err)
	}
	return nil
}
