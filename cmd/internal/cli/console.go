// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/buildinfo"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/trace"
)

// Console is where a command reads, prints results and says everything else.
type Console struct {
	In, Out, Err *os.File
	// Index makes the Parquet files of a tape, or replaces them. It is nil where nobody can.
	Index func(context.Context, *Console, *trace.Tape) error

	escape  escaping
	csv     bool // results are comma-separated
	colours bool // results have marks of colour
}

// Say writes a line for people.
func (c *Console) Say(format string, args ...any) {
	fmt.Fprintf(c.Err, "iotape: %s\n", report.OneLine(fmt.Sprintf(format, args...)))
}

// Hint writes what can be done about the line before.
func (c *Console) Hint(format string, args ...any) {
	fmt.Fprintf(c.Err, "hint: %s\n", report.OneLine(fmt.Sprintf(format, args...)))
}

// Progress returns a progress whose amounts are written by unit.
func (c *Console) Progress(unit func(uint64) string) *term.Progress {
	return term.NewProgress(c.Err, "iotape: ", func(n int64) string { return unit(uint64(max(n, 0))) })
}

// Print calls f with a buffered standard output.
func (c *Console) Print(f func(w *bufio.Writer) error) error {
	out := c.Escaped(c.Out)
	w := bufio.NewWriterSize(out, 64<<10)
	err := f(w)
	flushErr := w.Flush()
	if held, ok := out.(interface{ Flush() error }); ok && flushErr == nil {
		flushErr = held.Flush()
	}
	if flushErr != nil && (err == nil || errors.Is(err, flushErr)) {
		return fmt.Errorf("write standard output: %w", flushErr)
	}
	return err
}

// Result prints a result. The exit status says whether all is as it should be.
func (c *Console) Result(write func(w io.Writer) error, good bool) error {
	return Ended(c.Print(func(w *bufio.Writer) error { return write(w) }), good)
}

// Program is the name and version that goes into recordings.
func Program() string { return buildinfo.Program("iotape") }
