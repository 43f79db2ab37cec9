// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"sync"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/account"
	"github.com/iotape/iotape/model/aggregate"
)

// UserNames returns a function that names users, and remembers them.
func UserNames() func(uid uint32) string {
	var mu sync.Mutex
	known := map[uint32]string{}
	return func(uid uint32) string {
		mu.Lock()
		defer mu.Unlock()
		name, ok := known[uid]
		if !ok {
			name = account.User(uid)
			if len(known) < 1<<16 {
				known[uid] = name
			}
		}
		return name
	}
}

// TotalText says what a table of sums is of.
func TotalText(sum *aggregate.Table) string {
	c := sum.Total()
	if sum.By&aggregate.BySignal != 0 {
		return fmt.Sprintf("in all: %s, %s fatal", report.Plural(c.Calls, "signal", "signals"), report.Count(c.Failed))
	}
	return fmt.Sprintf("in all: %s, %s failed, read %s, wrote %s",
		report.Plural(c.Calls, "call", "calls"), report.Count(c.Failed), report.Bytes(c.Read), report.Bytes(c.Written))
}
