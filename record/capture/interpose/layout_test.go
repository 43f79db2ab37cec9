// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
)

// evaluate returns the values of C expressions in the terms of inproc/layout.h, and of the
// definitions of inproc/entry.S.
func evaluate(t *testing.T, expressions []string) map[string]int64 {
	t.Helper()
	entry, err := os.ReadFile("inproc/entry.S")
	if err != nil {
		t.Fatal(err)
	}
	var src strings.Builder
	src.WriteString("#include <stddef.h>\n#include <stdio.h>\n#include \"layout.h\"\n")
	for _, define := range regexp.MustCompile(`(?m)^#define.*$`).FindAllString(string(entry), -1) {
		src.WriteString(define + "\n")
	}
	src.WriteString("int main(void)\n{\n")
	for _, e := range expressions {
		fmt.Fprintf(&src, "\tprintf(\"%%ld\\n\", (long)(%s));\n", e)
	}
	src.WriteString("\treturn 0;\n}\n")
	dir := t.TempDir()
	file, bin := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	if err := os.WriteFile(file, []byte(src.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	gcc := exec.Command("gcc", "-w", "-I", "inproc", "-I", "../../internal/bpf/include", "-o", bin, file)
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]int64{}
	for i, line := range strings.Fields(string(out)) {
		if values[expressions[i]], err = strconv.ParseInt(line, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if len(values) != len(expressions) {
		t.Fatalf("%d values, want %d", len(values), len(expressions))
	}
	return values
}

// TestLayout compares what the recorder and the code in a process share.
func TestLayout(t *testing.T) {
	const perDescriptor = unsafe.Sizeof(descriptor{})
	want := map[string]int64{
		"CALLS": tableCalls, "ROWS": tableRows, "CLOCKS": clocks, "DESCRIPTORS": descriptors, "SLOT_BYTES": slotBytes,
		"CLASS_PASS": int64(classPass), "CLASS_RECORD": int64(classRecord), "CLASS_LATE": int64(classLate),
		"CLASS_CHECK": int64(classCheck), "CLASS_TRACE": int64(classTrace),
		"CHECK_NONE": checkNone, "CHECK_POSITION": checkPosition, "CHECK_CLOSE": checkClose, "CHECK_CONTROL": checkControl,
		"CHECK_OPEN": checkOpen, "CHECK_SHARE": checkShare, "CHECK_SHARE_1": checkShare1, "CHECK_MOVE": checkMove,
		"CHECK_RING": checkRing, "DEVICES": devices, "COMMANDS": commandRoom, "CHECK_REQUEST": checkRequest,
		"COMMAND_UNUSED": commandUnused, "COMMAND_NONE": commandNone, "COMMAND_IN": commandIn,
		"COMMAND_OUT": commandOut, "COMMAND_TRACE": commandTrace, "WATCHED": watchedFiles,
		"CHECK_FILES": checkFiles, "CHECK_MMAP": checkMmap, "CHECK_RANGE": checkRange,
		"CHECK_OFFER": checkOffer, "CHECK_MASK": checkMask, "CHECK_RETURN": checkReturn,
		"CHECK_WAIT": checkWait, "CHECK_ACTION": checkAction, "SLOTS": arenaSlots, "CODE_BYTES": codeBytes,
		"REASON_NONE": reasonNone, "REASON_RECORD": reasonRecord, "REASON_ROOM": reasonRoom,
		"REASON_SIGNAL": reasonSignal, "REASON_AGAIN": reasonAgain,
		"STATE_NONE": stateNone, "STATE_BEFORE": stateBefore, "STATE_CALLING": stateCalling, "STATE_AFTER": stateAfter,
		"PREFILTER_STEPS": predicate.MaxPrefilterSteps, "sizeof(struct prefilter_step)": int64(unsafe.Sizeof(bpf.PrefilterStep{})),
		"(sizeof(struct control) + 4095) / 4096 * 4096": int64(controlBytes),
		"(sizeof(struct files) + 4095) / 4096 * 4096":   int64(filesBytes),
		"sizeof(struct spec)":                           int64(unsafe.Sizeof(bpf.Spec{})),
		"offsetof(struct files, d)":                     int64(unsafe.Sizeof(files{}) - descriptors*perDescriptor),
		"sizeof(struct descriptor)":                     int64(unsafe.Sizeof(descriptor{})),
	}
	fields := func(structure string, of any, names map[string]string) {
		ty := reflect.TypeOf(of)
		want["sizeof(struct "+structure+")"] = int64(ty.Size())
		for i := range ty.NumField() {
			f := ty.Field(i)
			if f.Name == "_" {
				continue
			}
			in := names[f.Name]
			if in == "" {
				in = strings.ToLower(f.Name)
			}
			want["offsetof(struct "+structure+", "+in+")"] = int64(f.Offset)
			want["sizeof(((struct "+structure+" *)0)->"+in+")"] = int64(f.Type.Size())
		}
	}
	fields("clock", clock{}, map[string]string{"BaseTSC": "base_tsc", "BaseNS": "base_ns"})
	fields("control", control{}, map[string]string{"StackSteps": "stack_steps"})
	fields("command", command{}, nil)
	fields("descriptor", descriptor{}, nil)
	fields("files", files{}, nil)
	// The rest of a slot is the stack of the code in the process.
	fields("slot", slot{}, map[string]string{"RingBytes": "ring_bytes", "LapEnd": "lap_end"})

	expressions := make([]string, 0, len(want))
	for e := range want {
		expressions = append(expressions, e)
	}
	for e, got := range evaluate(t, expressions) {
		if got != want[e] {
			t.Errorf("%s is %d in C, %d in Go", e, got, want[e])
		}
	}
}

// TestEntryOffsets compares the offsets that entry.S uses with the structures.
func TestEntryOffsets(t *testing.T) {
	same := map[string]string{"C_CLASS": "offsetof(struct control, class)",
		"STACK_TOP": "SLOT_BYTES", "STUB_RET": strconv.Itoa(stubRet)}
	const fields = "NR RET FLAGS RSP ENTER EXIT RESULT STATE PENDING REASON SELF CONTROL ENTRY STUB OPEN"
	for _, f := range strings.Fields(fields) {
		same["S_"+f] = "offsetof(struct slot, " + strings.ToLower(f) + ")"
	}
	for i := range 6 {
		same[fmt.Sprintf("S_A%d", i)] = fmt.Sprintf("offsetof(struct slot, args[%d])", i)
	}
	entry, err := os.ReadFile("inproc/entry.S")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+)`).FindAllStringSubmatch(string(entry), -1) {
		if same[m[1]] == "" {
			t.Errorf("entry.S defines %s, which this test does not know", m[1])
		}
	}
	var expressions []string
	for a, b := range same {
		expressions = append(expressions, a, b)
	}
	values := evaluate(t, expressions)
	for a, b := range same {
		if values[a] != values[b] {
			t.Errorf("%s is %d in entry.S, but %s is %d", a, values[a], b, values[b])
		}
	}
}

// TestCodeFits checks that the parts of the code's memory do not overlap, and that what the
// tracer writes at a program's entry fits a page.
func TestCodeFits(t *testing.T) {
	c, err := inproc()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.text) > stubsAt {
		t.Errorf("%d bytes of code, room for %d", len(c.text), stubsAt)
	}
	if n := c.loaderEnd - c.loader; n > 512 {
		t.Errorf("the loader has %d bytes, more than may be free where it runs", n)
	}
	for name, at := range map[string]uint64{
		"gate_end": c.gateEnd, "pass_end": c.passEnd, "own_end": c.symbols["own_end"],
		"restorer_end": c.restorerEnd, "arming": c.arming + 2,
	} {
		if at > c.gatesEnd || [2]byte(c.text[at-2:at]) != [2]byte(syscallBytes) {
			t.Errorf("no system call within the gates ends at %s (%#x)", name, at)
		}
	}
	for name, at := range map[string]uint64{"trap_end": c.trapEnd, "announce_end": c.announceEnd} {
		if at-2 < c.gatesEnd || [2]byte(c.text[at-2:at]) != [2]byte(syscallBytes) {
			t.Errorf("no system call outside the gates ends at %s (%#x)", name, at)
		}
	}
}

// TestTables checks that there is room for every operation that can be recorded in the process.
func TestTables(t *testing.T) {
	tables := newTables(&capture.Options{}, nil)
	if n := len(tables.rows); n > tableRows {
		t.Fatalf("%d operations are recorded in the process, room for %d", n, tableRows)
	}
	for _, nr := range []int{unix.SYS_READ, unix.SYS_OPENAT, unix.SYS_NEWFSTATAT, unix.SYS_PWRITEV, unix.SYS_STATX} {
		if got := tables.fast[nr]; got != classRecord {
			t.Errorf("%v is of class %d, want %d: it is recorded in the process",
				event.ByNumber(event.AMD64, nr), got, classRecord)
		}
	}
}
