// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe/objectstore"
)

// TestArchiveInS3 archives into a real server, which goes away in the middle.
func TestArchiveInS3(t *testing.T) {
	stop := testenv.S3Server(t, "tapes")
	ctx, data := context.Background(), t.TempDir()
	s, err := objectstore.Open(ctx, "s3://tapes/fleet")
	if err != nil {
		t.Fatal(err)
	}
	stage(t, data, "a", 1, 7, 0, 3, staging.ReasonAge)
	stage(t, data, "a", 2, 7, 3, 2000, staging.ReasonStop)
	stage(t, data, "b", 1, 8, 0, 3, staging.ReasonStop)
	o := &Options{Data: data, Store: s, sealWith: seal}
	res, err := Run(ctx, o)
	if err != nil || res.Tapes != 2 || res.Streams != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := streamsOf(kept(t, s)); got != "a 1 a 2 | b 1 | " {
		t.Errorf("tapes of %s", got)
	}
	gone, err := Prune(ctx, s, &Keep{Age: time.Hour, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	if err != nil || len(gone) != 2 {
		t.Errorf("%d removed, %v", len(gone), err)
	}
	if got := streamsOf(kept(t, s)); got != "" {
		t.Errorf("tapes of %s are left", got)
	}
	stage(t, data, "c", 1, 9, 0, 3, staging.ReasonStop)
	stop()
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := Run(short, o); err == nil {
		t.Error("a server that is gone took a tape")
	}
	if left, _ := staging.List(data); len(left) != 1 {
		t.Errorf("%d streams are left", len(left))
	}
}
