package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
)

func newSeal(c *console) *cobra.Command {
	var out string
	var final, noIndex bool
	cmd := &cobra.Command{
		Use:   "seal STREAM|TAPE.partial",
		Short: "Make a tape of a recording that was not sealed",
		Long: `Seal makes a tape of a stream: of the directory TAPE.partial that an interrupted
iotape record left, or of a stream file kept with --keep-stream.

Of a recording that broke off, everything up to its last good frame is sealed, and
the tape says that it is not complete. A directory TAPE.partial is removed when it
is sealed; a stream file is kept.`,
		Example: `  iotape seal git.tape.partial
  iotape seal git.stream -o git.tape`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := planSealing(args[0], out)
			if err != nil {
				return err
			}
			s.final, s.index = final, !noIndex
			done, err := s.run(cmd.Context(), c)
			if err != nil {
				return err
			}
			if done.stats.Damage != nil {
				c.say("%s: read up to %s: %v", args[0], report.Bytes(uint64(done.stats.Stream)), done.stats.Damage)
			}
			c.say("%s", done.line(nil))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `TAPE` to make; the stream's name with .tape if not given")
	f.BoolVar(&noIndex, "no-index", false, "do not make the tape's Parquet files; iotape query and iotape index make them later")
	f.BoolVar(&final, "final", false, "the files are as the recording left them: store their state, for replay --verify")
	return cmd
}

// planSealing finds out what to seal and where to.
func planSealing(path, out string) (*sealing, error) {
	path = strings.TrimRight(path, "/")
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s := &sealing{stream: path, out: out}
	if fi.IsDir() {
		s.stream, s.before, s.work = filepath.Join(path, streamName), filepath.Join(path, beforeName), path
		if _, err := os.Stat(s.stream); err != nil {
			return nil, withHint(fmt.Errorf("%s has no stream to seal", path), "it is a tape already? iotape check %s", path)
		}
		if s.out == "" {
			s.out = strings.TrimSuffix(path, partialSuffix)
		}
		if s.out == path {
			return nil, usageError{errors.New("where to? name a tape with -o")}
		}
	} else {
		if s.out == "" {
			s.out = strings.TrimSuffix(path, ".stream") + ".tape"
		}
		s.work = s.out + partialSuffix
	}
	return s, mustNotExist(s.out, "choose another name with -o, or remove it")
}
