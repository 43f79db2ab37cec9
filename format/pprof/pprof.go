// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"compress/gzip"
	"context"
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/iotape/iotape/analyze/report/flame"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/folded"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "pprof profile",
	ID:       "pprof",
	Suffixes: []string{".pprof", ".pb.gz"},
	About:    "calls, bytes and time by stack, for go tool pprof and its like",
	Write:    write,
}

// The numbers of the fields of the messages that are written.
const (
	profileSampleType = 1
	profileSample     = 2
	profileMapping    = 3
	profileLocation   = 4
	profileFunction   = 5
	profileString     = 6
	profileTime       = 9
	profileDuration   = 10
	profileDefault    = 14
)

// moduleBytes is what each module has of the addresses, which a tape does not keep: pprof tells modules apart
// by them.
const moduleBytes = 1 << 40

// profile is a message that is being made.
type profile struct {
	b         []byte
	strings   map[string]uint64
	list      []string
	modules   map[module]uint64
	functions map[function]uint64
	locations map[event.Frame]uint64
}

type module struct{ path, id string }

type function struct{ name, file string }

func write(ctx context.Context, out io.Writer, t *trace.Tape, _ *format.Options) (*format.Done, error) {
	sums, err := folded.Sum(ctx, t)
	if err != nil {
		return nil, err
	}
	done := &format.Done{}
	if sums.Without > 0 {
		done.LeftOut("calls without a stack", sums.Without)
	}
	p := &profile{strings: map[string]uint64{}, modules: map[module]uint64{}, functions: map[function]uint64{},
		locations: map[event.Frame]uint64{}}
	p.text("") // number 0
	for _, s := range sums.Samples() {
		p.sample(s)
		done.Records++
	}
	z := gzip.NewWriter(out)
	_, err = z.Write(p.finish(t))
	return done, errors.Join(err, z.Close())
}

// text returns the number of a string.
func (p *profile) text(s string) uint64 {
	n, ok := p.strings[s]
	if !ok {
		n = uint64(len(p.list))
		p.strings[s] = n
		p.list = append(p.list, s)
	}
	return n
}

// message is the fields of a message within the profile.
type message []byte

func (m *message) number(field protowire.Number, v uint64) {
	if v != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), v)
	}
}

func (m *message) bytes(field protowire.Number, b []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
}

func (p *profile) add(field protowire.Number, m message) {
	p.b = protowire.AppendBytes(protowire.AppendTag(p.b, field, protowire.BytesType), m)
}

func packed(list []uint64) (b []byte) {
	for _, v := range list {
		b = protowire.AppendVarint(b, v)
	}
	return b
}

// sample adds the sum of some calls, the innermost frame first.
func (p *profile) sample(s *flame.Sample) {
	var places []uint64
	for i := range s.Stack.Frames {
		places = append(places, p.location(&s.Stack.Frames[i]))
	}
	var m message
	m.bytes(1, packed(places))
	m.bytes(2, packed([]uint64{s.Calls, s.Bytes, s.NS}))
	for _, label := range [...][2]string{{"thread", s.Comm}, {"operation", s.Op.String()}} {
		if label[1] != "" {
			var l message
			l.number(1, p.text(label[0]))
			l.number(2, p.text(label[1]))
			m.bytes(3, l)
		}
	}
	p.add(profileSample, m)
}

func (p *profile) location(f *event.Frame) uint64 {
	if n := p.locations[*f]; n != 0 {
		return n
	}
	n := uint64(len(p.locations) + 1)
	p.locations[*f] = n
	mod := p.module(f)
	address := f.Offset
	if mod > 0 {
		address = mod*moduleBytes + f.Offset%moduleBytes
	}
	var m message
	m.number(1, n)
	m.number(2, mod)
	m.number(3, address)
	if f.Function != "" {
		var line message
		line.number(1, p.function(f))
		line.number(2, uint64(max(f.Line, 0)))
		m.bytes(4, line)
	}
	p.add(profileLocation, m)
	return n
}

func (p *profile) module(f *event.Frame) uint64 {
	key := module{f.Module, f.BuildID}
	if n := p.modules[key]; n != 0 || f.Module == "" {
		return n
	}
	n := uint64(len(p.modules) + 1)
	p.modules[key] = n
	var m message
	m.number(1, n)
	m.number(2, n*moduleBytes)
	m.number(3, (n+1)*moduleBytes)
	m.number(5, p.text(f.Module))
	m.number(6, p.text(f.BuildID))
	for _, has := range []protowire.Number{7, 8, 9} { // functions, files, lines: as far as they are known
		m.number(has, 1)
	}
	p.add(profileMapping, m)
	return n
}

func (p *profile) function(f *event.Frame) uint64 {
	key := function{f.Function, f.File}
	if n := p.functions[key]; n != 0 {
		return n
	}
	n := uint64(len(p.functions) + 1)
	p.functions[key] = n
	var m message
	m.number(1, n)
	m.number(2, p.text(f.Function))
	m.number(3, p.text(f.Function))
	m.number(4, p.text(f.File))
	p.add(profileFunction, m)
	return n
}

// finish adds what the values are, the times and the strings.
func (p *profile) finish(t *trace.Tape) []byte {
	for _, v := range [...][2]string{{"calls", "count"}, {"bytes", "bytes"}, {"time", "nanoseconds"}} {
		var m message
		m.number(1, p.text(v[0]))
		m.number(2, p.text(v[1]))
		p.add(profileSampleType, m)
	}
	head := message(p.b)
	m := t.Manifest()
	head.number(profileTime, uint64(max(t.Host(0).Wall(m.FirstNS), 0)))
	head.number(profileDuration, uint64(max(m.LastNS-m.FirstNS, 0)))
	head.number(profileDefault, p.text("time"))
	for _, s := range p.list {
		head.bytes(profileString, []byte(s))
	}
	return head
}
