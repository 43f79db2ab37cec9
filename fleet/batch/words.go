// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"github.com/iotape/iotape/fleet/staging"
)

// Subjects of NATS. Those of a host end in its name, and only its agent may use them.
const (
	prefix = "iotape.v1."

	Batches = prefix + "parcel." // + host: batches, kept by JetStream; the name is that of version 0.1
	Hellos  = prefix + "hello."  // + host: Hello, answered with Answer
	Reports = prefix + "report." // + host: Report, from time to time
	// Collectors is where the collector of the broker answers who it is.
	Collectors = prefix + "collector"

	// Bucket is the JetStream stream that keeps batches until a collector has them.
	Bucket = "IOTAPE"

	// FloorHeader says, of a message with a batch, up to which number the broker has
	// taken the stream's batches: one of these that a collector does not get is lost.
	FloorHeader = "Iotape-Floor"
)

// Inbox returns the prefix of the subjects on which the owner of a public nkey gets
// answers. Nobody else may listen there.
func Inbox(public string) string { return "_INBOX." + public }

// Hello is what an agent says when it begins to send.
type Hello struct {
	Version      int    `json:"version"` // Version
	AgentVersion string `json:"agent_version"`
	BootID       string `json:"boot_id"`
	AgentStartNS int64  `json:"agent_start_ns"`
	ClockNS      int64  `json:"clock_ns"` // ns since 1970 by the host's clock
}

// Answer is what a collector says to that.
type Answer struct {
	Version int    `json:"version"`
	Refused string `json:"refused,omitempty"` // why the agent must not send, as a sentence; "": it may
	ClockNS int64  `json:"clock_ns"`          // of the collector
}

// Report is what an agent says of itself. Counters are since its start.
type Report struct {
	AgentVersion string         `json:"agent_version"`
	BootID       string         `json:"boot_id"`
	AgentStartNS int64          `json:"agent_start_ns"`
	ConfigHash   string         `json:"config_hash"`
	Level        string         `json:"level"`
	ClockNS      int64          `json:"clock_ns"`
	Produced     uint64         `json:"produced"` // events
	Spooled      int64          `json:"spooled"`  // bytes that wait to be sent
	SpoolMax     int64          `json:"spool_max"`
	Losses       []staging.Loss `json:"losses,omitempty"`
	CPUNS        int64          `json:"cpu_ns"`    // used
	RSSBytes     int64          `json:"rss_bytes"` // resident
	SkewNS       int64          `json:"skew_ns"`   // of the host's clock, ahead of the collector's
	Errors       uint64         `json:"errors"`    // of sending
	LastError    string         `json:"last_error,omitempty"`
}

// MaxWords bounds the JSON of a Hello, an Answer and a Report, in bytes.
const MaxWords = 16 << 10
