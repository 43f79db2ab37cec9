// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/iotape/iotape/analyze/aggregate/meter"
	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
)

// Detail is what an alarm does besides being shown.
type Detail struct {
	Exec     string        // the command to run, in words; "": none
	Dir      string        // where detailed recordings go; "": there are none
	Duration time.Duration // of a recording
	Content  string        // which content it keeps, as for iotape record --content
	Target   []string      // flags of iotape record for what is counted; nil: the command

	command atomic.Int64 // its process
	number  atomic.Int64
	say     func(line string)
}

// maxDetail bounds a recording that an alarm begins.
const maxDetail = 10 * time.Minute

func (d *Detail) check() error {
	if d.Duration <= 0 || d.Duration > maxDetail {
		return fmt.Errorf("detail-for %s is not from 0 to %s", d.Duration, maxDetail)
	}
	_, err := capture.ParseContent(d.Content)
	return err
}

// plan has the meter do it.
func (d *Detail) plan(m *meter.Options, p *session.Plan) {
	m.Exec = strings.Fields(d.Exec)
	d.say = m.Say
	if d.Dir == "" {
		return
	}
	m.Detail = d.record
	if !p.Capture.Running() {
		started := p.Capture.Started
		p.Capture.Started = func(pid int) {
			d.command.Store(int64(pid))
			if started != nil {
				started(pid)
			}
		}
	}
}

// record makes a detailed recording of what raised an alarm: with this program, started
// again, which counting does not see. It ends after its time, with its processes, or with
// ctx.
func (d *Detail) record(ctx context.Context, a *alarm.Alarm) error {
	if err := os.MkdirAll(d.Dir, 0o777); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	target, name := d.Target, "alarm"
	switch pid := a.Key.PID; {
	case pid != 0:
		number := strconv.FormatUint(uint64(pid), 10)
		target, name = []string{"--pid", number}, fileName(a.Key.Comm)+"-"+number
	case target == nil:
		target = []string{"--pid", strconv.FormatInt(d.command.Load(), 10)}
	}
	tape := filepath.Join(d.Dir, fmt.Sprintf("%s-%s-%d.tape", name, a.At.UTC().Format("20060102T150405Z"),
		d.number.Add(1)))
	args := append([]string{"record"}, target...)
	args = append(args, "--duration", d.Duration.String(), "--content", d.Content, "--no-index", "-o", tape)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it seals what it has
	cmd.WaitDelay = 20 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	for line := range strings.Lines(said.String()) {
		d.say("detail: " + strings.TrimPrefix(strings.TrimSpace(line), "iotape: "))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("record %s: %w", strings.Join(target, " "), err)
	}
	return err
}

// fileName makes of a program's name what can be part of a file's.
func fileName(comm string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, comm)
}
