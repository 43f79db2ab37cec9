// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/spell"
)

// FlagError makes a usage error of one in the flags, with what to do about it.
func FlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return Usage(invalidValue(invalid))
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return Usage(err)
	}
	err = Usage(err)
	if unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := spell.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return hint.With(err, "did you mean --%s?", near)
		}
		text, ok := otherFlags[unknown.GetSpecifiedName()]
		if !ok || strings.HasPrefix(text, "--filter") && cmd.Flags().Lookup("filter") == nil {
			return err
		}
		return hint.With(err, "%s", strings.Replace(text, "%s", cmd.CommandPath(), 1))
	}
	if !cmd.HasParent() && unknown.GetSpecifiedName() == "v" {
		return hint.With(err, "iotape --version prints the version")
	}
	for _, flag := range unknown.GetSpecifiedName() {
		text, ok := straceHabits[string(flag)]
		if live, isLive := liveHabits[string(flag)]; isLive && cmd.Flags().Lookup("print-to") != nil {
			text = live
		}
		if flag == 'o' && cmd.HasParent() { // not a habit of strace: another command of iotape has it
			text = "the arguments are: " + cmd.UseLine()
		}
		if ok {
			text = strings.Replace(text, "%s", filtering(cmd), 1)
			return hint.With(err, "%s", strings.Replace(text, "%v", givenTo(flag), 1))
		}
	}
	return err
}

// givenTo returns the value that the command line gives a flag of strace, behind it or as the next word.
func givenTo(flag rune) string {
	for i, word := range commandLine() {
		if rest, found := strings.CutPrefix(word, "-"+string(flag)); found {
			if next := i + 1; rest == "" && next < len(commandLine()) {
				rest = commandLine()[next]
			}
			if rest != "" && !strings.ContainsAny(rest, "'\"\n") {
				return rest
			}
		}
	}
	return straceValues[flag]
}

// commandLine returns the words after the program's name. Tests replace it.
var commandLine = func() []string { return os.Args[1:] }

// filtering returns the command that selects calls where a command was meant to.
func filtering(cmd *cobra.Command) string {
	if cmd.Flags().Lookup("filter") != nil {
		return cmd.CommandPath()
	}
	return "iotape print TAPE"
}

// invalidValue says what is wrong with a flag's value, without the words of the Go library.
func invalidValue(e *pflag.InvalidValueError) error {
	name, cause := "--"+e.GetFlag().Name, e.Unwrap()
	var number *strconv.NumError
	switch {
	case errors.As(cause, &number) && errors.Is(cause, strconv.ErrRange):
		return fmt.Errorf("%s: the number %s is too large or too small", name, e.GetValue())
	case errors.As(cause, &number):
		return fmt.Errorf("%s: %q is not a number", name, e.GetValue())
	case strings.Contains(cause.Error(), "invalid duration"), strings.Contains(cause.Error(), "in duration"):
		return fmt.Errorf("%s: %q is not a time such as 500ms, 30s or 1h30m", name, e.GetValue())
	}
	return fmt.Errorf("%s: %w", name, cause)
}

// MissingFlag is the error of a command that lacks flags which it needs.
func MissingFlag(cmd *cobra.Command, names ...string) error {
	var list []string
	for _, name := range names {
		text := "--" + name
		if f := cmd.Flags().Lookup(name); f != nil {
			value, usage := pflag.UnquoteUsage(f)
			text = strings.TrimSpace(text+" "+value) + " is missing: " + usage
		}
		list = append(list, text)
	}
	return Usage(errors.New(strings.Join(list, "; ")))
}

// groupError returns a usage error in the place of one about flags that exclude each other, which Cobra makes.
func groupError(err error) error {
	if !strings.HasPrefix(err.Error(), "if any flags in the group [") {
		return err
	}
	_, set, found := strings.Cut(err.Error(), "none of the others can be; [")
	names := strings.Fields(strings.TrimSuffix(set, "] were all set"))
	if !found || len(names) < 2 {
		return err
	}
	for i := range names {
		names[i] = "--" + names[i]
	}
	last := len(names) - 1
	return Usage(fmt.Errorf("%s and %s cannot be used together", strings.Join(names[:last], ", "), names[last]))
}

// isMissing returns the rest of the sentence that n things are missing.
func isMissing(n int) string {
	if n == 1 {
		return "is missing"
	}
	return "are missing"
}

// checkRequired returns an error if a flag that a command needs is not set.
func checkRequired(cmd *cobra.Command) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		needed := f.Annotations[cobra.BashCompOneRequiredFlag]
		if len(needed) > 0 && needed[0] == "true" && !f.Changed {
			missing = append(missing, f.Name)
		}
	})
	if len(missing) == 0 {
		return nil
	}
	return MissingFlag(cmd, missing...)
}

// arguments returns the names of the arguments that a command needs, as its usage has them, and how many it takes at
// most.
func arguments(cmd *cobra.Command) (needed []string, most int) {
	words, depth, many := strings.Fields(cmd.Use)[1:], 0, false
	for i, word := range words {
		optional := depth > 0 || word[0] == '['
		depth += strings.Count(word, "[") - strings.Count(word, "]")
		name := strings.Trim(word, "[]")
		many = many || strings.HasSuffix(name, "...")
		value := i > 0 && strings.HasPrefix(strings.Trim(words[i-1], "[]"), "-") // of a flag
		if value || name == "" || name[0] < 'A' || name[0] > 'Z' {
			continue
		}
		most++
		if !optional {
			needed = append(needed, strings.TrimSuffix(name, "..."))
		}
	}
	if many {
		most = math.MaxInt
	}
	return needed, most
}

// argumentError says which arguments of a command are missing, or that there are too many.
func argumentError(cmd *cobra.Command, args []string, err error) error {
	names, most := arguments(cmd)
	switch {
	case !strings.HasPrefix(err.Error(), "accepts ") && !strings.HasPrefix(err.Error(), "requires "):
		return err // a check of our own
	case len(args) < len(names):
		missing := names[len(args):]
		last := len(missing) - 1
		list := strings.TrimPrefix(strings.Join(missing[:last], ", ")+" and "+missing[last], " and ")
		return fmt.Errorf("%s %s: %s", list, isMissing(len(missing)), cmd.UseLine())
	}
	if len(args) > most {
		return fmt.Errorf("there are too many arguments, from %q on: %s", args[most], cmd.UseLine())
	}
	return fmt.Errorf("there are too many arguments, or too few: %s", cmd.UseLine())
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
	if args[0] == "strace" && !cmd.HasParent() {
		return hint.With(err, "to see what a program does: iotape trace -- COMMAND")
	}
	if _, lookErr := exec.LookPath(args[0]); lookErr == nil && !cmd.HasParent() {
		return hint.With(err, "to record a program: iotape record -- %s", strings.Join(args, " "))
	}
	near := otherCommands[args[0]]
	if near == "" || cmd.HasParent() {
		near = spell.Nearest(args[0], names)
	}
	if near != "" {
		return hint.With(err, "did you mean %s %s?", cmd.CommandPath(), near)
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
	args := cmd.Args
	if args == nil {
		args = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, a []string) error {
		if err := args(cmd, a); err != nil {
			return Usage(argumentError(cmd, a, err))
		}
		return checkRequired(cmd) // with more to say than cobra has
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
