// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// TestStrangeManifest runs everything that reads a tape over a tape of which one value of the manifest is strange. Its
// check is right, as that of whoever makes a tape is.
// IOTAPE_MUTATIONS=N tries N values of each, and other ones with IOTAPE_SEED=N.
func TestStrangeManifest(t *testing.T) {
	testenv.Short(t, "it runs every command on many tapes")
	const source = "../compat/testdata/v0.1/sample.tape"
	sample, err := trace.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer sample.Close()
	b := contents(t, filepath.Join(source, trace.ManifestName))
	dir := filepath.Join(t.TempDir(), "x.tape")
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	tries, seed := setting(t, "IOTAPE_MUTATIONS", 2), setting(t, "IOTAPE_SEED", 1)
	r := rand.New(rand.NewPCG(uint64(seed), uint64(len(b))))
	opened, tried := 0, 0
	for i := 0; ; i++ {
		for range tries {
			var manifest any
			d := json.NewDecoder(bytes.NewReader(b))
			d.UseNumber() // as they are, and not rounded
			if err := d.Decode(&manifest); err != nil {
				t.Fatal(err)
			}
			delete(manifest.(map[string]any), "check")
			left := i
			what := ""
			replaceLeaf(&manifest, &left, func(name string, v any) any {
				what = name
				return strangeOf(r, v)
			}, "")
			if what == "" {
				t.Logf("%d of %d manifests were read, of %d values", opened, tried, i)
				if opened*4 < tried {
					t.Error("want at least a quarter")
				}
				return
			}
			text := sealed(t, manifest)
			if err := os.WriteFile(filepath.Join(dir, trace.ManifestName), text, 0o600); err != nil {
				t.Fatal(err)
			}
			tried++
			try(t, what, "open", func() error {
				tape, err := trace.Open(dir)
				if err != nil {
					return err // an error is an answer
				}
				defer tape.Close()
				opened++
				readers(t, fmt.Sprintf("%s: %.2000s", what, text), tape, sample, r.IntN(4*indexed) == 0, false)
				return nil
			})
			if t.Failed() {
				return
			}
		}
	}
}

// replaceLeaf replaces the left-th number, text or truth of a JSON value.
func replaceLeaf(v *any, left *int, by func(name string, v any) any, name string) {
	if *left < 0 {
		return
	}
	switch x := (*v).(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			e := x[k]
			replaceLeaf(&e, left, by, name+"/"+k)
			x[k] = e
		}
	case []any:
		for i := range x {
			replaceLeaf(&x[i], left, by, name+"/"+fmt.Sprint(i))
		}
	default:
		if *left == 0 {
			*v = by(name, x)
		}
		*left--
	}
}

// strangeOf returns a strange value of the type of a JSON value.
func strangeOf(r *rand.Rand, v any) any {
	switch v.(type) {
	case json.Number:
		n := strangeNumbers[r.IntN(len(strangeNumbers))]
		if r.IntN(2) == 0 {
			return n
		}
		return int64(n)
	case string:
		return strangeNames[r.IntN(len(strangeNames))]
	}
	return v != true
}

// sealed encodes a manifest with its check.
func sealed(t *testing.T, manifest any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(bytes.TrimSuffix(b, []byte("\n}")), ",\n  \"check\": \""...)
	sum := blake3.Sum256(b)
	return append(append(b, hex.EncodeToString(sum[:])...), "\"\n}\n"...)
}
