// SPDX-License-Identifier: Apache-2.0

package procmon

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/iotape/iotape/trace"
)

// results are the results of operations as errnos.
var results = map[string]syscall.Errno{
	"SUCCESS": 0, "END OF FILE": 0, "REPARSE": 0, "FAST IO DISALLOWED": 0, "BUFFER OVERFLOW": 0,
	"NAME NOT FOUND": syscall.ENOENT, "PATH NOT FOUND": syscall.ENOENT, "NO SUCH FILE": syscall.ENOENT,
	"NO MORE FILES": syscall.ENOENT, "NAME COLLISION": syscall.EEXIST, "ACCESS DENIED": syscall.EACCES,
	"SHARING VIOLATION": syscall.EBUSY, "DELETE PENDING": syscall.EBUSY, "IS DIRECTORY": syscall.EISDIR,
	"FILE IS A DIRECTORY": syscall.EISDIR, "NOT A DIRECTORY": syscall.ENOTDIR, "DIRECTORY NOT EMPTY": syscall.ENOTEMPTY,
	"DISK FULL": syscall.ENOSPC, "INVALID PARAMETER": syscall.EINVAL, "NAME INVALID": syscall.EINVAL,
	"PRIVILEGE NOT HELD": syscall.EPERM, "CANNOT DELETE": syscall.EPERM,
}

// text returns a part of the column Detail: Name: value, Name: value. Values may have commas.
func text(details, name string) string {
	at := 0
	if !strings.HasPrefix(details, name+": ") {
		if at = strings.Index(details, ", "+name+": "); at < 0 {
			return ""
		}
		at += 2
	}
	value := details[at+len(name)+2:]
	if name == "FileName" { // the last one
		return value
	}
	if end := strings.Index(value, ": "); end >= 0 { // the name of the next one stands before it
		if comma := strings.LastIndex(value[:end], ", "); comma >= 0 {
			value = value[:comma]
		}
	}
	return value
}

// detail returns a number of the column Detail, with or without what countries put between its digits. ok is false
// if there is none.
func detail(details, name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(betweenDigits.Replace(text(details, name)), 10, 63)
	return n, err == nil
}

// betweenDigits takes commas, points, apostrophes and blanks off a whole number.
var betweenDigits = strings.NewReplacer(",", "", ".", "", "'", "", "\u2019", "", " ", "", "\u00a0", "", "\u202f", "")

// timeOfDay reads a time such as 3:38:35.6627776 PM or 15:38:35.6627776.
func timeOfDay(s string) (ns uint64, ok bool) {
	s, half, _ := strings.Cut(strings.ReplaceAll(s, "\u202f", " "), " ")
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return 0, false
	}
	hours, err1 := strconv.ParseUint(parts[0], 10, 8)
	minutes, err2 := strconv.ParseUint(parts[1], 10, 8)
	whole, part, _ := strings.Cut(strings.Replace(parts[2], ",", ".", 1), ".")
	seconds, err3 := strconv.ParseUint(whole, 10, 8)
	if err1 != nil || err2 != nil || err3 != nil || hours > 23 || minutes > 59 || seconds > 60 || len(part) > 9 {
		return 0, false
	}
	switch strings.ToUpper(half) {
	case "AM":
		hours %= 12
	case "PM":
		hours = hours%12 + 12
	}
	fraction, err := strconv.ParseUint(part+strings.Repeat("0", 9-len(part)), 10, 64)
	if err != nil {
		return 0, false
	}
	return (hours*3600+minutes*60+seconds)*1e9 + fraction, true
}

// object is an open file of which nothing but its name is known.
func object(fd int32) trace.Object { return trace.Object{FD: fd} }
