// SPDX-License-Identifier: Apache-2.0

// Iotape records what programs do to their storage, shows it, and plays it back.
// See README.md, or iotape --help.
package main

import (
	"os"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/replay"
)

func main() {
	replay.Helper() // does not return in a process that replays
	os.Exit(run(os.Args[1:], &cli.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
