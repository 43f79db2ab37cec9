// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/fusefs"
	"github.com/iotape/iotape/record/mountrun"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/tracer/config"
)

func newMount(c *cli.Console) *cobra.Command {
	p := c.Plan()
	var source fusefs.Backend
	var content, sealing, tracers string
	var noIndex, before bool
	var filter cli.FilterFlags
	cmd := &cobra.Command{
		Use:   "mount LOWER MOUNTPOINT [-o TAPE] [flags]",
		Short: "Show a directory at another place, and record all operations there",
		Long: `Mount shows the directory LOWER at MOUNTPOINT and records every operation on the files
there, by all programs, until it is unmounted. Unmount it with Ctrl-C, SIGTERM or umount
(as an ordinary user: fusermount3 -u). Then iotape seals the recording to a tape.

MOUNTPOINT is an existing directory. It can be LOWER itself. The files are those of
LOWER, with their owners, permissions, attributes and locks. iotape makes all changes in
LOWER immediately.

The paths of the tape, and the tree that a replay makes, are those of LOWER. Reads and
writes of mapped files are recorded when the kernel makes them for the mapping.
docs/mount.md lists the differences from the other back ends and from the lower file
system.

As root, the mount is for all users. If programs still use the mount when it is
unmounted, it loses its name and continues for these programs. A second Ctrl-C ends it.
If iotape is killed, programs get errors, LOWER has all that was written, and iotape
repair makes a tape of what was recorded.

With --tracers, several tracers record the mount, as a configuration of iotape run
specifies (docs/tracers.md). iotape tracers changes them.`,
		Example: `  sudo iotape mount /srv/data /mnt -o data.tape
  iotape mount src src -o build.tape &       # in its own place; then: make -C src; fusermount3 -u src
  iotape mount --snapshot repo /mnt/repo -o repo.tape
  iotape replay repo.tape --into again --verify
  sudo iotape mount /srv/data /mnt --tracers tracers.toml`,
		Args: cobra.ExactArgs(2),
		Annotations: cli.Exits("0  recorded, and the tape is made",
			"2  could not be mounted, or the tape could not be made; the recording is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			source.Lower, source.Mountpoint = args[0], args[1]
			if source.Cache < 0 {
				return cli.Usage(fmt.Errorf("--cache %s: the value is negative", source.Cache))
			}
			if tracers != "" {
				for _, flag := range []string{"output", "content", "filter", "filter-file", "snapshot",
					"seal", "no-index", "keep-stream"} {
					if cmd.Flags().Changed(flag) {
						return cli.Usage(fmt.Errorf("--%s: with --tracers, set this in the configuration", flag))
					}
				}
				mount := &config.Mount{Lower: source.Lower, At: source.Mountpoint, Cache: source.Cache}
				cfg, err := cli.ReadConfig(c, tracers, &config.Input{Mount: mount}, true)
				if err != nil {
					return err
				}
				err = cli.RunTracers(cmd.Context(), c, cfg)
				var status *cli.StatusError
				if errors.As(err, &status) && status.Status == cli.ExitRecord {
					status.Status = cli.ExitFailed // there is no command whose status it could be
				}
				return err
			}
			err := cmp.Or(cli.ParseValue(&p.Capture.Content, content, capture.ParseContent),
				cli.ParseValue(&p.Seal, sealing, session.ParseWhen))
			if err != nil {
				return err
			}
			if p.Filter, err = filter.Expr(); err != nil {
				return err
			}
			if p.Filter != nil {
				if _, err := cli.RecordFilter(c, p.Filter); err != nil {
					return err
				}
			}
			p.Index = c.Indexer(!noIndex)
			res, err := mountrun.Run(cmd.Context(), &p, source, before)
			if err != nil {
				return cli.CommandError(err)
			}
			return cli.CommandStatus(res.Capture)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&p.Tape, "output", "o", "", "the `TAPE` to make (default LOWER-TIME.tape)")
	f.DurationVar(&source.Cache, "cache", 0,
		"let the kernel keep names and attributes for `TIME`: faster, but calls that the kernel answers from memory "+
			"are not recorded, and changes made in LOWER become visible later")
	f.StringVar(&content, "content", "full",
		"`WHICH` content (bytes that are read and written) to keep: full, head:N, signature, hash or none; "+
			"read=WHICH and write=WHICH for one direction")
	filter.Add(f)
	f.BoolVar(&before, "snapshot", false, "store the state of LOWER before the mount")
	f.StringVar(&sealing, "seal", "after",
		"`WHEN` to make the tape: after the end; live, during the recording; or never, which leaves TAPE.partial for "+
			"iotape seal")
	cli.AddNoIndex(f, &noIndex)
	f.BoolVar(&p.KeepStream, "keep-stream", false, "keep the unsealed recording beside the tape")
	f.StringVar(&tracers, "tracers", "", "record with the tracers of the configuration `FILE`, instead of one")
	return cmd
}
