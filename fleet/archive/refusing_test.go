// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe/objectstore"
)

// TestArchiveInRefusingS3 archives into a server that refuses for a while, or for good: staged streams stay until their
// tapes are stored, and the error has what the server said.
func TestArchiveInRefusingS3(t *testing.T) {
	testenv.S3Server(t, "tapes")
	to, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	var status, refuse, refused atomic.Int64 // what PUT is refused with, and how many more
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && refuse.Add(-1) >= 0 {
			refused.Add(1)
			code := map[int64]string{503: "SlowDown", 403: "AccessDenied"}[status.Load()]
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(int(status.Load()))
			_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>not now</Message></Error>"))
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	t.Setenv("AWS_ENDPOINT_URL", proxy.URL)
	s, err := objectstore.Open(t.Context(), "s3://tapes/fleet")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		host   string
		status int64
		times  int64
		err    string // "": it is stored in the end
	}{
		{"busy for a moment", "a", 503, 2, ""},
		{"busy for good", "b", 503, 1 << 40, "503 SlowDown: not now"},
		{"not allowed", "c", 403, 1 << 40, "403 AccessDenied: not now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := t.TempDir()
			stage(t, data, tt.host, 1, 7, 0, 3, staging.ReasonStop)
			o := &Options{Data: data, Store: s, sealWith: seal}
			status.Store(tt.status)
			refuse.Store(tt.times)
			refused.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			res, err := Run(ctx, o)
			t.Logf("%d refusals, %s: %v", refused.Load(), time.Since(began).Round(time.Millisecond), err)
			if refused.Load() == 0 {
				t.Error("nothing was refused: the test does not test that")
			}
			left, listErr := staging.List(data)
			if listErr != nil {
				t.Fatal(listErr)
			}
			if tt.err == "" {
				if err != nil || res.Tapes != 1 || len(left) != 0 {
					t.Errorf("%+v, %v; %d streams left; want 1 tape and none", res, err, len(left))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) || len(left) != 1 {
				t.Errorf("%v, %d streams left; want an error with %q and 1", err, len(left), tt.err)
			}
			refuse.Store(0)
			if res, err := Run(t.Context(), o); err != nil || res.Tapes != 1 {
				t.Errorf("again: %+v, %v", res, err)
			}
		})
	}
}
