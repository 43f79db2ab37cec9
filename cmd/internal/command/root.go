// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
)

// A Program is one of the programs that have commands of iotape.
type Program struct {
	Console *cli.Console
	More    []*cobra.Command // the commands that it has beside those of this package
	Full    func() error     // becomes the program that has all; returns if it cannot. nil: this one has all
}

// Run executes a command line and returns the exit status.
func (p *Program) Run(args []string) int {
	root := newRoot(p.Console, p.More)
	if p.Full != nil && !has(root, args) {
		if err := p.Full(); len(args) > 0 && listed(args[0]) {
			return p.Console.Finish(root, cli.Status(cli.ExitFailed, fmt.Errorf("iotape %s: %w", args[0], err)))
		}
		// What this program can say is better than nothing.
	}
	ctx, stop := signalContext()
	defer stop()
	root.SetArgs(joinStacks(args))
	cmd, err := root.ExecuteContextC(ctx)
	return p.Console.Finish(cmd, err)
}

// has reports whether a program that does not have all commands carries out a command line.
func has(root *cobra.Command, args []string) bool {
	if len(args) == 0 {
		return false // it prints the help, with all commands
	}
	if strings.HasPrefix(args[0], "-") {
		return args[0] != "--help" && args[0] != "-h"
	}
	return slices.ContainsFunc(root.Commands(), func(cmd *cobra.Command) bool {
		return cmd.Name() == args[0] || cmd.HasAlias(args[0])
	})
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

func newRoot(c *cli.Console, more []*cobra.Command) *cobra.Command {
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
	addGroups(root, append(commands(c), more...))
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
	commands  []string
}

// groups has the names of all commands as iotape --help lists them, the main path first.
var groups = []group{
	{"record", "Record:", []string{"record", "seal", "repair", "dump", "note", "trace", "tail", "top", "mount", "run",
		"tracers"}},
	{"look", "Look at a tape:", []string{"print", "stat", "ps", "report", "serve", "tstat", "users", "patterns",
		"sessions"}},
	{"ask", "Ask:", []string{"query", "index", "catalogue", "lake", "explain-filter"}},
	{"replay", "Replay:", []string{"replay", "compare", "skeleton", "script"}},
	{"tapes", "Compare and change tapes:", []string{"diff", "slice", "merge", "anonymise", "reveal", "convert", "check"}},
	{"distributed", "Parallel and distributed programs:", []string{"annotate", "discover", "order", "flow"}},
	{"fleet", "Fleet:", []string{"agent", "collector", "fleet", "archive", "receive"}},
	{toolsGroup, "Tools:", []string{"pipe", "keygen", "raw", "ops", "completion", "man", "version"}},
}

// listed reports whether iotape --help lists a command.
func listed(name string) bool {
	return slices.ContainsFunc(groups, func(g group) bool { return slices.Contains(g.commands, name) })
}

// addGroups adds commands to root in the order of their groups. Those that no group has are hidden: iotape
// starts them itself.
func addGroups(root *cobra.Command, commands []*cobra.Command) {
	byName := make(map[string]*cobra.Command, len(commands))
	for _, cmd := range commands {
		byName[cmd.Name()] = cmd
	}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			if cmd := byName[name]; cmd != nil {
				cmd.GroupID = g.id
				root.AddCommand(cmd)
			}
		}
	}
	for _, cmd := range commands {
		if !cmd.HasParent() {
			cmd.Hidden = true
			root.AddCommand(cmd)
		}
	}
}

// commands returns the commands of this package.
func commands(c *cli.Console) []*cobra.Command {
	return []*cobra.Command{
		newRecord(c), newSeal(c), newRepair(c), newDump(c), newNote(c), newTrace(c), newTail(c), newTop(c), newMount(c),
		newRun(c), newTracers(c), newPrint(c), newStat(c), newPS(c), newReport(c), newServe(c), newExplainFilter(c),
		newReplay(c), newCompare(c), newSkeleton(c), newScript(c), newDiff(c), newSlice(c), newMerge(c), newAnonymise(c),
		newReveal(c), newConvert(c), newCheck(c), newAnnotate(c), newDiscover(c), newOrder(c), newFlow(c), newAgent(c),
		newReceive(c), newPipe(c), newKeygen(c), newRaw(c), newOps(c), newVersion(c), newDiscoverHost(c), newReplayHost(),
	}
}
