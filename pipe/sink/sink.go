// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/pipe/wire"
)

// Options for Open. Nil and zero values are the defaults.
type Options struct {
	Stdout *os.File // what "-" is; nil refuses it
	New    bool     // a file must not exist
	// Note, if not nil, is told of what goes on: connections that were lost and made.
	Note func(line string)
}

// Open opens a sink by its name:
//
//   - standard output
//     PATH                     a file
//     file:PATH?…              a file: buffer=SIZE sync rotate=SIZE every=TIME
//     device:PATH              a raw block device
//     unix:PATH?…              a listener (iotape receive): spool=SIZE spool-file=PATH give-up=TIME
//     tcp://HOST:PORT?…        the same
//     tls://HOST:PORT?…        the same, and ca=FILE cert=FILE key=FILE
func Open(ctx context.Context, name string, o *Options) (io.WriteCloser, error) {
	if o == nil {
		o = &Options{}
	}
	if name == "-" {
		if o.Stdout == nil {
			return nil, errors.New("standard output is taken")
		}
		return unclosed{o.Stdout}, nil
	}
	scheme, rest, _ := strings.Cut(name, ":")
	if !schemes[scheme] {
		if u, _, ok := strings.Cut(name, "://"); ok {
			return nil, fmt.Errorf("%s://: streams go to file:, device:, unix:, tcp:// and tls://", u)
		}
		return openFile(name, fileOptions{fresh: o.New})
	}
	path, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &params{values: values}
	w, err := open(ctx, scheme, path, p, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", scheme+":"+path, err)
	}
	return w, nil
}

// IsFile reports whether a destination is a plain name of a file: neither standard output nor one with a scheme.
func IsFile(name string) bool {
	scheme, _, _ := strings.Cut(name, ":")
	return name != "-" && !schemes[scheme] && !strings.Contains(name, "://")
}

var schemes = map[string]bool{"file": true, "device": true, "unix": true, "tcp": true, "tls": true}

// open opens what is no plain file.
func open(ctx context.Context, scheme, path string, p *params, o *Options) (io.WriteCloser, error) {
	switch scheme {
	case "device":
		if err := p.done(); err != nil {
			return nil, err
		}
		return openDevice(path)
	case "file":
		f := fileOptions{buffer: p.size("buffer"), sync: p.flag("sync"), rotate: p.size("rotate"),
			every: p.duration("every"), fresh: o.New}
		if err := p.done(); err != nil {
			return nil, err
		}
		return openFile(path, f)
	}
	w := wire.Options{SpoolBytes: p.size("spool"), SpoolFile: p.text("spool-file"),
		SpoolFileBytes: p.size("spool-file-size"), GiveUp: p.duration("give-up"), Note: o.Note}
	network, address := scheme, strings.TrimPrefix(path, "//")
	if scheme == "tls" {
		network = "tcp"
		config, err := wire.ClientTLS(wire.Files{CA: p.text("ca"), Cert: p.text("cert"), Key: p.text("key")})
		if err != nil {
			return nil, err
		}
		w.TLS = config
	}
	if err := p.done(); err != nil {
		return nil, err
	}
	return wire.Dial(ctx, network, address, &w)
}

// params takes what stands after the question mark. The first error stays.
type params struct {
	values url.Values
	err    error
}

func (p *params) text(name string) string {
	v := p.values.Get(name)
	p.values.Del(name)
	return v
}

func (p *params) flag(name string) bool {
	_, ok := p.values[name]
	if v := p.text(name); v != "" && v != "1" {
		p.fail(fmt.Errorf("%s=%s: it is there, or not", name, v))
	}
	return ok
}

func (p *params) size(name string) int64 {
	text := p.text(name)
	if text == "" {
		return 0
	}
	digits := strings.TrimRight(text, "KMG")
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !ok || n < 1 {
		p.fail(fmt.Errorf("%s=%s: no size such as 64K, 100M or 2G", name, text))
	}
	return n << shift
}

func (p *params) duration(name string) time.Duration {
	text := p.text(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.fail(fmt.Errorf("%s=%s: no time such as 30s or 1h", name, text))
	}
	return d
}

func (p *params) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// done returns what was wrong, also what nobody took.
func (p *params) done() error {
	for name := range p.values {
		p.fail(fmt.Errorf("it has no option %q", name))
	}
	return p.err
}

// unclosed is a file that is not ours to close.
type unclosed struct{ *os.File }

func (unclosed) Close() error { return nil }

// Numbered returns the name of a sink whose file has a number, for another stream that goes
// to the same place: NAME-2, and file:NAME-2?…. Of other sinks it returns the name itself.
func Numbered(name string, n int) string {
	scheme, rest, _ := strings.Cut(name, ":")
	if name == "-" || schemes[scheme] && scheme != "file" {
		return name
	}
	prefix := ""
	if scheme == "file" {
		prefix, name = "file:", rest
	}
	path, query, has := strings.Cut(name, "?")
	if prefix == "" {
		path, query, has = name, "", false
	}
	ext := filepath.Ext(path)
	path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), n, ext)
	if has {
		path += "?" + query
	}
	return prefix + path
}

// Files returns the files that the sink of a name has made.
func Files(name string) []string {
	scheme, rest, _ := strings.Cut(name, ":")
	switch {
	case scheme == "file":
		name, _, _ = strings.Cut(rest, "?")
	case name == "-" || schemes[scheme]:
		return nil
	}
	if _, err := os.Lstat(name); err == nil {
		return []string{name}
	}
	var parts []string
	for part := 1; ; part++ {
		next := partName(name, part)
		if _, err := os.Lstat(next); err != nil {
			return parts
		}
		parts = append(parts, next)
	}
}
