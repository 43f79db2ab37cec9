// SPDX-License-Identifier: Apache-2.0

// Iotape-full is iotape with all commands. Those that only this program has keep many tapes and ask them:
// with the database engine of package store, the tables of store/lake, and the servers of fleet. What these
// link makes a program ten times as large, and its start 50 ms longer. So iotape is a program without them,
// which becomes this one where it needs one.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/cmd/internal/command"
	"github.com/iotape/iotape/replay"
)

func main() {
	replay.Helper() // does not return in a process that replays
	c := &cli.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Index: index}
	p := &command.Program{Console: c, More: commands(c)}
	os.Exit(p.Run(os.Args[1:]))
}

// commands returns the commands that iotape does not have.
func commands(c *cli.Console) []*cobra.Command {
	return append(newSuite(c), newQuery(c), newIndex(c), newIndexTape(c), newCatalogue(c), newLake(c), newCollector(c),
		newFleet(c), newArchive(c), newCompletion(c), newMan(c))
}
