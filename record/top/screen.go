// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/iotape/iotape/analyze/aggregate/view"
	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/model/aggregate"
)

// liveScreen is the live screen. A command that is counted does not get the terminal: its
// output goes to a file, and is shown when the screen has ended.
type liveScreen struct {
	out     *output
	live    *view.Live
	output  *os.File // of the command; nil: there is none
	input   *os.File
	command atomic.Int64 // its process
	ended   atomic.Bool
}

// shownOutput is how much of a command's output is shown at the end.
const shownOutput = 64 << 10

func newLiveScreen(out *output) *liveScreen {
	o := out.o
	r := &o.Record
	title := r.Target
	if title == "" {
		title = strings.Join(r.Capture.Command, " ")
	}
	live := view.NewLive(&view.LiveOptions{Options: o.View, Title: report.Printable(title), In: o.In, Out: o.Out})
	return &liveScreen{out: out, live: live}
}

// start takes the terminal.
func (s *liveScreen) start() error {
	if r := &s.out.o.Record.Capture; !r.Running() {
		var err error
		if s.output, err = os.CreateTemp("", "iotape-top-*"); err != nil {
			return fmt.Errorf("keep the command's output: %w", err)
		}
		_ = os.Remove(s.output.Name())
		if s.input, err = os.Open(os.DevNull); err != nil {
			s.output.Close()
			return err
		}
		r.Stdin, r.Stdout, r.Stderr = s.input, s.output, s.output
		started := r.Started
		r.Started = func(pid int) {
			s.command.Store(int64(pid))
			if started != nil {
				started(pid)
			}
		}
	}
	s.live.Start()
	go s.quit()
	return nil
}

// quit ends what is counted when the user asks for it: the command first, with SIGTERM, as
// counting then ends by itself; when asked again, counting.
func (s *liveScreen) quit() {
	if _, ok := <-s.live.Quit(); ok {
		if pid := s.command.Load(); pid != 0 && syscall.Kill(int(pid), syscall.SIGTERM) == nil {
			s.live.Say("the command was told to end; q again ends counting, whatever still runs")
			<-s.live.Quit()
		}
	}
	s.out.cancel()
}

// say shows a line, and returns false if the screen is gone.
func (s *liveScreen) say(line string) bool {
	if s.ended.Load() {
		return false
	}
	s.live.Say(line)
	return true
}

func (s *liveScreen) show(r *aggregate.IntervalSnapshot) { s.live.Show(r) }
func (s *liveScreen) alarm(a *alarm.Alarm)               { s.live.Alarm(a) }

// end gives the terminal back, and shows what the command wrote.
func (s *liveScreen) end() error {
	s.ended.Store(true)
	err := s.live.Close()
	if s.output == nil {
		return err
	}
	defer s.output.Close()
	defer s.input.Close()
	st, statErr := s.output.Stat()
	if statErr != nil {
		return errors.Join(err, statErr)
	}
	from := max(st.Size()-shownOutput, 0)
	if from > 0 {
		s.out.o.Note(fmt.Sprintf("the command wrote %s, of which the end is:", report.Bytes(uint64(st.Size()))))
	}
	_, copyErr := io.Copy(s.out.o.Out, io.NewSectionReader(s.output, from, shownOutput))
	return errors.Join(err, copyErr)
}
