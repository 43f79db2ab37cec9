// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/anon"
)

// masking is what anonymise and reveal have in common.
type masking struct {
	in, out string
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
			m.in, m.out = args[0], args[1]
			if err := cli.ParseValue(&o.Content, content, anon.ParseContent); err != nil {
				return err
			}
			s, err := m.anonymise(cmd.Context(), c, &o)
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

func (mk *masking) anonymise(ctx context.Context, c *cli.Console, o *anon.Options) (*anon.Survey, error) {
	if err := cli.ParseFlag(&o.Fields, "fields", mk.fields, anon.ParseFields); err != nil {
		return nil, err
	}
	if err := sealing.MustNotExist(mk.out, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	keys, made, shared, err := anon.OpenKeyFile(mk.keys)
	if err != nil {
		return nil, err
	}
	o.Keys = keys
	res, err := mk.rewrite(ctx, c, "anonymising", o, anon.Anonymise)
	if err != nil {
		return nil, err
	}
	if made {
		c.Say("made %s: nothing can be revealed without this file", mk.keys)
	}
	if shared {
		c.Hint("others can read %s; chmod 600 it", mk.keys)
	}
	if res.Removed > 0 {
		c.Say("%s of content were left out", report.Bytes(uint64(res.Removed)))
	}
	t, err := cli.OpenTape(ctx, mk.out)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return anon.Look(t)
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
			m.in, m.out = args[0], args[1]
			return m.reveal(cmd.Context(), c)
		},
	}
	m.flags(cmd, "only these `FIELDS` of those that FILE has keys for")
	return cmd
}

func (mk *masking) reveal(ctx context.Context, c *cli.Console) error {
	var o anon.Options
	if err := cli.ParseFlag(&o.Fields, "fields", mk.fields, anon.ParseFields); err != nil {
		return err
	}
	var err error
	o.Keys, _, err = anon.ReadKeyFile(mk.keys)
	if err != nil {
		return err
	}
	res, err := mk.rewrite(ctx, c, "revealing", &o, anon.Reveal)
	if err != nil {
		return err
	}
	if res.Unsigned {
		c.Say("%s was made from an anonymised tape without all of its keys; changes to it cannot be detected", mk.in)
	}
	if a := res.Manifest.Anonymised; a != nil && a.Content == trace.ContentRemoved {
		c.Say("content was removed, and cannot be restored")
	}
	return nil
}

// rewrite makes the tape OUT by Anonymise or Reveal.
func (mk *masking) rewrite(ctx context.Context, c *cli.Console, doing string, o *anon.Options,
	run func(ctx context.Context, tw *trace.TapeWriter, t *trace.Tape,
		o *anon.Options) (*anon.Result, error)) (*anon.Result, error) {
	t, err := cli.OpenTape(ctx, mk.in)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var res *anon.Result
	made, err := sealing.Make(ctx, mk.out, c.Making(!mk.noIndex, report.Count),
		func(tw *trace.TapeWriter, update sealing.Update) (_ *trace.Manifest, err error) {
			o.Program, o.Progress = cli.Program(), func(done, total uint64) { update(doing, done, total) }
			if res, err = run(ctx, tw, t, o); err != nil {
				return nil, err
			}
			return res.Manifest, nil
		})
	if err != nil {
		return nil, err
	}
	if len(res.LeftOut) > 0 {
		c.Say("left out: %s", strings.Join(res.LeftOut, ", "))
	}
	c.Say("%s events, %s of content, %s: %s", report.Count(made.Manifest.Counts.Events),
		report.Bytes(made.Manifest.Content.MovedBytes), res.Fields, report.Bytes(uint64(made.Bytes)))
	return res, nil
}
