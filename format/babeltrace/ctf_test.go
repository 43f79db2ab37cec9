// SPDX-License-Identifier: Apache-2.0

package babeltrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ctfEvents are the events of the sample, as LTTng's kernel tracer defines them: name
// and fields. Types are those of ctfTypes; hex is a pointer.
var ctfEvents = []string{
	"syscall_entry_openat dfd:i32 filename:string flags:open_flags mode:u16",
	"syscall_exit_openat ret:i64",
	"syscall_entry_read fd:u32 count:u64",
	"syscall_exit_read ret:i64 buf:hex",
	"syscall_entry_write fd:u32 buf:hex count:u64",
	"syscall_exit_write ret:i64",
	"syscall_entry_pwrite64 fd:u32 buf:hex count:u64 pos:i64",
	"syscall_exit_pwrite64 ret:i64",
	"syscall_entry_close fd:u32",
	"syscall_exit_close ret:i64",
	"syscall_entry_newfstat fd:u32",
	"syscall_exit_newfstat ret:i64 statbuf:hex",
	"syscall_entry_clone clone_flags:hex newsp:hex parent_tid:hex child_tid:hex",
	"syscall_exit_clone ret:i64",
	"syscall_entry_execve filename:string argv:hex envp:hex",
	"syscall_exit_execve ret:i64",
	"syscall_entry_pipe2 flags:i32",
	"syscall_exit_pipe2 ret:i64 fildes:pair",
	"syscall_entry_renameat2 olddfd:i32 oldname:string newdfd:i32 newname:string flags:u32",
	"syscall_exit_renameat2 ret:i64",
	"syscall_entry_exit_group error_code:i32",
	"syscall_entry_unknown",
	"syscall_exit_unknown ret:i64",
	"sched_switch prev_comm:string prev_tid:i32 next_comm:string next_tid:i32",
	"lttng_statedump_process_state tid:i32 pid:i32 ppid:i32 name:string file_table_address:hex",
	"lttng_statedump_file_descriptor file_table_address:hex fd:i32 flags:hex filename:string",
	"syscall_entry_getpriority which:i32 who:i32",
}

const ctfTypes = `typealias integer { size = 16; align = 8; signed = false; base = 8; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := hex;
typealias enum : u32 { "O_RDONLY" = 0, "O_WRONLY" = 1, "O_CREAT" = 64, "O_CLOEXEC" = 524288 } := open_flags;
`

// ctfEvent is an event of a trace: when, where, who, and the values of its fields.
type ctfEvent struct {
	time     uint64
	tid, pid int
	comm     string
	name     string
	values   []any // int for every kind of integer, string, [2]int
}

// writeCTF writes a trace in the Common Trace Format 1.8, which babeltrace2 reads. With
// who, events have LTTng's contexts vpid, vtid and procname.
func writeCTF(t testing.TB, dir string, who bool, events []ctfEvent) {
	t.Helper()
	var m strings.Builder
	m.WriteString("/* CTF 1.8 */\n" + ctfTypes)
	m.WriteString(`trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
env { hostname = "mill"; domain = "kernel"; tracer_name = "lttng-modules"; };
clock { name = "monotonic"; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := stamp;
stream { id = 0;
	packet.context := struct { u64 content_size; u64 packet_size; u32 cpu_id; };
	event.header := struct { u32 id; stamp timestamp; };
`)
	if who {
		m.WriteString("	event.context := struct { i32 _vpid; i32 _vtid; string _procname; };\n")
	}
	m.WriteString("};\n")
	ids := map[string]int{}
	types := map[string][]string{}
	for i, e := range ctfEvents {
		w := strings.Fields(e)
		ids[w[0]] = i
		fmt.Fprintf(&m, "event { name = %q; id = %d; stream_id = 0; fields := struct {", w[0], i)
		for _, f := range w[1:] {
			name, typ, _ := strings.Cut(f, ":")
			types[w[0]] = append(types[w[0]], typ)
			if typ == "pair" {
				fmt.Fprintf(&m, " i32 _%s[2];", name)
			} else {
				fmt.Fprintf(&m, " %s _%s;", typ, name)
			}
		}
		m.WriteString(" }; };\n")
	}
	le := binary.LittleEndian
	body := make([]byte, 28)
	str := func(s string) { body = append(append(body, s...), 0) }
	for _, e := range events {
		id, ok := ids[e.name]
		if !ok || len(e.values) != len(types[e.name]) {
			t.Fatalf("event %s with %d values", e.name, len(e.values))
		}
		body = le.AppendUint64(le.AppendUint32(body, uint32(id)), e.time)
		if who {
			body = le.AppendUint32(le.AppendUint32(body, uint32(e.pid)), uint32(e.tid))
			str(e.comm)
		}
		for i, typ := range types[e.name] {
			switch v := e.values[i].(type) {
			case string:
				str(v)
			case [2]int:
				body = le.AppendUint32(le.AppendUint32(body, uint32(v[0])), uint32(v[1]))
			case int:
				switch typ {
				case "u16":
					body = le.AppendUint16(body, uint16(v))
				case "u32", "i32", "open_flags":
					body = le.AppendUint32(body, uint32(v))
				default:
					body = le.AppendUint64(body, uint64(v))
				}
			}
		}
	}
	le.PutUint32(body, 0xc1fc1fc1)
	le.PutUint64(body[8:], uint64(len(body))*8)
	le.PutUint64(body[16:], uint64(len(body))*8)
	for name, data := range map[string][]byte{"metadata": []byte(m.String()), "channel0_0": body} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Clone(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// sample is what a shell does: it opens a pipe, forks, and the child becomes cat, which
// copies what it reads.
var sample = []ctfEvent{
	{1000, 10, 10, "sh", "lttng_statedump_process_state", []any{10, 10, 1, "sh", 0xff00}},
	{1001, 10, 10, "sh", "lttng_statedump_file_descriptor", []any{0xff00, 0, 0x8000, "/home/u/in"}},
	{2000, 10, 10, "sh", "syscall_entry_pipe2", []any{0}},
	{2500, 10, 10, "sh", "syscall_exit_pipe2", []any{0, [2]int{3, 4}}},
	{3000, 10, 10, "sh", "syscall_entry_clone", []any{0x1200011, 0, 0, 0}},
	{3300, 11, 11, "sh", "syscall_exit_clone", []any{0}},
	{3400, 11, 11, "sh", "syscall_entry_openat", []any{-100, "/tmp/a \"b\"\n\x01é", 0o101, 0o644}},
	{3500, 10, 10, "sh", "syscall_exit_clone", []any{11}},
	{3600, 11, 11, "sh", "syscall_exit_openat", []any{5}},
	{4000, 11, 11, "sh", "syscall_entry_execve", []any{"/bin/cat", 0x5555, 0x6666}},
	{4500, 11, 11, "cat", "syscall_exit_execve", []any{0}},
	{5000, 11, 11, "cat", "syscall_entry_read", []any{0, 131072}},
	{5500, 11, 11, "cat", "syscall_exit_read", []any{6, 0x7ffe}},
	{5600, 11, 11, "cat", "syscall_entry_write", []any{5, 0x7ffe, 6}},
	{5700, 11, 11, "cat", "syscall_exit_write", []any{6}},
	{5800, 11, 11, "cat", "syscall_entry_pwrite64", []any{5, 0x7ffe, 3, 4096}},
	{5900, 11, 11, "cat", "syscall_exit_pwrite64", []any{3}},
	{6000, 11, 11, "cat", "syscall_entry_newfstat", []any{9}},
	{6100, 11, 11, "cat", "syscall_exit_newfstat", []any{-9, 0x7ffe}},
	{6200, 11, 11, "cat", "syscall_entry_renameat2", []any{-100, "/tmp/x", -100, "/tmp/y", 0}},
	{6300, 11, 11, "cat", "syscall_exit_renameat2", []any{0}},
	{6400, 11, 11, "cat", "syscall_entry_unknown", []any{}},
	{6500, 11, 11, "cat", "syscall_exit_unknown", []any{-38}},
	{6600, 11, 11, "cat", "syscall_entry_exit_group", []any{2}},
	{6700, 10, 10, "sh", "syscall_entry_read", []any{3, 10}},
}
