// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/internal/safetext"
	"github.com/iotape/iotape/internal/term"
)

// escaping says when characters that change what a terminal shows are escaped in results.
type escaping string

const (
	escapeAuto   escaping = "auto" // where the results go to a terminal
	escapeAlways escaping = "always"
	escapeNever  escaping = "never"
)

// String implements pflag.Value.
func (e *escaping) String() string {
	if *e == "" {
		return string(escapeAuto)
	}
	return string(*e)
}

// Type implements pflag.Value.
func (e *escaping) Type() string { return "WHEN" }

// Set implements pflag.Value.
func (e *escaping) Set(text string) error {
	switch v := escaping(text); v {
	case escapeAuto, escapeAlways, escapeNever:
		*e = v
		return nil
	}
	return fmt.Errorf("%q: the value must be auto, always or never", text)
}

// Escaped returns a writer to f for results: the characters that change what a terminal shows are escaped where
// --escape says so. Nothing is kept back at the end of a line.
func (c *Console) Escaped(f *os.File) io.Writer {
	if c.escape == escapeNever || c.escape != escapeAlways && !term.IsTerminal(f) {
		return f
	}
	return &safetext.Writer{W: f, CSV: c.csv, Formulas: c.csv && c.escape == escapeAlways,
		Colours: func() bool { return c.colours }}
}

// Style returns the style of results that go to f.
func (c *Console) Style(f *os.File) term.Style {
	s := term.StyleOf(f)
	c.colours = s.On()
	return s
}

// AddEscape adds --escape to a command that prints JSON or CSV, and to those below it.
func (c *Console) AddEscape(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.AddEscape(sub)
	}
	f := cmd.Flags()
	if cmd.PersistentFlags().Lookup("json") != nil {
		f = cmd.PersistentFlags()
	}
	if f.Lookup("json") == nil && f.Lookup("csv") == nil && f.Lookup("print-json") == nil {
		return
	}
	f.Var(&c.escape, "escape",
		"`WHEN` to escape control characters, marks of text direction and invisible characters in what is printed: "+
			"auto (on a terminal), always or never")
	run := cmd.RunE
	if csv := f.Lookup("csv"); run != nil && csv != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.csv = csv.Value.String() == "true"
			return run(cmd, args)
		}
	}
}
