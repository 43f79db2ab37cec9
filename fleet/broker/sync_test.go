// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"testing"
	"time"
)

// With a Sync of 0 each batch is synced before it is confirmed; otherwise the file is synced
// that often.
func TestSyncBeforeAnswer(t *testing.T) {
	for every, always := range map[time.Duration]bool{0: true, 2 * time.Second: false} {
		b, err := Start(&Options{Data: t.TempDir(), Listen: "127.0.0.1:0", Sync: every, Note: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		c := b.server.JetStreamConfig()
		b.Close()
		if c.SyncAlways != always || !always && c.SyncInterval != every {
			t.Errorf("every %s: synced before each answer: %v, every %s; want %v, every %s", every, c.SyncAlways,
				c.SyncInterval, always, every)
		}
	}
}
