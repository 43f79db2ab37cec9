// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/service"
	"github.com/iotape/iotape/internal/hint"
)

func newEnrol(c *cli.Console, p *service.Options) *cobra.Command {
	var public, out, role string
	var replace bool
	overlap := cli.Days(24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "enrol NAME",
		Short: "Register the key of an agent or a reader",
		Long: `Enrol registers the public key of a host's agent, which iotape-agent keygen printed on
the host. With -o, enrol makes the key pair here, and writes the secret to a file that
you must move to the host. A running collector accepts the key within seconds.

With --replace, enrol gives a name that is enrolled another key. Both keys are accepted for
--overlap: change the key on the host within that time. What the host sent with the old
key and the collector reads later is dropped.

An agent may only send the batches of the host NAME. A reader may read what all agents
send. A collector (for --nats) may do everything.`,
		Example: `  iotape collector enrol db7 --data /srv/iotape --public UABC...
  iotape collector enrol db7 --data /srv/iotape -o db7.nk
  iotape collector enrol db7 --data /srv/iotape --replace --overlap 7d --public UDEF...
  iotape collector enrol viewer --role reader --data /srv/iotape -o viewer.nk`,
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  enrolled", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (public == "") == (out == "") {
				return cli.Usage(errors.New("one of --public and -o is needed"))
			}
			if cmd.Flags().Changed("overlap") && !replace {
				return cli.Usage(errors.New("--overlap is for --replace"))
			}
			k := &broker.Key{Name: args[0], Role: broker.Role(role), Public: public}
			enrol := broker.Enrol
			if replace {
				enrol = func(data string, k *broker.Key) error {
					return broker.Replace(data, k, time.Duration(overlap))
				}
			}
			if out != "" {
				return service.EnrolNew(p.Data, k, out, enrol)
			}
			return enrol(p.Data, k)
		},
	}
	cmd.Flags().StringVar(&public, "public", "", "the public `KEY`, which begins with U")
	cmd.Flags().StringVarP(&out, "output", "o", "", "make a key pair, and write the secret to `FILE`")
	cmd.Flags().StringVar(&role, "role", string(broker.Agent),
		"`WHAT` the owner of the key may do: agent, reader or collector")
	cmd.Flags().BoolVar(&replace, "replace", false, "give a name that is enrolled another key")
	cmd.Flags().Var(&overlap, "overlap", "with --replace, accept the old key for `TIME` more, such as 7d or 12h")
	return cmd
}

func newRevoke(_ *cli.Console, p *service.Options) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Remove a key",
		Long: "Revoke removes the key of a host or of a reader. A running collector disconnects the owner\n" +
			"of the key within seconds. The data that the owner sent stays.",
		Example:     "  iotape collector revoke db7 --data /srv/iotape",
		Args:        cobra.ExactArgs(1),
		Annotations: cli.Exits("0  revoked", "2  failed"),
		RunE:        func(_ *cobra.Command, args []string) error { return broker.Revoke(p.Data, args[0]) },
	}
}

func newKeys(c *cli.Console, p *service.Options) *cobra.Command {
	var asJSON, config bool
	cmd := &cobra.Command{
		Use: "keys", Short: "List the registered keys",
		Long: "Keys lists the registered keys and their roles. With --nats-config it writes them in the form\n" +
			"of a NATS server's configuration, for --nats.",
		Example: "  iotape collector keys --data /srv/iotape\n" +
			"  iotape collector keys --data /srv/iotape --nats-config > /etc/nats/iotape.conf",
		Args:        cobra.NoArgs,
		Annotations: cli.Exits("0  done", "1  a key's file is damaged", "2  failed"),
		RunE: func(*cobra.Command, []string) error {
			keys, damaged, err := broker.Keys(p.Data)
			if err != nil {
				return err
			}
			for _, err := range damaged {
				c.Reporter().Problem(hint.With(err, "nobody can connect with it; collector revoke NAME removes it"))
			}
			write := service.WriteKeys
			switch {
			case config:
				write = service.WriteConfig
			case asJSON:
				write = service.WriteKeysJSON
			}
			return c.Result(func(w io.Writer) error { return write(w, keys) }, len(damaged) == 0)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&config, "nats-config", false,
		"write the authorization part of the configuration of a NATS server")
	return cmd
}
