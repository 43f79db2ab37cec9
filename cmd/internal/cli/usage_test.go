// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/internal/hint"
)

// TestArguments reads usages of commands.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		use, needed string
		most        int
	}{
		{"look", "", 0},
		{"look TAPE FILE", "TAPE FILE", 2},
		{"mount LOWER MOUNTPOINT [-o TAPE] [flags]", "LOWER MOUNTPOINT", 2},
		{"query TAPE [SQL]", "TAPE", 2},
		{"keep --at DIR TAPE...", "TAPE", math.MaxInt},
		{"run CONFIG [-- COMMAND [ARG...]]", "CONFIG", math.MaxInt},
	} {
		needed, most := arguments(&cobra.Command{Use: c.use})
		if got := strings.Join(needed, " "); got != c.needed || most != c.most {
			t.Errorf("%s: needs %q, takes %d; want %q, %d", c.use, got, most, c.needed, c.most)
		}
	}
}

// TestUsageErrors gives a command wrong flags and arguments: each has one line that says which, and a
// habit or a misspelling also what to write.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args       []string
		want, hint string
	}{
		{[]string{"look"}, "TAPE and FILE are missing: iotape look TAPE FILE [flags]", ""},
		{[]string{"look", "a"}, "FILE is missing: iotape look TAPE FILE [flags]", ""},
		{[]string{"look", "a", "b", "c", "--into", "d"},
			"there are too many arguments, from \"c\" on: iotape look TAPE FILE [flags]", ""},
		{[]string{"look", "a", "b"}, "--into DIR is missing: the DIR to make", ""},
		{[]string{"look", "--from", "x"}, `--from: "x" is not a number`, ""},
		{[]string{"look", "--from", "-1"}, `--from: "-1" is not a number`, ""},
		{[]string{"look", "--from", "99999999999999999999"},
			"--from: the number 99999999999999999999 is too large or too small", ""},
		{[]string{"look", "--for", "5x"}, `--for: "5x" is not a time such as 500ms, 30s or 1h30m`, ""},
		{[]string{"look", "--frmo", "1"}, "unknown flag: --frmo", "did you mean --from?"},
		{[]string{"look", "--nonsense"}, "unknown flag: --nonsense", ""},
		{[]string{"look", "--limit", "3"}, "unknown flag: --limit", "to see the first lines only: iotape look ... | head -n N"},
		{[]string{"look", "--grep", "x"}, "unknown flag: --grep", "--filter EXPR selects events (docs/filters.md)"},
		{[]string{"look", "-Z"}, "unknown shorthand flag: 'Z' in -Z",
			"to select the calls that failed: iotape look --filter failed"},
		{[]string{"look", "-e", "trace=read"}, "unknown shorthand flag: 'e' in -e",
			"all calls are recorded and shown; to select some of them: iotape look --filter 'strace:-e trace=read'"},
		{[]string{"look", "-esignal=none"}, "unknown shorthand flag: 'e' in -esignal=none",
			"all calls are recorded and shown; to select some of them: iotape look --filter 'strace:-e signal=none'"},
		{[]string{"look", "-e"}, "unknown shorthand flag: 'e' in -e",
			"all calls are recorded and shown; to select some of them: iotape look --filter 'strace:-e trace=file'"},
		{[]string{"look", "-P", "/etc/passwd"}, "unknown shorthand flag: 'P' in -P",
			"to select the calls on a path: iotape look --filter 'path = /etc/passwd'"},
		{[]string{"look", "-s", "9"}, "unknown shorthand flag: 's' in -s",
			"all bytes are recorded: iotape print TAPE --max-bytes N shows more of them"},
		{[]string{"look", "-o", "x"}, "unknown shorthand flag: 'o' in -o",
			"the arguments are: iotape look TAPE FILE [flags]"},
		{[]string{"-o", "x"}, "unknown shorthand flag: 'o' in -o",
			"name the tape after the subcommand: iotape record -o TAPE -- COMMAND"},
	} {
		root := &cobra.Command{Use: "iotape", SilenceErrors: true, SilenceUsage: true}
		root.SetFlagErrorFunc(FlagError)
		look := &cobra.Command{Use: "look TAPE FILE", Args: cobra.ExactArgs(2)}
		look.RunE = func(*cobra.Command, []string) error { return nil }
		look.Flags().Uint64("from", 0, "the first event")
		look.Flags().Duration("for", time.Second, "how long")
		look.Flags().String("filter", "", "which events")
		look.Flags().String("into", "", "the `DIR` to make")
		_ = look.MarkFlagRequired("into")
		FinishCommand(look)
		root.AddCommand(look)
		root.SetArgs(c.args)
		commandLine = func() []string { return c.args }
		root.SetOut(io.Discard)
		err := root.Execute()
		if err == nil || err.Error() != c.want || hint.Of(err) != c.hint {
			t.Errorf("%q: %v, hint %q\nwant %s, hint %q", c.args, err, hint.Of(err), c.want, c.hint)
		}
	}
}
