// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/timeline"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "Perfetto",
	ID:       "perfetto",
	Suffixes: []string{".pftrace", ".perfetto-trace"},
	About:    "timeline with arrows and counters, for ui.perfetto.dev and trace_processor",
	Write: func(ctx context.Context, out io.Writer, t *trace.Tape, _ *format.Options) (*format.Done, error) {
		return Export(ctx, out, t)
	},
}

// Export writes a tape's trace or, if it has several hosts, an archive of theirs.
func Export(ctx context.Context, out io.Writer, t *trace.Tape) (*format.Done, error) {
	done := &format.Done{}
	hosts := t.Manifest().Hosts
	if len(hosts) <= 1 {
		return done, write(ctx, out, t, 0, "", done)
	}
	z := zip.NewWriter(out)
	names := machines(hosts)
	w, err := z.Create("perfetto_manifest.json")
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(w).Encode(manifestOf(names)); err != nil {
		return nil, err
	}
	for i, n := range names {
		if w, err = z.Create(n.file); err != nil {
			return nil, err
		}
		if err := write(ctx, w, t, uint32(i), n.machine, done); err != nil {
			return nil, fmt.Errorf("%s: %w", n.file, err)
		}
	}
	return done, z.Close()
}

// name is what a host is called in an archive.
type name struct{ file, machine string }

// machines names the hosts. Recordings of one boot of a host are of one machine; those
// of different boots are of two, since their process numbers are.
func machines(hosts []trace.Host) []name {
	boots := map[string]string{} // by machine
	var names []name
	for i := range hosts {
		h := &hosts[i]
		base := cmp.Or(h.Head.Host, "host")
		m := base
		for n := 2; ; n++ {
			boot, taken := boots[m]
			if !taken || boot == h.BootID && boot != "" {
				break
			}
			m = fmt.Sprintf("%s (%d)", base, n)
		}
		boots[m] = h.BootID
		names = append(names, name{fmt.Sprintf("%d-%s.pftrace", i, fileName(base)), m})
	}
	return names
}

// maxFileName is far below what the viewer can take (99 bytes).
const maxFileName = 60

func fileName(host string) string {
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, host)
	return host[:min(len(host), maxFileName)]
}

// manifest is the archive's perfetto_manifest. Readers want it to begin with its one
// key, without space.
type manifest struct {
	Manifest struct {
		Version   int `json:"version"`
		TraceTime struct {
			Clock string `json:"clock"`
			File  string `json:"file"`
		} `json:"trace_time"`
		Files []manifestFile `json:"files"`
	} `json:"perfetto_manifest"`
}

type manifestFile struct {
	Path    string          `json:"path"`
	Machine manifestMachine `json:"machine"`
}

type manifestMachine struct {
	Name string `json:"name"`
}

// manifestOf names the machines. The timeline is the wall clock's, on which the
// reader places hosts by their clock snapshots.
func manifestOf(names []name) *manifest {
	var m manifest
	m.Manifest.Version = 1
	m.Manifest.TraceTime.Clock, m.Manifest.TraceTime.File = "REALTIME", names[0].file
	for _, n := range names {
		m.Manifest.Files = append(m.Manifest.Files, manifestFile{n.file, manifestMachine{n.machine}})
	}
	return &m
}

// write writes the trace of one host.
func write(ctx context.Context, out io.Writer, t *trace.Tape, host uint32, machine string, done *format.Done) error {
	w := &writer{out: out, base: uint64(host) << hostShift}
	h := &trace.Host{}
	if int(host) < len(t.Manifest().Hosts) {
		h = t.Host(host)
	}
	if err := w.start(h, max(t.Manifest().FirstNS, 0), cmp.Or(machine, h.Head.Host)); err != nil {
		return err
	}
	return timeline.Walk(ctx, t, host, w, done)
}
