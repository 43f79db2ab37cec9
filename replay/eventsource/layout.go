// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/trace"
)

// Layout says where a replay puts what was recorded, by the tape's hosts, in their order.
// Hosts of one boot are one machine with one tree of files. If there are several machines,
// each has a directory of its own that stands for its root; but what is below a directory
// that all share is where it is, once for all.
//
// No package above this one knows of hosts: names, threads and files get identities here
// that are unique among all hosts.
type Layout []Host

// Host is where the files of one of a tape's hosts are.
type Host struct {
	Name    string  // as recorded
	Machine int     // the first one is 0
	Dir     string  // of the machine's own files, below the target's root
	Renames Renames // of its names
	Shared  []Device
	Owners  Owners
	Begun   int64 // ns; when its recording began, and its last event returned: of several hosts
	Ended   int64
}

// Device is a device that other machines have mounted, too.
type Device struct {
	Dev  uint64 // as recorded
	Tree uint64 // the same on all machines
}

// NewLayout returns the layout of a tape: what was done below some directories is put below
// others, and what is below shared, absolute names, is the same for all machines.
func NewLayout(t *trace.Tape, renames Renames, shared []string) (Layout, error) {
	shared = slices.Clone(shared)
	for i, dir := range shared {
		if !path.IsAbs(dir) {
			return nil, fmt.Errorf("%q cannot be shared: it is no absolute name", dir)
		}
		shared[i] = path.Clean(dir)
	}
	// Of two of which one is in the other, the inner one comes first.
	slices.SortFunc(shared, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	shared = slices.Compact(shared)
	if len(shared) > maxTrees {
		return nil, fmt.Errorf("%d shared directories: %d at most", len(shared), maxTrees)
	}
	hosts := t.Manifest().Hosts
	l := make(Layout, max(len(hosts), 1))
	for i := range hosts {
		l[i].Name, l[i].Begun = hosts[i].Host, hosts[i].ClockNS
	}
	first := l.machines(hosts)
	if len(first) <= 1 {
		for i := range l {
			l[i].Dir, l[i].Renames = "/", renames
		}
	} else if err := l.separate(hosts, first, renames, shared); err != nil {
		return nil, err
	}
	if len(l) == 1 {
		return l, nil
	}
	return l, l.survey(t, shared)
}

// SetOwners says which users and groups the replay has.
func (l Layout) SetOwners(o Owners) {
	for i := range l {
		l[i].Owners = o
	}
}

// Host returns one of the hosts.
func (l Layout) Host(i uint32) *Host {
	if uint64(i) < uint64(len(l)) {
		return &l[i]
	}
	return &l[0] // only a hostile tape names another host
}

// Machines returns how many machines there are.
func (l Layout) Machines() int {
	n := 0
	for i := range l {
		n = max(n, l[i].Machine+1)
	}
	return n
}

// machines finds out which hosts are one machine, and returns the first host of each.
func (l Layout) machines(hosts []trace.Host) (first []int) {
	for i := range hosts {
		boot := hosts[i].BootID
		same := slices.IndexFunc(first, func(k int) bool { return boot != "" && hosts[k].BootID == boot })
		if same < 0 {
			same = len(first)
			first = append(first, i)
		}
		l[i].Machine = same
	}
	return first
}

// separate gives each machine a directory of its own.
func (l Layout) separate(hosts []trace.Host, first []int, renames Renames, shared []string) error {
	if len(first) > maxMachines {
		return fmt.Errorf("a tape of %d machines: at most %d are replayed at a time", len(first), maxMachines)
	}
	for i := range hosts {
		if hosts[i].Arch != hosts[0].Arch {
			return errors.New("the tape's hosts are of several architectures: iotape slice --host makes a tape of one")
		}
	}
	var common, own Renames // of all machines, and within the directory of each
	for _, r := range renames {
		if slices.ContainsFunc(shared, func(dir string) bool { return below(r.Old, dir) }) {
			common = append(common, r)
		} else {
			own = append(own, r)
		}
	}
	for _, dir := range shared {
		common = append(common, Rename{dir, renames.Path(dir)})
	}
	taken := map[string]bool{"proc": true, "sys": true, "dev": true} // by what is at the top of the target
	for _, r := range common {
		top, _, _ := strings.Cut(strings.TrimPrefix(r.New, "/"), "/")
		taken[top] = true
	}
	machines := make([]Host, len(first))
	for i, k := range first {
		name := dirName(hosts[k].Host)
		for n, base := 2, name; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[name] = true
		m := &machines[i]
		m.Dir, m.Renames = "/"+name, slices.Clone(common)
		for _, r := range own {
			m.Renames = append(m.Renames, Rename{r.Old, path.Join(m.Dir, r.New)})
		}
		m.Renames = append(m.Renames, Rename{"/", m.Dir})
	}
	for i := range l {
		m := &machines[l[i].Machine]
		l[i].Dir, l[i].Renames = m.Dir, m.Renames
	}
	return nil
}

// dirName makes the name of a directory of a host's, which may be anything.
func dirName(host string) string {
	const most = 60
	name := strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, host)
	if name = name[:min(len(name), most)]; name == "" || name == "." || name == ".." {
		return "host"
	}
	return name
}

// below reports whether a name is a directory or lies in it; both are absolute and clean.
func below(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}

// survey finds when each host ended, and which of its devices holds each shared directory:
// the device that most files below the directory are on. Two directories on one device are
// one tree.
func (l Layout) survey(t *trace.Tape, shared []string) error {
	counts := make([]map[mounted]int, len(shared))
	for i := range counts {
		counts[i] = map[mounted]int{}
	}
	arch, _ := event.ParseArch(t.Host(0).Arch)
	for ev, err := range t.Events() {
		if err == nil {
			err = arguments(ev)
		}
		if err != nil {
			return err
		}
		h := l.Host(ev.Host)
		h.Ended = max(h.Ended, ev.Exit)
		for name, dev := range devicesOf(ev, arch) {
			if i := slices.IndexFunc(shared, func(dir string) bool { return below(name, dir) }); i >= 0 {
				counts[i][mounted{h.Machine, dev}]++
			}
		}
	}
	trees := sharedTrees(counts)
	for i := range l {
		for p, tree := range trees {
			if p.machine == l[i].Machine {
				l[i].Shared = append(l[i].Shared, Device{p.dev, maxMachines<<machineShift | uint64(tree)})
			}
		}
	}
	return nil
}

// mounted is a device of a machine.
type mounted struct {
	machine int
	dev     uint64
}

// devicesOf yields the absolute names in an event of which it says the device.
func devicesOf(ev *event.Event, arch event.Arch) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for i := range ev.Files {
			if f := &ev.Files[i]; f.Known && strings.HasPrefix(f.Path, "/") && !yield(f.Path, f.Dev) {
				return
			}
		}
		if len(ev.Paths) == 0 || ev.Kind != event.Call || !ev.OK() {
			return
		}
		if st, ok := effect.DecodeStat(ev, arch); ok && ev.Paths[0].Abs != "" {
			yield(ev.Paths[0].Abs, st.Dev)
		}
	}
}

// sharedTrees returns the devices that hold shared directories, each with the number of its
// tree. counts has, for each directory, how often names below it were on a device.
func sharedTrees(counts []map[mounted]int) map[mounted]int {
	trees := map[mounted]int{}
	for i, count := range counts {
		most := map[int]mounted{} // by machine
		for p, n := range count {
			if m, ok := most[p.machine]; !ok || n > count[m] || n == count[m] && p.dev < m.dev {
				most[p.machine] = p
			}
		}
		tree := i
		for _, p := range most {
			if other, ok := trees[p]; ok {
				tree = min(tree, other)
			}
		}
		for _, p := range most {
			trees[p] = tree
		}
	}
	return trees
}

// Numbers of devices have the machine above the 32 bits that the kernel uses, and as many
// as statx has room for; what is shared has those of a machine beyond the last.
const (
	machineShift = 32
	maxMachines  = 1<<12 - 1
	maxTrees     = 1 << 8
)

// Device returns the number by which a device of a host is known to the replay.
func (h *Host) Device(dev uint64) uint64 {
	for _, d := range h.Shared {
		if d.Dev == dev {
			return d.Tree
		}
	}
	if h.Machine == 0 {
		return dev
	}
	return dev&(1<<machineShift-1) | uint64(h.Machine)<<machineShift
}

// Own reports whether a name of the replay is in the tree of the host's machine alone.
func (h *Host) Own(name string) bool { return below(name, h.Dir) }

// devices replaces the device numbers in an event of a host by those of the replay.
func (h *Host) devices(ev *event.Event) {
	if h.Machine == 0 && len(h.Shared) == 0 {
		return
	}
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Known {
			f.Dev = h.Device(f.Dev)
		}
	}
	if ev.Kind == event.Call && ev.OK() {
		effect.MapDevice(ev, h.Device)
	}
}

// Numbers gives the threads and processes of several hosts numbers that are unique among
// all hosts. Two that get the same events in the same order give the same numbers.
type Numbers map[numbered]uint32

type numbered struct{ host, id uint32 }

// Numbers returns new Numbers, nil if there is one host.
func (l Layout) Numbers() Numbers {
	if len(l) <= 1 {
		return nil
	}
	return Numbers{}
}

// Event replaces the numbers of the processes and threads in an event.
func (n Numbers) Event(ev *event.Event) {
	if n == nil {
		return
	}
	of := func(id uint32) uint32 {
		k := numbered{ev.Host, id}
		number, ok := n[k]
		if !ok {
			number = uint32(len(n) + 1)
			n[k] = number
		}
		return number
	}
	for i := range ev.Paths { // which knows the process by its number
		if fd, rest, ok := posix.DescriptorPath(ev.Paths[i].Raw, ev.PID); ok &&
			strings.HasPrefix(ev.Paths[i].Raw, "/proc/") {
			ev.Paths[i].Raw = strings.TrimSuffix(fmt.Sprintf("/proc/self/fd/%d/%s", fd, rest), "/")
		}
	}
	ev.PID, ev.TID = of(ev.PID), of(ev.TID)
	if ev.Kind == event.Forked {
		fork := ev.Fork()
		ev.SetFork(event.Fork{PID: of(fork.PID), TID: of(fork.TID), Share: fork.Share})
	}
}
