// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/internal/jsonout"
)

// Well reports whether the collector can store, and no host is silent or has a problem.
func Well(f *collector.Fleet) bool {
	return f.Storing && !slices.ContainsFunc(f.Hosts,
		func(h collector.Host) bool { return h.State == "silent" || h.Problem != "" })
}

// WriteFleetJSON writes the fleet as one object.
func WriteFleetJSON(w io.Writer, f *collector.Fleet) error {
	return jsonout.Object(w, f)
}

// WriteFleet writes the fleet for people: a table of its hosts, and what is wrong.
func WriteFleet(w io.Writer, f *collector.Fleet) error {
	t := report.Table{Head: []string{"host", "state", "heard", "events/s", "bytes/s", "stored", "lost", "% lost",
		"level", "spooled", "agent", "why lost"}, Left: 1}
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
		t.Add(h.Host, h.State, heard.String(), fmt.Sprintf("%.0f", h.EventsRate),
			report.Bytes(uint64(max(h.BytesRate, 0))), report.Count(h.Stored), report.Count(h.Lost),
			percent, h.Level, report.Bytes(uint64(max(h.Spooled, 0))),
			strings.TrimPrefix(report.Printable(h.AgentVersion), "iotape-agent "),
			report.Printable(strings.Join(why, ", ")))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s; refused: %d connections, %d requests, %d damaged, %d forged, %d duplicate identities\n",
		report.Plural(len(f.Hosts), "host", "hosts"), f.Refusals.Connections, f.Refusals.Requests,
		f.Refusals.Damaged, f.Refusals.Forged, f.Refusals.Duplicates)
	for i := range f.Hosts {
		if h := &f.Hosts[i]; h.Problem != "" {
			fmt.Fprintf(w, "%s: a stream cannot be written, and waits in the broker: %s\n", h.Host,
				report.Printable(h.Problem))
		}
	}
	if f.Refusals.Aside > 0 {
		fmt.Fprintf(w, "%s could not be read when the collector started, and is quarantined\n",
			report.Plural(int(f.Refusals.Aside), "file or stream", "files and streams"))
	}
	if f.Problem != "" {
		fmt.Fprintf(w, "nothing is stored: %s\n", report.Printable(f.Problem))
	}
	return nil
}

// WriteKeys writes a table of the registered keys.
func WriteKeys(w io.Writer, keys []broker.Key) error {
	t := report.Table{Head: []string{"name", "role", "public key"}, Left: 3}
	for i := range keys {
		k := &keys[i]
		t.Add(k.Name, string(k.Role), k.Public)
		if len(k.Publics(time.Now())) > 1 {
			t.Add(k.Name, "until "+k.Previous.Until.Local().Format(time.DateTime), k.Previous.Public)
		}
	}
	return t.Write(w)
}

// WriteKeysJSON writes an object for each key, one a line.
func WriteKeysJSON(w io.Writer, keys []broker.Key) error {
	enc := json.NewEncoder(w)
	for i := range keys {
		if err := enc.Encode(&keys[i]); err != nil {
			return err
		}
	}
	return nil
}

// WriteConfig writes the keys in the form of a NATS server's configuration.
func WriteConfig(w io.Writer, keys []broker.Key) error {
	_, err := fmt.Fprint(w, broker.Config(keys))
	return err
}

// EnrolNew makes a key pair, writes its secret to the file secret, and enrols the public key
// in the directory of a collector, by broker.Enrol or broker.Replace.
func EnrolNew(data string, k *broker.Key, secret string, enrol func(string, *broker.Key) error) (err error) {
	if k.Public, err = key.Create(secret); err != nil {
		return err
	}
	if err = enrol(data, k); err != nil {
		os.Remove(secret)
	}
	return err
}
