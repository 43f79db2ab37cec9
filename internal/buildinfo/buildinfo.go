// SPDX-License-Identifier: Apache-2.0

// Package buildinfo says which version the programs are of, and of which revision of the
// source they were built.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// Version is the version of all programs of this module, as in CHANGELOG.md.
const Version = "0.2.0"

// revision is set by the linker for releases, which are built without the go command's own
// stamp: -ldflags "-X github.com/iotape/iotape/internal/buildinfo.revision=0123456789ab".
var revision string

// Revision returns the first 12 digits of the commit that the program was built of, with
// ".modified" behind them if the tree had changes. It is "" if the build does not say.
var Revision = sync.OnceValue(func() string {
	if revision != "" {
		return revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return ofBuild(info.Settings)
})

func ofBuild(settings []debug.BuildSetting) string {
	var commit, modified string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ".modified"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + modified
}

// String returns the version with the revision as build metadata of semantic versioning,
// such as "0.2.0+0123456789ab".
func String() string {
	if r := Revision(); r != "" {
		return Version + "+" + r
	}
	return Version
}

// Program returns what goes into recordings and reports: the program's name and String.
func Program(name string) string { return name + " " + String() }

// Line returns what a program prints for --version, without a line's end.
func Line(name string) string {
	return fmt.Sprintf("%s (%s, %s)", Program(name), runtime.Version(), runtime.GOARCH)
}
