// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

func TestOfBuild(t *testing.T) {
	rev := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for _, c := range []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{"no stamp", nil, ""},
		{"clean", []debug.BuildSetting{rev, {Key: "vcs.modified", Value: "false"}}, "0123456789ab"},
		{"modified", []debug.BuildSetting{rev, {Key: "vcs.modified", Value: "true"}}, "0123456789ab.modified"},
		{"short", []debug.BuildSetting{{Key: "vcs.revision", Value: "01"}}, "01"},
		{"modified, of what is not said", []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}, ""},
	} {
		if got := ofBuild(c.settings); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestChangelog holds the number to CHANGELOG.md: its newest version with a number is ours.
func TestChangelog(t *testing.T) {
	page, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## \[([0-9.]+)\]`).FindSubmatch(page)
	if m == nil {
		t.Fatal("CHANGELOG.md has no version with a number")
	}
	if got := string(m[1]); got != Version {
		t.Errorf("CHANGELOG.md ends with %s, want %s as in this package", got, Version)
	}
}
