// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == nodeWord {
		if err := runNode(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestFaults has each fault be found at its host and message, whatever the order of the tapes, and
// nothing in clean runs.
func TestFaults(t *testing.T) {
	testenv.Short(t, "it runs clusters")
	iotape := testenv.Iotape(t)
	for i, s := range []*scenario{
		{Shape: "pipeline", Hosts: 3, Form: "plain", Kind: "text"},
		{Shape: "replication", Hosts: 4, Form: "chunked", Kind: "random"},
		{Shape: "broadcast", Hosts: 4, Form: "compressed", Kind: "text"},
		{Shape: "logs", Hosts: 3, Form: "plain", Kind: "random"},
		{Shape: "requests", Hosts: 2, Form: "plain", Kind: "text"},
		{Shape: "pipeline", Hosts: 4, Form: "plain", Kind: "random", Fault: "lost"},
		{Shape: "broadcast", Hosts: 4, Form: "framed", Kind: "text", Fault: "truncated"},
		{Shape: "replication", Hosts: 4, Form: "plain", Kind: "random", Fault: "duplicated"},
		{Shape: "logs", Hosts: 3, Form: "plain", Kind: "text", Fault: "reordered"},
		{Shape: "pipeline", Hosts: 3, Form: "framed", Kind: "random", Fault: "changed"},
		{Shape: "replication", Hosts: 3, Form: "plain", Kind: "text", Fault: "cut"},
		{Shape: "requests", Hosts: 2, Form: "plain", Kind: "random", Fault: "stale"},
		{Shape: "pipeline", Hosts: 3, Form: "plain", Kind: "random", Fault: "lost", Content: "signature"},
		{Shape: "pipeline", Hosts: 3, Form: "plain", Kind: "text", Fault: "truncated", Content: "hash"},
		{Shape: "logs", Hosts: 3, Form: "plain", Kind: "random", Fault: "changed", Content: "hash"},
		{Shape: "broadcast", Hosts: 5, Form: "chunked", Kind: "text"},
		{Shape: "logs", Hosts: 4, Form: "chunked", Kind: "text", Fault: "changed"},
		{Shape: "pipeline", Hosts: 3, Form: "chunked", Kind: "text", Fault: "truncated"},
		{Shape: "replication", Hosts: 4, Form: "chunked", Kind: "text", Fault: "lost"},
		{Shape: "pipeline", Hosts: 3, Form: "gzip", Kind: "text", Fault: "reordered"},
		{Shape: "replication", Hosts: 4, Form: "zstd each", Kind: "text", Fault: "truncated"},
		{Shape: "pipeline", Hosts: 3, Form: "chunked", Kind: "gzip", Fault: "changed"},
		{Shape: "broadcast", Hosts: 4, Form: "framed", Kind: "snappy", Fault: "lost"},
		{Shape: "logs", Hosts: 3, Form: "lz4", Kind: "random"},
	} {
		s.Seed = uint64(i)
		if s.Content == "" {
			s.Content = "full"
		}
		t.Run(fmt.Sprintf("%s %s %s %s", s.Shape, s.Form, s.Content, s.Fault), func(t *testing.T) {
			v, err := try(t.Context(), s, iotape, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if v.Found != (s.Fault != "") || len(v.Others) > 0 {
				t.Errorf("%s, fault %q: found %t, want %t; other findings %q, want none", s, s.Fault, v.Found,
					s.Fault != "", v.Others)
			}
		})
	}
}
