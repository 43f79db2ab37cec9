// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/service"
)

func TestWriteFleet(t *testing.T) {
	f := &collector.Fleet{TimeNS: 100e9, Storing: true, Hosts: []collector.Host{
		{Host: "db7", State: "ok", LastContactNS: 98e9, EventsRate: 1234.4, BytesRate: 4096, Stored: 2000,
			Level: "full", AgentVersion: "iotape-agent 1.0"},
		{Host: "db8", State: "silent", LastContactNS: 1e9, Stored: 999, Lost: 1, Problem: "no room"},
	}}
	if service.Well(f) {
		t.Error("a fleet with a silent host is well")
	}
	var b strings.Builder
	if err := service.WriteFleet(&b, f); err != nil {
		t.Fatal(err)
	}
	const want = `host   state  heard  events/s   bytes/s  stored  lost  % lost  level  spooled  agent  why lost
db7       ok     2s      1234  4.00 KiB   2,000     0  0.0000   full      0 B    1.0
db8   silent  1m39s         0       0 B     999     1  0.1000             0 B

2 hosts; refused: 0 connections, 0 requests, 0 damaged, 0 forged, 0 duplicate identities
db8: a stream cannot be written, and waits in the broker: no room
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
	f.Hosts = f.Hosts[:1]
	if !service.Well(f) {
		t.Error("a fleet whose only host is heard is not well")
	}
	if f.Storing = false; service.Well(f) {
		t.Error("a fleet that stores nothing is well")
	}
}

func TestRunRefuses(t *testing.T) {
	for _, o := range []service.Options{
		{Listen: "0.0.0.0:4222", Page: "-"},
		{Listen: ":4222", Page: "-"},
		{Listen: "127.0.0.1:4222", Page: "0.0.0.0:7073"},
		{Listen: "127.0.0.1:4222", Page: ":7073"},
		{Listen: "127.0.0.1:4222", Page: ":7073", Open: true},
		{Listen: "127.0.0.1:4222", Page: ":7073", PageToken: "token"},
		{Listen: "nonsense", Page: "-"},
	} {
		o.Data = t.TempDir()
		if err := service.Run(t.Context(), &o); err == nil {
			t.Errorf("Run with --listen %s --page %s does not fail", o.Listen, o.Page)
		}
	}
}
