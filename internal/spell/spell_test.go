// SPDX-License-Identifier: Apache-2.0

package spell

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"filter", "filter-file", "name", "output", "stream", "pid"}
	for word, want := range map[string]string{
		"fliter": "filter", "Filter": "filter", "naem": "name", "ouput": "output", "strea": "stream",
		"compress": "", "x": "", "": "", "pdi": "pid", "filterfile": "filter-file",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
