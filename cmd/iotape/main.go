// SPDX-License-Identifier: Apache-2.0

// Iotape records what programs do to their storage, shows it, and plays it back.
// See README.md, or iotape --help.
package main

import (
	"os"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/replay"
)

func main() {
	session.Helper() // does not return in a process that is a part of a recording
	replay.Helper()  // likewise in one that replays
	os.Exit(run(os.Args[1:], &cli.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
