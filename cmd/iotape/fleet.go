package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/internal/hint"
)

func newFleet(c *console) *cobra.Command {
	var asJSON bool
	var address string
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show the hosts that send to a collector, their rates and losses",
		Long: `Fleet asks a collector on this machine how its hosts are: when each was last heard of,
how much it sends, how much of it is stored, and what was lost and why. The same is a page
at the collector's --page, and metrics for Prometheus at its /metrics.`,
		Example: `  iotape fleet
  iotape fleet --json | jq -r '.hosts[] | select(.state == "silent") | .host'`,
		Args: cobra.NoArgs,
		Annotations: exits("0  every host that is expected to is heard, and the collector stores",
			"1  a host is silent, or nothing is stored of one or of all", "2  the collector could not be asked"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !strings.Contains(address, "://") {
				address = "http://" + address
			}
			f, err := collector.Get(cmd.Context(), strings.TrimRight(address, "/"))
			if err != nil {
				return hint.With(err, "a collector shows the fleet at its --page")
			}
			if err := c.print(func(w *bufio.Writer) error {
				if asJSON {
					enc := json.NewEncoder(w)
					enc.SetIndent("", "  ")
					return enc.Encode(f)
				}
				return writeFleet(w, f)
			}); err != nil {
				return err
			}
			if !f.Storing {
				return &statusError{Status: exitFound}
			}
			for i := range f.Hosts {
				if f.Hosts[i].State == "silent" || f.Hosts[i].Problem != "" {
					return &statusError{Status: exitFound}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object; times in ns, rates per second")
	cmd.Flags().StringVar(&address, "collector", defaultPage, "the collector's page is at `HOST:PORT`")
	return cmd
}

func writeFleet(w *bufio.Writer, f *collector.Fleet) error {
	t := report.Table{Head: []string{"host", "state", "heard", "events/s", "bytes/s", "stored", "lost", "% lost", "level", "spooled", "agent", "why lost"}, Left: 1}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		heard := time.Duration(f.TimeNS - h.LastContactNS).Round(time.Second)
		percent := "–"
		if all := h.Stored + h.Lost; all > 0 {
			percent = fmt.Sprintf("%.4f", 100*float64(h.Lost)/float64(all))
		}
		var why []string
		for _, l := range h.Losses {
			why = append(why, fmt.Sprintf("%s: %s", l.Reason, report.Count(l.Events)))
		}
		t.Add(h.Host, h.State, heard.String(), fmt.Sprintf("%.0f", h.EventsRate), report.Bytes(uint64(max(h.BytesRate, 0))), report.Count(h.Stored), report.Count(h.Lost),
			percent, h.Level, report.Bytes(uint64(max(h.Spooled, 0))), strings.TrimPrefix(report.Printable(h.AgentVersion), "iotape-agent "), report.Printable(strings.Join(why, ", ")))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s; refused: %d connections, %d requests, %d damaged, %d forged, %d duplicate identities\n", report.Plural(len(f.Hosts), "host", "hosts"), f.Refusals.Connections, f.Refusals.Requests, f.Refusals.Damaged, f.Refusals.Forged, f.Refusals.Duplicates)
	for i := range f.Hosts {
		if h := &f.Hosts[i]; h.Problem != "" {
			fmt.Fprintf(w, "%s: a stream cannot be written, and waits in the broker: %s\n", h.Host, report.Printable(h.Problem))
		}
	}
	if f.Refusals.Aside > 0 {
		fmt.Fprintf(w, "%s could not be read when the collector started, and is put aside\n", report.Plural(int(f.Refusals.Aside), "file or stream", "files and streams"))
	}
	if f.Problem != "" {
		fmt.Fprintf(w, "nothing is stored: %s\n", report.Printable(f.Problem))
	}
	return nil
}

// newAgent runs the agent, which is a program of its own: small, static, and without
// what a host that is recorded has no use for.
func newAgent(*console) *cobra.Command {
	return &cobra.Command{
		Use:   "agent [ARG...]",
		Short: "Record this host, and send it to a collector: runs iotape-agent",
		Long: `Agent runs iotape-agent, which is beside this program or in PATH, with the arguments that
follow. See iotape agent --help, and docs/fleet.md.`,
		Example:            "  iotape agent --config /etc/iotape/agent.toml\n  iotape agent install --print",
		DisableFlagParsing: true,
		Annotations:        exits("N  that of iotape-agent", "2  it was not found"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if exe, err := os.Executable(); err == nil {
				name = filepath.Join(filepath.Dir(exe), "iotape-agent")
			}
			if _, err := os.Stat(name); err != nil {
				if name, err = exec.LookPath("iotape-agent"); err != nil {
					return hint.With(err, "make build makes it, beside iotape")
				}
			}
			return fmt.Errorf("%s: %w", name, syscall.Exec(name, append([]string{name}, args...), os.Environ()))
		},
	}
}
