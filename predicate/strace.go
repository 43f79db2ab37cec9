// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
)

// stracePrefix marks a filter in strace's words.
const stracePrefix = "strace:"

// Strace translates options of strace(1) that pick calls into a filter: -e trace=SET (or
// the set alone), -e status=SET, -P PATH, -z, -Z, -p PID, -f, and their long forms. Sets
// have names of calls, /regexp, ?name, %class and ! in front of them all. Descriptors
// that -P follows are those that were opened by the name: that is what path means here.
func Strace(options string) (string, error) {
	words, err := splitWords(options)
	if err != nil {
		return "", err
	}
	s := strace{source: options}
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, arg, has := w.text, "", false
		switch {
		case strings.HasPrefix(name, "--"):
			name, arg, has = strings.Cut(name, "=")
		case len(name) > 2 && name[0] == '-' && strings.IndexByte("ePp", name[1]) >= 0:
			name, arg, has = name[:2], name[2:], true
		case !strings.HasPrefix(name, "-"):
			name, arg, has = "-e", name, true
		}
		if slices.Contains([]string{"-e", "-P", "-p", "--trace", "--trace-path", "--status", "--attach"}, name) &&
			!has {
			if i++; i == len(words) {
				return "", s.fail(w, "", "%s needs a value", name)
			}
			arg = words[i].text
		}
		if err := s.option(w, name, arg); err != nil {
			return "", err
		}
	}
	return s.filter(), nil
}

// strace is one translation.
type strace struct {
	source string
	ops    map[string]bool // nil: all
	status []string
	paths  []string
	pids   []string
}

type word struct {
	text     string
	pos, end int
}

func (s *strace) fail(w word, hint, format string, args ...any) error {
	return &Error{Source: s.source, Pos: w.pos, End: w.end, Message: "strace: " + fmt.Sprintf(format, args...),
		Hint: hint}
}

// splitWords splits options like a shell does, but for its expansions.
func splitWords(text string) ([]word, error) {
	var words []word
	for i := 0; i < len(text); {
		if strings.IndexByte(" \t\r\n", text[i]) >= 0 {
			i++
			continue
		}
		w := word{pos: i}
		var b []byte
		for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) < 0 {
			if c := text[i]; c == '"' || c == '\'' {
				end := strings.IndexByte(text[i+1:], c)
				if end < 0 {
					return nil, &Error{Source: text, Pos: i, End: i + 1, Message: "strace: this string is not closed"}
				}
				b = append(b, text[i+1:i+1+end]...)
				i += end + 2
				continue
			}
			b = append(b, text[i])
			i++
		}
		w.text, w.end = string(b), i
		words = append(words, w)
	}
	return words, nil
}

func (s *strace) option(w word, name, arg string) error {
	switch name {
	case "-f", "-ff", "--follow-forks":
	case "-z", "--successful-only":
		s.status = append(s.status, "successful")
	case "-Z", "--failed-only":
		s.status = append(s.status, "failed")
	case "-P", "--trace-path":
		s.paths = append(s.paths, Quote(arg))
	case "-p", "--attach":
		for pid := range strings.FieldsFuncSeq(arg, func(r rune) bool { return r == ',' || r == ' ' }) {
			if strings.Trim(pid, "0123456789") != "" {
				return s.fail(w, "", "%s is no process", Quote(pid))
			}
			s.pids = append(s.pids, pid)
		}
	case "--status":
		return s.statuses(w, arg)
	case "--trace":
		return s.trace(w, arg)
	case "-e":
		qualifier, set, ok := strings.Cut(arg, "=")
		if !ok {
			qualifier, set = "trace", arg
		}
		switch qualifier {
		case "trace", "t":
			return s.trace(w, set)
		case "status":
			return s.statuses(w, set)
		}
		return s.fail(w, "", "-e %s is not about which calls are shown; trace and status are", qualifier)
	default:
		return s.fail(w, "", "%s is not an option that picks calls; -e trace=, -e status=, -P, -p, -z and -Z are", name)
	}
	return nil
}

func (s *strace) statuses(w word, set string) error {
	known := []string{"successful", "failed", "unfinished", "unavailable", "detached", "all", "none"}
	for name := range strings.SplitSeq(set, ",") {
		if !slices.Contains(known, name) {
			return s.fail(w, suggest(name, known), "there is no status %s", Quote(name))
		}
		s.status = append(s.status, name)
	}
	return nil
}

// trace reads a set of calls.
func (s *strace) trace(w word, set string) error {
	inverted := strings.HasPrefix(set, "!")
	if s.ops == nil {
		s.ops = map[string]bool{}
	}
	picked := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimPrefix(set, "!"), ",") {
		name = strings.TrimPrefix(name, "?")
		if base, _, ok := strings.Cut(name, "@"); ok {
			name = base
		}
		fits, err := straceSet(name)
		if err != nil {
			hint := suggest(name, straceNames(name))
			return s.fail(w, hint, "%s", err)
		}
		for _, spec := range event.Specs() {
			if spec.Op != event.OpUnknown && spec.Op.Like() == spec.Op && !spec.NoCall && fits(&spec) {
				picked[spec.Name] = true
			}
		}
	}
	for _, spec := range event.Specs() {
		if spec.Op != event.OpUnknown && spec.Op.Like() == spec.Op && !spec.NoCall && picked[spec.Name] != inverted {
			s.ops[spec.Name] = true
		}
	}
	return nil
}

func straceNames(name string) []string {
	var names []string
	if strings.HasPrefix(name, "%") {
		for n := range straceClasses {
			names = append(names, "%"+n)
		}
		slices.Sort(names)
		return names
	}
	for _, spec := range event.Specs() {
		names = append(names, spec.Name)
	}
	return names
}

// straceSet returns what an element of a set stands for.
func straceSet(name string) (func(*event.Spec) bool, error) {
	switch {
	case name == "all":
		return func(*event.Spec) bool { return true }, nil
	case name == "none" || name == "":
		return func(*event.Spec) bool { return false }, nil
	case strings.HasPrefix(name, "/"):
		if len(name) > maxRegexp {
			return nil, fmt.Errorf("a regular expression has at most %d bytes", maxRegexp)
		}
		re, err := regexp.Compile(name[1:])
		if err != nil {
			return nil, err
		}
		return func(s *event.Spec) bool { return re.MatchString(s.Name) }, nil
	case strings.HasPrefix(name, "%"):
		if fits, ok := straceClasses[name[1:]]; ok {
			return fits, nil
		}
		return nil, fmt.Errorf("there is no class %s", Quote(name))
	}
	if fits, ok := straceClasses[name]; ok &&
		slices.Contains([]string{"file", "desc", "process", "network", "signal", "ipc", "memory"}, name) {
		return fits, nil // as strace took them before 4.17
	}
	if event.ByName(name) == event.OpUnknown {
		return nil, fmt.Errorf("there is no call %s", Quote(name))
	}
	return func(s *event.Spec) bool { return s.Name == name }, nil
}

// named is a class whose calls have names.
func named(names string) func(*event.Spec) bool {
	set := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		set[n] = true
	}
	return func(s *event.Spec) bool { return set[s.Name] }
}

func takes(kinds ...event.Kind) func(*event.Spec) bool {
	return func(s *event.Spec) bool {
		return slices.ContainsFunc(s.Args, func(a event.Arg) bool { return slices.Contains(kinds, a.Kind) }) ||
			slices.Contains(kinds, s.Result) && s.Result == event.KindFD
	}
}

// straceClasses are the classes of strace(1), "-e trace=": %file are the calls that take
// a file name, %desc those that have to do with descriptors.
var straceClasses = map[string]func(*event.Spec) bool{
	"file":    takes(event.KindPath),
	"desc":    takes(event.KindFD, event.KindDirFD),
	"process": named("fork vfork clone clone3 execve execveat exit exit_group wait4 waitid kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal"),
	"network": network, "net": network,
	"signal":  named("rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend rt_tgsigqueueinfo sigaltstack kill tkill tgkill pause signalfd signalfd4 pidfd_send_signal restart_syscall"),
	"ipc":     named("msgget msgsnd msgrcv msgctl semget semop semctl semtimedop shmget shmat shmdt shmctl"),
	"memory":  func(s *event.Spec) bool { return s.Class == event.Memory },
	"stat":    named("stat"),
	"lstat":   named("lstat"),
	"fstat":   named("fstat newfstatat statx"),
	"%stat":   named("stat lstat fstat newfstatat statx"),
	"statfs":  named("statfs"),
	"fstatfs": named("fstatfs"),
	"%statfs": named("statfs fstatfs ustat"),
	"clock":   named("clock_settime clock_gettime clock_getres clock_adjtime adjtimex gettimeofday settimeofday time"),
	"creds":   named("getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capget capset prctl"),
	"pure":    named("getpid getppid gettid getuid geteuid getgid getegid getpgrp getpgid getsid getresuid getresgid getgroups"),
}

func network(s *event.Spec) bool {
	return s.Class == event.Socket && !slices.Contains([]string{"pipe", "pipe2"}, s.Name)
}

// filter writes what was read as a filter.
func (s *strace) filter() string {
	parts := []string{"kind = call"}
	if s.ops != nil {
		var names []string
		for _, spec := range event.Specs() {
			if s.ops[spec.Name] {
				names = append(names, spec.Name)
			}
		}
		if len(names) == 0 {
			parts = append(parts, "false")
		} else {
			parts = append(parts, "op in {"+strings.Join(names, ", ")+"}")
		}
	}
	if len(s.paths) > 0 {
		parts = append(parts, "path in {"+strings.Join(s.paths, ", ")+"}")
	}
	if len(s.pids) > 0 {
		var kin []string
		for _, pid := range s.pids {
			kin = append(kin, "descendant of "+pid)
		}
		parts = append(parts, "("+strings.Join(kin, " or ")+")")
	}
	if len(s.status) > 0 {
		var any []string
		for _, status := range s.status {
			any = append(any, map[string]string{
				"successful": "errno = 0", "failed": "failed", "unfinished": "interrupted", "all": "true",
			}[status])
		}
		any = slices.DeleteFunc(any, func(t string) bool { return t == "" })
		if len(any) == 0 {
			any = []string{"false"}
		}
		parts = append(parts, "("+strings.Join(any, " or ")+")")
	}
	return strings.Join(parts, " and ")
}
