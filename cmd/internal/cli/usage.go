// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/spell"
)

// straceHabits says what iotape has instead of the flags of strace(1) that people use by
// habit.
var straceHabits = map[string]string{
	"c": "iotape stat TAPE sums up calls; iotape top counts them while they happen",
	"e": "all calls are recorded; to keep some of them: iotape record --filter 'strace:-e trace=file' -- COMMAND",
	"f": "threads and child processes are always recorded: leave -f out",
	"o": "name the tape after the subcommand: iotape record -o TAPE -- COMMAND",
	"p": "iotape record --pid PID records a process that runs already",
	"r": "times are always recorded: iotape print TAPE --time elapsed",
	"s": "all bytes are recorded: iotape print TAPE --max-bytes N shows more of them",
	"t": "times are always recorded: iotape print TAPE --time wall",
	"T": "the time that a call took is always recorded and printed: leave -T out",
	"v": "iotape print TAPE --verbose shows all fields",
	"y": "the files of descriptors are always recorded and printed: leave -y out",
}

// FlagError makes a usage error of one in the flags, with what to do about it.
func FlagError(_ *cobra.Command, err error) error {
	err = Usage(err)
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	shorthands := unknown.GetSpecifiedShortnames()
	if shorthands == "" {
		return err
	}
	for _, flag := range unknown.GetSpecifiedName() {
		if text, ok := straceHabits[string(flag)]; ok {
			return hint.With(err, "%s", text)
		}
	}
	return err
}

// UnknownCommand says what an argument that is no command may have meant.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := Usage(fmt.Errorf("unknown command %q", args[0]))
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	if near := spell.Nearest(args[0], names); near != "" {
		return hint.With(err, "did you mean %s %s?", cmd.CommandPath(), near)
	}
	if _, lookErr := exec.LookPath(args[0]); lookErr == nil && !cmd.HasParent() {
		return hint.With(err, "to record a program: iotape record -- %s", strings.Join(args, " "))
	}
	return hint.With(err, "%s --help lists the commands", cmd.CommandPath())
}

// ExitStatus is the annotation with the exit statuses of a command, one a line.
const ExitStatus = "exit-status"

// Exits returns the annotation for a command.
func Exits(lines ...string) map[string]string {
	return map[string]string{ExitStatus: "  " + strings.Join(lines, "\n  ")}
}

// FinishCommand makes wrong arguments usage errors and puts the exit statuses into
// the help.
func FinishCommand(cmd *cobra.Command) {
	if cmd.HasSubCommands() {
		cmd.Args = UnknownCommand
	}
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, a []string) error {
			if err := args(cmd, a); err != nil {
				return Usage(err)
			}
			return nil
		}
	}
	if cmd.Annotations == nil {
		cmd.Annotations = Exits("0  done", "1  done, but not all of it", "2  could not be done")
	}
	cmd.SetHelpTemplate(helpTemplate)
	cmd.Flags().SortFlags = false
}

const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{.UsageString}}{{with index .Annotations "exit-status"}}
EXIT STATUS
{{.}}
{{end}}`
