// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readObjects lists the objects of a text with their lines, and what was none with "!".
func readObjects(t *testing.T, text string) (list []string) {
	t.Helper()
	for o := NewObjects(strings.NewReader(text)); ; {
		obj, err := o.Next()
		var no *NotObject
		switch {
		case errors.As(err, &no):
			list = append(list, "!"+no.Error())
		case err == io.EOF:
			return list
		case err != nil:
			t.Fatal(err)
		default:
			if got := text[obj.Offset:][:len(obj.Text)]; got != string(obj.Text) {
				t.Fatalf("at %d is %q, not %q", obj.Offset, got, obj.Text)
			}
			list = append(list, fmt.Sprintf("%d:%s", obj.Line, obj.Text))
		}
	}
}

func TestObjects(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", MaxObject) + `"}`
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"lines", "{\"a\":1}\n\n  {\"b\":\"}{\"} \r\n{}", []string{`1:{"a":1}`, `3:{"b":"}{"}`, `4:{}`}},
		{"a byte order mark", "\xef\xbb\xbf{}\n", []string{"1:{}"}},
		{"lines between", "{}\njava.io.EOFException\n{}", []string{"1:{}", `!line 2: "java.io.EOFException": a JSON object was expected`, "3:{}"}},
		{"a long line", "{}\n" + long + "\n{}", []string{"1:{}", "!line 2: longer than 8 MiB", "3:{}"}},
		{"an array on lines", "[{\"a\":1},\n{\"b\":[{}]}]\n", []string{`1:{"a":1}`, `2:{"b":[{}]}`}},
		{"an array over lines", "[\n {\n  \"a\": \"\\\"]\"\n }\n]", []string{"2:{\n  \"a\": \"\\\"]\"\n }"}},
		{"an array with others", "[1,{},null\n,{}]", []string{`!line 1: "1,": a JSON object was expected`, "1:{}", `!line 1: "null": a JSON object was expected`, "2:{}"}},
		{"a string that is not closed", "[{\"a\":\"x\n},{}]", []string{"!line 1: a string is not closed", "2:{}"}},
		{"a long object", "[" + long + ",{}]", []string{"!line 1: longer than 8 MiB", "1:{}"}},
		{"an end within", `[{},{"a":`, []string{"1:{}", "!line 1: the file ends within an object"}},
		{"nothing", " \n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readObjects(t, c.text)
			if c.name == "a string that is not closed" { // what is left of it is junk
				got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "!line 2") })
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestObjectsByTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("{\"t\":3}\n{\"t\":1}\nx\n{\"t\":2}\n{\"t\":1,\"second\":true}\n{}\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	im := NewImport(t.TempDir(), "test")
	var got []string
	when := func(text []byte) (uint64, error) {
		var v struct{ T uint64 }
		if err := json.Unmarshal(text, &v); err != nil {
			return 0, err
		}
		if v.T == 0 {
			return 0, ErrNoEvent
		}
		return v.T, nil
	}
	if err := im.ObjectsByTime(context.Background(), in, when, func(text []byte) error {
		got = append(got, string(text))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{`{"t":1}`, `{"t":1,"second":true}`, `{"t":2}`, `{"t":3}`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for what, n := range im.Left {
		if n != 1 || !strings.Contains(what, `line 3: "x"`) {
			t.Errorf("left out: %d %s", n, what)
		}
	}
}

func FuzzObjects(f *testing.F) {
	for _, s := range []string{"{\"a\":1}\n{}", "[{\"a\":\"\\\"]\"},\n{}]", "[1,{}", "{\n", "\xef\xbb\xbf[{}]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end := int64(0)
		for o := NewObjects(bytes.NewReader(b)); ; {
			obj, err := o.Next()
			var no *NotObject
			if errors.As(err, &no) {
				continue
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if obj.Offset < end || !bytes.Equal(b[obj.Offset:][:len(obj.Text)], obj.Text) {
				t.Fatalf("%q at %d, after %d", obj.Text, obj.Offset, end)
			}
			end = obj.Offset + int64(len(obj.Text))
			if want := 1 + bytes.Count(b[:obj.Offset], []byte("\n")); obj.Line != want {
				t.Fatalf("line %d, want %d", obj.Line, want)
			}
		}
	})
}
