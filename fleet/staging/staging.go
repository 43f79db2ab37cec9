// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/pipe/wholefile"
)

// The files of a stream's directory.
const (
	AboutFile   = "about.json"
	StreamFile  = "stream"
	CommitsFile = "commits"
	EndFile     = "end.json"
)

// Version is the version of About and End. Readers refuse a greater one.
const Version = 1

// Reason is why a stream began or ended.
type Reason string

// The reasons. The reason of a beginning says what ended before.
const (
	ReasonStart    Reason = "agent start"   // begin: the agent's first stream
	ReasonReboot   Reason = "reboot"        // the machine went down without notice, or started again
	ReasonStop     Reason = "agent stop"    // end: the agent was stopped
	ReasonKilled   Reason = "agent killed"  // the agent ended without notice, and was started again
	ReasonLoss     Reason = "loss"          // events were lost; the next stream begins with a new description
	ReasonSize     Reason = "size limit"    // the stream reached its largest size
	ReasonAge      Reason = "age limit"     // the stream reached its greatest age
	ReasonConfig   Reason = "configuration" // the agent read a changed configuration
	ReasonLevel    Reason = "level"         // the agent changed what it keeps, because of its CPU limit
	ReasonSilent   Reason = "agent silent"  // end: the collector received nothing from the agent for too long
	ReasonFinished Reason = "finished"      // end: the recorded processes ended
)

// About describes a stream. It does not change once written.
type About struct {
	Version      int    `json:"version"`
	Host         string `json:"host"`          // checked by CheckHost
	Stream       string `json:"stream"`        // checked by ParseStream
	BootID       string `json:"boot_id"`       // of the kernel, as in the stream's name
	AgentVersion string `json:"agent_version"` // such as "iotape-agent 0.2.0"
	AgentStartNS int64  `json:"agent_start_ns"`
	StartNS      int64  `json:"start_ns"` // of this stream: ns since 1970 by the host's clock
	ConfigHash   string `json:"config_hash"`
	Level        string `json:"level"`  // what is kept: "content", "hashes", "metadata" or "counters"
	Reason       Reason `json:"reason"` // why this stream began
	Detail       string `json:"detail,omitempty"`
	// Previous is the host's stream before this one, "" if the agent knows none. GapNS is
	// how long nothing was recorded between the two, -1 if this is unknown.
	Previous string `json:"previous,omitempty"`
	GapNS    int64  `json:"gap_ns"`
	// Continues says that the stream continues Previous, in the same recording. It has no
	// description at its beginning, so it cannot be read without Previous.
	Continues bool `json:"continues,omitempty"`
	// SkewNS is how far the host's clock was ahead of the collector's when the agent
	// connected.
	SkewNS int64 `json:"skew_ns,omitempty"`
}

// Loss counts the events that a stream lost for one reason.
type Loss struct {
	Reason string `json:"reason"`
	Events uint64 `json:"events"`
}

// End says how a stream ended. It does not change once written.
type End struct {
	Version   int    `json:"version"`
	Reason    Reason `json:"reason"`
	Detail    string `json:"detail,omitempty"`
	LastBatch uint64 `json:"last_parcel"` // number of the last parcel in the stream; parcels count from 1
	Bytes     int64  `json:"bytes"`       // of the stream
	Events    uint64 `json:"events"`      // in the stream, as its agent counted them
	Losses    []Loss `json:"losses,omitempty"`
	// Complete says that the stream ends where its agent ended it, and that nothing is known
	// to be missing.
	Complete bool `json:"complete"`
	// Continued says that another stream continues the recording; it has Continues set.
	Continued bool  `json:"continued,omitempty"`
	EndNS     int64 `json:"end_ns"` // ns since 1970 by the collector's clock
}

// Lost returns the number of events that are declared lost.
func (e *End) Lost() (n uint64) {
	for _, l := range e.Losses {
		n += l.Events
	}
	return n
}

var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9][a-z0-9-]{0,62})*$`)
})

// CheckHost checks a host's name, which is a DNS name in lower case of up to 128 bytes.
func CheckHost(host string) error {
	if len(host) > 128 || !hostName().MatchString(host) {
		return fmt.Errorf("host %.140q: a name is of a-z, 0-9, - and ., such as db7.example.com, and has up to 128 "+
			"characters", host)
	}
	return nil
}

// StreamName has the parts of a stream's name. Streams of one boot are ordered by the other
// two parts.
type StreamName struct {
	BootID  string // 36 characters: hexadecimal and -
	StartNS int64  // of the agent
	Serial  uint64 // from 1
}

var bootID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
})

// String returns the name: BOOT-START-SERIAL.
func (n StreamName) String() string { return fmt.Sprintf("%s-%d-%d", n.BootID, n.StartNS, n.Serial) }

// ParseStream parses a name. It refuses everything that String does not write.
func ParseStream(s string) (n StreamName, err error) {
	wrong := fmt.Errorf("stream %.100q: a name is BOOT-START-SERIAL", s)
	if len(s) > 100 || len(s) < 40 || s[36] != '-' || !bootID().MatchString(s[:36]) {
		return n, wrong
	}
	start, serial, _ := strings.Cut(s[37:], "-")
	n.BootID = s[:36]
	n.StartNS, err = strconv.ParseInt(start, 10, 64)
	if err == nil {
		n.Serial, err = strconv.ParseUint(serial, 10, 64)
	}
	if err != nil || n.StartNS < 0 || n.Serial == 0 || n.String() != s {
		return StreamName{}, wrong
	}
	return n, nil
}

// Less orders streams of a host by the agent's start and the serial number.
func (n StreamName) Less(m StreamName) bool {
	if n.StartNS != m.StartNS {
		return n.StartNS < m.StartNS
	}
	return n.Serial < m.Serial
}

// Root returns the directory of all hosts within a collector's data.
func Root(data string) string { return filepath.Join(data, "staging") }

// StreamParts is how many of the last parts of the names of a stream's files are below the collector's data.
const StreamParts = 4

// Dir returns a stream's directory. The caller has checked the names.
func Dir(data, host, stream string) string { return filepath.Join(Root(data), host, stream) }

// Stream is a staged stream.
type Stream struct {
	Dir   string
	About About
	End   *End // nil: it is not finished
}

// File returns the path of the stream's bytes.
func (s *Stream) File() string { return filepath.Join(s.Dir, StreamFile) }

// List returns the streams staged below a collector's data, by host, in the order in which
// the agents began them. It lists all that it can read; err has what it cannot read, and
// what is not a stream's directory.
func List(data string) (streams []Stream, err error) {
	streams, damaged, err := Find(data)
	for _, d := range damaged {
		err = errors.Join(err, d.Err)
	}
	return streams, err
}

// Damaged is a stream's directory that cannot be read.
type Damaged struct {
	Host, Stream string // checked
	Dir          string
	Err          error
	Finished     bool // it has an end.json, so the collector no longer uses it
}

// Find is like List, and returns the unreadable directories of streams separately.
func Find(data string) (streams []Stream, damaged []Damaged, err error) {
	hosts, err := readDir(Root(data), 1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, h := range hosts {
		if CheckHost(h.Name()) != nil || !h.IsDir() {
			errs = append(errs, fmt.Errorf("%s is not a host's directory", filepath.Join(Root(data), h.Name())))
			continue
		}
		of, bad, err := listHost(data, h.Name())
		streams, damaged = append(streams, of...), append(damaged, bad...)
		errs = append(errs, err)
	}
	return streams, damaged, errors.Join(errs...)
}

func listHost(data, host string) (streams []Stream, damaged []Damaged, err error) {
	entries, err := readDir(filepath.Join(Root(data), host), 2)
	if err != nil {
		return nil, nil, err
	}
	names := make(map[string]StreamName)
	var errs []error
	for _, e := range entries {
		n, err := ParseStream(e.Name())
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", host, err))
			continue
		}
		s, err := Open(Dir(data, host, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // about to be made, or removed
		case err != nil:
			d := Damaged{Host: host, Stream: e.Name(), Dir: Dir(data, host, e.Name()), Err: err}
			_, statErr := os.Lstat(filepath.Join(d.Dir, EndFile))
			d.Finished = statErr == nil
			damaged = append(damaged, d)
		default:
			names[s.Dir] = n
			streams = append(streams, *s)
		}
	}
	slices.SortStableFunc(streams, func(a, b Stream) int {
		switch m, n := names[a.Dir], names[b.Dir]; {
		case m.Less(n):
			return -1
		case n.Less(m):
			return 1
		}
		return 0
	})
	return streams, damaged, errors.Join(errs...)
}

// Open reads the description of a stream. Its names must be those of the directory.
func Open(dir string) (*Stream, error) {
	s := &Stream{Dir: dir}
	if err := readJSON(filepath.Join(dir, AboutFile), &s.About); err != nil {
		return nil, err
	}
	host, stream := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
	if s.About.Version > Version {
		return nil, fmt.Errorf("%s: of version %d, this program knows up to %d", dir, s.About.Version, Version)
	}
	if s.About.Host != host || s.About.Stream != stream {
		return nil, fmt.Errorf("%s: %s says that it is of stream %.100q of host %.140q", dir,
			AboutFile, s.About.Stream, s.About.Host)
	}
	var end End
	switch err := readJSON(filepath.Join(dir, EndFile), &end); {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, err
	case end.Version > Version:
		return nil, fmt.Errorf("%s: of version %d, this program knows up to %d", dir, end.Version, Version)
	}
	s.End = &end
	return s, nil
}

// Quarantine moves a stream's directory to another directory, below the host's name, with a
// file STREAM.why beside it, and returns where it is.
func Quarantine(dir, to, why string) (string, error) {
	host, stream := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
	to = filepath.Join(to, host)
	data := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
	within, err := filepath.Rel(data, to)
	if err != nil {
		return "", err
	}
	if err := wholefile.MkdirBelow(data, within, 0o700); err != nil {
		return "", err
	}
	name := stream
	for n := 2; ; n++ { // another one of this name may be there already
		if _, err := os.Lstat(filepath.Join(to, name)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		name = fmt.Sprintf("%s.%d", stream, n)
	}
	reason := filepath.Join(within, name+".why")
	f, err := wholefile.OpenBelow(data, reason, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(why + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if err := wholefile.RenameBelow(data, filepath.Join("staging", host, stream),
		filepath.Join(within, name)); err != nil {
		return "", errors.Join(err, wholefile.UnlinkOwn(filepath.Join(data, reason), depth(reason)))
	}
	return filepath.Join(to, name), errors.Join(wholefile.SyncDir(to), wholefile.SyncDir(filepath.Dir(dir)))
}

// maxJSON limits the size of about.json and end.json, in bytes.
const maxJSON = 64 << 10

func readJSON(name string, v any) error {
	b, err := wholefile.ReadOwn(name, StreamParts, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// WriteFile makes a durable file with v as JSON, completely or not at all. The last so many parts of its name are below
// the collector's data, and no links.
func WriteFile(name string, parts int, v any) error {
	f, err := prepare(name, parts, v)
	if err != nil {
		return err
	}
	if err = errors.Join(f.Sync(), f.Close()); err == nil {
		err = publish(name, parts)
	}
	if err != nil {
		return errors.Join(err, wholefile.UnlinkOwn(name+next, parts))
	}
	return wholefile.SyncDir(filepath.Dir(name))
}

// next is the suffix of a file that is about to replace another.
const next = ".next"

// publish gives a file that was prepared its name.
func publish(name string, parts int) error {
	root, within := wholefile.Below(name, parts)
	return wholefile.RenameBelow(root, within+next, within)
}

// depth is how many parts a path has.
func depth(path string) int { return strings.Count(path, "/") + 1 }

// readDir lists a directory of the collector's data in the order of names.
func readDir(dir string, parts int) ([]fs.DirEntry, error) {
	entries, err := wholefile.ReadDirOwn(dir, parts)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// prepare writes a file beside the one that it will replace.
func prepare(name string, parts int, v any) (*os.File, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	// What a killed process left is removed, and so is a link in its place.
	if err := wholefile.UnlinkOwn(name+next, parts); err != nil {
		return nil, err
	}
	f, err := wholefile.OpenOwn(name+next, parts, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return nil, errors.Join(err, f.Close(), wholefile.UnlinkOwn(name+next, parts))
	}
	return f, nil
}

// Batch makes many files as WriteFile does, but leaves it to the caller to sync the file
// system: after the Puts, before Publish, and after that.
type Batch struct{ files []batched }

type batched struct {
	name  string
	parts int
}

// Put writes a file beside the one that it will replace; see WriteFile.
func (b *Batch) Put(name string, parts int, v any) error {
	f, err := prepare(name, parts, v)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	b.files = append(b.files, batched{name, parts})
	return nil
}

// Len returns how many files wait for Publish.
func (b *Batch) Len() int { return len(b.files) }

// Publish gives the files their names.
func (b *Batch) Publish() error {
	for _, f := range b.files {
		if err := publish(f.name, f.parts); err != nil {
			return err
		}
	}
	b.files = nil
	return nil
}
