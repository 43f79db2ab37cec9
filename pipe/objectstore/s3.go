// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const s3Scheme = "s3://"

// s3 is a Store in a bucket. The server and the keys are in the environment, as for other
// programs: AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY, or the file AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), or
// the credentials of a machine in the cloud. Keys are never arguments.
type s3 struct {
	client         *minio.Client
	bucket, prefix string // "" or with a slash at its end
}

// openS3 opens an existing bucket.
func openS3(ctx context.Context, where string) (*s3, error) {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(where, s3Scheme), "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	if bucket == "" {
		return nil, fmt.Errorf("%s has no bucket: s3://BUCKET/PREFIX", where)
	}
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL %q is not an http:// or https:// address", endpoint)
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) && os.Getenv("IOTAPE_S3_PLAIN") != "1" {
		return nil, fmt.Errorf(
			"AWS_ENDPOINT_URL %s would send tapes in clear text; use https://, or set IOTAPE_S3_PLAIN=1", endpoint)
	}
	transport, err := patientTransport(u.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	client, err := minio.New(u.Host, &minio.Options{
		Secure: u.Scheme == "https", Transport: transport,
		Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	s := &s3{client, bucket, prefix}
	ok, err := client.BucketExists(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if !ok {
		return nil, fmt.Errorf("%s: there is no such bucket", where)
	}
	return s, nil
}

// stall is for how long a connection may stand still within a request or an answer. For the first byte of an answer the
// client waits as long.
var stall = time.Minute

// patientTransport is the client's own, with connections that end when nothing moves for some time: a server that stops
// in the middle of a body would be waited for without end.
func patientTransport(secure bool) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	t.ResponseHeaderTimeout = stall
	limit, dial := stall, t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &movingConn{c, limit}, nil
	}
	return t, nil
}

// movingConn is a connection of which each read and write has a time limit.
type movingConn struct {
	net.Conn
	limit time.Duration
}

func (c *movingConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *movingConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *s3) Location(key string) string { return s3Scheme + s.bucket + "/" + s.prefix + key }

func (s *s3) fail(verb, key string, err error) error {
	if r := minio.ToErrorResponse(err); r.Code == minio.NoSuchKey || r.StatusCode == 404 &&
		r.Code != minio.NoSuchBucket {
		err = fs.ErrNotExist
	}
	if r := minio.ToErrorResponse(err); r.StatusCode >= 400 {
		err = fmt.Errorf("the server answered %d %s: %w", r.StatusCode, r.Code, err)
	}
	return fmt.Errorf("%s %s: %w", verb, s.Location(key), err)
}

func (s *s3) Put(ctx context.Context, key, file string) error {
	if _, err := s.client.FPutObject(ctx, s.bucket, s.prefix+key, file,
		minio.PutObjectOptions{ContentType: "application/octet-stream"}); err != nil {
		return s.fail("put", key, err)
	}
	return nil
}

// Create relies on the server's If-None-Match, which S3 has had since 2024.
func (s *s3) Create(ctx context.Context, key string, content []byte) error {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream"}
	o.SetMatchETagExcept("*")
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(content), int64(len(content)), o)
	if r := minio.ToErrorResponse(err); err != nil && (r.StatusCode == http.StatusPreconditionFailed ||
		r.StatusCode == http.StatusConflict) {
		return fmt.Errorf("create %s: %w", s.Location(key), fs.ErrExist)
	}
	if err != nil {
		return s.fail("create", key, err)
	}
	return nil
}

func (s *s3) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	o, err := s.client.GetObject(ctx, s.bucket, s.prefix+key, minio.GetObjectOptions{})
	if err == nil {
		_, err = o.Stat() // the first use makes the request
	}
	if err != nil {
		if o != nil {
			o.Close()
		}
		return nil, s.fail("get", key, err)
	}
	return o, nil
}

func (s *s3) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range s.client.ListObjectsIter(ctx, s.bucket,
			minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}) {
			if o.Err != nil {
				yield(Object{}, s.fail("list", prefix, o.Err))
				return
			}
			key, ok := strings.CutPrefix(o.Key, s.prefix)
			if ok && !strings.HasSuffix(key, "/") && !yield(Object{key, o.Size, o.LastModified}, nil) {
				return
			}
		}
	}
}

func (s *s3) Remove(ctx context.Context, key string) error {
	err := s.client.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{})
	if err != nil {
		if err = s.fail("remove", key, err); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return err
}
