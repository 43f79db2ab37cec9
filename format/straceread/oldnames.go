// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

// renamed says how a call of another name is one that the operation table has. strace shows
// such names for programs of 32 bits, of other architectures, and in old versions.
type renamed struct {
	to   string
	args string // which of its arguments are the call's: "0" to "9"; "-": 0; "": all, as they are
}

// oldNames are the calls of other names.
var oldNames = map[string]renamed{
	"_exit":               {to: "exit"},
	"_llseek":             {to: "lseek", args: "013"}, // the result is argument 2
	"_newselect":          {to: "select"},
	"arm_fadvise64_64":    {to: "fadvise64", args: "0231"},
	"arm_sync_file_range": {to: "sync_file_range", args: "0231"},
	"fadvise64_64":        {to: "fadvise64"},
	"fstatat64":           {to: "newfstatat"},
	"fstatfs64":           {to: "fstatfs", args: "02"},
	"llseek":              {to: "lseek", args: "013"},
	"mmap2":               {to: "mmap"}, // strace shows the offset in bytes
	"oldfstat":            {to: "fstat"},
	"oldlstat":            {to: "lstat"},
	"oldstat":             {to: "stat"},
	"oldumount":           {to: "umount2", args: "0-"},
	"old_mmap":            {to: "mmap"},
	"old_select":          {to: "select"},
	"pread":               {to: "pread64"},
	"pwrite":              {to: "pwrite64"},
	"recv":                {to: "recvfrom", args: "0123--"},
	"send":                {to: "sendto", args: "0123--"},
	"sigaction":           {to: "rt_sigaction"},
	"sigpending":          {to: "rt_sigpending"},
	"sigprocmask":         {to: "rt_sigprocmask"},
	"sigreturn":           {to: "rt_sigreturn"},
	"sigsuspend":          {to: "rt_sigsuspend"},
	"statfs64":            {to: "statfs", args: "02"},
	"sync_file_range2":    {to: "sync_file_range", args: "0231"},
	"ugetrlimit":          {to: "getrlimit"},
	"umount":              {to: "umount2", args: "01"},
	"waitpid":             {to: "wait4", args: "012-"},
}

// oldSuffixes are what other names of calls end in: wide offsets (stat64), wide identities
// (chown32) and wide times (futex_time64).
var oldSuffixes = []string{"_time64", "64", "32"}

// present returns the name and the arguments that a call has in the operation table.
func present(name string, args []field, r *result) (string, []field) {
	if _, _, ok := lookup(name); ok {
		return name, args
	}
	old, ok := oldNames[name]
	if !ok {
		return withoutSuffix(name), args
	}
	if strings.HasSuffix(name, "llseek") && r.ret == 0 && len(args) > 2 && len(args[2].Parts) == 1 {
		if n, ok := event.ParseNumber(args[2].Parts[0].Text); ok {
			r.ret = int64(n)
		}
	}
	if old.args == "" {
		return old.to, args
	}
	picked := make([]field, len(old.args))
	for i, c := range []byte(old.args) {
		switch n := int(c - '0'); {
		case c == '-':
			picked[i] = field{Kind: layout.ToldWord, Text: "0"}
		case n < len(args):
			picked[i] = args[n]
		default: // the text has fewer
			return old.to, picked[:i]
		}
	}
	return old.to, picked
}

// withoutSuffix returns the name of which a call is a wider form, or the name itself.
func withoutSuffix(name string) string {
	for _, suffix := range oldSuffixes {
		if short, ok := strings.CutSuffix(name, suffix); ok {
			if _, _, known := lookup(short); known {
				return short
			}
		}
	}
	return name
}

// isCall reports whether a call of this name is read.
func isCall(name string) bool {
	name, _ = present(name, nil, &result{})
	_, _, ok := lookup(name)
	return ok
}
