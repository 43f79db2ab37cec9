package main

import (
	"os"

	"github.com/spf13/cobra"

	"iotape/report"
)

func newRepair(c *console) *cobra.Command {
	var out string
	var noIndex bool
	cmd := &cobra.Command{
		Use:   "repair PARTIAL|STREAM",
		Short: "Make a valid tape of a recording whose recorder was killed",
		Long: `Repair makes a tape of what a recorder left behind that was killed, or whose machine
stopped: the directory TAPE.partial, or a stream. Everything up to the last whole
frame is in the tape; what was cut, and that the recording did not end in order,
is said here and by the tape.

The programs that were recorded run on when their recorder is killed (with the
ebpf backend; with ptrace they end with it).`,
		Example: `  iotape repair db.tape.partial
  iotape repair --output db.tape db.stream`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  it was whole", "1  repaired; the tape says that it is incomplete", "2  failed"),
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
			size := fi.Size()
			done, err := s.run(cmd.Context(), c)
			if err != nil {
				return err
			}
			st := done.stats
			if cut := size - st.Stream; cut > 0 {
				why := "its last frame was not finished"
				if st.Damage != nil {
					why = st.Damage.Error()
				}
				c.say("cut %s from the end: %s", report.Bytes(uint64(cut)), oneLine(why))
			}
			m := st.Manifest(program())
			if m.Incomplete {
				c.say("the tape is incomplete: %s", m.Reason)
			}
			c.say("%s", done.line(nil))
			if m.Incomplete {
				return &statusError{Status: exitFound}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the `TAPE` to make; its name is taken from the partial's if not given")
	f.BoolVar(&noIndex, "no-index", false, "do not make the tape's Parquet files")
	return cmd
}
