// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Kernels without private stacks (before Linux 6.13; on arm64 later) refuse programs whose
// frames are larger than that together, on any way through the calls, taken or not.
const (
	stackBytes = 512
	maxFrames  = 8
)

// TestStack computes what the verifier does (check_max_stack_depth), which kernels with
// private stacks do not.
func TestStack(t *testing.T) {
	for _, object := range []string{"iotape_x86_bpfel.o", "iotape_arm64_bpfel.o", "stack_x86_bpfel.o",
		"stack_arm64_bpfel.o"} {
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		for name, prog := range spec.Programs {
			d := framesOf(prog).deepest(name)
			if d.bytes > stackBytes || len(d.way) > maxFrames {
				t.Errorf("%s: %s: %d bytes of stack in %d frames; want at most %d in %d: %v", object, name, d.bytes,
					len(d.way), stackBytes, maxFrames, d.way)
			}
		}
	}
}

// frames is what the functions of a program take of the stack, and whom they call.
type frames struct {
	size  map[string]int
	calls map[string][]string
	known map[string]deep
}

// deep is the way through the calls of a function that takes most of the stack.
type deep struct {
	bytes int
	way   []string
}

func framesOf(prog *ebpf.ProgramSpec) *frames {
	f := &frames{map[string]int{}, map[string][]string{}, map[string]deep{}}
	functions := map[string]bool{prog.Instructions.Name(): true}
	for i := range prog.Instructions {
		if ins := &prog.Instructions[i]; ins.IsFunctionReference() {
			functions[ins.Reference()] = true
		}
	}
	var name string
	var pointers [11]bool // registers that hold the frame's address
	for i := range prog.Instructions {
		ins := &prog.Instructions[i]
		if s := ins.Symbol(); functions[s] {
			name, pointers = s, [11]bool{}
		}
		if ins.IsFunctionReference() {
			f.calls[name] = append(f.calls[name], ins.Reference())
			continue
		}
		f.size[name] = max(f.size[name], reach(ins, &pointers), 1)
	}
	return f
}

// reach returns how far down its frame an instruction reaches.
func reach(ins *asm.Instruction, pointers *[11]bool) int {
	op := ins.OpCode
	switch class := op.Class(); {
	case class == asm.LdXClass && ins.Src == asm.RFP,
		(class == asm.StClass || class == asm.StXClass) && ins.Dst == asm.RFP:
		return -int(ins.Offset)
	case class.IsALU() && op.ALUOp() == asm.Mov && op.Source() == asm.RegSource:
		pointers[ins.Dst] = ins.Src == asm.RFP
	case class.IsALU() && op.ALUOp() == asm.Add && op.Source() == asm.ImmSource && pointers[ins.Dst]:
		pointers[ins.Dst] = false
		return -int(ins.Constant)
	}
	return 0
}

func (f *frames) deepest(name string) deep {
	if d, ok := f.known[name]; ok {
		return d
	}
	own := (f.size[name] + 31) &^ 31 // as kernels before 6.8 round, too
	var most deep
	for _, callee := range f.calls[name] {
		if d := f.deepest(callee); d.bytes > most.bytes {
			most = d
		}
	}
	d := deep{own + most.bytes, append([]string{fmt.Sprintf("%s:%d", name, own)}, most.way...)}
	f.known[name] = d
	return d
}
