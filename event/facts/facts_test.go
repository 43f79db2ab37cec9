// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

func some() *Process {
	caps := uint64(0x1ff)
	p := &Process{Exe: "/usr/bin/a b", Cwd: "/srv\n=x", Root: "/jail", Cgroup: "/system.slice/ssh.service",
		UID: &IDs{1, 2, 3, 4}, GID: &IDs{5, 6, 7, 1<<32 - 1}, Groups: []uint32{8, 9}, Caps: &caps}
	for i := range p.Namespaces {
		p.Namespaces[i] = uint64(4026531835 + i)
	}
	return p
}

// TestText: facts are what they were when their text is read.
func TestText(t *testing.T) {
	for _, want := range []*Process{{}, some(), {Groups: []uint32{}}, {Cgroup: "/"}} {
		if got := Parse(want.Append(nil)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %+v; want %+v", want.Append(nil), got, want)
		}
	}
}

// TestDescribe: an event says what was put into it.
func TestDescribe(t *testing.T) {
	var ev event.Event
	Describe(&ev, some(), []byte("A\x00B=1\x00"), []byte("a\x00\x00"))
	if got := Of(&ev); !reflect.DeepEqual(got, some()) {
		t.Errorf("facts %+v; want %+v", got, some())
	}
	if env, known := Env(&ev); !known || strings.Join(env, ",") != "A,B=1" {
		t.Errorf("environment %q, %v; want A and B=1", env, known)
	}
	if args := Args(&ev); len(args) != 2 || args[0] != "a" || args[1] != "" {
		t.Errorf("arguments %q; want a and an empty one", args)
	}
	Describe(&ev, &Process{}, nil, nil)
	if env, known := Env(&ev); known {
		t.Errorf("an environment that was not recorded is %q; want unknown", env)
	}
	if s := Of(&ev).Summary(); s.UIDs != nil || s.Caps != "" || s.Namespaces != nil || s.Variables != nil {
		t.Errorf("of nothing, %+v was made; want nothing", s)
	}
}

// TestFromKernel reads what the eBPF programs write, and refuses what is cut off.
func TestFromKernel(t *testing.T) {
	le := binary.LittleEndian
	var b []byte
	for i := range uint32(8) {
		b = le.AppendUint32(b, i)
	}
	b = le.AppendUint64(b, 0x3f)
	for i := range uint32(len(Namespaces)) {
		b = le.AppendUint32(b, 100+i)
	}
	b = le.AppendUint32(b, 2)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, 30), 40), 0)
	p := FromKernel(b, []byte("b.service\x00a.slice\x00"))
	if p == nil || *p.UID != (IDs{0, 1, 2, 3}) || *p.GID != (IDs{4, 5, 6, 7}) || *p.Caps != 0x3f ||
		p.Namespaces[6] != 106 || !reflect.DeepEqual(p.Groups, []uint32{30, 40}) ||
		p.Cgroup != "/a.slice/b.service" {
		t.Errorf("got %+v", p)
	}
	if p := FromKernel(b, []byte{}); p.Cgroup != "/" {
		t.Errorf("the root's path is %q; want /", p.Cgroup)
	}
	le.PutUint32(b[kernelGroups:], 1000)
	if p := FromKernel(b, nil); p.Groups != nil || p.Cgroup != "" {
		t.Errorf("groups %v, control group %q of what is cut off; want none", p.Groups, p.Cgroup)
	}
	if p := FromKernel(b[:kernelList-1], nil); p != nil {
		t.Errorf("of too few bytes, %+v was made; want nothing", p)
	}
}

// TestEnvNames leaves no value.
func TestEnvNames(t *testing.T) {
	got := string(EnvNames([]byte("A=1\x00B=x=y\x00junk\x00=z\x00C=\x00cut=of")))
	if want := "A\x00B\x00C\x00cut\x00"; got != want {
		t.Errorf("names %q; want %q", got, want)
	}
}

// TestNames finds units and containers in the paths of control groups.
func TestNames(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	const pod = "12345678-1234-1234-1234-123456789abc"
	for _, tt := range []struct{ cgroup, unit, container, pod string }{
		{"", "", "", ""},
		{"/", "", "", ""},
		{"/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "", ""},
		{"/system.slice/ssh.service", "ssh.service", "", ""},
		{"/system.slice/x.service/y.service", "x.service", "", ""},
		{"/system.slice/_cgroup.service", "cgroup.service", "", ""},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/vim.service", "vim.service", "", ""},
		{"/user.slice/user-1000.slice/user@1000.service", "user@1000.service", "", ""},
		{"/system.slice/docker-" + id + ".scope", "docker-" + id + ".scope", id, ""},
		{"/docker/" + id, "", id, ""},
		{"/machine.slice/libpod-" + id + ".scope/container", "libpod-" + id + ".scope", id, ""},
		{"/machine.slice/libpod-conmon-" + id + ".scope", "libpod-conmon-" + id + ".scope", "", ""},
		{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(pod, "-", "_") +
			".slice/cri-containerd-" + id + ".scope", "cri-containerd-" + id + ".scope", id, pod},
		{"/kubepods/besteffort/pod" + pod + "/" + id, "", id, pod},
		{"/system.slice/containerd.service/kubepods-pod" + pod + ".slice:cri-containerd:" + id,
			"containerd.service", id, ""},
		{"/lxc.payload.web/init.scope", "init.scope", "web", ""},
		{"/machine.slice/machine-web.scope/payload", "machine-web.scope", "web", ""},
		{"/docker/" + id[1:], "", "", ""},
	} {
		unit, container, pod := Unit(tt.cgroup), Container(tt.cgroup), Pod(tt.cgroup)
		if unit != tt.unit || container != tt.container || pod != tt.pod {
			t.Errorf("%s: unit %q, container %q, pod %q; want %q, %q, %q", tt.cgroup, unit, container, pod, tt.unit,
				tt.container, tt.pod)
		}
	}
}

// TestTracker: children have the facts of their parents until they have their own.
func TestTracker(t *testing.T) {
	var tr Tracker
	say := func(pid uint32, exe string) {
		ev := event.Event{PID: pid, TID: pid}
		Describe(&ev, &Process{Exe: exe}, nil, nil)
		tr.See(&ev)
	}
	fork := func(pid, child uint32) {
		tr.See(&event.Event{Kind: event.Forked, PID: pid, TID: pid, Child: child, Ret: int64(child)})
	}
	exe := func(pid uint32) string {
		if d := tr.Of(0, pid); d != nil {
			return d.Exe
		}
		return ""
	}
	say(1, "/a")
	fork(1, 2)
	fork(1, 3)
	say(3, "/b")
	fork(9, 3) // the number is used again, by one of whom nothing is known
	for pid, want := range map[uint32]string{1: "/a", 2: "/a", 3: "", 4: ""} {
		if got := exe(pid); got != want {
			t.Errorf("process %d runs %q; want %q", pid, got, want)
		}
	}
}

// FuzzParse: whatever the text, its facts have a text that says the same.
func FuzzParse(f *testing.F) {
	f.Add(some().Append(nil))
	f.Add([]byte("uid=1 2 3\x00groups=\x00caps=zz\x00ns:pid=-1\x00=\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := Parse(text)
		again := p.Append(nil)
		if q := Parse(again); !bytes.Equal(q.Append(nil), again) {
			t.Errorf("%q was read as %q, and that as %q", text, again, q.Append(nil))
		}
		Unit(p.Cgroup)
		Container(p.Cgroup)
		Pod(p.Cgroup)
		p.Summary()
	})
}

// TestCgroupIn reads texts of /proc/PID/cgroup: of version 2 alone, of both versions, and of version 1.
func TestCgroupIn(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct{ name, text, cgroup, unit, container string }{
		{"version 2", "0::/system.slice/ssh.service\n", "/system.slice/ssh.service", "ssh.service", ""},
		{"version 2, in no group", "0::/\n", "/", "", ""},
		{"removed", "0::/user.slice/x.scope (deleted)\n", "/user.slice/x.scope", "x.scope", ""},
		{"both, systemd in both", "5:cpu,cpuacct:/system.slice/cron.service\n" +
			"1:name=systemd:/system.slice/cron.service\n0::/system.slice/cron.service\n",
			"/system.slice/cron.service", "cron.service", ""},
		{"both, the container in version 1 alone", "12:memory:/docker/" + id + "\n1:name=systemd:/docker/" + id +
			"\n0::/\n", "/docker/" + id, "", id},
		{"both, a container of Podman", "3:pids:/machine.slice/libpod-" + id + ".scope\n0::/\n",
			"/machine.slice/libpod-" + id + ".scope", "libpod-" + id + ".scope", id},
		{"version 1, systemd last", "9:devices:/user.slice\n4:cpu,cpuacct:/\n1:name=systemd:/user.slice/user-7.slice/" +
			"session-3.scope\n", "/user.slice/user-7.slice/session-3.scope", "session-3.scope", ""},
		{"version 1 without systemd", "2:freezer:/\n3:cpu:/lxc.payload.web\n", "/lxc.payload.web", "", "web"},
		{"version 1, no container", "4:memory:/jobs/7\n1:name=systemd:/\n0::/\n", "/", "", ""},
		{"a colon in the name", "0::/a:b/c.service\n", "/a:b/c.service", "c.service", ""},
		{"no line", "", "", "", ""},
		{"damaged", "0:\n::\nx\n1:name=systemd:relative\n0::", "", "", ""},
	} {
		got := CgroupIn([]byte(c.text))
		if got != c.cgroup || Unit(got) != c.unit || Container(got) != c.container {
			t.Errorf("%s: %q, unit %q, container %q, want %q, %q, %q", c.name, got, Unit(got), Container(got), c.cgroup,
				c.unit, c.container)
		}
	}
}
