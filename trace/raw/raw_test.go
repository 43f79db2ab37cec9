// SPDX-License-Identifier: Apache-2.0

package raw_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/trace/raw"
)

const sample = `head stream=0x1234 {"version":1,"arch":"amd64"}
frame shard=1 round=1 until=2000 lost=3
  task pid=7 tid=8 time=5 ppid=1 pgid=7 sid=7 uid=1000 gid=100 comm="a b\x00\"c"
  call pid=7 tid=8 op=openat nr=257 enter=10 exit=20 cpu=1 ret=-2 args=-100,0x7f0000001000,577 more compat interrupted flags=0x80
    object arg=-1 fd=3 ino=12 size=5 pos=9 dev=0x800001 rdev=0x100 mode=0100644 flags=01 nlink=1 uid=1 gid=2
    piece arg=1 "/tmp/\xff\n"
    piece arg=2 off=4096 len=70000 missing
    piece arg=3 shape zero=32
  call pid=7 tid=8 op=fstat nr=5 enter=21 exit=22 delay_before=3000000 delay_within=4294967295 delays
    object fd=3 ino=12
    piece arg=1 "x"
  call pid=7 tid=8 op=fstat nr=5 enter=23 exit=24 delays
  data pid=7 tid=8 op=openat enter=10 last
  enter pid=7 tid=8 op=execve enter=30
    piece arg=1 truncated "x"
  fork pid=7 tid=8 time=40 child=9 child_tid=9 share=0x300
  exit pid=7 tid=8 time=50 ret=256
  loss time=51 count=4 reason=1
  file pid=7 tid=7 time=1
  note pid=7 tid=7 time=1
    piece "text"
  start pid=7 tid=7 time=1 umask=022
  call pid=7 tid=8 op=60000 nr=9
  junk "\xff\xff\x00\x00odd"
frame
end {"lost":7}
`

func TestTextIsItsOwnTwin(t *testing.T) {
	stream, err := raw.Bytes(sample)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := raw.Dump(&text, bytes.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	if text.String() != sample {
		t.Errorf("the text came back as:\n%s", text.String())
	}
}

// TestStreamIsItsOwnTwin builds streams of random records.
func TestStreamIsItsOwnTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var stream bytes.Buffer
		sw, err := trace.NewStreamWriter(&stream, rng.Uint64(), &trace.Head{Arch: "amd64", Host: "h {\" x"})
		if err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(4) {
			var payload []byte
			for range rng.IntN(5) {
				payload = trace.AppendRecord(payload, randomRecord(rng))
			}
			f := trace.Frame{Shard: rng.Uint32N(3), Round: rng.Uint32(), Until: rng.Uint64(), Lost: rng.Uint64N(2)}
			if err := sw.WriteRecords(f, payload); err != nil {
				t.Fatal(err)
			}
		}
		var text, again bytes.Buffer
		if err := raw.Dump(&text, bytes.NewReader(stream.Bytes())); err != nil {
			t.Fatal(err)
		}
		if err := raw.Build(&again, bytes.NewReader(text.Bytes())); err != nil {
			t.Fatalf("%v in\n%s", err, text.String())
		}
		if !bytes.Equal(again.Bytes(), stream.Bytes()) {
			t.Fatalf("the stream of this text is another one:\n%s", text.String())
		}
	}
}

func randomRecord(rng *rand.Rand) *trace.Record {
	r := &trace.Record{
		Type: trace.RecordType(1 + rng.IntN(10)), Op: uint16(rng.IntN(400)), PID: rng.Uint32(), TID: rng.Uint32(),
		Flags: rng.Uint32N(16),
		Exit:  rng.Uint64(), PPID: rng.Uint32(), UID: rng.Uint32(), Child: rng.Uint32(), ChildTID: rng.Uint32(),
		Share: rng.Uint64(),
		Count: rng.Uint64(), Reason: rng.Uint32(),
	}
	for i := range r.Comm {
		r.Comm[i] = byte(rng.Uint32())
	}
	switch r.Type {
	case trace.RecCall:
		r.Enter, r.CPU, r.Ret, r.NR = rng.Uint64(), rng.Uint64(), int64(rng.Uint64()), rng.Uint32()
		for i := range r.Args {
			r.Args[i] = rng.Uint64() >> rng.IntN(64)
		}
		if r.Flags&trace.CallDelays != 0 {
			r.DelayBefore, r.DelayWithin = rng.Uint32(), rng.Uint32()
		}
		for range rng.IntN(3) {
			r.Objects = append(r.Objects,
				trace.Object{Ino: rng.Uint64(), Pos: -1, FD: -rng.Int32N(200), Arg: int8(rng.IntN(7) - 1),
					Mode: rng.Uint32()})
		}
	case trace.RecData, trace.RecEnter:
		r.Enter, r.Exit = rng.Uint64(), 0
	case trace.RecExit:
		r.Ret = int64(rng.Int32())
	case trace.RecStart:
		r.Umask = rng.Uint32()
	}
	for range rng.IntN(3) {
		switch r.Type {
		case trace.RecCall, trace.RecData, trace.RecEnter, trace.RecFile, trace.RecNote, trace.RecStart:
		default:
			continue
		}
		p := trace.Piece{Arg: uint8(rng.IntN(6)), Off: rng.Uint64(), Len: rng.Uint32N(40)}
		if rng.IntN(4) == 0 {
			p.Flags = trace.PieceMissing
		} else {
			p.Data = make([]byte, p.Len)
			if rng.IntN(2) == 0 {
				for i := range p.Data {
					p.Data[i] = byte(rng.Uint32())
				}
			}
		}
		r.Pieces = append(r.Pieces, p)
	}
	return r
}

func TestBrokenStreams(t *testing.T) {
	const good = "head {\"arch\":\"amd64\"}\nframe\n  task pid=1 comm=\"x\"\n"
	for _, tc := range []struct {
		name, text string
		want       error
		offset     string // text that the good part still has
	}{
		{"whole", good, nil, "comm=\"x\""},
		{"cut within the last frame", good + "cut -1\n", trace.ErrTruncated, "arch"},
		{"cut within the first header", good + "cut 10\n", trace.ErrTruncated, ""},
		{"flip in a payload", good + "flip -1\n", trace.ErrCorrupt, "arch"},
		{"flip in a header", good + "flip 20\n", trace.ErrCorrupt, ""},
		{"newer", "version 99\n" + good, trace.ErrNewer, ""},
		{"record that is too short", "head {}\nframe\n  junk \"\\x01\\x00\"\n", nil, `junk "\x01\x00"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stream, err := raw.Bytes(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			err = raw.Dump(&text, bytes.NewReader(stream))
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if !strings.Contains(text.String(), tc.offset) {
				t.Errorf("what is good of it is missing: %q", text.String())
			}
		})
	}
}

func TestGeneratedData(t *testing.T) {
	stream, err := raw.Bytes("head {}\nframe\n  note\n    piece seed=7:100 \"tail\"\n")
	if err != nil {
		t.Fatal(err)
	}
	fr := trace.NewFrameReader(bytes.NewReader(stream))
	for {
		f, payload, err := fr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != trace.FrameRecords {
			continue
		}
		for body := range trace.Records(payload) {
			var r trace.Record
			if err := r.Decode(body); err != nil {
				t.Fatal(err)
			}
			if len(r.Pieces) != 1 || len(r.Pieces[0].Data) != 104 ||
				!bytes.HasSuffix(r.Pieces[0].Data, []byte("tail")) {
				t.Errorf("pieces %v", r.Pieces)
			}
		}
		return
	}
}

func TestMistakesNameTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"head {}\nframe\n  call pid=x\n":                   "line 3: pid=x",
		"head {}\nframe\n  call pdi=1\n":                   `line 3: "pdi=1" is not known here`,
		"head {}\n  call pid=1\n":                          "line 2: call outside a frame",
		"head\n":                                           "line 1: head without a JSON object",
		"head {}\nframe\n  piece arg=1\n":                  "line 3: piece without a record",
		"head {}\nframe\n  poem\n":                         `line 3: "poem" is no record`,
		"head {}\nflip 100000\n":                           "line 2: flip 100000: not an offset",
		"head {}\nframe\n call args=1,2,3,4,5,6,7\n":       "more than 6 values",
		"head {}\nframe\n note\n piece zero=99999999999\n": "not a length",
		"head {}\nframe\n note\n piece missing \"x\"\n":    "has no data",
	} {
		err := raw.Build(io.Discard, strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzBuild(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text string) {
		stream, err := raw.Bytes(text)
		if err != nil {
			return
		}
		var once, twice bytes.Buffer
		if raw.Dump(&once, bytes.NewReader(stream)) != nil {
			return
		}
		again, err := raw.Bytes(once.String())
		if err != nil {
			t.Fatalf("what Dump wrote does not build: %v\n%s", err, once.String())
		}
		if raw.Dump(&twice, bytes.NewReader(again)); once.String() != twice.String() {
			t.Fatalf("not stable:\n%s\n%s", once.String(), twice.String())
		}
	})
}
