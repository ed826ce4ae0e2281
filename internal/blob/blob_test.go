package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"parley/internal/blob"
)

// each runs a test on a directory and on a bucket.
func each(t *testing.T, test func(t *testing.T, s blob.Store)) {
	t.Run("directory", func(t *testing.T) {
		s, err := blob.Open(filepath.Join(t.TempDir(), "blobs"))
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
	t.Run("s3", func(t *testing.T) {
		s, err := blob.Open(newS3(t).address)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, s blob.Store) {
		ctx := t.Context()
		for _, size := range []int{0, 1, 70_000, 5 << 20, 5<<20 + 1, 12 << 20} {
			want := content(size)
			// a reader whose size can't be asked
			n, err := s.Put(ctx, "documents/a-b_c.1", io.MultiReader(bytes.NewReader(want)))
			if err != nil || n != int64(size) {
				t.Fatalf("put %d bytes: %d %v", size, n, err)
			}
			o, err := s.Open(ctx, "documents/a-b_c.1")
			if err != nil || o.Size() != int64(size) {
				t.Fatalf("open %d bytes: %v", size, err)
			}
			got, err := io.ReadAll(o)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back as %d: %v", size, len(got), err)
			}
			if size > 100 {
				part := make([]byte, 50)
				if _, err := o.ReadAt(part, int64(size-60)); err != nil || !bytes.Equal(part, want[size-60:size-10]) {
					t.Errorf("a part of %d bytes: %v", size, err)
				}
				if _, err := o.Seek(10, io.SeekStart); err != nil {
					t.Error(err)
				}
				if _, err := io.ReadFull(o, part); err != nil || !bytes.Equal(part, want[10:60]) {
					t.Errorf("after seeking in %d bytes: %v", size, err)
				}
			}
			o.Close()
		}
		for range 2 { // the second time it is not there
			if err := s.Delete(ctx, "documents/a-b_c.1"); err != nil {
				t.Error(err)
			}
			if _, err := s.Open(ctx, "documents/a-b_c.1"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a deleted one opened: %v", err)
			}
		}
	})
}

var errTorn = errors.New("torn")

// torn is a reader that returns some bytes and then fails.
type torn struct{ left int }

func (r *torn) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errTorn
	}
	n := min(len(p), r.left)
	r.left -= n
	return n, nil
}

func TestTornUploadLeavesWhatWasThere(t *testing.T) {
	each(t, func(t *testing.T, s blob.Store) {
		ctx := t.Context()
		for _, size := range []int{100, 11 << 20} { // within one part, and after two parts
			if _, err := s.Put(ctx, "x", &torn{size}); !errors.Is(err, errTorn) {
				t.Errorf("a torn upload: %v", err)
			}
			if _, err := s.Open(ctx, "x"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a torn upload of %d bytes is there: %v", size, err)
			}
		}
		if _, err := s.Put(ctx, "x", bytes.NewReader([]byte("first"))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(ctx, "x", &torn{100}); !errors.Is(err, errTorn) {
			t.Error(err)
		}
		o, err := s.Open(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if got, _ := io.ReadAll(o); string(got) != "first" {
			t.Errorf("it is now %q", got)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Put(cancelled, "y", bytes.NewReader([]byte("late"))); err == nil {
			t.Error("a cancelled upload was stored")
		}
	})
}

func TestNamesStayInside(t *testing.T) {
	each(t, func(t *testing.T, s blob.Store) {
		for _, name := range []string{"", "/x", "x/", "../x", "x/../y", ".x", "a//b", "a b", "a\x00", "a/.b", "ü",
			"a?b", `a\b`} {
			if _, err := s.Put(t.Context(), name, bytes.NewReader(nil)); err == nil {
				t.Errorf("%q is taken", name)
			}
			if _, err := s.Open(t.Context(), name); err == nil {
				t.Errorf("%q opens", name)
			}
			if err := s.Delete(t.Context(), name); err == nil {
				t.Errorf("%q is deleted", name)
			}
		}
	})
}

// endless is a reader of n bytes that measures the memory in use now and then.
type endless struct {
	n    int64
	most *atomic.Uint64
}

func (r *endless) Read(p []byte) (int, error) {
	if r.n <= 0 {
		return 0, io.EOF
	}
	if r.n%(1<<20) < int64(len(p)) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		r.most.Store(max(r.most.Load(), m.HeapInuse))
	}
	n := min(int64(len(p)), r.n)
	r.n -= n
	return int(n), nil
}

func TestUploadsAreNotHeldInMemory(t *testing.T) {
	each(t, func(t *testing.T, s blob.Store) {
		var most atomic.Uint64
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if n, err := s.Put(t.Context(), "big", &endless{n: 128 << 20, most: &most}); err != nil || n != 128<<20 {
			t.Fatal(n, err)
		}
		if most.Load() > before.HeapInuse+48<<20 {
			t.Errorf("128 MiB took %d MiB of memory", most.Load()>>20)
		}
	})
}

func TestCutOffUploadsAreSwept(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".put-123")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.OpenDir(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a cut-off upload stays for ever")
	}
}

// Another process may open the directory (the doctor, a second node) while something is being stored in it.
func TestUploadsUnderWayAreNotSwept(t *testing.T) {
	dir := t.TempDir()
	s, err := blob.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	stored := make(chan error, 1)
	go func() {
		_, err := s.Put(t.Context(), "x", r)
		stored <- err
	}()
	io.WriteString(w, "begun, ")
	if _, err := blob.OpenDir(dir); err != nil {
		t.Error(err)
	}
	io.WriteString(w, "ended")
	w.Close()
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if got, _ := io.ReadAll(o); string(got) != "begun, ended" {
		t.Errorf("stored %q", got)
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"s3://", "s3:///x", "s3://b?endpoint=nowhere", "s3://b?endpoint=ftp://x"} {
		if _, err := blob.Open(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	server := newS3(t)
	server.secret = "another"
	s, err := blob.Open(server.address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "x", bytes.NewReader([]byte("x"))); err == nil {
		t.Error("a wrong secret may write")
	}
	if _, err := s.Open(t.Context(), "x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a wrong secret reads: %v", err)
	}
}
