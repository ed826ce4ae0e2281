package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 keeps objects in a bucket of Amazon S3, or of a server that speaks its protocol.
type S3 struct {
	client *minio.Client
	bucket string
	prefix string
}

// partSize is the memory that an upload takes: S3's smallest part.
const partSize = 5 << 20

// OpenS3 prepares a bucket: s3://KEY:SECRET@BUCKET/PREFIX?endpoint=https://host:port&region=REGION. Without KEY and
// SECRET the usual AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY count; without an endpoint it is Amazon's. It asks the
// server nothing.
func OpenS3(address string) (*S3, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errors.New("open s3: write the address as s3://KEY:SECRET@BUCKET/PREFIX?endpoint=https://HOST&region=REGION")
	}
	endpoint := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if at := u.Query().Get("endpoint"); at != "" {
		if endpoint, err = url.Parse(at); err != nil || endpoint.Host == "" || endpoint.Scheme != "http" &&
			endpoint.Scheme != "https" {
			return nil, fmt.Errorf("open s3: endpoint %q is not an address such as https://host:port", at)
		}
	}
	key, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if u.User != nil {
		key = u.User.Username()
		secret, _ = u.User.Password()
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(key, secret, os.Getenv("AWS_SESSION_TOKEN")),
		Secure: endpoint.Scheme == "https",
		Region: u.Query().Get("region"),
	})
	if err != nil {
		return nil, fmt.Errorf("open s3: %w", err)
	}
	s := &S3{client: client, bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if s.prefix != "" {
		s.prefix += "/"
	}
	return s, nil
}

// Put implements Store.
func (s *S3) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	seen := &witness{r: r}
	info, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, seen, -1,
		minio.PutObjectOptions{PartSize: partSize, NumThreads: 1,
			ContentType: "application/octet-stream"})
	switch {
	case seen.err != nil:
		return 0, seen.err
	case err != nil:
		return 0, fmt.Errorf("put blob %s: %w", name, err)
	}
	return info.Size, nil
}

// witness remembers how its reader failed: the client would tell it in words of its own.
type witness struct {
	r   io.Reader
	err error
}

func (w *witness) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

type object struct {
	*minio.Object
	size int64
}

func (o object) Size() int64 { return o.size }

// Open implements Store.
func (s *S3) Open(ctx context.Context, name string) (Object, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	o, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", name, err)
	}
	info, err := o.Stat()
	if err != nil {
		o.Close()
		if minio.ToErrorResponse(err).Code == "NoSuchKey" {
			err = fs.ErrNotExist
		}
		return nil, fmt.Errorf("open blob %s: %w", name, err)
	}
	return object{o, info.Size}, nil
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := s.client.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("delete blob %s: %w", name, err)
	}
	return nil
}
