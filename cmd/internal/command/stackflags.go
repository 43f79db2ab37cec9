// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/predicate/source"
	"github.com/iotape/iotape/record/session"
)

// stackFlags say of which calls the stacks are recorded.
type stackFlags struct {
	of    string // "": none; allStacks, or an expression
	every uint64
	bytes cli.Size
}

// allStacks is --stacks without a value.
const allStacks = "all"

func (s *stackFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.of, "stacks", "",
		"also record the stack of each call; with `EXPR`, of the calls that match, such as --stacks='op = fsync' "+
			"(docs/stacks.md)")
	f.Lookup("stacks").NoOptDefVal = allStacks
	f.Uint64Var(&s.every, "stacks-every", 1, "with --stacks: record the stack of one of `N` calls")
	f.Var(&s.bytes, "stack-bytes", "with --stacks and eBPF: copy so much of each stack, at most 64K; 0 means 16K")
}

// joinStacks makes one argument of --stacks and an expression behind it: a flag whose value can be left out takes
// none without an equals sign. No program has a name like an expression. What follows -- is the command's.
func joinStacks(args []string) []string {
	end := slices.Index(args, "--")
	if i := slices.Index(args, "--stacks"); i >= 0 && i+1 < end && strings.ContainsAny(args[i+1], " =<>") &&
		!strings.HasPrefix(args[i+1], "-") {
		return slices.Replace(slices.Clone(args), i, i+2, "--stacks="+args[i+1])
	}
	return args
}

// plan puts the flags into the plan, which has its filter.
func (s *stackFlags) plan(c *cli.Console, p *session.Plan) error {
	if s.of == "" {
		return nil
	}
	if s.every == 0 {
		return cli.Usage(fmt.Errorf("--stacks-every 0: the value must be 1 or more"))
	}
	var x *predicate.Expr
	if s.of != allStacks {
		var err error
		if x, err = source.All([]string{s.of}, ""); err != nil {
			return cli.UsageIf[*source.Error](fmt.Errorf("--stacks: %w", err))
		}
		if _, err = cli.RecordFilter(c, x); err != nil {
			return err
		}
	}
	if err := p.Stacks(x, s.every, int(s.bytes)); err != nil {
		return cli.Usage(err)
	}
	return nil
}
