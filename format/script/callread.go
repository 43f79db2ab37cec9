// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"math"
	"path"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/trace"
)

// call is a line of a call as it is read.
type call struct {
	op     event.Op
	spec   *event.Spec
	args   []told
	at     int // of the name
	end    int // of the arguments
	record trace.Record
	stack  *event.Stack

	asked       bool // the result is said
	resultAt    int
	interrupted bool
	numbered    bool // the call's number is said
	registers32 bool // it is one of a 32-bit program, which has its arguments in other registers
}

// operations are those of the operation table by name.
var operations = sync.OnceValue(func() map[string]event.Op {
	m := map[string]event.Op{}
	for i := range event.Specs() {
		if op := event.Specs()[i].Op; op != event.OpUnknown {
			m[op.String()] = op
		}
	}
	return m
})

// call reads name(arguments) = result with more, behind the name.
func (c *compiler) call(p *scanner, name string, at int, t *times) error {
	x := &call{at: at}
	op, ok := operations()[name]
	if !ok && name != unknownWord {
		return p.fail(at, name+": no such operation", didYouMean(name, opNames()))
	}
	x.op, x.spec = op, event.Lookup(op)
	if err := x.list(p); err != nil {
		return err
	}
	r := &x.record
	*r = trace.Record{Type: trace.RecCall, Op: uint16(op), PID: t.pid, TID: t.tid, Enter: t.enter, Exit: t.exit,
		CPU: t.cpu}
	if t.delays {
		r.Flags, r.DelayBefore, r.DelayWithin = trace.CallDelays, t.before, t.within
	}
	if t.untimed {
		r.Flags |= trace.CallUntimed
	}
	if op == event.OpUnknown {
		return c.unknown(p, x)
	}
	r.NR = uint32(event.Number(c.arch, op)) // all bits are 1 if it has none
	if len(x.args) > len(x.spec.Args) {
		return p.fail(x.args[len(x.spec.Args)].at, fmt.Sprintf("%s has %d arguments", name, len(x.spec.Args)),
			"remove what is too much")
	}
	if err := x.registers(p); err != nil {
		return err
	}
	note, err := x.result(p)
	if err != nil {
		return err
	}
	if err := c.pointers(p, x); err != nil {
		return err
	}
	if err := c.objects(p, x, note); err != nil {
		return err
	}
	if err := c.rest(p, x); err != nil {
		return err
	}
	if x.registers32 {
		event.RegistersCompat(c.arch, r.NR, &r.Args)
	}
	return c.whole(x)
}

// whole writes the records of a call.
func (c *compiler) whole(x *call) error {
	r := &x.record
	if x.stack != nil {
		s := trace.NamedStackRecord(r.PID, r.TID, r.Enter, x.stack)
		if err := c.w.Record(&s); err != nil {
			return err
		}
	}
	r.Flags |= c.special
	return c.w.Whole(r)
}

// list reads the arguments.
func (x *call) list(p *scanner) error {
	p.i++ // (
	for {
		if p.space(); p.i < len(p.s) && p.s[p.i] == ')' && len(x.args) == 0 {
			break
		}
		v, err := p.value()
		if err != nil {
			return err
		}
		x.args = append(x.args, v)
		p.space()
		if p.i < len(p.s) && p.s[p.i] == ')' {
			break
		}
		if !p.has(",") {
			return p.fail(p.i, "a comma or a closing parenthesis was expected", "the notation is strace's")
		}
		if len(x.args) > 2*event.MaxArgs {
			return p.fail(v.at, "too many arguments", "")
		}
	}
	x.end = p.i
	p.i++
	return nil
}

// unknown writes a call that the operation table does not have.
func (c *compiler) unknown(p *scanner, x *call) error {
	if len(x.args) < 1 || len(x.args) > 1+event.MaxArgs {
		return p.fail(x.at, "the call's number and up to six arguments were expected",
			"it is unknown(NUMBER, ARGUMENT, …)")
	}
	nr, err := p.numberOf(&x.args[0], "the call's number", math.MaxUint32)
	if err != nil {
		return err
	}
	x.record.NR = uint32(nr)
	for i := range x.args[1:] {
		x.unsaid(&x.args[i+1], i)
		if x.record.Args[i], err = p.numberOf(&x.args[i+1], "an argument", math.MaxUint64); err != nil {
			return err
		}
	}
	if _, err := x.result(p); err != nil {
		return err
	}
	if err := c.rest(p, x); err != nil {
		return err
	}
	return c.whole(x)
}

// compat makes a call one of a 32-bit program, after its number was read.
func (x *call) compat(p *scanner, arch event.Arch, at int, err error) error {
	if err != nil {
		return err
	}
	r := &x.record
	r.Flags |= trace.CallCompat
	if x.op == event.OpUnknown {
		return nil
	}
	if op := event.Spec32(arch, r.NR).Op; op != x.op {
		return p.fail(at, fmt.Sprintf("%d is no number of %s in 32-bit programs", r.NR, x.spec.Name), "")
	}
	x.registers32 = true
	return nil
}

// unsaid takes the mark of an argument that is not known off its value.
func (x *call) unsaid(v *told, i int) {
	if v.Kind == layout.ToldWord && len(v.Text) > 1 && v.Text[0] == unsaid && i < event.MaxArgs {
		v.Text = v.Text[1:]
		x.record.Flags |= trace.CallUnknownArg << i
	}
}

// registers reads the arguments that are numbers, and the addresses of others.
func (x *call) registers(p *scanner) error {
	args := &x.record.Args
	for i := range x.args {
		x.unsaid(&x.args[i], i)
	}
	for i := range x.args { // what others mean depends on these
		a, v := &x.spec.Args[i], &x.args[i]
		if n, ok := wordNumber(a, v); ok {
			args[i] = n
		}
	}
	for i := range x.args {
		a, v := x.spec.Argument(i, args), &x.args[i]
		n, ok := wordNumber(&a, v)
		switch {
		case ok:
			args[i] = n
		case a.Kind.IsMemory():
			args[i] = address
		case a.Kind == event.KindNone: // the kernel does not look at it
		default:
			what := "a number was expected"
			hint := ""
			if v.Kind == layout.ToldWord && v.Text != "" {
				what = first(v.Text) + " is no value of it"
				hint = didYouMean(lastName(v.Text), names(a.Set))
			}
			return p.fail(v.at, a.Name+": "+what, hint)
		}
	}
	return nil
}

// wordNumber returns the value of a word that is a number or names.
func wordNumber(a *event.Arg, v *told) (uint64, bool) {
	switch {
	case v.Kind != layout.ToldWord || v.Text == "":
		return 0, false
	case v.Text == nothing:
		if a.Kind.IsMemory() {
			return address, true
		}
		return 0, true
	case v.Text == "AT_FDCWD":
		fd := int64(event.AtFDCWD)
		return uint64(fd), true
	case a.Kind.IsMemory(): // what stands for content are words too
		return event.ParseNumber(v.Text)
	}
	return a.Set.ParseValue(v.Text)
}

func lastName(text string) string { return text[strings.LastIndexByte(text, '|')+1:] }

func names(s *event.Set) []string {
	var list []string
	if s != nil {
		for _, it := range s.Items {
			list = append(list, it.Name)
		}
	}
	return list
}

// result reads what stands behind the arguments, up to "with". The note is of the
// descriptor that a call returns.
func (x *call) result(p *scanner) (note string, err error) {
	r := &x.record
	if p.space(); !p.has("=") {
		return "", x.supposed(p)
	}
	p.space()
	x.asked, x.resultAt = true, p.i
	if p.has("?") {
		r.Flags |= trace.CallInterrupted
		x.interrupted = true
		return "", nil
	}
	v, err := p.value()
	if err != nil {
		return "", err
	}
	n, ok := event.ParseNumber(v.Text)
	if !ok {
		if e, ok := event.ErrnoByName(v.Text); ok {
			r.Ret = -int64(e)
			return "", nil
		}
		return "", p.fail(v.at, first(v.Text)+": a result was expected", "it is a number, -1 ERROR, or ?")
	}
	r.Ret = int64(n)
	if r.Ret != -1 {
		return v.Note, nil
	}
	p.space()
	at := p.i
	name := p.word()
	if name == "" || name == "with" {
		p.i = at
		return "", p.fail(at, "which error is it?", "write -1 ENOENT, or 0")
	}
	if e, ok := event.ErrnoByName(name); ok {
		r.Ret = -int64(e)
		return "", nil
	}
	if n, ok := event.ParseNumber(strings.TrimPrefix(name, "E")); ok && name[0] == 'E' && n > 0 && n < 4096 {
		r.Ret = -int64(n)
		return "", nil
	}
	return "", p.fail(at, name+": no such error", didYouMean(name, errorNames()))
}

var errorNames = sync.OnceValue(func() []string {
	var list []string
	for n := range 600 {
		if name := event.ErrnoName(errnoOf(n)); name != "" && !strings.HasPrefix(name, "errno") {
			list = append(list, name)
		}
	}
	return list
})

// supposed is the result of a call that does not say it: it succeeds, and moves all that
// it is asked for.
func (x *call) supposed(p *scanner) error {
	x.resultAt = x.end
	switch kind := x.spec.Returns(&x.record.Args).Kind; {
	case kind == event.KindFD:
		return p.fail(x.end, x.spec.Name+" returns a descriptor, which is not said", "add = NUMBER")
	case kind == event.KindSize && x.spec.Class == event.Data:
		if n, ok := x.wanted(); ok {
			x.record.Ret = n
		}
	}
	return nil
}

// wanted returns how many bytes a data call asks for.
func (x *call) wanted() (int64, bool) {
	if x.spec.Class != event.Data || x.spec.Result != event.KindSize {
		return 0, false
	}
	for i := range x.args {
		switch a := &x.spec.Args[i]; a.Kind {
		case event.KindSize:
			return int64(min(x.record.Args[i], trace.MaxContentBytes)), true
		case event.KindVec:
			n, any := int64(0), false
			for j := range x.args[i].Parts {
				if f := &x.args[i].Parts[j]; f.Name == "lens" {
					for k := range f.Parts {
						v, _ := event.ParseNumber(f.Parts[k].Text)
						n += int64(min(v, trace.MaxContentBytes))
						any = true
					}
				}
			}
			return n, any
		}
	}
	return 0, false
}

// pointers reads the arguments that are memory.
func (c *compiler) pointers(p *scanner, x *call) error {
	for i := range x.args {
		a, v := x.spec.Argument(i, &x.record.Args), &x.args[i]
		if !a.Kind.IsMemory() {
			continue
		}
		if v.Kind == layout.ToldWord && v.Text == nothing {
			if n, ok := x.contentOf(i); ok {
				if err := c.addBytes(p, &x.record, i, v,
					[]bytesSpan{{span: span{kind: omittedSpan, n: n}}}); err != nil {
					return err
				}
			}
			continue
		}
		if _, ok := event.ParseNumber(v.Text); ok && v.Kind == layout.ToldWord {
			continue // an address
		}
		if err := c.addMemory(p, x, &a, i, i, a.Kind, v); err != nil {
			return err
		}
	}
	return nil
}

// contentOf returns how many bytes of content an argument has, if it has content and
// their number follows from the result.
func (x *call) contentOf(i int) (int64, bool) {
	return contentOf(x.spec, &x.record.Args, i, x.record.Ret, x.record.Ret >= 0 && !x.interrupted)
}

func contentOf(spec *event.Spec, args *[event.MaxArgs]uint64, i int, ret int64, succeeded bool) (int64, bool) {
	if i >= len(spec.Args) {
		return 0, false // a request's head
	}
	a := &spec.Args[i]
	if !spec.IsContent(i) || a.Kind != event.KindBuf || a.Len != event.LenRet || !succeeded {
		return 0, false
	}
	n := min(ret, trace.MaxContentBytes)
	if a.LenArg != event.NoArg { // the result may be more: recv with MSG_TRUNC
		n = int64(min(uint64(n), args[a.LenArg]))
	}
	return n, true
}

// fit makes content as long as the call's result says.
func (x *call) fit(p *scanner, a *event.Arg, i int, v *told, list []bytesSpan) ([]bytesSpan, error) {
	n, ok := x.contentOf(i)
	switch have := length(list); {
	case !ok || have == n:
		return list, nil
	case have > n:
		return cut(list, n), nil
	default:
		hint := fmt.Sprintf("write = %d, or more content", have)
		if !x.asked {
			hint = fmt.Sprintf("ask for %d bytes, or write more content", have)
		}
		return nil, p.fail(v.at, fmt.Sprintf("%s has %d bytes, the call moves %d", a.Name, have, n), hint)
	}
}

// objects adds what is said of descriptors that are arguments, or the result.
func (c *compiler) objects(p *scanner, x *call, note string) error {
	r := &x.record
	for i := range x.args {
		if v := &x.args[i]; v.Note != "" {
			if err := c.object(p, v.at, r, int8(i), int32(r.Args[i]), v.Note, x.op); err != nil {
				return err
			}
		}
	}
	if note == "" || r.Ret < 0 {
		return nil
	}
	name, known := factWords(note)
	if known != "" && x.otherName(name) {
		c.drop(known)
		return nil
	}
	return c.object(p, x.resultAt, r, event.ResultArg, int32(r.Ret), note, x.op)
}

// otherName reports whether a call that opens a file by name was given another name than
// that of the descriptor's note: the line was edited, and what the kernel said of the
// file does not hold.
func (x *call) otherName(name string) bool {
	for i := range x.args {
		if x.spec.Args[i].Kind != event.KindPath || x.args[i].Kind != layout.ToldText {
			continue
		}
		asked := string(x.args[i].Data)
		name = strings.TrimSuffix(name, " (deleted)")
		if base := path.Base(asked); base == "." || base == ".." || strings.HasPrefix(asked, "/proc/") ||
			strings.HasPrefix(asked, "/dev/") {
			return false
		}
		return strings.HasPrefix(name, "/") && path.Base(asked) != path.Base(name)
	}
	return false
}

// rest reads what stands behind the result.
func (c *compiler) rest(p *scanner, x *call) error {
	if p.space(); p.end() {
		return nil
	}
	if at := p.i; p.word() != "with" {
		return p.fail(at, fmt.Sprintf("%q: nothing more was expected", first(p.s[at:])),
			"more than the result stands behind: with")
	}
	for {
		p.space()
		at := p.i
		word := p.word()
		if !p.has("=") {
			return p.fail(at, "a word and = were expected", "")
		}
		v, err := p.value()
		if err != nil {
			return err
		}
		if err := c.more(p, x, word, at, &v); err != nil {
			return err
		}
		if p.space(); p.end() {
			return nil
		}
		if !p.has(",") {
			return p.fail(p.i, "a comma was expected", "")
		}
	}
}

// inMemory takes the descriptors in the call's memory.
func (c *compiler) inMemory(p *scanner, x *call, v *told) error {
	for j := range v.Parts {
		d := &v.Parts[j]
		fd, ok := event.ParseNumber(d.Text)
		if !ok || d.Kind != layout.ToldWord {
			return p.fail(v.at, fmt.Sprintf("descriptor %d of fds is no number", j+1), "")
		}
		if err := c.object(p, v.at, &x.record, event.MemoryArg, int32(fd), d.Note, x.op); err != nil {
			return err
		}
	}
	return nil
}

// more takes one word behind "with".
func (c *compiler) more(p *scanner, x *call, word string, at int, v *told) error {
	switch word {
	case numberWord, compatWord:
		nr, err := p.numberOf(v, "a call's number", math.MaxUint32)
		x.record.NR, x.numbered = uint32(nr), true
		if word == compatWord {
			return x.compat(p, c.arch, v.at, err)
		}
		return err
	case stackWord:
		return c.stackOf(p, x, v)
	case missedWord:
		if v.Text != "1" {
			return p.fail(v.at, "behind "+missedWord+"= stands 1", "")
		}
		x.record.Flags |= trace.CallMissed
		return nil
	case requestWord:
		if nr, ok := requestNumber(x.op, v.Data); ok && !x.numbered {
			x.record.NR = nr
		}
		return c.addMemory(p, x, &event.Arg{Name: word}, event.RequestArg, event.RequestArg, event.KindStruct, v)
	case resultWord:
		fd, err := p.numberOf(v, "a descriptor", math.MaxInt32)
		if err != nil {
			return err
		}
		return c.object(p, v.at, &x.record, event.ResultArg, int32(fd), v.Note, x.op)
	case fdsWord:
		return c.inMemory(p, x, v)
	}
	return c.ofArgument(p, x, word, at, v)
}

// ofArgument takes a word that ends with the number of its argument.
func (c *compiler) ofArgument(p *scanner, x *call, word string, at int, v *told) error {
	name := strings.TrimRight(word, "0123456789")
	arg, ok := event.ParseNumber(word[len(name):])
	if !ok || arg >= uint64(len(x.spec.Args)) {
		return p.fail(at, word+": an argument's number stands behind the word",
			fmt.Sprintf("%s has arguments 0 to %d", x.spec.Name, len(x.spec.Args)-1))
	}
	i := int(arg)
	a := x.spec.Argument(i, &x.record.Args)
	if name == addressWord {
		n, err := p.numberOf(v, "an address", math.MaxUint64)
		x.record.Args[i] = n
		return err
	}
	if name == fileWord {
		fd, _ := event.ParseNumber(v.Text)
		return c.object(p, v.at, &x.record, int8(i), int32(fd), v.Note, x.op)
	}
	for part, w := range partWords {
		if w == name {
			kind := event.KindBuf
			switch event.Part(part) {
			case event.PartData:
				kind = event.KindVec
			case event.PartWhole:
				if a.Kind == event.KindPath {
					kind = a.Kind
				}
			default:
				kind = event.KindStruct
			}
			return c.addMemory(p, x, &a, i, event.Part(part).Of(i), kind, v)
		}
	}
	return p.fail(at, word+": no such word",
		didYouMean(name, append(partWords[:], addressWord, fileWord, requestWord, resultWord, fdsWord, numberWord,
			compatWord, missedWord, stackWord)))
}
