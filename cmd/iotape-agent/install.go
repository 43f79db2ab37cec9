// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/fleet/agent"
	"github.com/iotape/iotape/fleet/key"
)

// unitFile is where the unit goes: /etc is the administrator's (systemd.unit(5)).
const unitFile = "/etc/systemd/system/iotape-agent.service"

// unit is the service. The agent gets no more rights than recording needs
// (docs/privileges.md), and its own control group, so that limits hold.
const unit = `[Unit]
Description=iotape agent: records storage calls and sends them to a collector
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
ExecStart=%s --config %s
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=5
KillSignal=SIGTERM
TimeoutStopSec=30
StateDirectory=iotape-agent
StateDirectoryMode=0700
MemoryMax=%d
OOMScoreAdjust=500
Nice=5
CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_CHECKPOINT_RESTORE CAP_SYS_PTRACE CAP_SYS_NICE CAP_SYS_ADMIN CAP_DAC_READ_SEARCH
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=%s
PrivateTmp=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX

[Install]
WantedBy=multi-user.target
`

func newInstall(config *string) *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use: "install", Short: "Make systemd start the agent when the machine starts", Args: cobra.NoArgs,
		Long: `Install writes a systemd unit and starts it. The configuration must have no errors. With
--print, install only writes the unit to standard output.`,
		Example: "  iotape-agent install --print | less\n  sudo iotape-agent install --config /etc/iotape/agent.toml",
		RunE: func(*cobra.Command, []string) error {
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			path, err := filepath.Abs(*config)
			if err != nil {
				return err
			}
			c, err := readConfig(path, "")
			if err != nil && !(show && errors.Is(err, fs.ErrNotExist)) {
				return err
			}
			dir, memory := agent.DefaultDir, int64(64<<20)
			if c != nil {
				dir, memory = c.Spool, int64(c.Limits.Memory)
			}
			for _, p := range []string{exe, path, dir} {
				if strings.ContainsAny(p, " \t\n\"'\\%$") {
					return fmt.Errorf("%q cannot be in a unit: choose a path without blanks, quotes, %% and $", p)
				}
			}
			// What systemd ends the agent at is beyond what the agent keeps to.
			text := fmt.Sprintf(unit, exe, path, memory*3/2, dir)
			if show {
				fmt.Print(text)
				return nil
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(unitFile, []byte(text), 0o644); err != nil {
				return err
			}
			for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", "iotape-agent.service"}} {
				if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
					return fmt.Errorf("%s is written; systemctl %s: %w: %s", unitFile,
						strings.Join(args, " "), err, out)
				}
			}
			say("installed %s", unitFile)
			return nil
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "write the unit to standard output, and change nothing")
	return cmd
}

func newKey() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "keygen -o FILE", Short: "Make the key of the agent, and print its public part", Args: cobra.NoArgs,
		Long: "Keygen makes a secret key in a file that only you can read, and prints its public part.\n" +
			"Register the public part at the collector, with iotape collector enrol --public. The\n" +
			"secret never leaves the host.",
		Example: "  iotape-agent keygen -o /etc/iotape/agent.nk",
		RunE: func(*cobra.Command, []string) error {
			public, err := key.Create(out)
			if err != nil {
				return err
			}
			fmt.Println(public)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the secret to `FILE`, which must not exist")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}
