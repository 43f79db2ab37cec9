// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/iotape/iotape/analyze/diff"
	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/flow/show"
	"github.com/iotape/iotape/analyze/order"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/open"
	"github.com/iotape/iotape/format/printtape"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/remake"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/anon"
	"github.com/iotape/iotape/transform/slice"
	"github.com/iotape/iotape/web/serve"
)

// TestNoPanic runs everything that reads a tape over samples of foreign formats, and over
// changed samples. An error is an answer, a panic is not; nor is more memory than maxMemory,
// or more time than maxTime.
// What is written as a script of a sample compiles to the same events.
// IOTAPE_MUTATIONS=N changes each sample N times instead of twice; IOTAPE_SEED=N takes other
// random numbers (make mutate).
//
// If a panic of another goroutine ends the test program, the file "input" that it leaves in
// its temporary directory is the one that did it.
func TestNoPanic(t *testing.T) {
	testenv.Short(t, "it runs every command on mutated files")
	mutations := setting(t, "IOTAPE_MUTATIONS", 2)
	seed := setting(t, "IOTAPE_SEED", 1)
	var opened, tried atomic.Int64
	t.Run("samples", func(t *testing.T) {
		for name, sample := range samples(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				// The directory's name is that of the sample; the suffix can matter.
				path := filepath.Join(t.TempDir(), "input"+filepath.Ext(name))
				first := tape(t, name, path, sample)
				if first == nil {
					t.Fatal("the sample is not read")
				}
				defer first.Close()
				readers(t, name, first, first, true, true)
				r := rand.New(rand.NewPCG(uint64(seed), uint64(len(sample))))
				for i := range mutations {
					what := fmt.Sprintf("%s, changed for the %d. time", name, i+1)
					changed := tape(t, what, path, mutate(r, sample))
					tried.Add(1)
					if changed == nil {
						continue
					}
					opened.Add(1)
					readers(t, what, changed, first, i%indexed == 0, true)
					changed.Close()
					if t.Failed() {
						t.Fatalf("%s: the input is\n%.4000q", what, contents(t, path))
					}
				}
			})
		}
	})
	t.Logf("%d changed samples, of which %d were read; at most %d MiB", tried.Load(), opened.Load(), memory()>>20)
	if opened.Load()*4 < tried.Load() {
		t.Errorf("of %d changed samples %d were read, want at least a quarter", tried.Load(), opened.Load())
	}
}

// indexed is of how many changed samples one is indexed: that takes half of the time, most of it in DuckDB.
const indexed = 4

func setting(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// small are inputs that crashed, and others of their kinds.
var small = map[string]string{
	"pair of equal descriptors.strace":         "pipe([3, 3]) = 0\nsocketpair(AF_UNIX, SOCK_STREAM, 0, [4, 4]) = 0\nclose(3) = 0\n",
	"pair of a descriptor that is open.strace": "open(\"/a\", O_RDONLY) = 3\npipe([3, 4]) = 0\ndup2(4, 3) = 3\n",
	"a result that is no number.txt": "cat  4711 [001] 65191.336579: syscalls:sys_enter_close: fd: 0x00000003\n" +
		"cat  4711 [001] 65191.336589: syscalls:sys_exit_close: 0x7f9223372036854775807a2a2000\n",
	"a result that is no descriptor.txt": "12 12:02:36.269001001 1 cat (4711) < accept4 " +
		"fd=4294967295(<4t>127.0.0.1:39175->127.0.0.1:80) tuple=127.0.0.1:39175->127.0.0.1:80 queuepct=0\n",
	"a vector of too many bytes.strace": "writev(1, [{iov_base=\"ab\", iov_len=2}, {iov_base=\"cd\", " +
		"iov_len=9223372036854775807}, {iov_base=\"ef\", iov_len=2}], 3) = 6\n",
	"an open file that is no descriptor.txt": "[00000000000000001001] mill lttng_statedump_file_descriptor: { cpu_id = 0 }, " +
		"{ vpid = 10, vtid = 10, procname = \"sh\" }, { file_table_address = 0xFF00, fd = -1, flags = 0x8000, " +
		"filename = \"/home/u/in\" }\n[00000000000000003400] mill syscall_entry_close: { cpu_id = 0 }, " +
		"{ vpid = 10, vtid = 10, procname = \"sh\" }, { fd = 3 }\n",
	"no identity.strace": "1780434841.000000 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.000010>\n" +
		"1780434841.200000 read(3, \"abc\", 10) = 3 <0.000010>\n1780434841.500000 close(3) = 0 <0.000010>\n",
	"tag of a file on a socket.strace": "socket(AF_INET, SOCK_STREAM, 0) = 3</etc/passwd>\n" +
		"sendto(3</etc/passwd>, \"abc\", 3, 0, NULL, 0) = 3\nread(3<socket:[3]>, \"abc\", 3) = 3\n",
	"odd numbers.strace": "read(3, \"abc\", 1) = 3\nread(3, 0x1, 18446744073709551615) = -1 EFAULT (Bad address)\n" +
		"pwrite64(3, \"ab\", 2, -1) = -1 EINVAL (Invalid argument)\nftruncate(3, -1) = -1 EINVAL (Invalid argument)\n" +
		"connect(4, {sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0), " +
		"inet_pton(AF_INET6, \"::1\", &sin6_addr), sin6_scope_id=0}, 28) = 0\n",
}

// samples returns the samples of the formats' tests, by name, and the small ones.
func samples(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	formats := map[string]bool{}
	list, err := filepath.Glob("../../format/*/testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if fi.IsDir() || strings.HasSuffix(path, ".golden") {
			continue
		}
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := all.Identify(in)
		in.Close()
		if f == nil || err != nil {
			continue
		}
		b := trim(contents(t, path))
		read := tape(t, path, filepath.Join(t.TempDir(), "input"+filepath.Ext(path)), b)
		if read == nil {
			continue // a part of it alone is not read
		}
		read.Close()
		formats[f.ID] = true
		found[filepath.Base(filepath.Dir(filepath.Dir(path)))+"/"+filepath.Base(path)] = b
	}
	if len(formats) < 8 {
		t.Fatalf("samples of %d formats, want at least 8: %v", len(formats), formats)
	}
	for name, text := range small {
		found[name] = []byte(text)
	}
	return found
}

// tape writes an input to a file and opens it, as a command does; nil if it is not read.
func tape(t *testing.T, what, path string, input []byte) (tape *trace.Tape) {
	t.Helper()
	if err := os.WriteFile(path, input, 0o600); err != nil {
		t.Fatal(err)
	}
	try(t, what, "open", func() (err error) {
		tape, err = open.Any(t.Context(), path)
		return err
	})
	return tape
}

// reader is what reads a tape. other is another tape, to compare it with; dir is empty.
type reader struct {
	name string
	read func(ctx context.Context, t, other *trace.Tape, dir string) error
}

var everything = []reader{
	{"print", printAll},
	{"stat", func(_ context.Context, t, _ *trace.Tape, _ string) error {
		s := report.Collect(t.Events(), &report.Options{Manifest: t.Manifest(), CallName: stracetext.CallName})
		return errors.Join(s.Text(io.Discard), s.JSON(io.Discard))
	}},
	{"report", func(ctx context.Context, t, _ *trace.Tape, _ string) error {
		p, _, err := suite.Collect(ctx, t, &suite.Options{CallName: stracetext.CallName})
		if err != nil {
			return err
		}
		return errors.Join(p.Text(io.Discard), p.JSON(io.Discard))
	}},
	{"diff", func(ctx context.Context, t, other *trace.Tape, _ string) error {
		o := &diff.Options{Content: true, Context: 3, MaxCalls: 100, Render: printtape.Calls()}
		r, err := diff.Tapes(ctx, other, t, o)
		if err != nil {
			return err
		}
		return r.Text(io.Discard)
	}},
	{"flow", func(ctx context.Context, t, other *trace.Tape, _ string) error {
		f, err := flow.Load(ctx, []*trace.Tape{t, other}, &flow.Options{})
		if err != nil || f.Len() == 0 {
			return err
		}
		p, err := f.Find(ctx, "0", "", "")
		if err != nil {
			return err
		}
		w := bufio.NewWriter(io.Discard)
		return errors.Join(show.Text(w, f, p), show.JSON(w, f, p))
	}},
	{"order", func(_ context.Context, t, other *trace.Tape, _ string) error {
		o, err := order.Load([]*trace.Tape{t, other})
		if err != nil {
			return err
		}
		_, err = o.Answer(bufio.NewWriter(io.Discard), &order.Request{Events: true, Print: printtape.Lines()})
		return err
	}},
	{"annotate", func(_ context.Context, t, _ *trace.Tape, _ string) error {
		_, _, err := causal.Annotate(t.Events())
		return err
	}},
	{"serve", func(ctx context.Context, t, other *trace.Tape, _ string) error {
		s, err := serve.Scene(ctx, []*trace.Tape{t, other}, true, func(uint64, uint64) {})
		if err != nil {
			return err
		}
		return errors.Join(s.Order(), s.Close())
	}},
	{"slice", sliceAll},
	{"merge", func(ctx context.Context, t, other *trace.Tape, dir string) error {
		return remake.Merge(ctx, filepath.Join(dir, "all.tape"), []*trace.Tape{t, other}, &remake.Options{})
	}},
	{"anonymise", func(ctx context.Context, t, _ *trace.Tape, dir string) error {
		_, err := remake.Anonymise(ctx, filepath.Join(dir, "public.tape"), t, filepath.Join(dir, "keys"),
			&anon.Options{Fields: anon.AllFields}, &remake.Options{})
		return err
	}},
	{"plan a replay", func(ctx context.Context, t, _ *trace.Tape, _ string) error {
		_, err := replay.DryRun(ctx, t, &replay.Options{})
		return err
	}},
}

// readers runs all of them, converts the tape to all formats, and compares it with its script if its events are those
// of a recording.
func readers(t *testing.T, what string, tape, other *trace.Tape, index, recorded bool) {
	t.Helper()
	dir, err := os.MkdirTemp("", "readers")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, r := range everything {
		try(t, what, r.name, func() error { return r.read(t.Context(), tape, other, dir) })
	}
	if index {
		try(t, what, "index", func() error { return store.Index(t.Context(), tape, nil) })
	}
	if len(tape.Manifest().Hosts) == 1 {
		try(t, what, "script", func() error {
			if recorded {
				sameEvents(t, tape, dir)
				return nil
			}
			return scripted(t.Context(), tape, dir)
		})
	}
	for _, f := range all.Formats() {
		if f.Write == nil {
			continue
		}
		try(t, what, "convert to "+f.Name, func() error {
			_, err := f.Write(t.Context(), io.Discard, tape, &format.Options{})
			return err
		})
	}
}

func printAll(_ context.Context, t, _ *trace.Tape, _ string) error {
	var errs []error
	for _, o := range []printtape.Options{
		{Text: stracetext.Options{MaxBytes: -1, Verbose: true, Clock: stracetext.Wall}},
		{Text: stracetext.Options{MaxBytes: 32, Clock: stracetext.Elapsed}},
		{JSON: true}, {CSV: true},
	} {
		o.To, o.Damaged = 1<<62, func(error) {}
		_, err := printtape.Tape(bufio.NewWriter(&bytes.Buffer{}), t, &o)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func sliceAll(ctx context.Context, t, _ *trace.Tape, dir string) error {
	x, err := predicate.Parse("class = data or failed")
	if err != nil {
		return err
	}
	g, err := predicate.Compile(x, slice.FilterOptions(t))
	if err != nil {
		return err
	}
	half := t.Manifest().Counts.Events / 2
	var errs []error
	for i, o := range []*slice.Options{{From: 1}, {From: half}, {To: half}, {Filter: g}} {
		part, err := slice.Temporary(ctx, t, dir, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%d: %w", i, err))
			continue
		}
		errs = append(errs, part.Close())
	}
	return errors.Join(errs...)
}
