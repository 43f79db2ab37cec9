// SPDX-License-Identifier: Apache-2.0

package event

// Stack is where in its program a thread made a call: its frames, the innermost first. Stacks are
// shared between events and must not be changed.
type Stack struct {
	Frames []Frame
	End    StackEnd
}

// Frame is a position in a program. Of a caller it is behind the call.
type Frame struct {
	Module  string // the file that is mapped there; "" if there is none, "[vdso]" for the kernel's
	BuildID string // identifies the content of Module, hexadecimal; "" if it has none
	Offset  uint64 // of the position in Module; its address if there is none
	Exact   bool   // a signal interrupted the program at the position; no call was made there

	Function string // "" if it is not known
	Delta    uint64 // bytes from the beginning of Function to the position
	File     string // source file; "" if it is not known
	Line     int    // in File
}

// StackEnd says why a stack has no further frames.
type StackEnd uint8

// The reasons.
const (
	StackComplete   StackEnd = iota // the thread began there
	StackLimit                      // it has more frames than were asked for
	StackMemory                     // the stack's memory could not be read, or was not recorded so far
	StackUnknown                    // the last frame is in no file: code made while the program ran
	StackUnreadable                 // the file of the last frame could not be read
	StackBroken                     // nothing says where the caller is
	numStackEnds
)

var stackEnds = [numStackEnds]string{"complete", "more frames than the limit", "the stack's memory is not recorded",
	"code without a file", "a file that could not be read", "nothing says where the caller is"}

// String returns the reason in words.
func (e StackEnd) String() string {
	if e < numStackEnds {
		return stackEnds[e]
	}
	return "unknown"
}

// StackEndByName is the inverse of StackEnd.String.
func StackEndByName(name string) (e StackEnd, ok bool) {
	for i, s := range stackEnds {
		if s == name {
			return StackEnd(i), true
		}
	}
	return StackBroken, false
}

// ParseStackEnd takes a number for a reason. One of a newer version is StackBroken.
func ParseStackEnd(n uint64) StackEnd {
	if n < uint64(numStackEnds) {
		return StackEnd(n)
	}
	return StackBroken
}

// Name returns what the position is called: the function, or else the module.
func (f *Frame) Name() string {
	if f.Function != "" {
		return f.Function
	}
	return f.Module
}
