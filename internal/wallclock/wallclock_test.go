// SPDX-License-Identifier: Apache-2.0

package wallclock_test

import (
	"testing"
	"time"

	"github.com/iotape/iotape/internal/wallclock"
)

func TestText(t *testing.T) {
	was := time.Local
	time.Local = time.FixedZone("X", 2*3600)
	defer func() { time.Local = was }()
	at := time.Date(2026, 1, 2, 23, 4, 5, 678_900_000, time.UTC)
	for _, c := range []struct {
		form wallclock.Form
		at   time.Time
		want string
	}{
		{wallclock.Form{}, at, "2026-01-03 01:04:05"},
		{wallclock.Form{UTC: true}, at, "2026-01-02 23:04:05"},
		{wallclock.Form{Epoch: true}, at, "1767395045.678"},
		{wallclock.Form{UTC: true, Epoch: true}, at, "1767395045.678"},
		{wallclock.Form{Epoch: true}, time.UnixMilli(-1500), "-1.500"},
	} {
		if got := c.form.Text(c.at, wallclock.Second); got != c.want {
			t.Errorf("%+v: %q, want %q", c.form, got, c.want)
		}
	}
}
