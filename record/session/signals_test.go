// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestSignalsBeforeSealing checks that signals which were sent while the recording went on do
// not end the sealing, however late they are read, and that later ones do.
func TestSignalsBeforeSealing(t *testing.T) {
	for range 200 {
		s := catchSignals()
		s.c <- syscall.SIGINT
		s.c <- syscall.SIGTERM
		ctx := s.Sealing()
		if err := ctx.Err(); err != nil {
			t.Fatalf("a signal of the recording ends the sealing: %v", err)
		}
		s.c <- os.Interrupt // the third
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Fatal("a signal during the sealing does not end it")
		}
		s.Stop()
	}
}
