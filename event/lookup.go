// SPDX-License-Identifier: Apache-2.0

package event

// Lookup returns the row of an operation; the row of OpUnknown when the number
// is not in this version's operation table, which is how a reader meets a newer trace.
func Lookup(op Op) *Spec {
	var s *Spec
	switch {
	case op < numOps:
		return &table[op]
	case op >= firstAIO && int(op-firstAIO) < len(aioTable):
		s = &aioTable[op-firstAIO]
	case op >= firstUring && int(op-firstUring) < len(uringTable):
		s = &uringTable[op-firstUring]
	}
	if s == nil || s.Name == "" {
		return &table[OpUnknown]
	}
	return s
}

func (op Op) String() string { return Lookup(op).Name }

// Known reports whether this version's operation table has the operation.
func (op Op) Known() bool { return op > OpUnknown && Lookup(op).Op == op }

// Specs returns all rows, OpUnknown first, in the order of their numbers. The
// caller must not change them.
func Specs() []Spec { return specs }

var specs = func() []Spec {
	all := append([]Spec(nil), table[:]...)
	for _, requests := range [][]Spec{uringTable[:], aioTable[:]} {
		for _, s := range requests {
			if s.Name != "" {
				all = append(all, s)
			}
		}
	}
	return all
}()

// ByNumber returns the operation of a system-call number, OpUnknown if the
// operation table has none.
func ByNumber(a Arch, nr int) Op {
	if a >= numArch || nr < 0 || nr >= len(byNumber[a]) {
		return OpUnknown
	}
	return byNumber[a][nr]
}

// Number returns the system-call number of an operation, -1 if the
// architecture has no such call.
func Number(a Arch, op Op) int {
	if a >= numArch || op >= numOps {
		return -1
	}
	return int(numbers[op][a])
}

// ByName returns the operation with a kernel name, OpUnknown if there is none.
func ByName(name string) Op {
	for i := range specs {
		if specs[i].Name == name && i > 0 {
			return specs[i].Op
		}
	}
	return OpUnknown
}

// byNumber is derived from numbers: index by architecture and call number.
var byNumber = func() (t [numArch][]Op) {
	for a := range t {
		for op := range numbers {
			nr := int(numbers[op][a])
			for len(t[a]) <= nr {
				t[a] = append(t[a], OpUnknown)
			}
			if nr >= 0 {
				t[a][nr] = Op(op)
			}
		}
	}
	return t
}()

// Objects returns the indices of the arguments whose descriptors a capture
// looks up, in argument order, at most MaxObjs-1 of them. A descriptor result
// is looked up in addition.
func (s *Spec) Objects() []int {
	var idx []int
	for i := range s.Args {
		if s.Args[i].Kind == KindFD && len(idx) < MaxObjs-1 {
			idx = append(idx, i)
		}
	}
	return idx
}

// Memory returns the indices of the arguments that point to memory to read, in
// argument order, at most MaxCaps.
func (s *Spec) Memory() []int {
	var idx []int
	for i := range s.Args {
		if s.Args[i].Kind.IsMemory() {
			idx = append(idx, i)
		}
	}
	return idx
}

// Captured lists the arguments whose memory a capture reads, by name, with "→" where
// the kernel reads it, "←" where it writes it and "↔" where it does both.
func (s *Spec) Captured() []string {
	var names []string
	for _, i := range s.Memory() {
		a := &s.Args[i]
		arrow := "→"
		switch {
		case a.When == AtBoth || s.ValueResultArg > 0 && i == int(s.ValueResultArg)-1 || a.Len == LenCommand:
			arrow = "↔"
		case a.Dir == Out:
			arrow = "←"
		}
		names = append(names, a.Name+" "+arrow)
	}
	if s.NeedsStop {
		names = append(names, s.Args[s.MovedFrom()].Name+" ←") // content, read from the file
	}
	return names
}

// IsCall reports whether the operation is a system call of the table: not a request to
// io_uring or of Linux AIO, and not what happened through a mapping.
func (s *Spec) IsCall() bool {
	return s.Op != OpUnknown && !s.NoCall && !s.Op.IsUring() && !s.Op.IsAIO()
}

// NameArg returns the argument that is the operation's first name and still stands in
// memory when it returns; -1 if there is none.
func (s *Spec) NameArg() int {
	for i := range s.Args {
		if a := &s.Args[i]; a.Kind == KindPath && a.Dir == In && a.When == AtExit {
			return i
		}
	}
	return -1
}
