// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/fleet/staging"
)

// Config is an agent's configuration, a TOML file. The zero value of a field is its
// default, but for Collectors, which there have to be.
type Config struct {
	Host       string   `toml:"host"`       // name of the host; "" is its own, in lower case
	Collectors []string `toml:"collectors"` // nats:// or tls:// addresses, tried in random order
	Key        string   `toml:"key"`        // file with the nkey seed
	// File with the certificates that collectors' are checked with; "" is the system's.
	CA       string `toml:"ca"`
	Overflow string `toml:"overflow"` // "drop", the default, or "block": programs wait while the spool is full

	Record Record `toml:"record"`
	Limits Limits `toml:"limits"`
	Stream Stream `toml:"stream"`
	Tape   Stream `toml:"tape"`
	Spool  string `toml:"spool"` // directory; "" is /var/lib/iotape-agent

	hash string
}

// Record says what is recorded. The agent hands it to its Source.
type Record struct {
	All     bool     `toml:"all"`     // the whole machine but for the agent; the default
	Cgroup  string   `toml:"cgroup"`  // a control group
	PIDs    []int    `toml:"pids"`    // processes
	Command []string `toml:"command"` // a command; the agent ends with it
	Filter  string   `toml:"filter"`  // docs/filters.md
	// The level to begin with: content (the default), hashes, metadata or counters.
	Verbosity string `toml:"verbosity"`
	// What is kept of content at the level of that name: none (the default), full, head:N, hash.
	Content   string `toml:"content"`
	Mmap      string `toml:"mmap"`      // what is recorded of mapped files; "" is "data"
	Synthetic string `toml:"synthetic"` // for tests: made-up events, see package fleet/source
}

// Limits bound what the agent uses.
type Limits struct {
	Memory Size  `toml:"memory"` // of the agent, its buffers in the kernel included; 0 is 64 MiB
	Spool  Size  `toml:"spool"`  // bytes on the disk; 0 is 256 MiB
	CPU    Share `toml:"cpu"`    // of one processor; 0 is no limit
}

// Stream bounds a stream: when it is larger or older, another one begins, in which the
// recording goes on. Of a tape, which is what becomes of a recording, it bounds that: when
// it is larger or older, another recording begins, with a new description of what runs.
type Stream struct {
	Size Size     `toml:"size"` // 0 is 256 MiB; of a tape 4 GiB of streams
	Age  Duration `toml:"age"`  // 0 is 1 h; of a tape 24 h
}

// Defaults and limits.
const (
	defaultMemory = 64 << 20
	minMemory     = 32 << 20
	defaultSpool  = 256 << 20
	defaultSize   = 256 << 20
	minSize       = 64 << 10
	defaultAge    = time.Hour
	tapeSize      = 4 << 30
	tapeAge       = 24 * time.Hour
	DefaultDir    = "/var/lib/iotape-agent"
	DefaultConfig = "/etc/iotape/agent.toml"
	maxConfig     = 1 << 20
)

// Size is a number of bytes: "64M".
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	digits := strings.TrimRight(text, "KMGT")
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[text[len(digits):]]
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || v < 0 || v > 1<<62>>shift {
		return fmt.Errorf("size %q: wants a number of bytes such as 65536 or 64M", text)
	}
	*s = Size(v << shift)
	return nil
}

// Duration is a time: "1h30m".
type Duration time.Duration

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("duration %q: wants a time such as 90s or 1h", b)
	}
	*d = Duration(v)
	return nil
}

// Share is a part of one processor: "3%".
type Share float64

// UnmarshalText reads a share.
func (s *Share) UnmarshalText(b []byte) error {
	digits, ok := strings.CutSuffix(string(b), "%")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok || !(v >= 0 && v <= 10000) {
		return fmt.Errorf("share %q: wants a part of one processor such as 3%%", b)
	}
	*s = Share(v / 100)
	return nil
}

// ParseShare is UnmarshalText for a flag.
func ParseShare(text string) (s Share, err error) {
	err = s.UnmarshalText([]byte(text))
	return s, err
}

// ReadConfig reads and checks a configuration file.
func ReadConfig(name string) (*Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1)) // a device has no size
	if err != nil {
		return nil, err
	}
	if len(b) > maxConfig {
		return nil, fmt.Errorf("%s: more than 1 MiB is no configuration", name)
	}
	c, err := ParseConfig(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// ParseConfig reads and checks a configuration.
func ParseConfig(b []byte) (*Config, error) {
	c := &Config{}
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		var strict *toml.StrictMissingError
		var wrong *toml.DecodeError
		switch {
		case errors.As(err, &strict) && len(strict.Errors) > 0:
			e := strict.Errors[0]
			line, _ := e.Position()
			return nil, fmt.Errorf("line %d: there is no setting %s", line, strings.Join(e.Key(), "."))
		case errors.As(err, &wrong):
			line, _ := wrong.Position()
			return nil, fmt.Errorf("line %d: %s", line, strings.TrimPrefix(wrong.Error(), "toml: "))
		}
		return nil, err
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	c.hash = hex.EncodeToString(sum[:8])
	return c, nil
}

// finish sets defaults, and checks.
func (c *Config) finish() error {
	if c.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("host: %w", err)
		}
		c.Host = strings.ToLower(name)
	}
	if err := staging.CheckHost(c.Host); err != nil {
		return err
	}
	if err := checkCollectors(c.Collectors); err != nil {
		return err
	}
	switch c.Overflow {
	case "":
		c.Overflow = "drop"
	case "drop", "block":
	default:
		return fmt.Errorf("overflow: %.100q is neither drop nor block", c.Overflow)
	}
	if err := c.finishRecord(); err != nil {
		return err
	}
	c.defaultLimits()
	return c.checkLimits()
}

func checkCollectors(urls []string) error {
	if len(urls) == 0 {
		return errors.New(`collectors: there is none; such as collectors = ["tls://collector.example.com:4222"]`)
	}
	for _, s := range urls {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return fmt.Errorf("collectors: %.100q is not nats://HOST:PORT or tls://HOST:PORT", s)
		}
		if u.User != nil {
			return fmt.Errorf("collectors: %s has a secret in it: the agent's is in the file of key", u.Host)
		}
	}
	return nil
}

// finishRecord does the same for what is recorded.
func (c *Config) finishRecord() error {
	r := &c.Record
	n := 0
	for _, given := range []bool{r.All, r.Cgroup != "", len(r.PIDs) > 0, len(r.Command) > 0, r.Synthetic != ""} {
		if given {
			n++
		}
	}
	switch {
	case n == 0:
		r.All = true
	case n > 1:
		return errors.New("record: only one of all, cgroup, pids and command can be recorded")
	}
	if _, err := ParseLevel(r.Verbosity); err != nil {
		return fmt.Errorf("record.verbosity: %w", err)
	}
	return nil
}

func (c *Config) defaultLimits() {
	or(&c.Limits.Memory, defaultMemory)
	or(&c.Limits.Spool, defaultSpool)
	or(&c.Stream.Size, defaultSize)
	or(&c.Stream.Age, Duration(defaultAge))
	or(&c.Tape.Size, tapeSize)
	or(&c.Tape.Age, Duration(tapeAge))
	or(&c.Spool, DefaultDir)
}

func (c *Config) checkLimits() error {
	switch {
	case c.Limits.Memory < minMemory:
		return fmt.Errorf("limits.memory: at least %d MiB are needed", minMemory>>20)
	case c.Limits.Spool < spool.MinBytes:
		return fmt.Errorf("limits.spool: at least %d MiB are needed", spool.MinBytes>>20)
	case c.Stream.Size < minSize:
		return fmt.Errorf("stream.size: at least %d KiB are needed", minSize>>10)
	case time.Duration(c.Stream.Age) < time.Second:
		return errors.New("stream.age: at least 1s is needed")
	case c.Tape.Size < minSize:
		return fmt.Errorf("tape.size: at least %d KiB are needed", minSize>>10)
	case time.Duration(c.Tape.Age) < time.Second:
		return errors.New("tape.age: at least 1s is needed")
	}
	return nil
}

func or[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// ParseLevel reads a level's name; "" is Content.
func ParseLevel(s string) (Level, error) {
	if s == "" {
		return Content, nil
	}
	for l := Content; l <= lowest; l++ {
		if l.String() == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("%.100q is none of content, hashes, metadata and counters", s)
}

// Hash identifies the configuration's text.
func (c *Config) Hash() string { return c.hash }
