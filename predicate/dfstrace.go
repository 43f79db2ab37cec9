// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
)

// DFSTrace translates a filter file of DFSTrace's library (Trace_SetFilter(3), 1992; the
// filters of Mummert and Satyanarayanan, SP&E 26(6), 1996, "Post-processing"): a command
// a line, all of which have to fit.
//
//	start TIME, end TIME                        records of that time; UTC here
//	opcode, pid, path [include|exclude] LIST    paths are regular expressions
//	error LIST                                  numbers of errors, or their names
//	type LIST                                   types of files
//	matchfds                                    without effect: descriptors have their names here
//
// inodetype and refcount ask for what tapes do not have: they are errors.
func DFSTrace(text string) (string, error) {
	if len(text) > MaxSource {
		return "", &Error{Source: text[:64], Message: fmt.Sprintf("the filter has more than %d bytes", MaxSource)}
	}
	d := dfstrace{source: text}
	start := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if code, _, _ := strings.Cut(line, "#"); strings.TrimSpace(code) != "" {
			if err := d.line(start, code); err != nil {
				return "", err
			}
		}
		start += len(line)
	}
	if len(d.parts) == 0 {
		return "true", nil
	}
	return strings.Join(d.parts, " and "), nil
}

type dfstrace struct {
	source string
	parts  []string
}

func (d *dfstrace) fail(w word, hint, format string, args ...any) error {
	return &Error{Source: d.source, Pos: w.pos, End: w.end, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// wordsOf divides a text that begins at a byte of the file.
func wordsOf(start int, text string) (words []word) {
	for pos := 0; ; {
		rest := strings.TrimLeft(text[pos:], " \t\r\n")
		pos = len(text) - len(rest)
		if rest == "" {
			return words
		}
		end := strings.IndexAny(rest, " \t\r\n")
		if end < 0 {
			end = len(rest)
		}
		words = append(words, word{rest[:end], start + pos, start + pos + end})
		pos += end
	}
}

var dfstraceCommands = []string{"start", "end", "opcode", "pid", "path", "error", "type",
	"matchfds", "inodetype", "refcount"}

// line translates a command that begins at a byte of the file.
func (d *dfstrace) line(start int, text string) error {
	words := wordsOf(start, text)
	command, list := words[0], words[1:]
	exclude := false
	if len(list) > 0 && slices.Contains([]string{"opcode", "pid", "path"}, command.text) {
		switch list[0].text {
		case "exclude":
			exclude = true
			list = list[1:]
		case "include":
			list = list[1:]
		}
	}
	if command.text == "matchfds" {
		return nil
	}
	if len(list) == 0 && slices.Contains(dfstraceCommands, command.text) {
		return d.fail(command, "", "%s needs a list", command.text)
	}
	var test string
	var err error
	switch command.text {
	case "start", "end":
		test, err = d.time(command.text, list)
	case "opcode":
		test, err = d.opcodes(list)
	case "pid":
		test, err = d.numbers("pid", list)
	case "error":
		test, err = d.errors(list)
	case "path":
		var res []string
		for _, w := range list {
			res = append(res, Quote(w.text))
		}
		test = "path matches {" + strings.Join(res, ", ") + "}"
	case "type":
		for _, w := range list {
			if _, ok := fileTypes[w.text]; !ok {
				return d.fail(w, "", "there is no type of files %s", Quote(w.text))
			}
		}
		test = "type in {" + strings.Join(texts(list), ", ") + "}"
	case "inodetype":
		return d.fail(command, "", "inodetype: tapes do not have the type of a file system")
	case "refcount":
		return d.fail(command, "",
			"refcount: how many descriptors an open file has is not something that filters ask for")
	default:
		return d.fail(command, suggest(command.text, dfstraceCommands), "there is no command %s", Quote(command.text))
	}
	if exclude {
		test = "not (" + test + ")"
	}
	d.parts = append(d.parts, test)
	return err
}

func texts(words []word) (list []string) {
	for _, w := range words {
		list = append(list, w.text)
	}
	return list
}

// time reads times as parsedate took them: those that are not ambiguous.
func (d *dfstrace) time(command string, list []word) (string, error) {
	text := strings.Join(texts(list), " ")
	rel := map[string]string{"start": ">=", "end": "<="}[command]
	for _, layout := range []string{
		"Jan 2 15:04:05 2006", "Mon Jan 2 15:04:05 2006", "Jan 2 2006 15:04:05", "2 Jan 2006 15:04:05", "Jan 2 15:04 2006", "Jan 2 2006", "2 Jan 2006",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			if at := t.Format(time.RFC3339); inTime(at) {
				return "time " + rel + " " + Quote(at), nil
			}
		}
	}
	if inTime(text) {
		return "time " + rel + " " + Quote(text), nil
	}
	return "", d.fail(word{pos: list[0].pos, end: list[len(list)-1].end}, "",
		"%s is no time such as Feb 25 14:00:00 1991", Quote(text))
}

// inTime reports whether a text is a time that filters can hold.
func inTime(text string) bool {
	_, ok := wallTime(text)
	return ok
}

func (d *dfstrace) numbers(field string, list []word) (string, error) {
	for _, w := range list {
		if strings.Trim(w.text, "0123456789") != "" || len(w.text) > 10 {
			return "", d.fail(w, "", "%s is no number", Quote(w.text))
		}
	}
	return field + " in {" + strings.Join(texts(list), ", ") + "}", nil
}

func (d *dfstrace) errors(list []word) (string, error) {
	for _, w := range list {
		if _, ok := event.ErrnoByName(w.text); !ok && (strings.Trim(w.text, "0123456789") != "" || len(w.text) > 4) {
			return "", d.fail(w, suggest(w.text, errnoNames()), "there is no error %s", Quote(w.text))
		}
	}
	return "errno in {" + strings.Join(texts(list), ", ") + "}", nil
}

// dfstraceOps are the calls that DFSTrace's opcodes are today.
var dfstraceOps = map[string]string{
	"open": "open openat openat2", "close": "close", "seek": "lseek", "creat": "creat", "chdir": "chdir fchdir", "chroot": "chroot",
	"read": "read pread64 readv preadv preadv2", "write": "write pwrite64 writev pwritev pwritev2",
	"stat": "stat fstat newfstatat statx", "lstat": "lstat newfstatat statx", "access": "access faccessat faccessat2", "readlink": "readlink readlinkat",
	"mkdir": "mkdir mkdirat", "rmdir": "rmdir unlinkat", "unlink": "unlink unlinkat", "rename": "rename renameat renameat2", "link": "link linkat",
	"symlink": "symlink symlinkat", "mknod": "mknod mknodat", "chmod": "chmod fchmod fchmodat fchmodat2", "chown": "chown fchown lchown fchownat",
	"utimes": "utime utimes futimesat utimensat", "truncate": "truncate ftruncate", "execve": "execve execveat", "exec": "execve execveat",
	"fork": "fork vfork clone clone3", "exit": "exit exit_group", "mount": "mount", "unmount": "umount2", "settimeofday": "settimeofday clock_settime",
	"getdents": "getdents getdents64", "ioctl": "ioctl", "fsync": "fsync fdatasync",
}

func (d *dfstrace) opcodes(list []word) (string, error) {
	var names []string
	for _, w := range list {
		switch ops, ok := dfstraceOps[strings.ToLower(w.text)]; {
		case ok:
			names = append(names, strings.Fields(ops)...)
		case event.ByName(w.text) != event.OpUnknown:
			names = append(names, w.text)
		default:
			var known []string
			for n := range dfstraceOps {
				known = append(known, n)
			}
			slices.Sort(known)
			return "", d.fail(w, suggest(w.text, known), "tapes have nothing like the opcode %s", Quote(w.text))
		}
	}
	return "op in {" + strings.Join(names, ", ") + "}", nil
}
