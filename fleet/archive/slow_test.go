// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe/objectstore"
)

// TestArchiveInFailingS3 archives into a server that answers late, cuts connections within the bodies of requests or
// answers, gives back other bytes than it got, or says that it has others. Staged streams stay until their tapes
// are stored whole, a run ends, and it ends at once when it is told to.
func TestArchiveInFailingS3(t *testing.T) {
	testenv.Short(t, "it waits for a server that does not answer")
	testenv.S3Server(t, "tapes")
	to, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.ErrorLog = nil
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {}
	var fault atomic.Value
	fault.Store("")
	var faults, requests, left atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		put := r.Method == http.MethodPut
		get := r.Method == http.MethodGet && strings.Contains(r.URL.Path, ".tape/")
		what := fault.Load().(string)
		if !put && !get || !strings.HasPrefix(what, strings.ToLower(r.Method)) || left.Add(-1) < 0 {
			forward.ServeHTTP(w, r)
			return
		}
		faults.Add(1)
		switch what {
		case "put late", "get late":
			select {
			case <-time.After(3 * time.Second):
			case <-r.Context().Done():
			}
			forward.ServeHTTP(w, r)
		case "put never", "get never":
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		case "put cut":
			_, _ = io.CopyN(io.Discard, r.Body, 10)
			hangUp(w)
		case "get cut":
			answer(forward, w, r, func(b []byte) []byte { return b[:len(b)/2] })
		case "get other":
			answer(forward, w, r, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		case "put etag":
			// The answer has the sum of other bytes.
			rec := httptest.NewRecorder()
			forward.ServeHTTP(rec, r)
			w.Header().Set("ETag", `"00000000000000000000000000000000"`)
			w.WriteHeader(rec.Code)
		}
	}))
	defer proxy.Close()
	t.Setenv("AWS_ENDPOINT_URL", proxy.URL)
	s, err := objectstore.Open(t.Context(), "s3://tapes/fleet")
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		fault string
		times int64 // 0: for good
		ends  bool  // the run ends by itself
	}{
		{"put late", 2, true}, {"get late", 2, true}, {"put never", 0, false}, {"get never", 0, false},
		{"put cut", 1, true}, {"get cut", 1, true}, {"put cut", 0, true}, {"get cut", 0, true},
		{"get other", 0, true}, {"put etag", 0, true},
	} {
		t.Run(tt.fault+" "+strconv.FormatInt(tt.times, 10), func(t *testing.T) {
			data := t.TempDir()
			stage(t, data, "h"+strconv.Itoa(i), 1, 7, 0, 3, staging.ReasonStop)
			o := &Options{Data: data, Store: s, sealWith: seal}
			fault.Store(tt.fault)
			faults.Store(0)
			requests.Store(0)
			if left.Store(tt.times); tt.times == 0 {
				left.Store(1 << 40)
			}
			patience := 2 * time.Minute
			if !tt.ends {
				patience = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			res, err := Run(ctx, o)
			t.Logf("%d faults of %d requests, %s, %d tapes: %v", faults.Load(), requests.Load(),
				time.Since(began).Round(time.Millisecond), res.Tapes, err)
			if faults.Load() == 0 || requests.Load() > 200 {
				t.Errorf("%d faults of %d requests; want some, and no endless repetition",
					faults.Load(), requests.Load())
			}
			if tt.ends && errors.Is(err, context.DeadlineExceeded) {
				t.Error("the run does not end")
			}
			streams, listErr := staging.List(data)
			if listErr != nil {
				t.Fatal(listErr)
			}
			if stored := err == nil && res.Tapes == 1; stored != (len(streams) == 0) {
				t.Errorf("%+v, %v, and %d streams are left", res, err, len(streams))
			}
			fault.Store("")
			if res, err := Run(t.Context(), o); err != nil || len(streams) == 1 && res.Tapes != 1 {
				t.Errorf("again: %+v, %v", res, err)
			}
		})
	}
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
}

// answer forwards a request and changes the body of the answer, whose length stays as it was said to be.
func answer(forward http.Handler, w http.ResponseWriter, r *http.Request, change func([]byte) []byte) {
	rec := httptest.NewRecorder()
	forward.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(rec.Code)
	if len(body) == 0 {
		return
	}
	n := len(body)
	if body = change(body); len(body) < n {
		_, _ = w.Write(body)
		hangUp(w)
		return
	}
	_, _ = w.Write(body)
}
