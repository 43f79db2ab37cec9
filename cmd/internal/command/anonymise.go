// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"cmp"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/record/remake"
	"github.com/iotape/iotape/transform/anon"
)

// masking is what anonymise and reveal have in common.
type masking struct {
	keys    string
	fields  []string
	noIndex bool
}

func (mk *masking) flags(cmd *cobra.Command, fields string) {
	f := cmd.Flags()
	f.StringVar(&mk.keys, "keys", "", "the `FILE` with the keys, one per line")
	f.StringSliceVar(&mk.fields, "fields", nil, fields+": "+anon.AllFields.String())
	cli.AddNoIndex(f, &mk.noIndex)
	_ = cmd.MarkFlagRequired("keys")
}

func newAnonymise(c *cli.Console) *cobra.Command {
	var m masking
	var o anon.Options
	var content string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "anonymise IN OUT --keys FILE",
		Short: "Replace the data in a tape that identifies people and systems",
		Long: `Anonymise makes the tape OUT of the tape IN, with the values of some fields replaced:
names of files, users, hosts, addresses, arguments, content and others. Equal values
stay equal, and values keep their lengths. Each field has its own key, so values of
different fields cannot be matched. You can replay OUT. It has the same statistics.

FILE has the keys. If FILE does not exist, anonymise makes it, readable only by you. The
key of a field is needed to restore the field with iotape reveal. You can give parts of
FILE to others.

--content selects how content is replaced:

  encrypt      each chunk as a whole: equal chunks stay equal. A replay does not
               compare content
  substitute   byte by byte, so that a replay verifies content. The content cannot be
               read, but it does not withstand analysis
  remove       content is omitted, and cannot be restored

At the end, anonymise prints what may still identify people and systems.
docs/anonymise.md explains this output.`,
		Example: `  iotape anonymise db.tape public.tape --keys db.keys
  iotape anonymise db.tape public.tape --keys db.keys --content remove --keep-extensions
  iotape anonymise db.tape team.tape --keys db.keys --fields path,comm,arg,host
  grep ^path db.keys > names.keys`,
		Args:        cobra.ExactArgs(2),
		Annotations: cli.Exits("0  done", "2  failed; there is no new tape"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cmp.Or(cli.ParseValue(&o.Content, content, anon.ParseContent),
				cli.ParseFlag(&o.Fields, "fields", m.fields, anon.ParseFields))
			if err != nil {
				return err
			}
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			s, err := remake.Anonymise(cmd.Context(), args[1], t, m.keys, &o, c.Remaking(!m.noIndex))
			if err != nil {
				return err
			}
			return c.Print(func(w *bufio.Writer) error {
				if asJSON {
					return jsonout.Object(w, s)
				}
				return s.Text(w)
			})
		},
	}
	m.flags(cmd, "only these `FIELDS`")
	f := cmd.Flags()
	f.StringVar(&content, "content", "encrypt",
		"how to replace content, if it is among the fields: `encrypt`, substitute or remove")
	f.BoolVar(&o.KeepExtensions, "keep-extensions", false, "keep the extensions of file names, such as .jpg")
	f.BoolVar(&asJSON, "json", false, "print what may still identify people and systems as one JSON object")
	return cmd
}

func newReveal(c *cli.Console) *cobra.Command {
	var m masking
	cmd := &cobra.Command{
		Use:   "reveal IN OUT --keys FILE",
		Short: "Restore the fields of an anonymised tape for which there are keys",
		Long: `Reveal makes the tape OUT of the anonymised tape IN. It restores the values of the
fields whose keys are in FILE.

The keys authenticate the tape. If the tape was changed after anonymise, or a key is not
the one that made the tape, reveal restores nothing.`,
		Example: `  iotape reveal public.tape again.tape --keys db.keys
  iotape reveal public.tape named.tape --keys names.keys
  iotape reveal public.tape times.tape --keys db.keys --fields time`,
		Args:        cobra.ExactArgs(2),
		Annotations: cli.Exits("0  revealed", "2  failed; there is no new tape"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var o anon.Options
			if err := cli.ParseFlag(&o.Fields, "fields", m.fields, anon.ParseFields); err != nil {
				return err
			}
			t, err := cli.OpenTape(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			return remake.Reveal(cmd.Context(), args[1], t, m.keys, &o, c.Remaking(!m.noIndex))
		},
	}
	m.flags(cmd, "only these `FIELDS` of those that FILE has keys for")
	return cmd
}
