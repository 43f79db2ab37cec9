// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"fmt"
	"log"

	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/trace"
)

// A program that replays a tape into a new directory, with the pauses of the recorded
// threads, and prints the first difference.
func Example() {
	execute.Stub() // first in main: does not return in the process that makes the calls
	tape, err := trace.Open("db.tape")
	if err != nil {
		log.Fatal(err)
	}
	defer tape.Close()
	rep, err := replay.Run(context.Background(), tape, &replay.Options{
		Into: "again", Checks: replay.CheckAll, Pace: replay.PaceThink,
	})
	if err != nil {
		log.Fatal(err)
	}
	if rep.OK() {
		fmt.Println("all results agree")
	} else if m := rep.First; m != nil {
		fmt.Printf("event %d: %s of %s: expected %s, got %s\n", m.Seq, m.Field, m.Path, m.Expected, m.Got)
	}
}
