// SPDX-License-Identifier: Apache-2.0

package event

// Short constructors, so that the table reads like a manual page's synopsis.

func fd(n string) Arg    { return Arg{Name: n, Kind: KindFD} }
func dirfd(n string) Arg { return Arg{Name: n, Kind: KindDirFD} }
func path(n string) Arg  { return Arg{Name: n, Kind: KindPath, Len: LenNUL, LenArg: NoArg} }
func text(n string) Arg  { return Arg{Name: n, Kind: KindText, Len: LenNUL, LenArg: NoArg} }
func num(n string) Arg   { return Arg{Name: n, Kind: KindInt} }
func size(n string) Arg  { return Arg{Name: n, Kind: KindSize} }
func off(n string) Arg   { return Arg{Name: n, Kind: KindOff} }
func hex(n string) Arg   { return Arg{Name: n, Kind: KindHex} }
func ptr(n string) Arg   { return Arg{Name: n, Kind: KindHex, Set: nullName} }
func mode(n string) Arg  { return Arg{Name: n, Kind: KindMode} }
func pid(n string) Arg   { return Arg{Name: n, Kind: KindPID} }
func id(n string) Arg    { return Arg{Name: n, Kind: KindID} }
func dev(n string) Arg   { return Arg{Name: n, Kind: KindDev} }
func sig(n string) Arg   { return Arg{Name: n, Kind: KindSignal} }

func flags(n string, s *Set) Arg { return Arg{Name: n, Kind: KindFlags, Set: s} }
func enum(n string, s *Set) Arg  { return Arg{Name: n, Kind: KindEnum, Set: s} }

// in and out are buffers whose length is the result, at most argument bound.
func in(n string, bound uint8) Arg {
	return Arg{Name: n, Kind: KindBuf, Dir: In, Len: LenRet, LenArg: bound}
}
func out(n string, bound uint8) Arg {
	return Arg{Name: n, Kind: KindBuf, Dir: Out, Len: LenRet, LenArg: bound}
}

// names is a buffer of strings, one after the other.
func names(n string, bound uint8) Arg {
	a := out(n, bound)
	a.Layout = LayoutNames
	return a
}

// inAll is a buffer that the call takes whole or not at all.
func inAll(n string, lenArg uint8) Arg {
	return Arg{Name: n, Kind: KindBuf, Dir: In, Len: LenArg, LenArg: lenArg}
}

// vin and vout are iovec arrays with argument count elements.
func vin(n string, count uint8) Arg {
	return Arg{Name: n, Kind: KindVec, Dir: In, Len: LenVec, LenArg: count}
}
func vout(n string, count uint8) Arg {
	return Arg{Name: n, Kind: KindVec, Dir: Out, Len: LenVec, LenArg: count}
}

func sin(n string, l Layout) Arg {
	return Arg{Name: n, Kind: KindStruct, Dir: In, Len: LenConst, LenArg: NoArg, Layout: l}
}
func sout(n string, l Layout) Arg {
	return Arg{Name: n, Kind: KindStruct, Dir: Out, Len: LenConst, LenArg: NoArg, Layout: l}
}

// slots is a list of descriptors for an io_uring's table of files.
func slots(n string) Arg {
	return Arg{Name: n, Kind: KindStruct, Dir: In, Len: LenSlots, LenArg: NoArg, Layout: LayoutSlots}
}

// strs is an argument vector, gone once the call succeeded.
func strs(n string) Arg {
	return Arg{Name: n, Kind: KindStrings, When: AtEntry, LenArg: NoArg}
}

func atEntry(a Arg) Arg { a.When = AtEntry; return a }

func both(a Arg) Arg { a.When = AtBoth; return a }

// ins and outs are structures of which another rule says how many bytes there are.
func ins(n string, l Layout, rule LenRule, lenArg uint8) Arg {
	return Arg{Name: n, Kind: KindStruct, Dir: In, Len: rule, LenArg: lenArg, Layout: l}
}
func outs(n string, l Layout, rule LenRule, lenArg uint8) Arg {
	return Arg{Name: n, Kind: KindStruct, Dir: Out, Len: rule, LenArg: lenArg, Layout: l}
}

// raw is a structure without a layout of its own; n bytes, or at most n.
func raw(a Arg, n uint32) Arg { a.Const = n; return a }

// tailed is a head of n bytes and what it counts.
func tailed(a Arg, n uint32, t Tail) Arg {
	a.Len, a.Const, a.Tail = LenTail, n, t
	return a
}

// pointing is a head of n bytes and what it points to.
func pointing(a Arg, n uint32, t Tail) Arg {
	a.Len, a.Const, a.Tail = LenRef, n, t
	return a
}

func onlyIf(a Arg, arg uint8, values ...uint) Arg {
	a.Cond.Arg, a.Cond.Bits = arg, ^uint32(0)
	for _, v := range values {
		a.Cond.Mask |= 1 << v
	}
	return a
}

// maskedBy limits a condition to some bits of the argument that it looks at.
func maskedBy(a Arg, bits uint32) Arg { a.Cond.Bits = bits; return a }

func args(a ...Arg) []Arg { return a }
