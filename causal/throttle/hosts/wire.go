// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/internal/team"
)

// What is sent, beside what package team sends. Most of it is JSON.
const (
	kindClock  = 'K' // hub: what time is it; member: a reading
	kindTask   = 'C' // hub: Task
	kindOrder  = 'O' // hub: throttle.Order
	kindState  = 'T' // member: throttle.State
	kindFile   = 'B' // member: a piece of a file of its tape
	kindAnswer = 'A' // member: its part is done: throttle.Run, if it watched
	kindFail   = 'F' // member: why it is not
)

// Task is what a member is to do.
type Task struct {
	Record  bool     `json:"record,omitempty"` // record its part; else watch it
	Argv    []string `json:"argv"`
	Dir     string   `json:"dir"` // working directory
	Backend string   `json:"backend,omitempty"`

	// The rest is as in throttle.Options.
	Scope    throttle.Scope  `json:"scope"`
	Serial   string          `json:"serial,omitempty"`
	Hold     string          `json:"hold,omitempty"`
	Period   int             `json:"period,omitempty"`
	Known    []*throttle.Run `json:"known,omitempty"`
	Patience time.Duration   `json:"patience,omitempty"`
	Most     time.Duration   `json:"most,omitempty"`
	Budget   time.Duration   `json:"budget"`
}

// reading is a look at a member's clock.
type reading struct {
	NS   int64  `json:"ns"` // CLOCK_MONOTONIC
	Boot string `json:"boot"`
}

func read() reading {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return reading{ts.Nano(), strings.TrimSpace(string(b))}
}

func send(w *team.Wire, kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.Send(kind, b)
}

const pieceBytes = 1 << 20

// sendDir sends all files of a directory.
func sendDir(w *team.Wire, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		head := append(binary.LittleEndian.AppendUint16(nil, uint16(len(name))), name...)
		for first := true; ; first = false {
			b := make([]byte, len(head)+pieceBytes)
			n, err := f.Read(b[copy(b, head):])
			if n > 0 || first {
				if err := w.Send(kindFile, b[:len(head)+n]); err != nil {
					return err
				}
			}
			if n == 0 || err != nil {
				return nil // the tape says itself whether it is whole
			}
		}
	})
}

var errPiece = errors.New("it sent a file that makes no sense")

// takePiece adds a piece to a file below a directory.
func takePiece(dir string, b []byte) error {
	if len(b) < 2 {
		return errPiece
	}
	n := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; n > len(b) || !filepath.IsLocal(string(b[:n])) {
		return errPiece
	}
	path := filepath.Join(dir, string(b[:n]))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("keep its tape: %w", err)
	}
	_, err = f.Write(b[n:])
	return errors.Join(err, f.Close())
}
