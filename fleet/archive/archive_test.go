// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe/objectstore"
	"github.com/iotape/iotape/trace"
)

const boot = "2f5a6f2e-6f0b-4b2a-9d5e-0a1b2c3d4e5f"

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// stage makes a finished stream of so many frames, from number seq on of the recording id.
// One from number 0 on has a head.
func stage(t *testing.T, data, host string, serial, id, seq, frames uint64, end staging.Reason,
	change ...func(*staging.About, *staging.End)) string {
	t.Helper()
	name := staging.StreamName{BootID: boot, StartNS: 1000, Serial: serial}.String()
	dir := staging.Dir(data, host, name)
	about := &staging.About{Version: staging.Version, Host: host, Stream: name, BootID: boot, AgentStartNS: 1000,
		StartNS: noon.UnixNano(), Level: "content", Reason: staging.ReasonStart, GapNS: -1}
	ended := &staging.End{Version: staging.Version, Reason: end, Complete: true, EndNS: noon.Add(time.Hour).UnixNano()}
	for _, f := range change {
		f(about, ended)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var b []byte
	for i := range frames {
		f := trace.Frame{Kind: trace.FrameRecords, Stream: id, Seq: seq + i}
		payload := []byte(fmt.Sprintf("%-64s", fmt.Sprintf("%s %d", host, seq+i)))
		if f.Seq == 0 {
			f.Kind = trace.FrameHead
		}
		var h [trace.FrameHeaderBytes]byte
		f.Put(h[:], payload)
		b = append(append(b, h[:]...), payload...)
	}
	write(t, filepath.Join(dir, staging.StreamFile), string(b))
	for name, v := range map[string]any{staging.AboutFile: about, staging.EndFile: ended} {
		if name == staging.EndFile && end == "" {
			continue
		}
		if err := staging.WriteFile(filepath.Join(dir, name), staging.StreamParts, v); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// seal makes a tape whose only file has the bytes of the streams.
func seal(_ context.Context, s *sealRequest) error {
	if err := os.MkdirAll(s.Work, 0o777); err != nil {
		return err
	}
	tw, err := trace.CreateTape(filepath.Join(s.Work, "sealing"))
	if err != nil {
		return err
	}
	defer tw.Abort()
	w, err := tw.Create("streams")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for i, name := range s.Streams {
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.CopyN(io.MultiWriter(w, &all), in, s.Bytes[i])
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	for fr := trace.NewFrameReader(&all); len(s.Streams) > 1; { // one frame after the other
		if _, _, err := fr.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	m := &trace.Manifest{Program: "test", Assembly: s.Assembly, Incomplete: s.Incomplete != "", Reason: s.Incomplete}
	if err := errors.Join(w.Close(), tw.Close(m)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(s.Work, "sealing"), s.Out)
}

// kept returns the manifests of all tapes in a store, having read all their files.
// newStore returns an empty store.
func newStore(t *testing.T) objectstore.Store {
	t.Helper()
	s, err := objectstore.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func kept(t *testing.T, s objectstore.Store) (all []*trace.Manifest) {
	t.Helper()
	ctx := context.Background()
	for tape, err := range Tapes(ctx, s, "") {
		if err != nil {
			t.Fatal(err)
		}
		if !tape.Complete {
			t.Errorf("%s is not complete", tape.Key)
			continue
		}
		out := filepath.Join(t.TempDir(), "x.tape")
		if err := Get(ctx, s, tape.Key, out); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(out, trace.ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		m, err := trace.ParseManifest(b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// streamsOf returns the streams of tapes, each as HOST SERIAL, with | where a tape ends.
func streamsOf(list []*trace.Manifest) string {
	var b strings.Builder
	for _, m := range list {
		for _, s := range m.Assembly.Streams {
			n, _ := staging.ParseStream(s)
			fmt.Fprintf(&b, "%s %d ", m.Assembly.Host, n.Serial)
		}
		b.WriteString("| ")
	}
	return b.String()
}

func TestAssembly(t *testing.T) {
	later := func(minutes int) func(*staging.About, *staging.End) {
		return func(a *staging.About, e *staging.End) {
			a.StartNS += int64(minutes) * 60e9
			e.EndNS += int64(minutes) * 60e9
		}
	}
	lossy := func(_ *staging.About, e *staging.End) {
		e.Complete, e.Losses = false,
			[]staging.Loss{{Reason: "the spool was full", Events: 3}, {Reason: "the ring was full", Events: 4}}
	}
	continues := func(previous string) func(*staging.About, *staging.End) {
		return func(a *staging.About, _ *staging.End) { a.Continues, a.Previous = true, previous }
	}
	for _, c := range []struct {
		name string
		make func(data string)
		want string
		wait int
	}{
		{"frames that go on", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge)
			stage(t, d, "a", 2, 7, 3, 2, staging.ReasonSize, later(1))
			stage(t, d, "a", 3, 7, 5, 1, staging.ReasonStop, later(2))
		}, "a 1 a 2 a 3 | ", 0},
		{"a frame is missing", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge)
			stage(t, d, "a", 2, 7, 4, 2, staging.ReasonStop, later(1))
		}, "a 1 | a 2 | ", 0},
		{"described anew", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge)
			stage(t, d, "a", 2, 8, 0, 2, staging.ReasonStop, later(1))
		}, "a 1 | a 2 | ", 0},
		{"said to go on, and torn", func(d string) {
			a := stage(t, d, "a", 1, 7, 0, 3, staging.ReasonLoss, lossy)
			if err := os.Truncate(filepath.Join(staging.Dir(d, "a", a), staging.StreamFile),
				2*(trace.FrameHeaderBytes+64)+50); err != nil {
				t.Fatal(err)
			}
			b := stage(t, d, "a", 2, 7, 5, 2, staging.ReasonAge, later(1), continues(a),
				func(_ *staging.About, e *staging.End) { e.Continued = true })
			stage(t, d, "a", 3, 7, 7, 2, staging.ReasonStop, later(2), continues(b))
			stage(t, d, "a", 4, 8, 0, 2, staging.ReasonStop, later(3))
		}, "a 1 a 2 a 3 | a 4 | ", 0},
		{"said to go on, later", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge,
				func(_ *staging.About, e *staging.End) { e.Continued = true })
		}, "", 1},
		{"said to go on in one that is not finished", func(d string) {
			a := stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge)
			b := stage(t, d, "a", 2, 7, 3, 3, "", later(1), continues(a))
			stage(t, d, "a", 3, 7, 6, 3, staging.ReasonStop, later(1), continues(b))
		}, "", 2},
		{"after a loss", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge, lossy)
			stage(t, d, "a", 2, 7, 3, 2, staging.ReasonStop, later(1))
		}, "a 1 | a 2 | ", 0},
		{"another level", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge)
			stage(t, d, "a", 2, 7, 3, 2, staging.ReasonStop, later(1),
				func(a *staging.About, _ *staging.End) { a.Level = "metadata" })
		}, "a 1 | a 2 | ", 0},
		{"two hosts", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonAge)
			stage(t, d, "b", 2, 7, 3, 2, staging.ReasonStop, later(1))
		}, "a 1 | b 2 | ", 0},
		{"the next is not finished", func(d string) {
			stage(t, d, "a", 1, 7, 0, 3, staging.ReasonStop)
			stage(t, d, "b", 1, 7, 0, 3, staging.ReasonAge)
			stage(t, d, "b", 2, 7, 3, 3, "", later(1))
		}, "a 1 | ", 1},
		{"the next is not finished, but of its own", func(d string) {
			stage(t, d, "b", 1, 7, 0, 3, staging.ReasonAge)
			stage(t, d, "b", 2, 9, 0, 3, "", later(1))
		}, "b 1 | ", 0},
		{"the next may come", func(d string) {
			stage(t, d, "b", 1, 7, 0, 3, staging.ReasonAge, later(24*60))
		}, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, store := t.TempDir(), newStore(t)
			c.make(data)
			res, err := Run(context.Background(), &Options{Data: data, Store: store, sealWith: seal,
				Clock: func() time.Time { return noon.Add(24 * time.Hour) }})
			if err != nil {
				t.Fatal(err)
			}
			if got := streamsOf(kept(t, store)); got != c.want || res.Waiting != c.wait {
				t.Errorf("tapes of %s, %d waiting; want %s, %d", got, res.Waiting, c.want, c.wait)
			}
		})
	}
}

// TestHeadless: a stream that continues a missing one is quarantined, with a reason.
func TestHeadless(t *testing.T) {
	data, store := t.TempDir(), newStore(t)
	gone := staging.StreamName{BootID: boot, StartNS: 1000, Serial: 1}.String()
	name := stage(t, data, "a", 2, 7, 3, 2, staging.ReasonStop, func(a *staging.About, _ *staging.End) {
		a.Continues, a.Previous = true, gone
	})
	stage(t, data, "a", 3, 8, 0, 2, staging.ReasonStop)
	res, err := Run(t.Context(), &Options{Data: data, Store: store, sealWith: seal})
	if err != nil || res.Refused != 1 || res.Tapes != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	why, err := os.ReadFile(filepath.Join(data, "archive", "refused", "a", name+".why"))
	if err != nil || !strings.Contains(string(why), "it continues stream "+gone) {
		t.Errorf("quarantined because %q, %v", why, err)
	}
}

// TestDamaged: a directory that cannot be read is quarantined if it is finished, and left to
// the collector if not; the others are archived.
func TestDamaged(t *testing.T) {
	data, store := t.TempDir(), newStore(t)
	bad := stage(t, data, "a", 1, 7, 0, 2, staging.ReasonStop)
	open := stage(t, data, "b", 1, 7, 0, 2, "")
	stage(t, data, "a", 2, 8, 0, 2, staging.ReasonStop)
	write(t, filepath.Join(staging.Dir(data, "a", bad), staging.EndFile), "{garbage")
	write(t, filepath.Join(staging.Dir(data, "b", open), staging.AboutFile), "{garbage")
	var said []string
	res, err := Run(t.Context(),
		&Options{Data: data, Store: store, sealWith: seal, Note: func(line string) { said = append(said, line) }})
	if err != nil || res.Refused != 1 || res.Tapes != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, name := range []string{filepath.Join(data, "archive", "refused", "a", bad+".why"),
		filepath.Join(data, "archive", "refused", "a", bad, staging.StreamFile), staging.Dir(data, "b", open)} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	all := strings.Join(said, "\n")
	if !strings.Contains(all, "stream "+bad+" of a cannot be read, and is quarantined in") ||
		!strings.Contains(all, "; the collector quarantines it") {
		t.Errorf("it said:\n%s", all)
	}
}

// TestManifest: a tape says why it begins and ends, and what is missing.
func TestManifest(t *testing.T) {
	data, store := t.TempDir(), newStore(t)
	stage(t, data, "a", 1, 7, 0, 3, staging.ReasonReboot, func(a *staging.About, e *staging.End) {
		a.Reason, a.Detail, a.GapNS = staging.ReasonLoss, "why", 5
		e.Complete, e.Detail, e.Losses = false, "power", []staging.Loss{{Reason: "the spool was full", Events: 3}}
	})
	if _, err := Run(context.Background(), &Options{Data: data, Store: store, sealWith: seal}); err != nil {
		t.Fatal(err)
	}
	list := kept(t, store)
	if len(list) != 1 {
		t.Fatalf("%d tapes", len(list))
	}
	m := list[0]
	a := m.Assembly
	if a.Begins != (trace.Boundary{Reason: "loss", Detail: "why", WallNS: noon.UnixNano(), GapNS: 5}) ||
		a.Ends.Reason != "reboot" || a.Ends.Detail != "power" ||
		len(a.Losses) != 1 || a.Losses[0] != (trace.Loss{Reason: "the spool was full", Records: 3}) || !m.Incomplete ||
		m.Reason != "3 events were declared lost: the spool was full" {
		t.Errorf("%+v, %v %q", a, m.Incomplete, m.Reason)
	}
}

// TestEmpty archives what agents leave that are killed when a stream begins. There is no tape, and nothing to look
// into, unless events were in the stream.
func TestEmpty(t *testing.T) {
	for _, events := range []uint64{0, 3} {
		data, store := t.TempDir(), newStore(t)
		stage(t, data, "a", 1, 7, 0, 0, staging.ReasonKilled, func(_ *staging.About, e *staging.End) {
			e.Complete, e.Events = false, events
		})
		var said []string
		res, err := Run(t.Context(), &Options{Data: data, Store: store,
			Note: func(line string) { said = append(said, line) }})
		if err != nil || res.Tapes != 0 || res.Refused != int(min(events, 1)) {
			t.Errorf("with %d events: %+v, %v", events, res, err)
		}
		want := "has no events, and no tape is made: the stream ended before its agent ended it: agent killed"
		if events > 0 {
			want = "the stream is empty: nothing was recorded"
		}
		if all := strings.Join(said, "\n"); !strings.Contains(all, want) {
			t.Errorf("with %d events it said:\n%s", events, all)
		}
		if left, err := staging.List(data); err != nil || len(left) != 0 {
			t.Errorf("with %d events %d streams are left, %v", events, len(left), err)
		}
	}
}

var errKilled = errors.New("killed")

// TestKilled ends a run after each of its steps in turn, as a kill would, and lets others
// go on: each stream is in exactly one tape, each tape is told of, and nothing is left.
func TestKilled(t *testing.T) {
	testenv.Short(t, "it kills a program many times")
	for at := 1; ; at++ {
		data, store := t.TempDir(), newStore(t)
		stage(t, data, "a", 1, 7, 0, 3, staging.ReasonAge)
		stage(t, data, "a", 2, 7, 3, 2, staging.ReasonStop)
		bad := stage(t, data, "a", 3, 9, 5, 1, staging.ReasonStop)
		stage(t, data, "b", 1, 8, 0, 2, staging.ReasonStop)
		told := map[string]bool{}
		o := &Options{Data: data, Store: store, Stored: func(_ context.Context, s *Stored) error {
			told[s.Location] = true
			return nil
		}, sealWith: func(ctx context.Context, s *sealRequest) error {
			if strings.Contains(s.Streams[0], bad) {
				return fmt.Errorf("stream without a head: %w", trace.ErrTruncated)
			}
			return seal(ctx, s)
		}}
		steps := 0
		o.After = func(string) error {
			if steps++; steps == at {
				return errKilled
			}
			return nil
		}
		_, err := Run(context.Background(), o)
		killed := errors.Is(err, errKilled)
		if err != nil && !killed {
			t.Fatal(err)
		}
		if killed {
			if at%2 == 0 { // more streams come before the next run
				stage(t, data, "b", 2, 8, 2, 2, staging.ReasonStop)
			}
			steps = 1 << 30
			if _, err := Run(context.Background(), o); err != nil {
				t.Fatalf("after step %d: %v", at, err)
			}
		}
		want := "a 1 a 2 | b 1 | "
		if killed && at%2 == 0 {
			want += "b 2 | "
		}
		if got := streamsOf(kept(t, store)); got != want {
			t.Errorf("killed after step %d: tapes of %s, want %s", at, got, want)
		}
		if n := strings.Count(want, "|"); len(told) != n {
			t.Errorf("killed after step %d: told of %q, want %d", at, slices.Collect(maps.Keys(told)), n)
		}
		if left, _ := staging.List(data); len(left) > 0 {
			t.Errorf("killed after step %d: %d streams are left", at, len(left))
		}
		if jobs, _ := os.ReadDir(filepath.Join(data, stateName, jobsName)); len(jobs) > 0 {
			t.Errorf("killed after step %d: jobs are left: %v", at, jobs)
		}
		aside := filepath.Join(data, stateName, refusedName, "a", bad)
		if _, err := os.Stat(filepath.Join(aside, staging.StreamFile)); err != nil {
			t.Errorf("killed after step %d: %v", at, err)
		}
		if why, _ := os.ReadFile(aside + ".why"); !strings.Contains(string(why), "without a head") {
			t.Errorf("killed after step %d: quarantined because %q", at, why)
		}
		if !killed {
			if at < 15 {
				t.Errorf("there were only %d steps", at)
			}
			return
		}
	}
}

// faulty is a store of which the nth Put or Get goes wrong.
type faulty struct {
	objectstore.Store
	n    *int
	torn bool // Put keeps half of a file and says nothing
}

var errDown = errors.New("the store is down")

func (f faulty) Put(ctx context.Context, key, file string) error {
	if *f.n--; *f.n != 0 {
		return f.Store.Put(ctx, key, file)
	}
	if !f.torn {
		return errDown
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	half := file + ".half"
	defer os.Remove(half)
	return errors.Join(os.WriteFile(half, b[:len(b)/2], 0o666), f.Store.Put(ctx, key, half))
}

// TestStoreFails: streams stay until what is stored was read back and is right.
func TestStoreFails(t *testing.T) {
	for _, torn := range []bool{false, true} {
		for n := 1; n <= 4; n++ {
			data, store := t.TempDir(), newStore(t)
			stage(t, data, "a", 1, 7, 0, 3, staging.ReasonStop)
			stage(t, data, "b", 1, 8, 0, 3, staging.ReasonStop)
			left := n
			o := &Options{Data: data, Store: faulty{store, &left, torn}, sealWith: seal}
			if _, err := Run(context.Background(), o); err == nil {
				t.Errorf("torn %t, %d: the run says nothing", torn, n)
			}
			if s, _ := staging.List(data); len(s) == 0 {
				t.Errorf("torn %t, %d: streams are gone", torn, n)
			}
			if _, err := Run(context.Background(), o); err != nil {
				t.Errorf("torn %t, %d: %v", torn, n, err)
			}
			if got := streamsOf(kept(t, store)); got != "a 1 | b 1 | " {
				t.Errorf("torn %t, %d: tapes of %s", torn, n, got)
			}
		}
	}
}

// TestOneFails: a tape that nobody can be told of keeps no other from its end.
func TestOneFails(t *testing.T) {
	data, store := t.TempDir(), newStore(t)
	stage(t, data, "a", 1, 7, 0, 3, staging.ReasonStop)
	stage(t, data, "b", 1, 8, 0, 3, staging.ReasonStop)
	o := &Options{Data: data, Store: store, sealWith: seal, Stored: func(_ context.Context, s *Stored) error {
		if strings.Contains(s.Location, "host=a") {
			return errors.New("no room in the catalogue")
		}
		return nil
	}}
	res, err := Run(context.Background(), o)
	if err == nil || res.Tapes != 1 {
		t.Errorf("%d tapes, %v", res.Tapes, err)
	}
	if left, _ := staging.List(data); len(left) != 1 || left[0].About.Host != "a" {
		t.Errorf("left are %v", left)
	}
}

func TestPrune(t *testing.T) {
	ctx := context.Background()
	setup := func() objectstore.Store {
		data, store := t.TempDir(), newStore(t)
		for day := range 4 {
			stage(t, data, "a", uint64(day+1), uint64(day+1), 0, 3, staging.ReasonStop,
				func(a *staging.About, _ *staging.End) { a.StartNS += int64(day) * 86400e9 })
		}
		if _, err := Run(ctx, &Options{Data: data, Store: store, sealWith: seal}); err != nil {
			t.Fatal(err)
		}
		day := 0
		for tape, err := range Tapes(ctx, store, "") {
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range tape.files { // one was stored on each day
				at := noon.Add(time.Duration(day) * 24 * time.Hour)
				if err := os.Chtimes(store.Location(tape.Key+"/"+f), at, at); err != nil {
					t.Fatal(err)
				}
			}
			day++
		}
		write(t, store.Location("README"), "not a tape's")
		return store
	}
	now := func() time.Time { return noon.Add(4*24*time.Hour - time.Hour) }
	size := int64(0)
	for tape := range Tapes(ctx, setup(), "") {
		size = tape.Bytes
	}
	for _, c := range []struct {
		name string
		keep Keep
		want string
	}{
		{"all", Keep{}, "a 1 | a 2 | a 3 | a 4 | "},
		{"by age", Keep{Age: 2 * 24 * time.Hour}, "a 3 | a 4 | "},
		{"by size", Keep{Bytes: 3*size + size/2}, "a 2 | a 3 | a 4 | "},
		{"by both", Keep{Bytes: 3*size + size/2, Age: 26 * time.Hour}, "a 4 | "},
		{"dry run", Keep{Age: time.Hour, DryRun: true}, "a 1 | a 2 | a 3 | a 4 | "},
		{"nothing", Keep{Bytes: 1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, told := setup(), 0
			c.keep.Now, c.keep.Removed = now, func(context.Context, string) error { told++; return nil }
			gone, err := Prune(ctx, store, &c.keep)
			if err != nil {
				t.Fatal(err)
			}
			if got := streamsOf(kept(t, store)); got != c.want {
				t.Errorf("kept %s, want %s", got, c.want)
			}
			if told != len(gone) && !c.keep.DryRun || c.keep.DryRun && (told != 0 || len(gone) != 4) {
				t.Errorf("%d removed, told of %d", len(gone), told)
			}
			if _, err := os.Stat(store.Location("README")); err != nil {
				t.Error(err)
			}
		})
	}
	// What a killed put left goes after a while.
	store := setup()
	key := ""
	for tape := range Tapes(ctx, store, "") {
		key = tape.Key
		break
	}
	if err := os.Remove(store.Location(key + "/" + trace.ManifestName)); err != nil {
		t.Fatal(err)
	}
	if gone, err := Prune(ctx, store,
		&Keep{Now: func() time.Time { return noon.Add(6 * 24 * time.Hour) }}); len(gone) != 0 || err != nil {
		t.Errorf("removed %v, %v", gone, err)
	}
	if gone, err := Prune(ctx, store,
		&Keep{Now: func() time.Time { return noon.Add(8 * 24 * time.Hour) }}); len(gone) != 1 || err != nil {
		t.Errorf("removed %v, %v", gone, err)
	}
}

func TestGet(t *testing.T) {
	ctx, data, store, dir := context.Background(), t.TempDir(), newStore(t), t.TempDir()
	stage(t, data, "a", 1, 7, 0, 3, staging.ReasonStop)
	if _, err := Run(ctx, &Options{Data: data, Store: store, sealWith: seal}); err != nil {
		t.Fatal(err)
	}
	var tape *Tape
	for tape = range Tapes(ctx, store, "") {
	}
	for _, name := range []string{tape.Key, tape.Name(), strings.TrimSuffix(tape.Name(), ".tape"),
		store.Location(tape.Key)} {
		if key, err := Find(ctx, store, name); key != tape.Key || err != nil {
			t.Errorf("%s is %s, %v", name, key, err)
		}
	}
	for _, name := range []string{"", "x", "20261122", "../../etc/passwd", "/etc/passwd", "day=x/host=../a.tape"} {
		if key, err := Find(ctx, store, name); err == nil {
			t.Errorf("%q is %s", name, key)
		}
	}
	write(t, store.Location(tape.Key+"/streams"), "damaged")
	out := filepath.Join(dir, "out.tape")
	if err := Get(ctx, store, tape.Key, out); !errors.Is(err, trace.ErrCorrupt) {
		t.Errorf("a damaged tape: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// FuzzKey: what is taken for a place of a tape stays within the store.
func FuzzKey(f *testing.F) {
	root, err := objectstore.Open(f.Context(), "/root")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"day=2026-11-22/host=a/x.tape", "day=../host=a/x.tape", "day=/host=/..tape", "a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if checkKey(s) == nil && !strings.HasPrefix(root.Location(s), "/root/day=") {
			t.Errorf("%q leads to %s", s, root.Location(s))
		}
	})
}

// FuzzPlan: a plan in the state directory leads nowhere else.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"key":"day=2026-11-22/host=a/x.tape","streams":["` + boot + `-1-1"],"assembly":{"host":"a"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, planName), string(b))
		j, err := openJob(dir)
		if err != nil {
			return
		}
		for _, s := range j.Plan.Streams {
			if filepath.Base(s) != s || filepath.Base(j.Plan.Assembly.Host) != j.Plan.Assembly.Host {
				t.Errorf("%+v", j.Plan)
			}
		}
	})
}
