// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iotape/iotape/record/capture/fusefs"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/tracer/config"
)

// CheckTargets says what the machine makes wrong or odd about a configuration: above all
// that iotape would record itself.
func CheckTargets(cfg *config.Config) error {
	var errs config.Errors
	kinds := map[string]*config.Input{}
	for _, group := range cfg.Groups() {
		in := group[0].Input
		kind := ""
		switch {
		case in.All:
			kind = "all"
		case len(in.Command) > 0:
			kind = "command"
		}
		if other := kinds[kind]; kind == "command" && other != nil {
			errs = append(errs, cfg.Errorf(in.Path(), "a configuration can have one command, and there is another one"))
		}
		kinds[kind] = in
		errs = append(errs, mountsItself(cfg, in)...)
		warnOfItself(cfg, group)
	}
	if all, command := kinds["all"], kinds["command"]; all != nil && command != nil {
		errs = append(errs, cfg.Errorf(all.Path(),
			"all and a command cannot be recorded by one iotape: to the one the command is a part of iotape; run two"))
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// ancestors are iotape and what it descends from.
func ancestors() map[int]bool {
	all := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !all[pid]; {
		all[pid] = true
		b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
		if err != nil {
			break
		}
		_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
		var state string
		if _, err := fmt.Sscan(rest, &state, &pid); err != nil {
			break
		}
	}
	return all
}

// mountsItself says which tapes and files would be written below a directory that is
// mounted: their writing would be recorded, and written, without end.
func mountsItself(cfg *config.Config, in *config.Input) (errs config.Errors) {
	if in.Mount == nil {
		return nil
	}
	for _, t := range cfg.Tracers {
		path, key := t.OutputName(), ".output.tape"
		if t.Output.To != "" {
			key = ".output.to"
			scheme, rest, ok := strings.Cut(path, ":")
			switch {
			case scheme == "file" || scheme == "unix":
				path, _, _ = strings.Cut(rest, "?")
			case ok || path == "-":
				continue
			}
		}
		for _, dir := range []string{in.Mount.Lower, in.Mount.At} {
			if inside, err := fusefs.Within(path, dir); err == nil && inside {
				e := cfg.Errorf(t.Path+key,
					"tracer %q would write to %s, inside %s, and the recording would record itself", t.Name, path, dir)
				e.Hint = "name another place"
				errs = append(errs, e)
				break
			}
		}
	}
	return errs
}

// warnOfItself warns of targets that iotape is a part of, and of listeners that are a part
// of the target.
func warnOfItself(cfg *config.Config, group []*config.TracerSpec) {
	in := group[0].Input
	mine := ancestors()
	for i, pid := range in.PIDs {
		if mine[pid] {
			cfg.Warn(fmt.Sprintf("%s.pid[%d]", in.Path(), i),
				"iotape itself descends from process %d: it and what it starts are left out", pid)
		}
	}
	if in.Cgroup != "" {
		if dir, err := session.FindCgroup(in.Cgroup); err == nil && slices.Contains(cgroupsOf(os.Getpid()), dir) {
			cfg.Warn(in.Path()+".cgroup", "iotape itself runs in control group %s: it and what it starts are left out",
				dir)
		}
	}
	if !in.All && in.Cgroup == "" {
		return
	}
	for _, t := range group {
		if isLocal(t.Output.To) {
			cfg.Warn(t.Path+".output.to",
				"the listener at %s is on this machine, and what it does with the recording is recorded, too; a "+
					"filter such as 'comm != iotape' leaves it out", t.Output.To)
		}
	}
}

// isLocal reports whether a sink is a listener on this machine.
func isLocal(to string) bool {
	if strings.HasPrefix(to, "unix:") {
		return true
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "tcp" && u.Scheme != "tls" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || u.Hostname() == "" || ip != nil && ip.IsLoopback()
}

// cgroupsOf returns the directories of a process's version 2 control group and of those
// above it.
func cgroupsOf(pid int) (dirs []string) {
	root, err := session.CgroupRoot()
	b, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil || err2 != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			for dir := path; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
				dirs = append(dirs, filepath.Join(root, dir))
			}
		}
	}
	return dirs
}
