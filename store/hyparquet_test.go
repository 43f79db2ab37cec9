// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestHyparquet reads the index of a tape with hyparquet, a reader that is written in JavaScript: it has the rows, the
// values and the sums that a query has.
func TestHyparquet(t *testing.T) {
	testenv.Short(t, "it runs Node.js")
	modules := filepath.Join(testenv.ModuleRoot(t), "bin", "icebird", "node_modules") // which has hyparquet
	testenv.NeedFile(t, filepath.Join(modules, "hyparquet", "src", "node.js"))
	testenv.NeedProgram(t, "node")
	dir := makeTape(t, "a", 3)
	index(t, dir)
	tapes := opened(t, dir)
	args := []string{"testdata/hyparquet.mjs", modules}
	for _, name := range tableNames {
		args = append(args, filepath.Join(tapes[0].DerivedDir(), parquetName(name)))
	}
	var wrong bytes.Buffer
	cmd := exec.Command("node", args...)
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, wrong.Bytes())
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for _, name := range tableNames {
		var read struct {
			Rows    int
			Columns map[string]struct {
				Values int
				Sum    string
			}
		}
		if err := d.Decode(&read); err != nil {
			t.Fatal(err)
		}
		got, want := []string{fmt.Sprint(read.Rows)}, []string{"count(*)"}
		for _, column := range slices.Sorted(maps.Keys(read.Columns)) {
			if name == "content" { // whose view has other columns
				continue
			}
			c := read.Columns[column]
			got, want = append(got, fmt.Sprint(c.Values)), append(want, fmt.Sprintf("count(%q)", column))
			if c.Sum != "0" { // a column of numbers
				got, want = append(got, c.Sum), append(want, fmt.Sprintf("sum(%q)::VARCHAR", column))
			}
		}
		if len(read.Columns) < 3 {
			t.Errorf("%s: %d columns, want 3 or more", name, len(read.Columns))
		}
		text := query(t, "SELECT "+strings.Join(want, ", ")+" FROM "+name, CSV, dir)
		_, row, _ := strings.Cut(strings.TrimSpace(text), "\n")
		if strings.Join(got, ",") != row {
			t.Errorf("%s: %s are\n%s, want\n%s", name, strings.Join(want, ","), strings.Join(got, ","), row)
		}
	}
}
