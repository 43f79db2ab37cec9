// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"
)

// Names in a tape's directory.
const (
	ManifestName = "manifest.json"
	EventsName   = "events"
	ContentName  = "content"
	SnapshotName = "snapshot"    // the file tree before the first event, if taken
	FinalName    = "final"       // the file tree after the last event, if taken
	HeadName     = "stream-head" // the heads of the hosts' streams, for Salvage
	IndexName    = "index.json"  // describes the derived files
	StreamName   = "stream"      // in the directory of a recording that is not sealed: its stream
	StacksName   = "stacks"      // the stacks of the events, if they were recorded

	AnnotationsName = "annotations" // what package causal derived: dependencies, compute times
	TimelineName    = "timeline"    // what package web/viewmodel derived: an index of the lanes of its threads
	InitialName     = "initial"     // what package replay derived: the initial tree
	OrderName       = "order"       // what package replay derived: an order of the events that explains their results
)

// TapeVersion is the tape format that this program writes, and the newest that
// it reads.
//
//	1  the first
const TapeVersion = 1

const (
	tapeFormat       = "iotape.tape"
	maxManifestBytes = 64 << 20
	maxTapeFiles     = 4096
	maxHosts         = 1 << 16
)

// Manifest describes a tape. It is manifest.json, the file that is written last.
type Manifest struct {
	Format  string `json:"format"`  // "iotape.tape"
	Version int    `json:"version"` // TapeVersion
	Program string `json:"program"` // that sealed it, with its version

	Hosts      []Host `json:"hosts"` // Event.Host is an index into them
	ExitStatus int    `json:"exit_status"`
	Signal     int    `json:"signal,omitempty"` // that ended the command

	Counts  Counts        `json:"counts"`
	Content ContentTotals `json:"content"`
	Losses  []Loss        `json:"losses,omitempty"`

	FirstNS int64 `json:"first_ns"` // earliest entry
	LastNS  int64 `json:"last_ns"`  // latest return

	Incomplete bool   `json:"incomplete,omitempty"` // the recording did not end in order
	Reason     string `json:"reason,omitempty"`     // why, if Incomplete

	Anonymised *Anonymised `json:"anonymised,omitempty"` // nil: everything is as it was recorded
	Assembly   *Assembly   `json:"assembly,omitempty"`   // nil: no part of what an agent records

	Files map[string]FileSum `json:"files"` // by name: all files but the manifest and the derived ones
}

// Assembly says which part of what an agent recorded on its host a tape is: the streams
// that it was made of (package archive), and why it begins and ends where it does.
type Assembly struct {
	Host    string   `json:"host"`    // by the name under which its collector knows it
	Streams []string `json:"streams"` // in their order
	Begins  Boundary `json:"begins"`
	Ends    Boundary `json:"ends"`
	Level   string   `json:"level,omitempty"`  // what the agent kept: "content", "hashes", "metadata" or "counters"
	Config  string   `json:"config,omitempty"` // hash of the agent's configuration
	// Losses are what the agent and the collector declared as lost. What the recorder
	// lost is among the manifest's Losses, too.
	Losses []Loss `json:"losses,omitempty"`
}

// Boundary is where a part of a longer recording begins or ends.
type Boundary struct {
	Reason string `json:"reason"` // as "reboot", "loss" or "size limit"
	Detail string `json:"detail,omitempty"`
	WallNS int64  `json:"wall_ns,omitempty"` // ns since 1970
	// GapNS is, at a beginning, for how long nothing had been recorded; -1 if that is
	// not known.
	GapNS int64 `json:"gap_ns,omitempty"`
}

// Host is a machine whose events are in the tape.
type Host struct {
	Head
}

// Wall returns the wall-clock time, in ns since 1970, of a monotonic time on the
// host.
func (h *Host) Wall(ns int64) int64 { return ns - h.ClockNS + h.WallNS }

// Anonymised says which values of a tape are not those that were recorded (package
// anon).
type Anonymised struct {
	Version        int                  `json:"version"`
	Fields         map[string]FieldSeal `json:"fields"` // by the field's name
	KeepExtensions bool                 `json:"keep_extensions,omitempty"`
	Content        AnonymisedContent    `json:"content,omitempty"`
}

// Unsigned returns a copy without MACs, for a tape that is made of this one; nil for nil.
func (a *Anonymised) Unsigned() *Anonymised {
	if a == nil {
		return nil
	}
	c := *a
	c.Fields = maps.Clone(a.Fields)
	for name, s := range c.Fields {
		s.MAC = ""
		c.Fields[name] = s
	}
	return &c
}

// FieldSeal identifies the key that a field is encrypted with.
type FieldSeal struct {
	Key string `json:"key"`           // a fingerprint of it
	MAC string `json:"mac,omitempty"` // of the manifest, with the key; "" if who wrote the tape did not have it
}

// AnonymisedContent says what became of content.
type AnonymisedContent string

// What became of content.
const (
	ContentKept    AnonymisedContent = ""
	ContentRemoved AnonymisedContent = "removed"
	// by chunk: what a file holds is not what calls moved, byte by byte
	ContentEncrypted   AnonymisedContent = "encrypted"
	ContentSubstituted AnonymisedContent = "substituted" // by byte: it is
)

// Counts says how many of each a tape holds.
type Counts struct {
	Events    uint64 `json:"events"`
	Calls     uint64 `json:"calls"`
	Threads   uint64 `json:"threads"`   // distinct thread ids, per host
	Processes uint64 `json:"processes"` // distinct process ids, per host
	Files     uint64 `json:"files"`     // distinct (device, inode), per host
}

// ContentTotals sums up a tape's content.
type ContentTotals struct {
	MovedBytes  uint64 `json:"moved_bytes"`  // by buffers of calls
	UniqueBytes uint64 `json:"unique_bytes"` // in chunks, before compression
	StoredBytes uint64 `json:"stored_bytes"` // of the content file
	Chunks      uint64 `json:"chunks"`
}

// Loss is what is known to be missing, by reason.
type Loss struct {
	Reason  string `json:"reason"`
	Records uint64 `json:"records"`
}

// mostLosses bounds what Losses lists, for input that is damaged.
const mostLosses = 32

// Losses lists numbers of lost records by their reasons, in the order of these. It leaves out those of 0.
func Losses(records map[uint32]uint64) (list []Loss) {
	for _, reason := range slices.Sorted(maps.Keys(records)) {
		if n := records[reason]; n > 0 {
			list = append(list, Loss{Reason: LossReason(reason), Records: n})
		}
	}
	if len(list) > mostLosses {
		rest := &list[mostLosses-1]
		rest.Reason = "other reasons"
		for _, l := range list[mostLosses:] {
			rest.Records += l.Records
		}
		list = list[:mostLosses]
	}
	return list
}

// HostFile returns the name that a file of one of several hosts has in a tape:
// "host-1-snapshot". Of a tape with one host the files have their own names.
func HostFile(host int, name string) string { return fmt.Sprintf("host-%d-%s", host, name) }

// SplitHostFile is the inverse of HostFile. A name without a host is of host 0.
func SplitHostFile(name string) (host int, file string) {
	rest, ok := strings.CutPrefix(name, "host-")
	number, file, found := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 16)
	if !ok || !found || err != nil {
		return 0, name
	}
	return int(n), file
}

// WriteHeads adds HeadName to a tape: what Salvage knows the hosts by if the manifest
// is lost. It is a JSON object for each host, in their order.
func WriteHeads(tw *TapeWriter, hosts []Host) error {
	w, err := tw.Create(HeadName)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	for i := range hosts {
		if err := enc.Encode(&hosts[i].Head); err != nil {
			w.Close()
			return fmt.Errorf("write %s: %w", HeadName, err)
		}
	}
	return w.Close()
}

// readHeads reads what WriteHeads wrote, as far as it is sound.
func readHeads(b []byte) (hosts []Host) {
	dec := json.NewDecoder(bytes.NewReader(b))
	for len(hosts) < maxHosts {
		var h Head
		if dec.Decode(&h) != nil {
			break
		}
		hosts = append(hosts, Host{h})
	}
	return hosts
}

// FileSum is the size and the hash of a file.
type FileSum struct {
	Bytes  int64  `json:"bytes"`
	BLAKE3 string `json:"blake3"` // 256 bits, hexadecimal
}

// Encode returns the bytes of manifest.json. They end in a field that holds the
// BLAKE3-256 of everything before its value, so that damage to the manifest is
// found as well.
func (m *Manifest) Encode() ([]byte, error) {
	m.Format, m.Version = tapeFormat, TapeVersion
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	return sealJSON(m)
}

// ParseManifest checks and decodes the bytes of a manifest.
func ParseManifest(b []byte) (*Manifest, error) {
	var v struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err == nil {
		if v.Format != tapeFormat {
			return nil, fmt.Errorf("manifest of format %q: %w", v.Format, ErrNotATrace)
		}
		if v.Version > TapeVersion {
			return nil, fmt.Errorf("tape version %d, this program reads up to %d: %w", v.Version, TapeVersion, ErrNewer)
		}
	}
	m := new(Manifest)
	if err := openJSON(b, m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("manifest: %w: %w", err, ErrCorrupt)
	}
	return m, nil
}

func (m *Manifest) validate() error {
	switch {
	case m.Format != tapeFormat:
		return fmt.Errorf("format is %q", m.Format)
	case m.Version < 1 || m.Version > TapeVersion:
		return fmt.Errorf("version is %d", m.Version)
	case len(m.Hosts) > maxHosts:
		return fmt.Errorf("%d hosts, at most %d", len(m.Hosts), maxHosts)
	case len(m.Files) > maxTapeFiles:
		return fmt.Errorf("%d files, at most %d", len(m.Files), maxTapeFiles)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if err := checkSum(name, m.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkSum(name string, sum FileSum) error {
	if err := validName(name); err != nil {
		return err
	}
	if h, err := hex.DecodeString(sum.BLAKE3); err != nil || len(h) != 32 || sum.Bytes < 0 {
		return fmt.Errorf("file %s has no valid size and hash", name)
	}
	return nil
}

// validName refuses names that could lead out of the tape's directory.
func validName(name string) error {
	if name == "" || len(name) > 200 || name[0] == '.' || strings.ContainsAny(name, "/\\\x00\n") {
		return fmt.Errorf("file name %q is not allowed in a tape", name)
	}
	return nil
}

// The end of a checked JSON document: sealStart, 64 hexadecimal digits, sealEnd.
const (
	sealStart = ",\n  \"check\": \""
	sealEnd   = "\"\n}\n"
	sealBytes = len(sealStart) + 64 + len(sealEnd)
)

// sealJSON encodes v, an object with at least one field, with its checksum.
func sealJSON(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	b = append(bytes.TrimSuffix(b, []byte("\n}")), sealStart...)
	sum := blake3.Sum256(b)
	b = append(b, hex.EncodeToString(sum[:])...)
	return append(b, sealEnd...), nil
}

// openJSON checks a document of sealJSON and decodes it.
func openJSON(b []byte, v any) error {
	if len(b) > maxManifestBytes {
		return fmt.Errorf("%d bytes, at most %d: %w", len(b), maxManifestBytes, ErrCorrupt)
	}
	if !bytes.HasSuffix(b, []byte(sealEnd)) || len(b) < sealBytes {
		return fmt.Errorf("its end is missing: %w", ErrTruncated)
	}
	body, want := b[:len(b)-len(sealEnd)-64], string(b[len(b)-len(sealEnd)-64:len(b)-len(sealEnd)])
	if sum := blake3.Sum256(body); !bytes.HasSuffix(body, []byte(sealStart)) || hex.EncodeToString(sum[:]) != want {
		return fmt.Errorf("checksum differs: %w", ErrCorrupt)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	return nil
}

// sealOf returns the checksum of an encoded document, which identifies it.
func sealOf(b []byte) string {
	if len(b) < sealBytes {
		return ""
	}
	return string(b[len(b)-len(sealEnd)-64 : len(b)-len(sealEnd)])
}

// Foreign reports whether the tape is of another tool's trace, which does not say on which kernel it was made.
func (m *Manifest) Foreign() bool {
	return slices.ContainsFunc(m.Hosts, func(h Host) bool {
		return h.Kernel == "" && h.Backend != "" && h.Backend != "script" && h.Backend != "test"
	})
}
