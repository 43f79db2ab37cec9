// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/iotape/iotape/causal/happens"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/catlog"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// solverTime is how long the solver may take.
const solverTime = 5 * time.Minute

// order prints the time that ours and z3 take for the clocks of a log: the least numbers
// of which each is greater than those of all that has to be before.
func order(name string) error {
	fmt.Printf("\nLogical clocks of %s\n\n", filepath.Base(name))
	tapes, done, err := imported(name)
	if err != nil {
		return err
	}
	defer done()
	best, o := time.Duration(1<<62), (*happens.Order)(nil)
	for range 5 {
		var err error
		best = min(best, took(func() { o, err = happens.Load(tapes) }))
		if err != nil {
			return err
		}
	}
	text, events, edges, sum := smt(o)
	row("", "events", "constraints", "sum of clocks", "CPU ms")
	row("---", "--:", "--:", "--:", "--:")
	row("iotape", events, edges, sum, fmt.Sprintf("%.1f", best.Seconds()*1000))
	if _, err := exec.LookPath("z3"); err != nil {
		fmt.Println("\nz3 is not installed: apt-get install z3")
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), solverTime)
	defer cancel()
	c := exec.CommandContext(ctx, "z3", "-smt2", "-in")
	c.Stdin = strings.NewReader(text)
	before := cpu(syscall.RUSAGE_CHILDREN)
	out, err := c.Output()
	spent := cpu(syscall.RUSAGE_CHILDREN) - before
	switch theirs := regexp.MustCompile(`\s(\d+)\)\s*\)\s*$`).FindSubmatch(out); {
	case ctx.Err() != nil:
		row("z3, as Falcon asks it without timestamps", events, edges, fmt.Sprint("none in ", solverTime), "")
	case err != nil || theirs == nil:
		return fmt.Errorf("z3: %w: %.300s", err, bytes.TrimSpace(out))
	default:
		row("z3, as Falcon asks it without timestamps", events, edges, string(theirs[1]),
			fmt.Sprintf("%.1f", spent.Seconds()*1000))
		if string(theirs[1]) != fmt.Sprint(sum) {
			return fmt.Errorf("the clocks add up to %d, those of z3 to %s", sum, theirs[1])
		}
	}
	return nil
}

// smt writes the constraints of an order for a solver: the events of each thread one after
// the other, each after what has to be before, and the sum of all clocks the least.
func smt(o *happens.Order) (text string, events, edges int, sum uint64) {
	var declare, assert strings.Builder
	// Of each event that counts; of a note that does not, that of the call before it.
	name := make([]string, o.Len())
	last := make([]string, len(o.Lines())) // of each thread
	var all []string
	for i := range o.Len() {
		line := o.Line(i)
		if name[i] = last[line]; o.Counts(i) {
			name[i] = fmt.Sprint("O", i)
			fmt.Fprintf(&declare, "(declare-const %s Int)\n(assert (>= %s 0))\n", name[i], name[i])
			if before := last[line]; before != "" {
				fmt.Fprintf(&assert, "(assert (< %s %s))\n", before, name[i])
				edges++
			}
			all, last[line], sum = append(all, name[i]), name[i], sum+uint64(o.Clock(i))
		}
	}
	for i := range o.Len() {
		from, _ := o.Before(i)
		for _, f := range from {
			if a, b := name[f], name[i]; a != "" && b != "" && a != b {
				fmt.Fprintf(&assert, "(assert (< %s %s))\n", a, b)
				edges++
			}
		}
	}
	return declare.String() + assert.String() + "(minimize (+ " + strings.Join(all, " ") +
		"))\n(check-sat)\n(get-objectives)\n", len(all), edges, sum
}

// imported makes tapes of a log, one for each host, which are there until done is called.
func imported(name string) (tapes []*trace.Tape, done func(), err error) {
	dir, err := os.MkdirTemp("", "iotape-flowpeers-*")
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		for _, t := range tapes {
			t.Close()
		}
		os.RemoveAll(dir)
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	in, err := unpacked(name, filepath.Join(dir, "log"))
	if err != nil {
		return nil, done, fmt.Errorf("%s: %w", name, err)
	}
	defer in.Close()
	im := format.NewImport(dir, "flowpeers")
	err = catlog.Format.Read(context.Background(), in, im)
	streams, closing := im.Close()
	if err == nil {
		err = closing
	}
	if err != nil {
		return nil, done, err
	}
	for i, s := range streams {
		t, err := sealed(s, filepath.Join(dir, fmt.Sprint(i, ".tape")))
		if err != nil {
			return nil, done, err
		}
		tapes = append(tapes, t)
	}
	return tapes, done, nil
}

// unpacked opens a log, without the compression that it may have.
func unpacked(name, to string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil || filepath.Ext(name) != ".gz" {
		return f, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(to)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(out, z); err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func sealed(stream, dir string) (*trace.Tape, error) {
	in, err := os.Open(stream)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	tw, err := trace.CreateTape(dir)
	if err != nil {
		return nil, err
	}
	st, err := seal.Seal(context.Background(), in, tw, nil)
	if err != nil {
		tw.Abort()
		return nil, err
	}
	if err := tw.Close(st.Manifest("flowpeers")); err != nil {
		return nil, err
	}
	return trace.Open(dir)
}
