// SPDX-License-Identifier: Apache-2.0

package dftracer

import (
	"os"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
)

// call says which call a function is, and what its arguments are called in the trace.
//
//	"fd"     a descriptor, which is that of the event's file
//	"="      a path: that of the event's file
//	"/name"  another path, or its hash as name_hash
//	"buf"    memory of as many bytes as the result
//	"-"      nothing that the trace has
//	"name"   a number; "name!" one without which the call would say something wrong
type call struct {
	op   event.Op
	args string
}

// calls are the functions of category POSIX.
var calls = map[string]call{
	"open":       {event.OpOpen, "= flags mode"},
	"open64":     {event.OpOpen, "= flags mode"},
	"creat64":    {event.OpCreat, "= mode"},
	"opendir":    {event.OpOpen, "= O_DIRECTORY"},
	"close":      {event.OpClose, "fd"},
	"read":       {event.OpRead, "fd buf count"},
	"write":      {event.OpWrite, "fd buf count"},
	"pread":      {event.OpPread64, "fd buf count offset!"},
	"pread64":    {event.OpPread64, "fd buf count offset!"},
	"pwrite":     {event.OpPwrite64, "fd buf count offset!"},
	"pwrite64":   {event.OpPwrite64, "fd buf count offset!"},
	"lseek":      {event.OpLseek, "fd offset whence"},
	"lseek64":    {event.OpLseek, "fd offset whence"},
	"fsync":      {event.OpFsync, "fd"},
	"fdatasync":  {event.OpFdatasync, "fd"},
	"ftruncate":  {event.OpFtruncate, "fd length!"},
	"truncate":   {event.OpTruncate, "= length!"},
	"mmap":       {event.OpMmap, "- length - flags fd offset"},
	"mmap64":     {event.OpMmap, "- length - flags fd offset"},
	"__fxstat":   {event.OpFstat, "fd"},
	"__fxstat64": {event.OpFstat, "fd"},
	"__xstat":    {event.OpStat, "="},
	"__xstat64":  {event.OpStat, "="},
	"__lxstat":   {event.OpLstat, "="},
	"__lxstat64": {event.OpLstat, "="},
	"access":     {event.OpAccess, "="},
	"mkdir":      {event.OpMkdir, "= mode"},
	"rmdir":      {event.OpRmdir, "="},
	"chdir":      {event.OpChdir, "="},
	"link":       {event.OpLink, "= /newpath"},
	"unlink":     {event.OpUnlink, "="},
	"remove":     {event.OpUnlink, "="},
	"rename":     {event.OpRename, "= /newpath"},
	"readlink":   {event.OpReadlink, "= - bufsize"},
	"chmod":      {event.OpChmod, "= mode"},
	"chown":      {event.OpChown, "= owner group"},
	"lchown":     {event.OpLchown, "= owner group"},
	"utime":      {event.OpUtime, "="},
	"fcntl":      {event.OpFcntl, "fd cmd!"},
	"mkfifo":     {event.OpMknod, "= mode"},
	"fopen":      {event.OpOpen, "= MODE"},
	"fopen64":    {event.OpOpen, "= MODE"},
	"fclose":     {event.OpClose, "fd"},
	"fread":      {event.OpRead, "fd buf count"},
	"fwrite":     {event.OpWrite, "fd buf count"},
	"fseek":      {event.OpLseek, "fd offset whence"},
}

// openMode returns the flags of fopen(3)'s mode.
func openMode(mode string) uint64 {
	flags := uint64(os.O_RDONLY)
	switch {
	case strings.Contains(mode, "+"):
		flags = uint64(os.O_RDWR)
	case mode == "" || mode[0] != 'r':
		flags = uint64(os.O_WRONLY)
	}
	switch {
	case strings.HasPrefix(mode, "w"):
		flags |= syscall.O_CREAT | syscall.O_TRUNC
	case strings.HasPrefix(mode, "a"):
		flags |= syscall.O_CREAT | syscall.O_APPEND
	}
	return flags
}
