package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/service"
)

func newEnrol(c *console, p *service.Options) *cobra.Command {
	var public, out, role string
	cmd := &cobra.Command{
		Use:   "enrol NAME",
		Short: "Let a host's agent, or a reader, connect",
		Long: `Enrol takes the public key of a host's agent, which iotape-agent keygen printed on the
host. With -o it makes the pair here, and writes the secret to a file that is to be taken
to the host. A collector that runs takes the key within seconds.

An agent may send the batches of the host NAME, and no more. A reader may read what all
agents send; a collector, for --nats, may do everything.`,
		Example: `  iotape collector enrol db7 --data /srv/iotape --public UABC...
  iotape collector enrol db7 --data /srv/iotape -o db7.nk
  iotape collector enrol viewer --role reader --data /srv/iotape -o viewer.nk`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  enrolled", "2  failed"),
		RunE: func(_ *cobra.Command, args []string) error {
			if (public == "") == (out == "") {
				return usageError{errors.New("one of --public and -o is needed")}
			}
			k := &broker.Key{Name: args[0], Role: broker.Role(role), Public: public}
			if out != "" {
				return service.EnrolNew(p.Data, k, out)
			}
			return broker.Enrol(p.Data, k)
		},
	}
	cmd.Flags().StringVar(&public, "public", "", "the public `KEY`, which begins with U")
	cmd.Flags().StringVarP(&out, "output", "o", "", "make a key, and write its secret to `FILE`")
	cmd.Flags().StringVar(&role, "role", string(broker.Agent), "what the owner may do: agent, reader or collector")
	return cmd
}

func newRevoke(_ *console, p *service.Options) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Take a key away",
		Long:        "Revoke takes the key of a host, or of a reader, away. A collector that runs disconnects its\nowner within seconds. What was sent stays.",
		Example:     "  iotape collector revoke db7 --data /srv/iotape",
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  revoked", "2  failed"),
		RunE:        func(_ *cobra.Command, args []string) error { return broker.Revoke(p.Data, args[0]) },
	}
}

func newKeys(c *console, p *service.Options) *cobra.Command {
	var asJSON, config bool
	cmd := &cobra.Command{
		Use: "keys", Short: "List who may connect",
		Long:        "Keys lists who may connect, and what for. With --nats-config it writes that as a NATS server's\nconfiguration has it, for --nats.",
		Example:     "  iotape collector keys --data /srv/iotape\n  iotape collector keys --data /srv/iotape --nats-config > /etc/nats/iotape.conf",
		Args:        cobra.NoArgs,
		Annotations: exits("0  done", "2  failed"),
		RunE: func(*cobra.Command, []string) error {
			keys, err := broker.Keys(p.Data)
			if err != nil {
				return err
			}
			write := service.WriteKeys
			switch {
			case config:
				write = service.WriteConfig
			case asJSON:
				write = service.WriteKeysJSON
			}
			return c.result(func(w io.Writer) error { return write(w, keys) }, true)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	cmd.Flags().BoolVar(&config, "nats-config", false, "write the authorization of a NATS server's configuration")
	return cmd
}
