// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"errors"
	"testing"
)

func TestOfNumbers(t *testing.T) {
	values := map[string]int64{"three": 3, "none": 0, "many": 4096, "less": -1}
	names := []string{"less", "many", "none", "three"}
	for src, want := range map[string]bool{
		"three = 3": true, "three == 3": true, "three != 3": false, "three < 3": false, "three <= 3": true, "three > 2": true, "three >= 4": false,
		"three in {1, 2..4}": true, "three not in {1, 2..4}": false, "three != {1, 2}": true, "many == 4K": true, "less < 0": true,
		"three": true, "none": false, "not none": true, "none or three": true, "none and three": false, "three = 3 and (none = 1 or many > 4000)": true, "true": true,
	} {
		x, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.OfNumbers(values, names); err != nil || got != want {
			t.Errorf("%s: %v, %v", src, got, err)
		}
	}
	for _, src := range []string{"tree = 3", "three = x", "three contains 3", "descendant of 3",
		"three = 3 or tree = 3"} {
		x, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		var wrong *Error
		if _, err := x.OfNumbers(values, names); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", src, err)
		}
	}
}
