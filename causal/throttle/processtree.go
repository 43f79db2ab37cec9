// SPDX-License-Identifier: Apache-2.0

package throttle

import "strconv"

// processTree gives the threads of a run names that are the same in the next one, as long as
// processes are made in the same order: the command is 1, the second child that it makes
// 1.2, and the third thread that that one makes 1.2/3.
type processTree map[uint32]*processNode // by thread

// processNode is a thread and its process.
type processNode struct {
	name string
	proc *process
}

type process struct {
	name              string
	children, threads int
}

// first names the command.
func (f processTree) first(tid uint32) *processNode {
	k := &processNode{"1", &process{name: "1"}}
	f[tid] = k
	return k
}

// onFork names a new thread; sibling: it belongs to the process of its parent.
func (f processTree) onFork(parent, child uint32, sibling bool) *processNode {
	from := f[parent]
	if from == nil {
		from = f.first(parent)
	}
	p := from.proc
	k := &processNode{}
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
