// SPDX-License-Identifier: Apache-2.0

package scap

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/internal/testenv"
)

// TestRealCaptures reads captures that sysdig made.
func TestRealCaptures(t *testing.T) {
	dir := os.Getenv("IOTAPE_SCAP_SAMPLES")
	if dir == "" {
		t.Skip("IOTAPE_SCAP_SAMPLES does not name a directory with captures, such as " +
			"test/libsinsp_e2e/resources/captures of falcosecurity/libs")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.scap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s: %v", dir, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			head, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if !Format.Match(head) {
				t.Error("it is not recognised")
			}
			tape, done := formattest.One(t, &Format, f)
			list := formattest.Describe(t, tape)
			t.Logf("%d records, left out %v\n%s", done.Records, done.Left, strings.Join(list, "\n"))
			for what := range done.Left {
				if strings.HasPrefix(what, "events of type") || strings.HasSuffix(what, "do not fit") {
					t.Errorf("left out: %s", what)
				}
			}
			if len(list) == 0 {
				t.Error("no calls")
			}
		})
	}
}

// capture makes files as sysdig writes them.
type capture struct {
	bytes.Buffer
	old bool // without the numbers of parameters
}

func (c *capture) block(typ uint32, body []byte) {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + blockLeast)
	for _, v := range []any{typ, n, body, n} {
		binary.Write(&c.Buffer, binary.LittleEndian, v)
	}
}

// pack appends values: strings after their lengths, the rest as it is in memory.
func pack(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if s, ok := v.(string); ok {
			binary.Write(&b, binary.LittleEndian, uint16(len(s)))
			b.WriteString(s)
			continue
		}
		binary.Write(&b, binary.LittleEndian, v)
	}
	return b.Bytes()
}

func (c *capture) event(time, tid uint64, typ uint16, params ...any) {
	var lens, values []byte
	for _, p := range params {
		var v []byte
		switch x := p.(type) {
		case string:
			v = append([]byte(x), 0)
		case []byte:
			v = x
		default:
			v = pack(p)
		}
		lens = binary.LittleEndian.AppendUint16(lens, uint16(len(v)))
		values = append(values, v...)
	}
	body := append(lens, values...)
	if c.old {
		c.block(0x204, append(pack(uint16(0), time, tid, uint32(22+len(body)), typ), body...))
	} else {
		c.block(0x216, append(pack(uint16(0), time, tid, uint32(26+len(body)), typ, uint32(len(params))), body...))
	}
}

// start writes what a capture begins with: a shell with a terminal and a pipe.
func start(old bool) *capture {
	c := &capture{old: old}
	c.block(sectionBlock, pack(uint32(sectionMagic), uint16(1), uint16(2), ^uint64(0)))
	host := make([]byte, 128)
	copy(host, "mill")
	c.block(machineBlock, pack(uint32(2), uint64(1<<30), uint64(32768), host, uint64(0), uint64(0)))
	if old {
		c.block(0x211, pack(uint64(10), uint64(10), uint64(1), "sh", "/bin/sh", "-i\x00", "/home/u/", int64(1024),
			uint32(0), uint32(1000), uint32(100),
			make([]byte, 28), "A=1\x00", uint64(10), uint64(10), "cpu=/\x00", "/"))
		c.block(filesBlock, pack(uint64(10), int64(0), uint64(5), uint8(fdFile2), uint32(3), "/dev/tty", int64(7),
			uint64(99), uint8(fdFIFO), "pipe:[99]"))
	} else {
		entry := pack(uint64(10), uint64(10), uint64(1), uint64(10), uint64(10), "sh", "/bin/sh", "/bin/sh", "-i\x00",
			"/home/u/", int64(1024), uint32(0), uint32(1000), uint32(100), make([]byte, 28), "newer")
		c.block(0x215, append(pack(uint32(len(entry)+4)), entry...))
		tty := pack(int64(0), uint64(5), uint8(fdFile2), uint32(3), "/dev/tty", uint32(9))
		pipe := pack(int64(7), uint64(99), uint8(fdFIFO), "pipe:[99]")
		c.block(filesBlock2, append(pack(uint64(10), uint32(len(tty)+4), tty),
			append(pack(uint32(len(pipe)+4)), pipe...)...))
	}
	return c
}

// exec is what the newest execve's return says, up to its comm.
func exec(ret int64, exe string, args []byte, pid uint64, comm string) []any {
	return []any{ret, exe, args, pid, pid, uint64(10), "/home/u/", uint64(1024), uint64(0), uint64(0), uint32(0),
		uint32(0), uint32(0), comm}
}

// sample is a capture of drivers that record entries (old), or do not.
func sample(old bool) []byte {
	c := start(old)
	both := func(time, tid uint64, enter uint16, in []any, out ...any) {
		if old {
			c.event(time, tid, enter, in...)
		}
		c.event(time+50, tid, enter+1, out...)
	}
	const at = 1_700_000_000_000_000_000
	both(at+100, 10, 6, []any{int64(0), uint32(100)}, int64(6), []byte("ls -l\n"), int64(0), uint32(100))
	both(at+200, 10, 58, []any{"out", uint32(0o644)}, int64(3), "out", uint32(0o644), uint32(9), uint64(77), uint16(0))
	if old {
		c.event(at+300, 10, 222)
	}
	clone := func(ret int64, tid, pid, ppid uint64) []any {
		return []any{ret, "/bin/sh", []byte("-i\x00"), tid, pid, ppid, "/home/u/", int64(1024), uint64(0), uint64(0),
			uint32(0), uint32(0), uint32(0), "sh",
			[]byte("cpu=/\x00"), uint32(1<<0 | 1<<24), uint32(1000), uint32(100), tid, pid, uint64(0)}
	}
	c.event(at+320, 11, 223, clone(0, 11, 11, 10)...) // the child is first
	c.event(at+350, 10, 223, clone(11, 10, 10, 1)...)
	in := []any{"/bin/ls"}
	out := exec(0, "ls", []byte("-l\x00"), 11, "ls")
	if !old {
		for range 12 {
			out = append(out, []byte{})
		}
		out = append(out, uint32(1000), "/usr/bin/ls", uint64(11), uint32(100), "/bin/ls")
	}
	both(at+400, 11, 292, in, out...)
	both(at+500, 11, 2, []any{"gone", uint32(1), uint32(0)}, int64(-2), "gone", uint32(1), uint32(0), uint32(0),
		uint64(0))
	both(at+600, 11, 306, []any{int64(-100), "dir/f", uint32(2 | 1<<2 | 1<<8 | 1<<12), uint32(0o600)}, int64(4),
		int64(-100), "dir/f", uint32(2|1<<2|1<<8|1<<12), uint32(0o600), uint32(9), uint64(78))
	both(at+700, 11, 8, []any{int64(4), uint32(1000)}, int64(1000), []byte("only the first bytes"), int64(4),
		uint32(1000))
	both(at+800, 11, 114, []any{int64(4), uint32(3), uint64(4096)}, int64(3), []byte("abc"), int64(4), uint32(3),
		uint64(4096))
	both(at+900, 11, 118, []any{int64(4), uint32(5)}, int64(5), []byte("hello"), int64(4), uint32(5))
	both(at+1000, 11, 18, []any{uint32(2), uint32(1), uint32(0)}, int64(5), uint32(2), uint32(1), uint32(0), uint32(0))
	addr := []byte{2, 127, 0, 0, 1, 80, 0}
	both(at+1100, 11, 22, []any{int64(5), addr}, int64(0), []byte{}, int64(5), addr)
	both(at+1200, 11, 28, []any{int64(5), uint32(3)}, int64(3), []byte("GET"), int64(5), uint32(3), []byte{})
	both(at+1250, 11, 48, []any{int64(5), uint32(6), []byte{}}, int64(6), []byte("PUT /x"), int64(5), uint32(6),
		[]byte{})
	both(at+1270, 11, 52, []any{int64(5)}, int64(6), uint32(6), []byte("200 OK"), []byte{}, []byte{}, int64(5))
	both(at+1300, 11, 58, []any{"x", uint32(0o600)}, int64(6), "x", uint32(0o600))
	both(at+1400, 11, 300, nil, int64(0), "x")
	both(at+1500, 11, 318, nil, int64(0), int64(-100), "a", int64(-100), "b", uint32(0))
	both(at+1600, 11, 58, []any{"y", uint32(0o600)}, int64(7), "y", uint32(0o600))
	both(at+1700, 11, 392, nil, int64(0), int64(8), int64(9), uint64(55), uint32(0))
	both(at+1800, 11, 4, []any{int64(4)}, int64(0), int64(4))
	c.event(at+1900, 11, 0, uint16(74), uint16(74)) // fsync, of which nothing is known
	c.event(at+1950, 11, 1, uint16(74), uint16(74))
	c.event(at+2000, 11, 186, int64(256), int64(1), uint8(0), uint8(0), int64(0))
	c.event(at+2100, 10, 4000)
	if old {
		c.event(at+2200, 10, 6, int64(0), uint32(100)) // does not return
	}
	return c.Bytes()
}

func imported(t *testing.T, data []byte) ([]string, *format.Done) {
	t.Helper()
	tape, done := formattest.Tape(t, func(im *format.Import) error {
		return Import(t.Context(), bytes.NewReader(data),
			im)
	})
	if h := tape.Host(0).Head.Host; h != "mill" {
		t.Errorf("the host is %q", h)
	}
	return formattest.Describe(t, tape), done
}

func TestImport(t *testing.T) {
	for _, c := range []struct {
		name string
		old  bool
	}{{"old", true}, {"new", false}} {
		t.Run(c.name, func(t *testing.T) {
			data := sample(c.old)
			if !match(data) {
				t.Error("it is not recognised")
			}
			list, done := imported(t, data)
			golden := filepath.Join("testdata", c.name+".golden")
			got := strings.Join(list, "\n") + "\n"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(map[string]uint64{"calls of which the capture has only the number": 1,
				"events of type 4000": 1}, done.Left); d != "" {
				t.Error("left out:", d)
			}
		})
	}
}

// TestCallsOfNewerTypes imports events that sysdig itself takes little notice of.
func TestCallsOfNewerTypes(t *testing.T) {
	c := start(false)
	const at = 1_700_000_000_000_000_000
	for i, e := range []struct {
		typ    uint16
		params []any
	}{
		{451, []any{int64(0), uint32(3), ^uint32(0), uint32(1 << 2)}},
		{415, []any{int64(0), "/dev/x", uint32(0o020600), uint32(0x100003)}},
		{385, []any{int64(-1), int64(-100), "a", uint32(1000), uint32(100), uint32(0x100)}},
		{257, []any{int64(0), "/dev/vdb", "/mnt", "ext4", uint32(1)}},
		{391, []any{int64(0), "/mnt", uint32(2)}},
		{405, []any{int64(3), "buffer", uint32(1)}},
		{241, []any{int64(0), int64(3), uint32(1 << 5)}},
		{377, []any{int64(4), uint32(1)}},
		{397, []any{int64(5), uint16(1<<12 | 1<<6), uint64(7)}},
		{239, []any{int64(48), int64(6)}},
		{129, []any{int64(0), int64(11), uint8(15)}},
		{199, []any{int64(0), uint32(1000)}},
		{421, []any{int64(3), int64(11), []byte("abc")}},
		{163, []any{int64(0x7f0000000000), uint32(1), uint32(1), uint32(0), uint64(0), uint64(4096), uint32(1), uint32(2),
			int64(6), uint64(2)}},
		{401, []any{int64(0), uint32(15), "name", int64(0)}},
	} {
		c.event(at+uint64(i)*100, 10, e.typ, e.params...)
	}
	tape, done := formattest.Tape(t, func(im *format.Import) error {
		return Import(t.Context(), bytes.NewReader(c.Bytes()), im)
	})
	formattest.Golden(t, filepath.Join("testdata", "types.golden"), formattest.Text(t, tape))
	if d := cmp.Diff(map[string]uint64{"prctl": 1}, done.Left); d != "" {
		t.Error("left out:", d)
	}
}

func TestGzip(t *testing.T) {
	plain := sample(false)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(plain)
	z.Close()
	if !match(b.Bytes()) {
		t.Error("it is not recognised")
	}
	want, _ := imported(t, plain)
	got, _ := imported(t, b.Bytes())
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestTruncated: a capture that is cut off anywhere gives what is before, or says what
// is wrong.
func TestTruncated(t *testing.T) {
	testenv.Short(t, "it cuts a file at each byte")
	data := sample(true)
	cut := 0
	for n := 0; n < len(data); n += 7 {
		im := format.NewImport(t.TempDir(), "test")
		err := Import(context.Background(), bytes.NewReader(data[:n]), im)
		if _, closeErr := im.Close(); closeErr != nil {
			t.Fatal(closeErr)
		}
		if err == nil {
			cut += int(im.Left["blocks that are cut off"])
		} else if im.Records > 0 {
			t.Errorf("%d bytes: after %d events: %v", n, im.Records, err)
		}
	}
	if cut == 0 {
		t.Error("no block was said to be cut off")
	}
}

func TestNotScap(t *testing.T) {
	pcapng := &capture{}
	pcapng.block(sectionBlock, pack(uint32(sectionMagic), uint16(1), uint16(0), ^uint64(0)))
	pcapng.block(1, make([]byte, 8))
	if match(pcapng.Bytes()) {
		t.Error("a capture of a network is taken for one of calls")
	}
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"text", "it does not begin with a section header", []byte("hello, this is text and no capture")},
		{"lies", "block at 0 of 4294967295 bytes: 12 to 67108864 were expected", pack(uint32(sectionBlock), ^uint32(0), uint32(0))},
		{"tail", "block at 0: its length is 28 at its beginning and 29 at its end", pack(uint32(sectionBlock), uint32(28), uint32(sectionMagic), uint16(1), uint16(0), uint64(0), uint32(29))},
		{"newer", "block at 0: version 2 of the format; 1 is known", pack(uint32(sectionBlock), uint32(28), uint32(sectionMagic), uint16(2), uint16(0), uint64(0), uint32(28))},
	} {
		err := Import(t.Context(), bytes.NewReader(c.data), format.NewImport(t.TempDir(), "test"))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error is %v, want %q", c.name, err, c.want)
		}
	}
}

// TestEveryEventIsKnown holds the table to the operation table.
func TestEveryEventIsKnown(t *testing.T) {
	for n, k := range kinds() {
		if k.side != 'e' && k.side != 'x' || k.name == "procexit" {
			continue
		}
		if !k.op.Known() {
			t.Errorf("event %d: the operation table has no %s", n, k.name)
		}
		for _, p := range k.params {
			switch p.what {
			case "-", "ret", "exe", "args", "pid", "ppid", "uid", "gid", "comm", "cwd", "share", "ino":
			default:
				if p.arg < 0 {
					t.Errorf("event %d: %s has no argument %s", n, k.name, p.what)
				}
			}
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add(sample(true))
	f.Add(sample(false))
	f.Add(start(true).Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		im := format.NewImport(t.TempDir(), "test")
		err := Import(context.Background(), bytes.NewReader(data), im)
		if _, closeErr := im.Close(); err == nil && closeErr != nil && im.Records > 0 {
			t.Error(closeErr)
		}
	})
}
