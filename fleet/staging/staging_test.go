// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const boot = "2f5a6f2e-6f0b-4b2a-9d5e-0a1b2c3d4e5f"

// stage makes a stream's directory, finished if end is not nil.
func stage(t *testing.T, data, host, stream string, end *End) string {
	t.Helper()
	dir := Dir(data, host, stream)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, AboutFile), StreamParts,
		&About{Version: Version, Host: host, Stream: stream, BootID: boot, Reason: ReasonStart}); err != nil {
		t.Fatal(err)
	}
	if end != nil {
		if err := WriteFile(filepath.Join(dir, EndFile), StreamParts, end); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestList(t *testing.T) {
	data := t.TempDir()
	if s, err := List(data); len(s) != 0 || err != nil {
		t.Errorf("an empty collector has %v, %v", s, err)
	}
	// The order is that of numbers, not of text.
	second := stage(t, data, "db7", StreamName{boot, 1000, 2}.String(), nil)
	tenth := stage(t, data, "db7", StreamName{boot, 1000, 10}.String(), nil)
	first := stage(t, data, "db7", StreamName{boot, 999, 30}.String(),
		&End{Version: Version, Reason: ReasonLoss, Events: 5,
			Losses: []Loss{{"the spool was full", 3}, {"the ring was full", 4}}})
	other := stage(t, data, "a.example.com", StreamName{boot, 1, 1}.String(), nil)
	streams, err := List(data)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range streams {
		got = append(got, s.Dir)
	}
	if want := []string{other, first, second, tenth}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("listed\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if e := streams[1].End; e == nil || e.Lost() != 7 || e.Reason != ReasonLoss {
		t.Errorf("the end is %+v", e)
	}
	if streams[0].End != nil {
		t.Error("a stream without an end is finished")
	}
}

// TestListDamage: one directory that is not what it says does not hide the others.
func TestListDamage(t *testing.T) {
	data := t.TempDir()
	good := stage(t, data, "db7", StreamName{boot, 1, 1}.String(), nil)
	name := StreamName{boot, 1, 2}.String()
	claims := stage(t, data, "db7", name, nil)
	if err := WriteFile(filepath.Join(claims, AboutFile), StreamParts,
		&About{Version: 1, Host: "db8", Stream: name}); err != nil {
		t.Fatal(err)
	}
	newer := stage(t, data, "db7", StreamName{boot, 1, 3}.String(), &End{Version: Version + 1})
	torn := stage(t, data, "db7", StreamName{boot, 1, 4}.String(), nil)
	if err := os.WriteFile(filepath.Join(torn, EndFile), []byte(`{"version`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(Root(data), "UPPER"), 0o755); err != nil {
		t.Fatal(err)
	}
	streams, err := List(data)
	if len(streams) != 1 || streams[0].Dir != good {
		t.Errorf("listed %+v", streams)
	}
	for _, want := range []string{"db8", newer, torn, "UPPER"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		host string
		ok   bool
	}{
		{"db7", true}, {"db7.example.com", true}, {"7", true}, {"a-b", true},
		{"", false}, {".", false}, {"..", false}, {"a..b", false}, {"a/b", false}, {"A", false}, {"a.", false},
		{".a", false}, {"-a", false}, {"a*", false}, {"a>", false}, {"a b", false}, {strings.Repeat("a", 200), false},
	} {
		if err := CheckHost(c.host); (err == nil) != c.ok {
			t.Errorf("host %q: %v", c.host, err)
		}
	}
	for _, s := range []string{"", "x", boot, boot + "-1", boot + "-1-0", boot + "-1-1-1", boot + "--1-1",
		boot + "-01-1", boot + "-1-+1",
		strings.ToUpper(boot) + "-1-1", boot + "-1-1/..", "../../../../../../../../../../../etc/x-1-1"} {
		if n, err := ParseStream(s); err == nil {
			t.Errorf("stream %q is taken for %+v", s, n)
		}
	}
}

func FuzzParseStream(f *testing.F) {
	f.Add(StreamName{boot, 1795331234567890123, 7}.String())
	f.Add(boot + "-1")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseStream(s)
		if err != nil {
			return
		}
		if n.String() != s || filepath.Base(s) != s || n.Serial == 0 {
			t.Errorf("%q was read as %+v", s, n)
		}
	})
}
