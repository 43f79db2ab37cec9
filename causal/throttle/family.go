package throttle

import "strconv"

// family gives the threads of a run names that are the same in the next one, as long as
// processes are made in the same order: the command is 1, the second child that it makes
// 1.2, and the third thread that that one makes 1.2/3.
type family map[uint32]*kin // by thread

type kin struct {
	name string
	proc *process
}

type process struct {
	name              string
	children, threads int
}

// first names the command.
func (f family) first(tid uint32) *kin {
	k := &kin{"1", &process{name: "1"}}
	f[tid] = k
	return k
}

// born names a new thread; sibling: it is of its maker's process.
func (f family) born(parent, child uint32, sibling bool) *kin {
	from := f[parent]
	if from == nil {
		from = f.first(parent)
	}
	p := from.proc
	k := &kin{}
	if sibling {
		p.threads++
		k.name, k.proc = p.name+"/"+strconv.Itoa(p.threads), p
	} else {
		p.children++
		k.name = p.name + "." + strconv.Itoa(p.children)
		k.proc = &process{name: k.name}
	}
	f[child] = k
	return k
}
