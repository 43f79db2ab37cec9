package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"iotape/report"
	"iotape/seal"
	"iotape/trace"
)

func newRepair(c *console) *cobra.Command {
	var out string
	var noIndex bool
	cmd := &cobra.Command{
		Use:   "repair TAPE.partial|STREAM",
		Short: "Make a valid tape of a recording whose recorder was killed",
		Long: `Repair makes a tape of what a recorder left that was killed, or whose machine
stopped: the directory TAPE.partial with its snapshots, or a stream. Everything up
to the last whole frame is in the tape. Repair says what was cut off and when the
recording breaks off, and the tape says that it is incomplete. The directory is
removed when all is in the tape; a stream is kept.

A recording that is still being made is left alone.`,
		Example: `  iotape repair db.tape.partial
  iotape repair db.stream -o db.tape`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  a tape was made, and it is complete", "1  a tape was made; it says that it is incomplete, and why", "2  no tape could be made; what there was is unchanged"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := planSealing(args[0], out)
			if err != nil {
				return err
			}
			s.index = !noIndex
			fi, err := os.Stat(s.stream)
			if err != nil {
				return err
			}
			done, err := s.run(cmd.Context(), c)
			if err != nil {
				return err
			}
			complete := c.sayDamage(done.stats, fi.Size())
			c.say("%s", done.line(nil))
			if !complete {
				return &statusError{Status: exitFound}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `TAPE` to make; the name of what is repaired, with .tape, if not given")
	f.BoolVar(&noIndex, "no-index", false, "do not make the tape's Parquet files; iotape query and iotape index make them later")
	return cmd
}

// sayDamage says what a recording lacks that did not end in order, and reports whether
// it lacks nothing. size is its stream's, in bytes.
func (c *console) sayDamage(st *seal.Stats, size int64) (complete bool) {
	if cut := size - st.Stream; cut > 0 {
		why := "it ends in the middle of a frame"
		if st.Damage != nil && !errors.Is(st.Damage, trace.ErrTruncated) {
			why = st.Damage.Error()
		}
		c.say("cut %s from the end of the stream: %s", report.Bytes(uint64(cut)), why)
	}
	if st.End == nil {
		at := time.Unix(0, st.Head.WallNS+max(st.Until-st.Head.ClockNS, 0))
		c.say("it breaks off at %s; %s running", at.Format("2006-01-02 15:04:05.000"), report.Plural(st.Running, "thread was", "threads were"))
	}
	m := st.Manifest(program())
	if m.Incomplete {
		c.say("the tape is incomplete: %s", m.Reason)
	}
	return !m.Incomplete
}
