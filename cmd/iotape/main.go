// SPDX-License-Identifier: Apache-2.0

// Iotape records what programs do to their storage, shows it, and plays it back.
// See README.md, or iotape --help.
//
// The commands that need a database engine or the libraries of servers are in iotape-full, a program with all
// commands: iotape becomes that one where it needs it. So iotape itself is small, and starts at once.
package main

import (
	"os"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/cmd/internal/command"
	"github.com/iotape/iotape/replay"
)

func main() {
	replay.Helper() // does not return in a process that replays
	c := &cli.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if _, err := cli.Beside(full); err == nil {
		c.Index = index
	}
	p := &command.Program{Console: c, Full: becomeFull}
	os.Exit(p.Run(os.Args[1:]))
}
