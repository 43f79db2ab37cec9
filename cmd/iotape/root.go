// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
)

// run executes a command line and returns the exit status.
func run(args []string, c *cli.Console) int {
	ctx, stop := signalContext()
	defer stop()
	root := newRoot(c)
	root.SetArgs(joinStacks(args))
	cmd, err := root.ExecuteContextC(ctx)
	return c.Finish(cmd, err)
}

// signalContext returns a context that ends with SIGINT, SIGTERM or SIGHUP, unless
// they are ignored. Package internal/ptracer and the sealing handle the same
// signals in their own way while they are at work.
func signalContext() (context.Context, func()) {
	var take []os.Signal
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			take = append(take, s)
		}
	}
	if len(take) == 0 {
		return context.Background(), func() {}
	}
	return signal.NotifyContext(context.Background(), take...)
}

func newRoot(c *cli.Console) *cobra.Command {
	cobra.EnableCommandSorting = false // groups have the main path first
	root := &cobra.Command{
		Use:   "iotape",
		Short: "Record what programs do to their storage, and replay it",
		Long: `iotape records every storage call of a program, with all bytes. It shows the recorded
calls, and replays them elsewhere with the same results.

A recording is a directory, NAME.tape. iotape records with eBPF as root, and
as an ordinary user inside the processes or with ptrace.`,
		Example: `  iotape record -o git.tape -- git clone --no-hardlinks repo work
  iotape print git.tape
  iotape stat git.tape
  iotape replay git.tape --into again --verify`,
		Args:              cli.UnknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetFlagErrorFunc(cli.FlagError)
	root.Flags().SetInterspersed(false) // "iotape ls -l" is about ls
	takeVersion(root)
	root.SetHelpCommandGroupID(toolsGroup)
	for _, g := range groups(c) {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	for _, cmd := range []*cobra.Command{newDiscoverHost(c), newReplayHost()} {
		cmd.Hidden = true // iotape starts them itself
		root.AddCommand(cmd)
	}
	for _, cmd := range root.Commands() {
		if readsStreams(cmd.Name()) {
			cli.TakeKeys(cmd)
		}
		cli.FinishCommand(cmd)
		c.AddEscape(cmd)
	}
	return root
}

// toolsGroup is the group of the commands that serve the others.
const toolsGroup = "tools"

// group is a part of the list of commands.
type group struct {
	id, title string
	commands  []*cobra.Command
}

// groups returns all commands as iotape --help lists them, the main path first.
func groups(c *cli.Console) []group {
	return []group{
		{"record", "Record:", []*cobra.Command{newRecord(c), newSeal(c), newRepair(c), newDump(c), newNote(c), newTrace(c), newTail(c), newTop(c), newMount(c), newRun(c), newTracers(c)}},
		{"look", "Look at a tape:", append([]*cobra.Command{newPrint(c), newStat(c), newPS(c), newReport(c), newServe(c)}, newSuite(c)...)},
		{"ask", "Ask:", []*cobra.Command{newQuery(c), newIndex(c), newCatalogue(c), newLake(c), newExplainFilter(c)}},
		{"replay", "Replay:", []*cobra.Command{newReplay(c), newCompare(c), newSkeleton(c), newScript(c)}},
		{"tapes", "Compare and change tapes:", []*cobra.Command{newDiff(c), newSlice(c), newMerge(c), newAnonymise(c), newReveal(c), newConvert(c), newCheck(c)}},
		{"distributed", "Parallel and distributed programs:", []*cobra.Command{newAnnotate(c), newDiscover(c), newOrder(c), newFlow(c)}},
		{"fleet", "Fleet:", []*cobra.Command{newAgent(c), newCollector(c), newFleet(c), newArchive(c), newReceive(c)}},
		{toolsGroup, "Tools:", []*cobra.Command{newPipe(c), newKeygen(c), newRaw(c), newOps(c), newCompletion(c), newMan(c), newVersion(c)}},
	}
}
