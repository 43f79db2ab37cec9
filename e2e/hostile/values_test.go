// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// strangeNames are names that a tape can have in the place of any text.
var strangeNames = []string{
	"", ".", "..", "/", "//", "../../../../../../etc/passwd", "/work/../../../etc/passwd", "/proc/self/root/etc",
	"a\x00b", "line\nfeed\r\x1b]0;title\x07\x1b[31m", "\u202egpj.exe\u2066", "\xff\xfe\xc3(", "pipe:[x]", "socket:[-1]",
	"anon_inode:[", "/dev/fd/-1", strings.Repeat("n", 300), "/" + strings.Repeat("d/", 3000), "%s%n%d", "a,b\"'=HYPERLINK",
	"</script><script>", "$(touch x)`touch y`", "C:\\..\\x", " (deleted)", "/x (deleted)",
}

// strangeNumbers are bits that a tape can have in the place of any number; the upper ones are left out where a field
// is narrower.
var strangeNumbers = []uint64{
	0, 1, 1<<64 - 1, 1 << 63, 1<<63 - 1, 1<<63 - 4096, 1 << 62, 1<<32 - 1, 1 << 31, 1<<31 - 1, 1 << 48,
}

// TestStrangeValues runs everything that reads a tape over tapes of which one field of the events has a strange value,
// of all events or of every third. Their check sums are right, as those of whoever makes a tape are.
// IOTAPE_MUTATIONS=N tries N values of each field instead of two, and other ones with IOTAPE_SEED=N.
func TestStrangeValues(t *testing.T) {
	testenv.Short(t, "it runs every command on many tapes")
	samples := []*trace.Tape{formattest.Pipeline(t)}
	for _, dir := range []string{"../compat/testdata/v0.1/sample.tape", "../../trace/testdata/v1/sample.tape"} {
		tape, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tape.Close() })
		samples = append(samples, tape)
	}
	tries, seed := setting(t, "IOTAPE_MUTATIONS", 2), setting(t, "IOTAPE_SEED", 1)
	for _, field := range fieldsOf(reflect.TypeFor[event.Event](), "") {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "x.tape")
			r := rand.New(rand.NewPCG(uint64(seed), uint64(len(field))))
			for range tries {
				n, every, sample := r.IntN(len(strangeNames)), 1+2*r.IntN(2), samples[r.IntN(len(samples))]
				if changed(t, sample, dir, field, n, every) {
					if tape, err := trace.Open(dir); err == nil { // an error is an answer
						what := fmt.Sprintf("%s of %s, value %d in every %d. event", field, sample.Name(), n, every)
						readers(t, what, tape, sample, r.IntN(indexed) == 0, false)
						tape.Close()
					}
				}
				if t.Failed() {
					return
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// fieldsOf names the numbers and texts of a type.
func fieldsOf(typ reflect.Type, prefix string) (names []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, ft := prefix+f.Name, f.Type
		for ft.Kind() == reflect.Slice || ft.Kind() == reflect.Array {
			ft = ft.Elem()
		}
		switch {
		case ft.Kind() == reflect.Struct:
			names = append(names, fieldsOf(ft, name+".")...)
		case ft.Kind() == reflect.Pointer, name == "Seq", name == "Bufs.Hashes":
		default:
			names = append(names, name)
		}
	}
	return names
}

// changed writes a tape of the events of another one with a field's n-th strange value in each event that is to be
// changed. It returns false if no event has the field, or the tape cannot be written.
func changed(t *testing.T, from *trace.Tape, dir, field string, n, every int) bool {
	t.Helper()
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	c := trace.NewCopier(from, tw)
	some, i := false, 0
	for ev, err := range from.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Content(ev); err != nil {
			t.Fatal(err)
		}
		if i++; i%every == 0 && setField(reflect.ValueOf(ev).Elem(), strings.Split(field, "."), n) {
			some = true
		}
		if err := tw.Write(ev); err != nil {
			return false
		}
	}
	m := *from.Manifest()
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if name == trace.EventsName || name == trace.ContentName || name == trace.StacksName {
			continue
		}
		if err := copyFile(tw, from, name); err != nil {
			t.Fatal(err)
		}
	}
	return some && tw.Close(&m) == nil
}

func copyFile(tw *trace.TapeWriter, from *trace.Tape, name string) error {
	in, err := from.OpenFile(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := tw.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// setField puts the n-th strange value into a field, of all elements of lists.
func setField(v reflect.Value, path []string, n int) (set bool) {
	number := strangeNumbers[n%len(strangeNumbers)]
	switch k := v.Kind(); {
	case k == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		b := v.Bytes()
		for i := range b {
			b[i] = byte(number >> (8 * (i % 8)))
		}
		return len(b) > 0
	case k == reflect.Slice, k == reflect.Array:
		for i := range v.Len() {
			set = setField(v.Index(i), path, n) || set
		}
		return set
	case k == reflect.Struct:
		return setField(v.FieldByName(path[0]), path[1:], n)
	case k == reflect.String:
		v.SetString(strangeNames[n])
	case k == reflect.Bool:
		v.SetBool(n%2 == 0)
	case v.CanInt():
		v.SetInt(int64(number))
	case v.CanUint():
		v.SetUint(number)
	default:
		return false
	}
	return true
}
