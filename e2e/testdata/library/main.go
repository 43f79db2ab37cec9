// Library records a command, reads the tape, replays it, and says what came of each. It is
// a program of another module: it uses what docs/library.md lists.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

func main() {
	replay.Helper() // does not return in a process that replays
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// run records a command into a directory, and replays it there.
func run(ctx context.Context, dir string, command []string) error {
	res, err := session.Record(ctx, &session.Plan{
		Tape:    filepath.Join(dir, "command.tape"),
		Program: "library test",
		Capture: capture.Options{Command: command},
	})
	if err != nil {
		return err
	}
	fmt.Printf("recorded %s: status %d, lost %d\n", filepath.Base(res.Tape), res.Capture.ExitStatus, res.Sealed.Stats.Lost)

	tape, err := trace.Open(res.Tape)
	if err != nil {
		return err
	}
	defer tape.Close()
	written := int64(0)
	for ev, err := range tape.Events() {
		if err != nil {
			return err
		}
		if io := ev.Traffic(); io.To != nil && filepath.Base(io.To.Path) == "out" {
			written += io.Written
		}
	}
	fmt.Printf("%s: %d bytes written to out\n", tape.Manifest().Program, written)

	checks, err := replay.ParseChecks("all")
	if err != nil {
		return err
	}
	rep, err := replay.Run(ctx, tape, &replay.Options{Into: filepath.Join(dir, "again"), Checks: checks})
	if err != nil {
		return err
	}
	fmt.Printf("replayed: agrees %v\n", rep.OK())
	return nil
}
