// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// TestStalledAnswer reads of a server that stops in the middle of a file and keeps the connection: that is an error.
func TestStalledAnswer(t *testing.T) {
	before := stall
	stall = time.Second
	defer func() { stall = before }()
	const size = 1 << 20
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"00000000000000000000000000000000"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		if r.URL.Path != "/tapes/a/file" {
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(size))
		if r.Method == http.MethodGet {
			_, _ = w.Write(make([]byte, size/2))
			_ = http.NewResponseController(w).Flush()
			<-end
		}
	}))
	defer server.Close()
	defer close(end)
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s, err := Open(t.Context(), "s3://tapes/a")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Get(t.Context(), "file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := io.Copy(io.Discard, f); err == nil || n > size/2 {
		t.Errorf("got %d bytes and %v, want an error after %d", n, err, size/2)
	}
}
